"""Optuna on a workload: its TPE sampler with its Hyperband pruner, everything else at its default.

It trains in its own process, as its users do, so PyTorch is loaded once. With several --processes,
each runs this study on one storage, as Optuna's manual has it. All processes append a line for each
epoch to --out, and stop when there are as many as the budget has.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import optuna
import torch
from job import create
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend


def main() -> None:
    options = arguments()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore")
    processes = [again(options, number) for number in range(1, options.processes)] if options.number == 0 else []
    run(options)
    for process in processes:
        if process.wait() != 0:
            raise SystemExit(f"a process of the study ended with {process.returncode}")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workload", required=True)
    parser.add_argument("--space", type=json.loads, required=True, help="JSON list of parameters")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--budget", type=int, required=True, help="epochs in all")
    parser.add_argument("--epochs", type=int, required=True, help="of a full training")
    parser.add_argument("--eta", type=int, required=True)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--number", type=int, default=0, help="of this process")
    parser.add_argument("--out", type=Path, required=True)
    return parser.parse_args()


def again(options: argparse.Namespace, number: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, *sys.argv, "--number", str(number)])


def run(options: argparse.Namespace) -> None:
    study = optuna.create_study(
        study_name="pipetune",
        storage=None
        if options.processes == 1
        else JournalStorage(JournalFileBackend(str(options.out.with_suffix(".journal")))),
        load_if_exists=True,
        direction="maximize",
        sampler=optuna.samplers.TPESampler(seed=options.seed + 1000 * options.number),
        pruner=optuna.pruners.HyperbandPruner(
            min_resource=1, max_resource=options.epochs, reduction_factor=options.eta
        ),
    )
    log = Log(options.out, options.budget)

    def objective(trial: optuna.Trial) -> float:
        params = {parameter["name"]: suggest(trial, parameter) for parameter in options.space}
        job = create(options.workload, params, options.seed * 1_000_003 + trial.number)
        accuracy = 0.0
        for epoch in range(1, options.epochs + 1):
            if log.spent():
                study.stop()
                raise optuna.TrialPruned
            start = time.monotonic()
            job.epoch()
            accuracy = job.accuracy()
            log.add(trial.number, epoch, accuracy, time.monotonic() - start, params)
            trial.report(accuracy, epoch)
            if trial.should_prune():
                raise optuna.TrialPruned
        return accuracy

    while not log.spent():
        study.optimize(objective, n_trials=1)


def suggest(trial: optuna.Trial, parameter: dict[str, Any]) -> Any:
    name = parameter["name"]
    if parameter["type"] == "ordinal":
        return trial.suggest_categorical(name, parameter["values"])
    if parameter["type"] == "int":
        return trial.suggest_int(name, int(parameter["low"]), int(parameter["high"]), log=parameter.get("log", False))
    return trial.suggest_float(name, parameter["low"], parameter["high"], log=parameter.get("log", False))


class Log:
    """The epochs of all processes, a line of JSON each."""

    def __init__(self, path: Path, budget: int) -> None:
        self.path, self.budget = path, budget

    def spent(self) -> bool:
        return self.path.exists() and self.path.read_bytes().count(b"\n") >= self.budget

    def add(self, trial: int, epoch: int, accuracy: float, seconds: float, params: dict[str, Any]) -> None:
        line = {
            "at": time.time(),
            "trial": trial,
            "epoch": epoch,
            "accuracy": accuracy,
            "seconds": seconds,
            "params": params,
            "threads": torch.get_num_threads(),
        }
        # One write in append mode: lines of two processes do not mix.
        with self.path.open("ab", buffering=0) as file:
            file.write(json.dumps(line).encode() + b"\n")


if __name__ == "__main__":
    main()
