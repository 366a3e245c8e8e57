"""Fifteen families of networks for pictures of 32 by 32 and for sentences, small enough to train on two cores.

They are the families of table 1 of Yeung and others (HotCloud 2020), narrower, with a perceptron and LeNet
beside them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import nn

CLASSES, VOCABULARY, SENTENCE = 10, 2000, 50


def unit(
    inside: int, out: int, kernel: int = 1, stride: int = 1, groups: int = 1, active: bool = True
) -> nn.Sequential:
    layers: list[nn.Module] = [
        nn.Conv2d(inside, out, kernel, stride, kernel // 2, groups=groups, bias=False),
        nn.BatchNorm2d(out),
    ]
    return nn.Sequential(*layers, nn.ReLU()) if active else nn.Sequential(*layers)


def head(channels: int) -> nn.Sequential:
    return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, CLASSES))


class Residual(nn.Module):
    """What is added to its input, which is projected where the shapes differ."""

    def __init__(self, body: nn.Module, inside: int, out: int, stride: int) -> None:
        super().__init__()
        self.body = body
        self.short = nn.Identity() if inside == out and stride == 1 else unit(inside, out, 1, stride, active=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.body(x) + self.short(x))


def basic(inside: int, out: int, stride: int) -> Residual:
    return Residual(nn.Sequential(unit(inside, out, 3, stride), unit(out, out, 3, active=False)), inside, out, stride)


def bottleneck(inside: int, width: int, stride: int, groups: int = 1) -> Residual:
    body = nn.Sequential(
        unit(inside, width), unit(width, width, 3, stride, groups), unit(width, 4 * width, active=False)
    )
    return Residual(body, inside, 4 * width, stride)


def lenet() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 6, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, CLASSES),
    )  # fmt: skip


def perceptron(width: int, depth: int) -> nn.Module:
    layers: list[nn.Module] = [nn.Flatten()]
    size = 3 * 32 * 32
    for _ in range(depth):
        layers += [nn.Linear(size, width), nn.ReLU()]
        size = width
    return nn.Sequential(*layers, nn.Linear(size, CLASSES))


def vgg(widths: list[int], repeats: int) -> nn.Module:
    layers: list[nn.Module] = []
    inside = 3
    for width in widths:
        for _ in range(repeats):
            layers.append(unit(inside, width, 3))
            inside = width
        layers.append(nn.MaxPool2d(2))
    return nn.Sequential(*layers, head(inside))


def resnet(width: int, blocks: list[int]) -> nn.Module:
    layers: list[nn.Module] = [unit(3, width, 3)]
    inside = width
    for stage, count in enumerate(blocks):
        for block in range(count):
            layers.append(basic(inside, width << stage, 2 if stage and not block else 1))
            inside = width << stage
    return nn.Sequential(*layers, head(inside))


def resnext(width: int, groups: int, blocks: list[int]) -> nn.Module:
    layers: list[nn.Module] = [unit(3, 4 * width, 3)]
    inside = 4 * width
    for stage, count in enumerate(blocks):
        for block in range(count):
            layers.append(bottleneck(inside, width << stage, 2 if stage and not block else 1, groups))
            inside = 4 * (width << stage)
    return nn.Sequential(*layers, head(inside))


def pyramidnet(depth: int, alpha: int) -> nn.Module:
    layers: list[nn.Module] = [unit(3, 16, 3)]
    inside = 16
    for block in range(depth):
        out = 16 + alpha * (block + 1) // depth
        layers.append(basic(inside, out, 2 if block in (depth // 3, 2 * depth // 3) else 1))
        inside = out
    return nn.Sequential(*layers, head(inside))


class Inverted(nn.Module):
    """A block of MobileNetV2: wide in the middle, each channel by itself there."""

    def __init__(self, inside: int, out: int, stride: int, expand: int, kernel: int) -> None:
        super().__init__()
        wide = inside * expand
        self.same = inside == out and stride == 1
        self.body = nn.Sequential(
            unit(inside, wide), unit(wide, wide, kernel, stride, wide), unit(wide, out, active=False)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.body(x) if self.same else self.body(x)


def inverted(width: float, stages: list[tuple[int, int, int, int, int]]) -> nn.Module:
    layers: list[nn.Module] = [unit(3, 16, 3)]
    inside = 16
    for channels, repeats, stride, expand, kernel in stages:
        out = max(8, int(channels * width) // 8 * 8)
        for block in range(repeats):
            layers.append(Inverted(inside, out, stride if block == 0 else 1, expand, kernel))
            inside = out
    return nn.Sequential(*layers, unit(inside, 4 * inside), head(4 * inside))


def mobilenet(width: float) -> nn.Module:
    return inverted(width, [(16, 1, 1, 1, 3), (24, 2, 2, 6, 3), (32, 2, 2, 6, 3), (64, 2, 2, 6, 3), (96, 1, 1, 6, 3)])


def mnasnet(width: float) -> nn.Module:
    return inverted(width, [(16, 1, 1, 1, 3), (24, 2, 2, 3, 3), (40, 2, 2, 3, 5), (80, 2, 2, 6, 5), (96, 1, 1, 6, 3)])


class Shuffle(nn.Module):
    """A block of ShuffleNetV2: half of the channels pass, then all are mixed."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        half = channels // 2
        self.body = nn.Sequential(unit(half, half), unit(half, half, 3, 1, half, active=False), unit(half, half))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept, changed = x.chunk(2, 1)
        mixed = torch.stack([kept, self.body(changed)], 2)
        return mixed.flatten(1, 2)


def shufflenet(width: int) -> nn.Module:
    layers: list[nn.Module] = [unit(3, 24, 3)]
    inside = 24
    for stage, count in enumerate([2, 4, 2]):
        out = width << stage
        layers.append(nn.Sequential(unit(inside, inside, 3, 2, inside, active=False), unit(inside, out)))
        layers += [Shuffle(out) for _ in range(count)]
        inside = out
    return nn.Sequential(*layers, unit(inside, 2 * inside), head(2 * inside))


class Beside(nn.Module):
    """Branches of one input, side by side."""

    def __init__(self, *branches: nn.Module) -> None:
        super().__init__()
        self.branches = nn.ModuleList(branches)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([branch(x) for branch in self.branches], 1)


def squeezenet(width: int) -> nn.Module:
    layers: list[nn.Module] = [unit(3, 32, 3), nn.MaxPool2d(2)]
    inside = 32
    for stage in range(4):
        narrow = width + width * (stage // 2)
        layers += [unit(inside, narrow), Beside(unit(narrow, 4 * narrow), unit(narrow, 4 * narrow, 3))]
        inside = 8 * narrow
        if stage % 2:
            layers.append(nn.MaxPool2d(2))
    return nn.Sequential(*layers, head(inside))


def densenet(growth: int, blocks: list[int]) -> nn.Module:
    inside = 2 * growth
    layers: list[nn.Module] = [unit(3, inside, 3)]
    for stage, count in enumerate(blocks):
        for _ in range(count):
            layers.append(Beside(nn.Identity(), nn.Sequential(unit(inside, 4 * growth), unit(4 * growth, growth, 3))))
            inside += growth
        if stage + 1 < len(blocks):
            layers += [unit(inside, inside // 2), nn.AvgPool2d(2)]
            inside //= 2
    return nn.Sequential(*layers, head(inside))


def googlenet(width: int) -> nn.Module:
    layers: list[nn.Module] = [unit(3, 2 * width, 3)]
    inside = 2 * width
    for stage in range(4):
        layers.append(
            Beside(
                unit(inside, width),
                nn.Sequential(unit(inside, width), unit(width, width, 3)),
                nn.Sequential(unit(inside, width // 2), unit(width // 2, width, 3), unit(width, width, 3)),
                nn.Sequential(nn.MaxPool2d(3, 1, 1), unit(inside, width)),
            )
        )
        inside = 4 * width
        if stage % 2:
            layers.append(nn.MaxPool2d(2))
    return nn.Sequential(*layers, head(inside))


class DualPath(nn.Module):
    """A block of a dual path network: some channels are added, some appended."""

    def __init__(self, inside: int, width: int, added: int, appended: int, stride: int, first: bool) -> None:
        super().__init__()
        self.added = added
        self.body = nn.Sequential(
            unit(inside, width), unit(width, width, 3, stride, 4), unit(width, added + appended, active=False)
        )
        self.short = unit(inside, added + appended, 1, stride, active=False) if first else nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x, y = self.short(x), self.body(x)
        d = self.added
        return torch.relu(torch.cat([x[:, :d] + y[:, :d], x[:, d:], y[:, d:]], 1))


def dualpath(width: int) -> nn.Module:
    layers: list[nn.Module] = [unit(3, 32, 3)]
    inside = 32
    for stage in range(3):
        added, appended = width << stage, 8
        for block in range(2):
            layers.append(DualPath(inside, width << stage, added, appended, 2 if stage and not block else 1, not block))
            inside = added + (2 + block) * appended
    return nn.Sequential(*layers, head(inside))


class Attention(nn.Module):
    """A layer of a transformer, spelled out."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.width, self.heads = width, heads
        self.inward, self.outward = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.forth = nn.Sequential(nn.Linear(width, 4 * width), nn.ReLU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        samples, steps, _ = x.shape
        parts = self.inward(self.first(x)).chunk(3, dim=-1)
        q, k, v = (one.reshape(samples, steps, self.heads, self.width // self.heads).transpose(1, 2) for one in parts)
        weights = torch.softmax(q @ k.transpose(-2, -1) / (self.width // self.heads) ** 0.5, dim=-1)
        x = x + self.outward((weights @ v).transpose(1, 2).reshape(samples, steps, self.width))
        return x + self.forth(self.second(x))


class Transformer(nn.Module):
    """Predicts the next word with layers of attention."""

    def __init__(self, width: int, layers: int) -> None:
        super().__init__()
        self.words = nn.Embedding(VOCABULARY, width)
        self.layers = nn.Sequential(*[Attention(width, 4) for _ in range(layers)])
        self.last = nn.Linear(width, VOCABULARY)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.last(self.layers(self.words(tokens)))


class Recurrent(nn.Module):
    """Predicts the next word with a recurrent network."""

    def __init__(self, kind: type[nn.Module], width: int, layers: int, both: bool) -> None:
        super().__init__()
        self.words = nn.Embedding(VOCABULARY, width)
        self.recurrent = kind(width, width, layers, batch_first=True, bidirectional=both)
        self.last = nn.Linear(2 * width if both else width, VOCABULARY)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        states, _ = self.recurrent(self.words(tokens))
        return self.last(states)


class Architecture(NamedTuple):
    """A way to build a network; those of one family differ in size."""

    family: str
    name: str
    build: Callable[[], nn.Module]
    text: bool = False


ARCHITECTURES = [
    Architecture("lenet", "lenet", lenet),
    Architecture("perceptron", "perceptron-256", lambda: perceptron(256, 2)),
    Architecture("perceptron", "perceptron-1024", lambda: perceptron(1024, 3)),
    Architecture("perceptron", "perceptron-2048", lambda: perceptron(2048, 2)),
    Architecture("vgg", "vgg-16", lambda: vgg([16, 32, 64], 2)),
    Architecture("vgg", "vgg-32", lambda: vgg([32, 64, 128, 128], 2)),
    Architecture("resnet", "resnet-8", lambda: resnet(16, [1, 1, 1])),
    Architecture("resnet", "resnet-14", lambda: resnet(16, [2, 2, 2])),
    Architecture("resnet", "resnet-14-wide", lambda: resnet(32, [2, 2, 2])),
    Architecture("resnext", "resnext-8", lambda: resnext(8, 4, [1, 1, 1])),
    Architecture("resnext", "resnext-16", lambda: resnext(16, 8, [1, 2, 1])),
    Architecture("pyramidnet", "pyramidnet-6-48", lambda: pyramidnet(6, 48)),
    Architecture("pyramidnet", "pyramidnet-9-66", lambda: pyramidnet(9, 66)),
    Architecture("mobilenet", "mobilenet-0.5", lambda: mobilenet(0.5)),
    Architecture("mobilenet", "mobilenet-1.0", lambda: mobilenet(1.0)),
    Architecture("mnasnet", "mnasnet-0.5", lambda: mnasnet(0.5)),
    Architecture("mnasnet", "mnasnet-1.0", lambda: mnasnet(1.0)),
    Architecture("shufflenet", "shufflenet-32", lambda: shufflenet(32)),
    Architecture("shufflenet", "shufflenet-64", lambda: shufflenet(64)),
    Architecture("squeezenet", "squeezenet-8", lambda: squeezenet(8)),
    Architecture("squeezenet", "squeezenet-16", lambda: squeezenet(16)),
    Architecture("densenet", "densenet-8", lambda: densenet(8, [3, 3, 3])),
    Architecture("densenet", "densenet-12", lambda: densenet(12, [4, 4, 4])),
    Architecture("googlenet", "googlenet-16", lambda: googlenet(16)),
    Architecture("googlenet", "googlenet-32", lambda: googlenet(32)),
    Architecture("dualpath", "dualpath-16", lambda: dualpath(16)),
    Architecture("dualpath", "dualpath-32", lambda: dualpath(32)),
    Architecture("transformer", "transformer-64", lambda: Transformer(64, 2), True),
    Architecture("transformer", "transformer-128", lambda: Transformer(128, 2), True),
    Architecture("recurrent", "lstm-64", lambda: Recurrent(nn.LSTM, 64, 1, False), True),
    Architecture("recurrent", "lstm-128-both", lambda: Recurrent(nn.LSTM, 128, 1, True), True),
    Architecture("recurrent", "gru-128", lambda: Recurrent(nn.GRU, 128, 2, False), True),
]
