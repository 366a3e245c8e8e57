"""A trial of Optuna's that the server proposed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..assignment import Outcome
from ..errors import LeaseLost, TrialStopped
from ..trial import Trial
from .space import Asked


@dataclass(frozen=True)
class Completed:
    """A trial that came to its end."""

    asked: Asked
    reported: Sequence[float]
    """Its intermediate values, in the order of their steps."""
    steps: Sequence[int]
    """The steps of these."""
    values: Sequence[float]
    """One for each objective."""
    seconds: float
    constraints: Mapping[str, float] = field(default_factory=dict)
    """What it must keep to, by name: at most 0 where it does."""


class Run:
    """Brings the server what a trial reports: its k-th intermediate value is epoch k, the result the last epoch."""

    def __init__(self, trial: Trial, metrics: Sequence[str]) -> None:
        self.trial = trial
        self.stopped = ""
        """Why the server wants no more of it; empty while it does."""
        self.lost = False
        """Whether the server has given it to somebody else: nothing can be reported any more."""
        self._metrics = metrics
        self._sent = 0

    def forward(self, reported: Sequence[float]) -> None:
        """Report the intermediate values that were not reported yet."""
        last = self.trial.epochs_total - 1  # the epoch behind it is the result's
        for epoch in range(self._sent + 1, min(len(reported), last) + 1):
            if self.stopped or self.lost:
                return
            self._report(epoch, {self._metrics[0]: reported[epoch - 1]})
            self._sent = epoch

    def complete(self, completed: Completed, extra: Mapping[str, float]) -> None:
        """Report the result, then what was not reported before: what ran to its end is not stopped any more."""
        last = self.trial.epochs_total
        self._report(last, {**dict(zip(self._metrics, completed.values)), **extra})
        for epoch in range(self._sent + 1, min(len(completed.reported), last - 1) + 1):
            if self.stopped or self.lost:
                return
            outcome = Outcome(epoch, {self._metrics[0]: completed.reported[epoch - 1]}, 0.0)
            try:
                self.trial._link.report(outcome)
            except LeaseLost:
                self.lost = True

    def _report(self, epoch: int, metrics: Mapping[str, float]) -> None:
        try:
            self.trial.report(epoch, **metrics)
        except TrialStopped as stopped:
            self.stopped = str(stopped)
        except LeaseLost:
            self.lost = True


def finite(extra: Mapping[str, float]) -> dict[str, float]:
    """Those that are numbers."""
    return {name: value for name, value in extra.items() if math.isfinite(value)}
