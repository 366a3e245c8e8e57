import gzip
import sys
from pathlib import Path

import numpy as np
import optuna


def load(name):
    data = Path("../examples/lenet-fashion-mnist/data")
    images = gzip.decompress((data / f"{name}-images-idx3-ubyte.gz").read_bytes())[16:]
    labels = gzip.decompress((data / f"{name}-labels-idx1-ubyte.gz").read_bytes())[8:]
    images = np.frombuffer(images, np.uint8).reshape(-1, 28 * 28).astype(np.float32) / 255
    return images, np.frombuffer(labels, np.uint8)


def train(images, labels, weights, velocity, learning_rate, momentum, batch_size):
    for start in range(0, len(images), batch_size):
        batch, wanted = images[start : start + batch_size], labels[start : start + batch_size]
        scores = batch @ weights
        shares = np.exp(scores - scores.max(1, keepdims=True))
        errors = shares / shares.sum(1, keepdims=True) - np.eye(10, dtype=np.float32)[wanted]
        velocity *= momentum
        velocity -= learning_rate * (batch.T @ errors) / len(batch)
        weights += velocity


def accuracy(images, labels, weights):
    return float(((images @ weights).argmax(1) == labels).mean())


training, validation = load("train"), load("validation")


def objective(trial):
    learning_rate = trial.suggest_float("learning_rate", 1e-4, 1.0, log=True)
    momentum = trial.suggest_float("momentum", 0.0, 0.99)
    batch_size = trial.suggest_categorical("batch_size", [64, 256, 1024])
    weights, velocity = np.zeros((28 * 28, 10), np.float32), np.zeros((28 * 28, 10), np.float32)
    for epoch in range(5):
        train(*training, weights, velocity, learning_rate, momentum, batch_size)
        found = accuracy(*validation, weights)
        trial.report(found, epoch)
        if trial.should_prune():
            raise optuna.TrialPruned
    return found


if __name__ == "__main__":
    study = optuna.create_study(
        study_name=sys.argv[1], direction="maximize", storage="sqlite:///sweeps.db", load_if_exists=True
    )
    study.optimize(objective, n_trials=12)
    print(len(study.trials), "trials, the best:", study.best_value, study.best_params)
