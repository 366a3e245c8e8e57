"""DEHB, through ask and tell, with its defaults. Each rung is trained from the first epoch on."""

import math
import tempfile

from dehb import DEHB
from oracle import Job, Spent, arguments, config_space, jobs


def run(job: Job) -> None:
    space = config_space(job)
    with tempfile.TemporaryDirectory() as folder:
        optimizer = DEHB(
            cs=space,
            dimensions=len(job.parameters),
            min_fidelity=job.min_epochs,
            max_fidelity=job.max_epochs,
            eta=job.eta,
            seed=job.seed,
            n_workers=1,
            output_path=folder,
            log_level="ERROR",
        )
        try:
            while True:
                asked = optimizer.ask()
                epochs = round(asked["fidelity"])
                loss = job.train(job.values(dict(asked["config"])), 1, epochs)[-1]
                fitness = loss if math.isfinite(loss) else math.inf
                optimizer.tell(asked, {"fitness": fitness, "cost": epochs, "info": {}})
        except Spent:
            return


def main() -> None:
    for job in jobs(arguments().parse_args().oracle):
        run(job)


if __name__ == "__main__":
    main()
