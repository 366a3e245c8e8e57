"""Boost trees with XGBoost on scikit-learn's digits: one trial of the study in study.yaml.

A worker starts it. By hand it runs alone: python train.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import tandem
import xgboost
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

BY_HAND = {"learning_rate": 0.3, "max_depth": 4, "subsample": 0.8, "min_child_weight": 1.0}
ROUNDS = 5  # trees of each class in what we call an epoch


def main() -> None:
    images, labels = load_digits(return_X_y=True)
    # Always the same split: trials are compared on the same validation images.
    training, validation, training_labels, validation_labels = train_test_split(
        images, labels, test_size=500, random_state=0, stratify=labels
    )
    watched = xgboost.DMatrix(validation, validation_labels)
    for trial in tandem.trials(params=BY_HAND, epochs=9):
        count = max(50, round(len(training) * trial.data_fraction))
        run(trial, xgboost.DMatrix(training[:count], training_labels[:count]), watched)


def run(trial: tandem.Trial, training: xgboost.DMatrix, watched: xgboost.DMatrix) -> None:
    settings = {
        **trial.params,
        "objective": "multi:softprob",
        "num_class": 10,
        "seed": trial.seed % 2**31,
        "seed_per_iteration": True,  # so that a resumed run draws the same samples
    }
    booster: xgboost.Booster | None = None

    def save(path: str) -> None:
        Path(path).mkdir()
        booster.save_model(Path(path, "model.ubj"))  # its end tells the format

    def restore(path: str) -> None:
        nonlocal booster
        booster = xgboost.Booster(model_file=Path(path, "model.ubj"))

    trial.restore(restore)
    for _ in trial.epochs():
        # The number of threads may change between epochs.
        threads = {"nthread": trial.system["cpu_threads"]} if "cpu_threads" in trial.system else {}
        booster = xgboost.train({**settings, **threads}, training, ROUNDS, xgb_model=booster)
        probabilities = booster.predict(watched)
        truth = watched.get_label().astype(int)
        trial.report(
            accuracy=float(np.mean(probabilities.argmax(axis=1) == truth)),
            loss=float(-np.log(probabilities[np.arange(len(truth)), truth]).mean()),
        )
        trial.checkpoint(save)


if __name__ == "__main__":
    main()
