"""Optuna: its TPE sampler with its Hyperband pruner, everything else at its default.

The default of 5.0.0 is the multivariate sampler; --independent is that of Optuna 4.

A trial is trained epoch by epoch and pruned by Hyperband, so nothing is trained twice.
"""

import contextlib
import warnings
from typing import Any

import optuna
from oracle import Job, Spent, arguments, jobs


def suggest(trial: optuna.Trial, p: dict[str, Any]) -> Any:
    if p["type"] == "ordinal":
        return trial.suggest_int(p["name"], 0, len(p["values"]) - 1)
    if p["type"] == "int":
        return trial.suggest_int(p["name"], int(p["low"]), int(p["high"]), log=p.get("log", False))
    return trial.suggest_float(p["name"], p["low"], p["high"], log=p.get("log", False))


def run(job: Job, multivariate: bool | None) -> None:
    def objective(trial: optuna.Trial) -> float:
        params = job.values({p["name"]: suggest(trial, p) for p in job.parameters})
        loss = 0.0
        for epoch in range(1, job.max_epochs + 1):
            (loss,) = job.train(params, epoch, epoch)
            trial.report(loss, epoch)
            if trial.should_prune():
                raise optuna.TrialPruned
        return loss

    study = optuna.create_study(
        sampler=optuna.samplers.TPESampler(seed=job.seed, multivariate=multivariate),
        pruner=optuna.pruners.HyperbandPruner(
            min_resource=job.min_epochs, max_resource=job.max_epochs, reduction_factor=job.eta
        ),
    )
    with contextlib.suppress(Spent):
        study.optimize(objective)


def main() -> None:
    parser = arguments()
    parser.add_argument("--independent", action="store_true")
    args = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore")
    for job in jobs(args.oracle):
        run(job, False if args.independent else None)


if __name__ == "__main__":
    main()
