"""Breadth-first search (Type III of the thesis), used to estimate distances in a graph.

An epoch runs breadth-first searches from new landmarks. The distance of two nodes is then estimated
as the shortest way over a landmark; accuracy is the mean ratio of the true distance to that. Which
nodes become landmarks is what a study tunes.
"""

from __future__ import annotations

import numpy as np
import torch
from job import Job, Params, data_folder, scale

LANDMARKS = 12  # new ones in an epoch, at scale 1
FAR = 30_000  # hops, for what is not reached


class Landmarks(Job):
    """Landmarks with their distances to every node."""

    def __init__(self, params: Params) -> None:
        folder = data_folder()
        self.neighbours = torch.from_numpy(np.load(folder / "graph-neighbours.npy"))
        self.pairs = {
            which: torch.from_numpy(np.load(folder / f"graph-{which}.npy")) for which in ("validation", "test")
        }
        # The chance of a node to become the next landmark follows these powers
        # of its least and its mean distance to those of before.
        self.apart, self.central = float(params["apart"]), float(params["central"])
        self.first = float(params["first_share"])
        self.distances = torch.zeros(0, len(self.neighbours), dtype=torch.int16)

    def epoch(self) -> None:
        count = max(1, round(LANDMARKS * scale() * (1 if len(self.distances) else self.first)))
        sources = torch.multinomial(self.weight(), count)
        self.distances = torch.cat([self.distances, search(self.neighbours, sources)])

    def weight(self) -> torch.Tensor:
        if not len(self.distances):
            return torch.ones(len(self.neighbours))
        hops = self.distances.float()
        least, mean = hops.amin(0), hops.mean(0)
        weight = (least / least.max()) ** self.apart * (mean / mean.max()) ** self.central
        return weight * (least > 0) + 1e-12

    def accuracy(self) -> float:
        return self.ratio("validation")

    def test_accuracy(self) -> float:
        return self.ratio("test")

    def ratio(self, which: str) -> float:
        one, other, exact = self.pairs[which].T
        estimate = (self.distances[:, one] + self.distances[:, other]).amin(0)
        return (exact / estimate).mean().item()

    def state(self) -> dict[str, torch.Tensor]:
        return {"distances": self.distances, "generator": torch.get_rng_state()}

    def load(self, state: dict[str, torch.Tensor]) -> None:
        self.distances = state["distances"]
        torch.set_rng_state(state["generator"])


def search(neighbours: torch.Tensor, sources: torch.Tensor) -> torch.Tensor:
    """Hops from each source to every node: a node is reached a step after one of its neighbours was."""
    reached = torch.zeros(len(neighbours), len(sources), dtype=torch.uint8)
    reached[sources, torch.arange(len(sources))] = 1
    distances = torch.full(reached.shape, FAR, dtype=torch.int16)
    for hop in range(FAR):
        distances.masked_fill_((distances == FAR) & reached.bool(), hop)
        wider = reached
        for column in neighbours.T:
            wider = torch.maximum(wider, reached.index_select(0, column))
        if torch.equal(wider, reached):
            break
        reached = wider
    return distances.T.contiguous()
