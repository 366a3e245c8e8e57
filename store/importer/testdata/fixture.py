"""Makes optuna.db, the fixture of importer's tests: python fixture.py optuna.db, with Optuna 5.0.0."""

import os
import sys

import optuna

optuna.logging.set_verbosity(optuna.logging.WARNING)


def objective(trial):
    lr = trial.suggest_float("lr", 1e-4, 1.0, log=True)
    trial.suggest_categorical("batch", [32, 64, 128])
    if trial.suggest_categorical("optimizer", ["sgd", "adam"]) == "sgd":
        trial.suggest_float("momentum", 0.0, 0.99)
    trial.suggest_int("seed", 1, 5)  # no parameter of the study that begins with these results
    if trial.number == 3:
        raise ValueError("failed, as some do")
    for epoch in range(3):
        trial.report(lr * (epoch + 1), epoch)
        if trial.number == 5 and epoch == 1:
            raise optuna.TrialPruned
    if trial.number == 7:
        return float("inf")
    return 3 * lr


def main(path):
    if os.path.exists(path):
        os.remove(path)
    storage = f"sqlite:///{path}"
    sampler = optuna.samplers.RandomSampler(seed=1)
    study = optuna.create_study(storage=storage, study_name="sweep", direction="maximize", sampler=sampler)
    study.enqueue_trial({"lr": 0.5, "batch": 64, "optimizer": "adam", "seed": 3})
    study.optimize(objective, n_trials=10, catch=ValueError)
    other = optuna.create_study(storage=storage, study_name="losses", direction="minimize", sampler=sampler)
    other.optimize(lambda trial: trial.suggest_float("lr", 10.0, 20.0), n_trials=2)


main(sys.argv[1])
