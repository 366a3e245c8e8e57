"""The Jacobi method on Poisson's equation (Type III of the thesis), with scheduled relaxation.

One sweep with a large relaxation factor is followed by several with a small one, which calm what it
has stirred up (Yang and Mittal 2014). Which factors, and how many sweeps, decides how fast the
residual falls, or whether it grows: that is what a study tunes.
"""

from __future__ import annotations

import math

import torch
from job import Job, Params, scale

GRID, SIDES = 192, 4  # points along an edge; right-hand sides of the validation and of the test part
SWEEPS = 1_200  # of an epoch, at scale 1
ORDERS = 6.0  # a residual smaller by so many orders of magnitude is an accuracy of 1


class Jacobi(Job):
    """All right-hand sides are solved at once; accuracy is the orders of magnitude their residual has fallen."""

    def __init__(self, params: Params) -> None:
        generator = torch.Generator().manual_seed(1845)
        self.sides = torch.randn(2 * SIDES, GRID, GRID, generator=generator)
        self.solution = torch.zeros(2 * SIDES, GRID + 2, GRID + 2)
        self.cycle = [float(params["over_relaxation"])] + [float(params["relaxation"])] * int(params["calm_sweeps"])
        self.sweeps = 0
        self.start = self.residual().square().mean((1, 2)).sqrt()

    def epoch(self) -> None:
        inner = self.solution[:, 1:-1, 1:-1]
        for _ in range(round(SWEEPS * scale())):
            inner.add_(self.residual(), alpha=self.cycle[self.sweeps % len(self.cycle)] / 4)
            self.sweeps += 1

    def residual(self) -> torch.Tensor:
        u = self.solution
        around = u[:, :-2, 1:-1] + u[:, 2:, 1:-1]
        around.add_(u[:, 1:-1, :-2]).add_(u[:, 1:-1, 2:]).add_(self.sides)
        return around.sub_(u[:, 1:-1, 1:-1], alpha=4)

    def accuracy(self) -> float:
        return self.fallen(slice(0, SIDES))

    def test_accuracy(self) -> float:
        return self.fallen(slice(SIDES, 2 * SIDES))

    def fallen(self, which: slice) -> float:
        left = (self.residual().square().mean((1, 2)).sqrt() / self.start)[which].mean().item()
        if not math.isfinite(left) or left >= 1:
            return 0.0
        return min(1.0, -math.log10(max(left, 1e-30)) / ORDERS)

    def state(self) -> dict[str, torch.Tensor]:
        return {"solution": self.solution, "sweeps": torch.tensor(self.sweeps)}

    def load(self, state: dict[str, torch.Tensor]) -> None:
        self.solution.copy_(state["solution"])
        self.sweeps = int(state["sweeps"])
