"""SMAC3: its multi-fidelity facade (random forest and Hyperband), through ask and tell, with its defaults.

Each rung is trained from the first epoch on. A diverged training is a crash that costs as much as the worst so far.
"""

import math
import tempfile
import warnings
from pathlib import Path

from oracle import Job, Spent, arguments, config_space, jobs
from smac import MultiFidelityFacade, Scenario
from smac.runhistory.dataclasses import TrialValue
from smac.runhistory.enumerations import StatusType


def nothing(config: object, seed: int = 0, budget: float = 0) -> float:
    raise NotImplementedError("only ask and tell are used")


def run(job: Job) -> None:
    worst = 0.0
    with tempfile.TemporaryDirectory() as folder:
        scenario = Scenario(
            config_space(job),
            deterministic=True,
            min_budget=job.min_epochs,
            max_budget=job.max_epochs,
            n_trials=1_000_000,
            seed=job.seed,
            output_directory=Path(folder),
        )
        intensifier = MultiFidelityFacade.get_intensifier(scenario, eta=job.eta)
        smac = MultiFidelityFacade(scenario, nothing, intensifier=intensifier, overwrite=True, logging_level=False)
        try:
            while True:
                info = smac.ask()
                loss = job.train(job.values(dict(info.config)), 1, round(info.budget))[-1]
                if math.isfinite(loss):
                    worst = max(worst, loss)
                    smac.tell(info, TrialValue(cost=loss))
                else:
                    smac.tell(info, TrialValue(cost=worst, status=StatusType.CRASHED))
        except Spent:
            return


def main() -> None:
    warnings.simplefilter("ignore")
    for job in jobs(arguments().parse_args().oracle):
        run(job)


if __name__ == "__main__":
    main()
