"""Train a small Keras network on scikit-learn's digits: one trial of the study in study.yaml.

A worker starts it. By hand it runs alone: python train.py
"""

from __future__ import annotations

import os
from pathlib import Path

os.environ.setdefault("KERAS_BACKEND", "jax")  # or tensorflow, or torch

import keras
import tandem
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

BY_HAND = {"units": 64, "layers": 1, "dropout": 0.1, "learning_rate": 0.003, "batch_size": 32}


def build(params: dict[str, float]) -> keras.Model:
    layers = [keras.layers.Input((64,))]
    for _ in range(params["layers"]):
        layers += [keras.layers.Dense(params["units"], "relu"), keras.layers.Dropout(params["dropout"])]
    model = keras.Sequential([*layers, keras.layers.Dense(10, "softmax")])
    model.compile(
        keras.optimizers.Adam(params["learning_rate"]), "sparse_categorical_crossentropy", metrics=["accuracy"]
    )
    return model


def main() -> None:
    images, labels = load_digits(return_X_y=True)
    # Always the same split: trials are compared on the same validation images.
    training, validation, training_labels, validation_labels = train_test_split(
        images / 16.0, labels, test_size=500, random_state=0, stratify=labels
    )
    for trial in tandem.trials(params=BY_HAND, epochs=9):
        count = max(50, round(len(training) * trial.data_fraction))
        run(trial, training[:count], training_labels[:count], validation, validation_labels)


def run(trial: tandem.Trial, images, labels, validation, validation_labels) -> None:
    keras.utils.set_random_seed(trial.seed % 2**32)
    model = build(trial.params)

    def save(path: str) -> None:
        Path(path).mkdir()
        model.save(Path(path, "model.keras"))  # with the optimizer's state

    def restore(path: str) -> None:
        nonlocal model
        model = keras.saving.load_model(Path(path, "model.keras"))  # runs no code that is in it

    trial.restore(restore)
    for _ in trial.epochs():  # the order of batches and dropout are drawn anew after a pause
        model.fit(images, labels, trial.params["batch_size"], verbose=0)
        loss, accuracy = model.evaluate(validation, validation_labels, verbose=0)
        trial.report(accuracy=accuracy, loss=loss)
        trial.checkpoint(save)


if __name__ == "__main__":
    main()
