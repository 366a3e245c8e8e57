"""Train a small neural network on scikit-learn's digits: one trial of the study in study.yaml.

A worker starts it. By hand it runs alone: python train.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import tandem
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

BY_HAND = {"hidden_units": 64, "learning_rate": 0.1, "batch_size": 16, "l2": 1e-4}


def main() -> None:
    trial = tandem.current_trial(params=BY_HAND, epochs=9)
    images, labels = load_digits(return_X_y=True)
    # Always the same split: trials are compared on the same validation images.
    training, validation, training_labels, validation_labels = train_test_split(
        images / 16.0, labels, test_size=500, random_state=0, stratify=labels
    )
    count = max(20, round(len(training) * trial.data_fraction))
    batch_size = min(trial.params["batch_size"], count)
    whole = count - count % batch_size  # a last batch of one image would shake the weights

    model = MLPClassifier(
        hidden_layer_sizes=(trial.params["hidden_units"],),
        learning_rate_init=trial.params["learning_rate"],
        batch_size=batch_size,
        alpha=trial.params["l2"],
        solver="sgd",
        momentum=0.0,  # the weights are then all the state there is
        shuffle=False,  # done below, so that a resumed run draws the same orders
        random_state=trial.seed % 2**32,
    )

    def save(path: str) -> None:
        layers = [*model.coefs_, *model.intercepts_]
        with Path(path).open("wb") as file:
            np.savez(file, **{str(i): layer for i, layer in enumerate(layers)})

    def restore(path: str) -> None:
        # One batch lays the layers out, the saved ones are then put in their place.
        model.partial_fit(training[:batch_size], training_labels[:batch_size], classes=np.arange(10))
        with Path(path).open("rb") as file:
            saved = np.load(file, allow_pickle=False)
            for i, layer in enumerate([*model.coefs_, *model.intercepts_]):
                layer[...] = saved[str(i)]

    trial.restore(restore)
    for epoch in trial.epochs():
        order = np.random.default_rng([trial.seed, epoch]).permutation(count)[:whole]
        model.partial_fit(training[order], training_labels[order], classes=np.arange(10))
        trial.report(accuracy=model.score(validation, validation_labels), loss=model.loss_)
        trial.checkpoint(save)


if __name__ == "__main__":
    main()
