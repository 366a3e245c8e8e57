"""Optuna's example for scikit-learn (sklearn_simple.py) with recorded accuracies in place of its trainings.

What the objective of that example answers, in 150ths (iris has 150 flowers; threefold cross-validation): for the
support vector machine by the logarithm of C, recorded in steps of 0.01, each value until the next; for the random
forest how often each came in 30 trainings at each of twelve depths, those from 4 on together as they do not differ.
Recorded with scikit-learn 1.9. So a comparison can have many runs: 148 is the best, on 0.65% of the range of C.
"""

import bisect
import math
import random

import optuna

MACHINE = [
    (-10, 48),
    (-1.75, 52),
    (-1.74, 64),
    (-1.73, 71),
    (-1.72, 80),
    (-1.71, 98),
    (-1.7, 107),
    (-1.69, 109),
    (-1.68, 111),
    (-1.67, 112),
    (-1.56, 113),
    (-1.51, 114),
    (-1.47, 115),
    (-1.46, 117),
    (-1.45, 119),
    (-1.44, 121),
    (-1.43, 124),
    (-1.42, 125),
    (-1.41, 126),
    (-1.4, 129),
    (-1.39, 130),
    (-1.38, 133),
    (-1.37, 135),
    (-1.36, 134),
    (-1.3, 135),
    (-1.28, 138),
    (-1.22, 139),
    (-1.19, 140),
    (-1.17, 141),
    (-0.97, 142),
    (-0.92, 143),
    (-0.91, 141),
    (-0.9, 142),
    (-0.89, 143),
    (-0.83, 144),
    (-0.81, 145),
    (-0.76, 144),
    (-0.41, 145),
    (-0.36, 144),
    (-0.31, 145),
    (-0.03, 146),
    (0.08, 145),
    (0.23, 146),
    (0.24, 147),
    (0.26, 146),
    (0.34, 145),
    (0.37, 146),
    (0.56, 147),
    (0.57, 148),
    (0.7, 147),
    (1.08, 146),
    (1.21, 145),
    (1.47, 144),
    (1.6, 145),
    (1.64, 144),
    (2.2, 143),
    (2.24, 142),
    (2.35, 141),
    (2.42, 142),
    (2.68, 143),
    (2.72, 144),
]
FOREST = {
    2: {141: 3, 142: 9, 143: 9, 144: 7, 145: 2},
    3: {141: 1, 142: 3, 143: 11, 144: 10, 145: 5},
    4: {141: 7, 142: 35, 143: 90, 144: 96, 145: 65, 146: 7},
}


def objective(trial):
    if trial.suggest_categorical("classifier", ["SVC", "RandomForest"]) == "SVC":
        size = math.log10(trial.suggest_float("svc_c", 1e-10, 1e10, log=True))
        return MACHINE[max(bisect.bisect([start for start, _ in MACHINE], size), 1) - 1][1] / 150
    seen = FOREST[min(trial.suggest_int("rf_max_depth", 2, 32, log=True), 4)]
    return random.choices(list(seen), list(seen.values()))[0] / 150


study = optuna.create_study(direction="maximize")
study.optimize(objective, n_trials=100)
