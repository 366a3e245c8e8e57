"""LeNet-5 on MNIST or Fashion-MNIST (Type I of the thesis)."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch
from job import Params, part, scale
from network import Network
from torch import nn


class LeNet(Network):
    """LeNet-5 with ReLU, max pooling and dropout, trained by SGD with momentum."""

    def __init__(self, data: str, params: Params) -> None:
        model = nn.Sequential(
            nn.Conv2d(1, 6, 5, padding=2),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(6, 16, 5),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(400, 120),
            nn.ReLU(),
            nn.Dropout(params["dropout"]),
            nn.Linear(120, 84),
            nn.ReLU(),
            nn.Linear(84, 10),
        )
        optimizer = torch.optim.SGD(model.parameters(), lr=params["learning_rate"], momentum=0.9)
        super().__init__(model, optimizer, {which: images(data, which) for which in PARTS}, params)


PARTS = ("training", "validation", "test")
IMAGES = 6_000  # for training, at scale 1


@cache  # loaded once by a process, whose trials only read it
def images(data: str, which: str) -> tuple[torch.Tensor, torch.Tensor]:
    pixels, labels = part(data, which)
    if which == "training":
        count = round(IMAGES * scale())
        pixels, labels = pixels[:count], labels[:count]
    copied = torch.from_numpy(np.array(pixels))
    return copied.unsqueeze(1).float().sub_(72.0).div_(90.0), torch.from_numpy(np.array(labels))
