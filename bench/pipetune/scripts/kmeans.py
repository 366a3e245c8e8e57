"""k-means by mini-batches (Type III of the thesis), used to name the class of a point.

The points are drawn from overlapping Gaussians, several for each class. A cluster is named after the
class that most of its training points have; accuracy is the share of points whose cluster has the
right name.
"""

from __future__ import annotations

from functools import cache

import torch
from job import Job, Params, scale

POINTS, DIMENSIONS, CLASSES, BLOBS = 24_000, 48, 12, 60
VALIDATION = 3_000  # points, and as many for the test
PASSES = 16  # over the points in an epoch, at scale 1


class KMeans(Job):
    """Centres move toward the mean of their points of a batch by a share that falls with what they have seen."""

    def __init__(self, params: Params) -> None:
        self.parts = points()
        self.batch_size = int(params["batch_size"])
        self.memory = float(params["memory"])
        clusters = int(params["clusters"])
        inputs, _ = self.parts["training"]
        spread = inputs.std(0) * float(params["spread"])
        self.centres = inputs.mean(0) + spread * torch.randn(clusters, DIMENSIONS)
        self.seen = torch.zeros(clusters)

    def epoch(self) -> None:
        inputs, _ = self.parts["training"]
        for _ in range(round(PASSES * scale())):
            for batch in torch.randperm(len(inputs)).split(self.batch_size):
                self.step(inputs[batch])

    def step(self, batch: torch.Tensor) -> None:
        nearest = self.nearest(batch)
        counts = torch.bincount(nearest, minlength=len(self.centres)).float()
        sums = torch.zeros_like(self.centres).index_add_(0, nearest, batch)
        self.seen = self.seen * self.memory + counts
        share = (counts / self.seen.clamp(min=1)).unsqueeze(1)
        self.centres += share * (sums / counts.clamp(min=1).unsqueeze(1) - self.centres) * (counts > 0).unsqueeze(1)

    def nearest(self, some: torch.Tensor) -> torch.Tensor:
        # |x - c|^2 without |x|^2, which is the same for all centres.
        return (self.centres.square().sum(1) - 2 * some @ self.centres.T).argmin(1)

    def accuracy(self) -> float:
        return self.right("validation")

    def test_accuracy(self) -> float:
        return self.right("test")

    def right(self, which: str) -> float:
        inputs, labels = self.parts["training"]
        votes = torch.zeros(len(self.centres), CLASSES)
        votes.index_put_((self.nearest(inputs), labels), torch.ones(len(labels)), accumulate=True)
        names = votes.argmax(1)
        inputs, labels = self.parts[which]
        return (names[self.nearest(inputs)] == labels).float().mean().item()

    def state(self) -> dict[str, torch.Tensor]:
        return {"centres": self.centres, "seen": self.seen, "generator": torch.get_rng_state()}

    def load(self, state: dict[str, torch.Tensor]) -> None:
        self.centres, self.seen = state["centres"], state["seen"]
        torch.set_rng_state(state["generator"])


@cache  # made once by a process, whose trials only read it
def points() -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
    generator = torch.Generator().manual_seed(1957)
    total = POINTS + 2 * VALIDATION
    blob = torch.randint(BLOBS, (total,), generator=generator)
    middle = torch.randn(BLOBS, DIMENSIONS, generator=generator) * 0.55
    inputs = middle[blob] + torch.randn(total, DIMENSIONS, generator=generator)
    labels = blob % CLASSES
    ends = {"training": (0, POINTS), "validation": (POINTS, POINTS + VALIDATION), "test": (POINTS + VALIDATION, total)}
    return {which: (inputs[first:last], labels[first:last]) for which, (first, last) in ends.items()}
