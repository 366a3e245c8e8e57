"""A convolutional network on Fashion-MNIST whose width and depth are tuned; a worker starts it.

python3 images.py --export '{"channels": 16, "blocks": 2, "dropout": 0.1}' model.onnx    writes a network untrained.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import numpy as np
import tandem
import torch
from torch import nn
from torch.nn import functional

SHAPE = (1, 1, 28, 28)
Part = tuple[torch.Tensor, torch.Tensor]


def network(channels: int, blocks: int, dropout: float) -> nn.Module:
    layers: list[nn.Module] = [nn.Conv2d(1, channels, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
    for _ in range(blocks):
        layers += [nn.Conv2d(channels, channels, 3, padding=1), nn.ReLU()]
    layers += [nn.MaxPool2d(2), nn.Flatten(), nn.Dropout(dropout), nn.Linear(channels * 49, 64), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(64, 10))


def load(part: str) -> Part:
    folder = Path(os.environ["PIPETUNE_DATA"])
    pixels = torch.from_numpy(np.load(folder / f"fmnist-{part}-inputs.npy").reshape(-1, 1, 28, 28))
    labels = torch.from_numpy(np.load(folder / f"fmnist-{part}-labels.npy").reshape(-1)).long()
    return pixels.float().sub_(72.0).div_(90.0), labels


# A checkpoint holds tensors only, so that it can be loaded without running code
# from the file, whichever PyTorch it is: the optimizer's moments by their place.
def state(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, torch.Tensor]:
    tensors = {f"model/{name}": value for name, value in model.state_dict().items()}
    for place, moments in optimizer.state_dict()["state"].items():
        tensors.update({f"moment/{place}/{name}": torch.as_tensor(value) for name, value in moments.items()})
    return tensors


def restore(tensors: dict[str, torch.Tensor], model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    weights: dict[str, torch.Tensor] = {}
    moments: dict[int, dict[str, torch.Tensor]] = {}
    for name, value in tensors.items():
        if name.startswith("model/"):
            weights[name.removeprefix("model/")] = value
        else:
            _, place, key = name.split("/")
            moments.setdefault(int(place), {})[key] = value
    model.load_state_dict(weights)
    optimizer.load_state_dict({**optimizer.state_dict(), "state": moments})


def train(
    trial: tandem.Trial, training: tuple[torch.Tensor, torch.Tensor], validation: tuple[torch.Tensor, torch.Tensor]
) -> None:
    torch.manual_seed(trial.seed % 2**63)
    params = trial.params
    model = network(params["channels"], params["blocks"], params["dropout"])
    optimizer = torch.optim.Adam(model.parameters(), lr=params["learning_rate"])
    if os.environ["EMULATE"] == "yes":
        trial.save_model(model, torch.zeros(SHAPE))

    trial.restore(lambda path: restore(torch.load(path, weights_only=True), model, optimizer))
    count = round(len(training[0]) * trial.data_fraction)
    for _ in trial.epochs():
        model.train()
        order = torch.randperm(count)
        for places in order.split(params["batch_size"]):
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(training[0][places]), training[1][places])
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            right = (model(validation[0]).argmax(1) == validation[1]).float().mean()
        trial.report(accuracy=float(right))
        trial.checkpoint(lambda path: torch.save(state(model, optimizer), path))


def main() -> None:
    if sys.argv[1:2] == ["--export"]:
        params = json.loads(sys.argv[2])
        model = network(int(params["channels"]), int(params["blocks"]), float(params["dropout"])).eval()
        torch.onnx.export(
            model,
            torch.zeros(SHAPE),
            sys.argv[3],
            input_names=["images"],
            dynamic_axes={"images": {0: "batch"}},
            opset_version=13,
        )
        return
    images = int(os.environ["IMAGES"])
    pixels, labels = load("training")
    training, validation = (pixels[:images], labels[:images]), load("validation")
    for trial in tandem.trials():
        train(trial, training, validation)


main()
