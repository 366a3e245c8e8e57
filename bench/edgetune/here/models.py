"""Write eight networks with random weights as ONNX files, for the comparison of estimates with real runs.

python3 models.py FOLDER    (needs PyTorch; Debian's python3-torch will do)
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from torch import nn


def convolutions(channels: int, depth: int) -> nn.Module:
    layers: list[nn.Module] = [nn.Conv2d(3, channels, 3, padding=1), nn.ReLU()]
    for step in range(depth):
        layers += [nn.Conv2d(channels, channels, 3, padding=1), nn.BatchNorm2d(channels), nn.ReLU()]
        if step % 2:
            layers.append(nn.MaxPool2d(2))
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 10))


def separable(channels: int, depth: int) -> nn.Module:
    layers: list[nn.Module] = [nn.Conv2d(3, channels, 3, stride=2, padding=1), nn.ReLU6()]
    for _ in range(depth):
        layers += [
            nn.Conv2d(channels, channels, 3, padding=1, groups=channels),
            nn.ReLU6(),
            nn.Conv2d(channels, channels, 1),
            nn.ReLU6(),
        ]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 10))


def perceptron(width: int, depth: int) -> nn.Module:
    layers: list[nn.Module] = [nn.Flatten()]
    size = 3 * 32 * 32
    for _ in range(depth):
        layers += [nn.Linear(size, width), nn.ReLU()]
        size = width
    return nn.Sequential(*layers, nn.Linear(size, 10))


NETWORKS = {
    "convolutions-16": lambda: convolutions(16, 4),
    "convolutions-32": lambda: convolutions(32, 4),
    "convolutions-64": lambda: convolutions(64, 6),
    "separable-32": lambda: separable(32, 6),
    "separable-96": lambda: separable(96, 8),
    "perceptron-256": lambda: perceptron(256, 2),
    "perceptron-1024": lambda: perceptron(1024, 3),
    "perceptron-2048": lambda: perceptron(2048, 2),
}


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, build in NETWORKS.items():
        torch.manual_seed(1)
        torch.onnx.export(
            build().eval(),
            torch.zeros(1, 3, 32, 32),
            str(folder / f"{name}.onnx"),
            input_names=["images"],
            dynamic_axes={"images": {0: "batch"}},
            opset_version=13,
        )


main()
