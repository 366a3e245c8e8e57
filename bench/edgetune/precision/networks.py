"""Four networks on Fashion-MNIST, for the comparison of precisions; a worker starts it (study.yaml).

It reads the images as the example lenet-fashion-mnist does.
"""

from __future__ import annotations

import sys
from pathlib import Path

import tandem
import torch
from torch import nn
from torch.nn import functional

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "examples" / "lenet-fashion-mnist"))
from fashion_mnist import load


class Attention(nn.Module):
    """An encoder over the 16 patches of an image."""

    def __init__(self, width: int, depth: int, heads: int = 4) -> None:
        super().__init__()
        self.width, self.heads = width, heads
        self.patches = nn.Conv2d(1, width, 7, stride=7)
        self.place = nn.Parameter(torch.randn(1, 16, width) * 0.02)
        part = nn.ModuleList
        self.norms = part(nn.LayerNorm(width) for _ in range(2 * depth))
        self.queries = part(nn.Linear(width, width) for _ in range(depth))
        self.keys = part(nn.Linear(width, width) for _ in range(depth))
        self.values = part(nn.Linear(width, width) for _ in range(depth))
        self.outs = part(nn.Linear(width, width) for _ in range(depth))
        self.wide = part(nn.Linear(width, 4 * width) for _ in range(depth))
        self.narrow = part(nn.Linear(4 * width, width) for _ in range(depth))
        self.classes = nn.Linear(width, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        x = self.patches(images).flatten(2).transpose(1, 2) + self.place
        for i, (query, key, value, out) in enumerate(zip(self.queries, self.keys, self.values, self.outs)):
            y = self.norms[2 * i](x)
            q, k, v = (self.split(one(y)) for one in (query, key, value))
            weights = (q @ k.transpose(2, 3) / (self.width // self.heads) ** 0.5).softmax(3)
            x = x + out((weights @ v).transpose(1, 2).reshape(-1, 16, self.width))
            x = x + self.narrow[i](self.wide[i](self.norms[2 * i + 1](x)).relu())
        return self.classes(x.mean(1))

    def split(self, x: torch.Tensor) -> torch.Tensor:
        return x.reshape(-1, 16, self.heads, self.width // self.heads).transpose(1, 2)


def block(channels: int, out: int, stride: int) -> list[nn.Module]:
    depthwise = nn.Conv2d(channels, channels, 3, stride=stride, padding=1, groups=channels, bias=False)
    pointwise = nn.Conv2d(channels, out, 1, bias=False)
    return [depthwise, nn.BatchNorm2d(channels), nn.ReLU6(), pointwise, nn.BatchNorm2d(out), nn.ReLU6()]


def network(name: str) -> nn.Module:
    if name == "lenet":
        layers: list[nn.Module] = [nn.Conv2d(1, 16, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)]
        layers += [nn.Conv2d(16, 32, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(800, 120), nn.ReLU()]
        return nn.Sequential(*layers, nn.Linear(120, 10))
    if name == "separable":
        layers = [nn.Conv2d(1, 32, 3, padding=1, bias=False), nn.BatchNorm2d(32), nn.ReLU6()]
        layers += block(32, 64, 2) + block(64, 128, 2) + block(128, 128, 1) + block(128, 128, 1)
        return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 10))
    if name == "perceptron":
        layers = [nn.Flatten(), nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU()]
        return nn.Sequential(*layers, nn.Linear(1024, 10))
    return Attention(128, 2)


@torch.no_grad()
def accuracy(model: nn.Module, images: torch.Tensor, labels: torch.Tensor) -> float:
    model.eval()
    right = [(model(part).argmax(1) == label).sum() for part, label in zip(images.split(250), labels.split(250))]
    return float(sum(right)) / len(labels)


def main() -> None:
    training, validation, _ = load(3000)
    labels = validation.labels.numpy()
    torch.set_num_threads(1)
    for trial in tandem.trials():
        torch.manual_seed(trial.seed % 2**63)
        model = network(trial.params["network"])
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        trial.save_model(model, validation.images[:1])
        for _ in trial.epochs():
            model.train()
            for batch in torch.randperm(len(training)).split(64):
                optimizer.zero_grad()
                functional.cross_entropy(model(training.images[batch]), training.labels[batch]).backward()
                optimizer.step()
            trial.report(accuracy=accuracy(model, validation.images, validation.labels))
        trial.log_model(
            model,
            validation.images[:1],
            calibration=training.images[:256],
            evaluate=lambda predict: (predict(validation.images).argmax(1) == labels).mean(),
        )


main()
