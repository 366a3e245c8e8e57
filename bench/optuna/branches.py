"""Two models with parameters of their own, and functions in place of their trainings.

The better end of the first branch is narrow, that of the second broad and a little worse, so that a search has to
look at both.
"""

import math

import optuna


def objective(trial):
    if trial.suggest_categorical("model", ["machine", "forest"]) == "machine":
        penalty = trial.suggest_float("penalty", 1e-10, 1e10, log=True)
        width = trial.suggest_float("width", 1e-4, 1e2, log=True)
        return 0.98 - 0.02 * (math.log10(penalty) - 1) ** 2 - 0.03 * (math.log10(width) + 1.5) ** 2
    depth = trial.suggest_int("depth", 2, 32, log=True)
    trees = trial.suggest_int("trees", 5, 100)
    return 0.95 - 0.05 * (math.log2(depth) - 4) ** 2 - 1 / (10 + trees)


study = optuna.create_study(direction="maximize")
study.optimize(objective, n_trials=100)
