"""HpBandSter: BOHB, the authors' own implementation, with its defaults.

It promotes by calling the same function with a larger budget, so each rung is trained from the first epoch on.
"""

import logging
import math
import random
import uuid
from typing import Any

import hpbandster.core.nameserver as nameserver
import numpy as np
from hpbandster.core.worker import Worker
from hpbandster.optimizers import BOHB
from oracle import Job, Spent, arguments, config_space, jobs


class Trainer(Worker):
    def __init__(self, job: Job, **rest: Any) -> None:
        super().__init__(**rest)
        self.job = job

    def compute(self, config: dict[str, Any], budget: float, **_: Any) -> dict[str, Any]:
        loss = math.inf
        if not self.job.done:
            try:
                loss = self.job.train(self.job.values(config), 1, round(budget))[-1]
            except Spent:
                loss = math.inf  # the bracket ends with what costs nothing and counts for nothing
        return {"loss": loss if math.isfinite(loss) else math.inf, "info": {}}


def run(job: Job) -> None:
    random.seed(job.seed)
    np.random.seed(job.seed)
    run_id = str(uuid.uuid4())
    server = nameserver.NameServer(run_id=run_id, host="127.0.0.1", port=0)
    host, port = server.start()
    worker = Trainer(job, run_id=run_id, nameserver=host, nameserver_port=port)
    worker.run(background=True)
    optimizer = BOHB(
        configspace=config_space(job),
        run_id=run_id,
        nameserver=host,
        nameserver_port=port,
        min_budget=job.min_epochs,
        max_budget=job.max_epochs,
        eta=job.eta,
    )
    while not job.done:
        optimizer.run(n_iterations=1)
    optimizer.shutdown(shutdown_workers=True)
    server.shutdown()


def main() -> None:
    logging.disable(logging.CRITICAL)
    for job in jobs(arguments().parse_args().oracle):
        run(job)


if __name__ == "__main__":
    main()
