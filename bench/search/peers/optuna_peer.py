"""Optuna: a sampler with its Hyperband pruner, everything else at its default.

The default sampler of 5.0.0 is the multivariate TPE; "independent" is that of Optuna 4, "gp" is GPSampler,
and "auto" is AutoSampler, which optunahub fetches (pip install optunahub cmaes).

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


def automatic(seed: int) -> optuna.samplers.BaseSampler:
    import optunahub

    return optunahub.load_module("samplers/auto_sampler").AutoSampler(seed=seed)


SAMPLERS = {
    "tpe": lambda seed: optuna.samplers.TPESampler(seed=seed),
    "independent": lambda seed: optuna.samplers.TPESampler(seed=seed, multivariate=False),
    "gp": lambda seed: optuna.samplers.GPSampler(seed=seed),
    "auto": automatic,
}


def run(job: Job, sampler: str) -> None:
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
        sampler=SAMPLERS[sampler](job.seed),
        pruner=optuna.pruners.HyperbandPruner(
            min_resource=job.min_epochs, max_resource=job.max_epochs, reduction_factor=job.eta
        ),
    )
    with contextlib.suppress(Spent):
        study.optimize(objective)


def main() -> None:
    parser = arguments()
    parser.add_argument("--sampler", choices=SAMPLERS, default="tpe")
    args = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore")
    for job in jobs(args.oracle):
        run(job, args.sampler)


if __name__ == "__main__":
    main()
