"""Train LeNet-5 on Fashion-MNIST: the trials of the study in study.yaml, one after the other.

A worker starts it. By hand it runs alone: python train.py --epochs 3
"""

from __future__ import annotations

import argparse
import inspect
import os

import tandem
import torch
from fashion_mnist import Split, load
from torch import nn
from torch.nn import functional

BY_HAND = {
    "learning_rate": 0.002,
    "learning_rate_decay": 0.85,
    "batch_size": 32,
    "conv_channels": 12,
    "dropout": 0.15,
}

# From torch 1.13 on, load can refuse to run code from the file.
LOAD_SAFELY = {"weights_only": True} if "weights_only" in inspect.signature(torch.load).parameters else {}


def main() -> None:
    options = arguments()
    training, validation, source = load(options.images)  # once, for all trials that this process is given
    for trial in tandem.trials(params=BY_HAND, epochs=options.epochs, system={"cpu_threads": 2}):
        share = training.first(trial.data_fraction)
        print(
            f"training on {len(share)} of {len(training)} images, validating on {len(validation)}, from {source}",
            flush=True,
        )
        train(trial, share, validation, options.save_model)


def train(trial: tandem.Trial, training: Split, validation: Split, save_model: bool) -> None:
    torch.set_num_threads(trial.system.get("cpu_threads", 1))
    torch.manual_seed(trial.seed % 2**63)
    model = lenet5(trial.params["conv_channels"], trial.params["dropout"])
    optimizer = torch.optim.Adam(model.parameters(), lr=trial.params["learning_rate"])
    if save_model:
        trial.save_model(model, validation.images[:1])

    # Only tensors are kept: they can be loaded without running code from the
    # file, and everything else follows from the trial's parameters.
    def save(path: str) -> None:
        state = {
            "model": model.state_dict(),
            "moments": optimizer.state_dict()["state"],
            "generator": torch.get_rng_state(),
        }
        torch.save(state, path)

    def restore(path: str) -> None:
        state = torch.load(path, **LOAD_SAFELY)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict({**optimizer.state_dict(), "state": state["moments"]})
        torch.set_rng_state(state["generator"])

    trial.restore(restore)
    for epoch in trial.epochs():
        # Follows the epoch, not the share of the budget: an epoch is the same
        # whether the trial is promoted after it or not.
        decay = trial.params["learning_rate_decay"] ** (epoch - 1)
        optimizer.param_groups[0]["lr"] = trial.params["learning_rate"] * decay
        loss = train_one_epoch(model, optimizer, training, trial.params["batch_size"])
        trial.report(accuracy=accuracy(model, validation), loss=loss)
        trial.checkpoint(save)
    if save_model:
        labels = validation.labels.numpy()
        trial.log_model(
            model,
            validation.images[:1],
            calibration=training.images[:256],  # the rest is for other precisions than fp32, if the study wants any
            evaluate=lambda predict: (predict(validation.images).argmax(1) == labels).mean(),
        )


def lenet5(channels: int, dropout: float) -> nn.Module:
    """LeNet-5 (LeCun et al. 1998) with ReLU and max pooling, and its width as a parameter (6 in the original)."""
    return nn.Sequential(
        nn.Conv2d(1, channels, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(channels, 2 * channels, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(2 * channels * 5 * 5, 120),
        nn.ReLU(),
        nn.Dropout(dropout),
        nn.Linear(120, 84),
        nn.ReLU(),
        nn.Linear(84, 10),
    )


def train_one_epoch(model: nn.Module, optimizer: torch.optim.Optimizer, data: Split, batch_size: int) -> float:
    """One pass in a new random order; returns the mean loss."""
    model.train()
    total = 0.0
    for batch in torch.randperm(len(data)).split(batch_size):
        loss = functional.cross_entropy(model(data.images[batch]), data.labels[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(batch)
    return total / len(data)


@torch.no_grad()
def accuracy(model: nn.Module, data: Split) -> float:
    """The share of images whose most likely class is the right one."""
    model.eval()
    batches = zip(data.images.split(500), data.labels.split(500))
    return sum((model(images).argmax(1) == labels).sum().item() for images, labels in batches) / len(data)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Train LeNet-5 on Fashion-MNIST.")
    parser.add_argument("--epochs", type=int, default=3, help="when run by hand (default %(default)s)")
    parser.add_argument(
        "--images",
        type=int,
        default=int(os.environ.get("FASHION_MNIST_IMAGES") or 0) or None,
        help="training images at most (default: the whole sample, or 20000 of the full set)",
    )
    parser.add_argument(
        "--save-model",
        action="store_true",
        help="hand the model over before training, for a study with a section inference (edge.yaml)",
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
