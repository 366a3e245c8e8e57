"""The trials of a study of the benchmark: a worker starts it, and gives it one trial after the other.

The search sees the validation accuracy only. Threads follow the trial's system configuration where
the study tunes it, a parameter named threads where that is part of the space, and otherwise stay
what the worker gave the process.
"""

from __future__ import annotations

import argparse
import time

import tandem
import torch
from job import create, use_threads


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workload", required=True)
    options = parser.parse_args()
    for trial in tandem.trials():
        train(trial, options.workload)


def train(trial: tandem.Trial, workload: str) -> None:
    params = dict(trial.params)
    if "threads" in params:
        use_threads(int(params.pop("threads")))
    job = create(workload, params, trial.seed)
    trial.restore(lambda path: job.load(torch.load(path, weights_only=True)))
    keeping = 0.0
    for _ in trial.epochs():
        job.configure(trial.system)
        job.epoch()
        trial.report(accuracy=job.accuracy(), checkpoint_seconds=keeping)  # of the epoch before
        start = time.monotonic()
        trial.checkpoint(lambda path: torch.save(job.state(), path))
        keeping = time.monotonic() - start


if __name__ == "__main__":
    main()
