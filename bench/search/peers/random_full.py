"""Random search: every configuration is trained in full, nothing is stopped early."""

import contextlib
import math
import random
from typing import Any

from oracle import Job, Spent, arguments, jobs


def draw(generator: random.Random, p: dict[str, Any]) -> Any:
    if p["type"] == "ordinal":
        return generator.randrange(len(p["values"]))
    low, high = p["low"], p["high"]
    if p["type"] == "int" and not p.get("log", False):
        return generator.randint(int(low), int(high))
    if p["type"] == "int":
        # Each whole number owns its rounding interval.
        value = math.exp(generator.uniform(math.log(low - 0.5), math.log(high + 0.5)))
        return min(max(round(value), int(low)), int(high))
    if p.get("log", False):
        return math.exp(generator.uniform(math.log(low), math.log(high)))
    return generator.uniform(low, high)


def run(job: Job) -> None:
    generator = random.Random(job.seed)
    with contextlib.suppress(Spent):
        while True:
            job.train(job.values({p["name"]: draw(generator, p) for p in job.parameters}), 1, job.max_epochs)


def main() -> None:
    for job in jobs(arguments().parse_args().oracle):
        run(job)


if __name__ == "__main__":
    main()
