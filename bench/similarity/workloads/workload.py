"""Eleven small workloads that tell their epochs, for bench/similarity.

python workload.py NAME --schedule 1x1,2x2 --seconds 1 --scale 1

An epoch lasts a number of seconds and has one system configuration, THREADSxCORES.
The first one warms up under the schedule's first configuration. The scale
multiplies the batch size (or the problem, where there are no batches): a
hyperparameter. A line {"epoch": n, "threads": t, "cores": c} ends each epoch.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "examples" / "lenet-fashion-mnist"))

Step = Callable[[], None]

VOCABULARY, WORDS = 20_000, 128


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("workload", choices=sorted(WORKLOADS))
    parser.add_argument("--schedule", default="2x2")
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--scale", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    configurations = [tuple(int(n) for n in one.split("x")) for one in options.schedule.split(",")]
    apply(*configurations[0])
    step = WORKLOADS[options.workload](options.scale, np.random.default_rng(options.seed))
    for epoch, (threads, cores) in enumerate([configurations[0], *configurations], start=1):
        apply(threads, cores)
        end = time.monotonic() + options.seconds
        while time.monotonic() < end:
            step()
        print(json.dumps({"epoch": epoch, "threads": threads, "cores": cores}), flush=True)


def apply(threads: int, cores: int) -> None:
    torch.set_num_threads(threads)
    everything = sorted(ALL_CORES)
    for task in Path("/proc/self/task").iterdir():
        os.sched_setaffinity(int(task.name), everything[:cores])


ALL_CORES = os.sched_getaffinity(0)


def train(model: nn.Module, inputs: torch.Tensor, labels: torch.Tensor, batch: int) -> Step:
    """Steps of Adam over shuffled batches."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.001)
    order = torch.randperm(len(inputs))
    position = 0

    def step() -> None:
        nonlocal order, position
        if position + batch > len(order):
            order, position = torch.randperm(len(inputs)), 0
        chosen = order[position : position + batch]
        position += batch
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(inputs[chosen]), labels[chosen])
        loss.backward()
        optimizer.step()

    return step


def images() -> tuple[torch.Tensor, torch.Tensor]:
    from fashion_mnist import load

    training, _, _ = load(10_000)
    return training.images, training.labels


def texts(random: np.random.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Words as rare as those of a language, and ten labels."""
    words = np.minimum(random.zipf(1.3, size=(4_000, WORDS)), VOCABULARY) - 1
    return torch.from_numpy(words), torch.from_numpy(random.integers(0, 10, size=4_000))


def lenet(scale: int, random: np.random.Generator) -> Step:
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
        nn.Linear(120, 10),
    )
    return train(model, *images(), 64 * scale)


def perceptron(scale: int, random: np.random.Generator) -> Step:
    model = nn.Sequential(
        nn.Flatten(), nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 10)
    )
    return train(model, *images(), 64 * scale)


def autoencoder(scale: int, random: np.random.Generator) -> Step:
    """Images through a narrow middle and back, without labels."""
    inputs, _ = images()
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Conv2d(8, 4, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.ConvTranspose2d(4, 8, 4, stride=2, padding=1),
        nn.ReLU(),
        nn.ConvTranspose2d(8, 1, 4, stride=2, padding=1),
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=0.001)

    def step() -> None:
        batch = inputs[torch.randint(len(inputs), (64 * scale,))]
        optimizer.zero_grad()
        functional.mse_loss(model(batch), batch).backward()
        optimizer.step()

    return step


class Convolution(nn.Module):
    """Words, a convolution over them, the strongest answer of each filter."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, 64)
        self.filters = nn.Conv1d(64, 128, 5)
        self.output = nn.Linear(128, 10)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        answers = functional.relu(self.filters(self.embedding(words).transpose(1, 2)))
        return self.output(answers.amax(dim=2))


class Recurrent(nn.Module):
    """Words, an LSTM over them, its last state."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, 64)
        self.recurrent = nn.LSTM(64, 64, batch_first=True)
        self.output = nn.Linear(64, 10)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        return self.output(self.recurrent(self.embedding(words))[0][:, -1])


class Attention(nn.Module):
    """Words, a layer of a transformer over them, its mean."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, 64)
        self.layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
        self.output = nn.Linear(64, 10)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        return self.output(self.layer(self.embedding(words)).mean(dim=1))


def text_attention(scale: int, random: np.random.Generator) -> Step:
    return train(Attention(), *texts(random), 32 * scale)


def text_convolution(scale: int, random: np.random.Generator) -> Step:
    return train(Convolution(), *texts(random), 32 * scale)


def text_recurrent(scale: int, random: np.random.Generator) -> Step:
    return train(Recurrent(), *texts(random), 32 * scale)


def jacobi(scale: int, random: np.random.Generator) -> Step:
    """Sweeps of a five-point stencil over a plate."""
    plate = torch.from_numpy(random.random((1024 * scale, 1024)))

    def step() -> None:
        nonlocal plate
        new = plate.clone()
        new[1:-1, 1:-1] = 0.25 * (plate[:-2, 1:-1] + plate[2:, 1:-1] + plate[1:-1, :-2] + plate[1:-1, 2:])
        plate = new

    return step


def kmeans(scale: int, random: np.random.Generator) -> Step:
    """Lloyd's steps over 20,000 points (times the scale), by matrix products."""
    points = torch.from_numpy(random.standard_normal((20_000 * scale, 32)))
    centres = points[:64].clone()

    def step() -> None:
        nonlocal centres
        nearest = ((centres**2).sum(1) - 2 * points @ centres.T).argmin(1)
        counts = torch.bincount(nearest, minlength=64).clamp(min=1)
        centres = torch.zeros_like(centres).index_add_(0, nearest, points) / counts[:, None]

    return step


def search(scale: int, random: np.random.Generator) -> Step:
    """Breadth first through a random graph, a level at a time."""
    nodes, degree = 200_000 * scale, 8
    neighbours = random.integers(0, nodes, size=(nodes, degree))

    def step() -> None:
        seen = np.zeros(nodes, dtype=bool)
        frontier = random.integers(0, nodes, size=1)
        while len(frontier):
            seen[frontier] = True
            reached = neighbours[frontier].ravel()
            frontier = np.unique(reached[~seen[reached]])

    return step


def decomposition(scale: int, random: np.random.Generator) -> Step:
    """Singular values of tall matrices."""
    matrix = torch.from_numpy(random.standard_normal((400 * scale, 200)))

    def step() -> None:
        torch.linalg.svd(matrix, full_matrices=False)

    return step


def forest(scale: int, random: np.random.Generator) -> Step:
    """Regression trees of depth 5 on bootstrapped rows, split where the squares fall most."""
    rows, columns = 4_000 * scale, 16
    inputs = random.standard_normal((rows, columns))
    targets = inputs[:, 0] * inputs[:, 1] + random.standard_normal(rows)

    def grow(chosen: np.ndarray, depth: int) -> None:
        if depth == 0 or len(chosen) < 20:
            return
        best, split = -np.inf, (0, 0.0)
        for column in random.permutation(columns)[:6]:
            order = np.argsort(inputs[chosen, column])
            sums = np.cumsum(targets[chosen][order])[:-1]
            left = np.arange(1, len(chosen))
            gain = sums**2 / left + (targets[chosen].sum() - sums) ** 2 / (len(chosen) - left)
            at = int(gain.argmax())
            if gain[at] > best:
                best, split = gain[at], (int(column), inputs[chosen[order[at]], column])
        below = inputs[chosen, split[0]] <= split[1]
        grow(chosen[below], depth - 1)
        grow(chosen[~below], depth - 1)

    def step() -> None:
        grow(random.integers(0, rows, size=rows), 5)

    return step


WORKLOADS = {
    "autoencoder": autoencoder,
    "text-attention": text_attention,
    "lenet": lenet,
    "perceptron": perceptron,
    "text-convolution": text_convolution,
    "text-recurrent": text_recurrent,
    "jacobi": jacobi,
    "kmeans": kmeans,
    "search": search,
    "decomposition": decomposition,
    "forest": forest,
}

if __name__ == "__main__":
    main()
