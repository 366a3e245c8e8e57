"""A neural network as a job: mini-batches, cross entropy, and the share of right answers."""

from __future__ import annotations

import torch
from job import Job, Params
from torch import nn
from torch.nn import functional

AT_ONCE = 500  # items in one forward pass of an evaluation


class Network(Job):
    """A classifier, trained with an optimizer on tensors that fit into memory."""

    def __init__(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        parts: dict[str, tuple[torch.Tensor, torch.Tensor]],
        params: Params,
        passes: int = 1,
    ) -> None:
        self.model, self.optimizer, self.parts = model, optimizer, parts
        self.batch_size = int(params["batch_size"])
        self.passes = passes

    def epoch(self) -> None:
        self.model.train()
        inputs, labels = self.parts["training"]
        order = torch.cat([torch.randperm(len(labels)) for _ in range(self.passes)])
        for batch in order.split(self.batch_size):
            loss = functional.cross_entropy(self.model(inputs[batch]), labels[batch])
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()

    def accuracy(self) -> float:
        return self.right("validation")

    def test_accuracy(self) -> float:
        return self.right("test")

    @torch.no_grad()
    def right(self, which: str) -> float:
        self.model.eval()
        inputs, labels = self.parts[which]
        batches = zip(inputs.split(AT_ONCE), labels.split(AT_ONCE))
        return sum((self.model(some).argmax(1) == wanted).sum().item() for some, wanted in batches) / len(labels)

    # A checkpoint holds tensors only, so that it can be loaded without running
    # code from the file: the optimizer's moments by their place.
    def state(self) -> dict[str, torch.Tensor]:
        state = {f"model/{name}": value for name, value in self.model.state_dict().items()}
        for place, moments in self.optimizer.state_dict()["state"].items():
            for name, value in moments.items():
                if value is not None:
                    state[f"moment/{place}/{name}"] = torch.as_tensor(value)
        state["generator"] = torch.get_rng_state()
        return state

    def load(self, state: dict[str, torch.Tensor]) -> None:
        self.model.load_state_dict(
            {name.removeprefix("model/"): value for name, value in state.items() if name.startswith("model/")}
        )
        moments: dict[int, dict[str, torch.Tensor]] = {}
        for name, value in state.items():
            if name.startswith("moment/"):
                _, place, key = name.split("/")
                moments.setdefault(int(place), {})[key] = value
        self.optimizer.load_state_dict({**self.optimizer.state_dict(), "state": moments})
        torch.set_rng_state(state["generator"])
