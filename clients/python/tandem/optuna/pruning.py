"""Optuna's pruners as rules of the server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Optional

from optuna.pruners import BasePruner, MedianPruner, NopPruner, PercentilePruner, SuccessiveHalvingPruner


@dataclass(frozen=True)
class Rule:
    """How the server is to stop trials early.

    A pruner counts in steps, as a trial reports them; the server counts reports, each an epoch. So what is sent
    depends on the ``steps`` at which a trial reports, in their order.
    """

    early_stopping: Optional[dict[str, Any]] = None
    """``search.early_stopping`` of the study, without what counts in steps; None: nobody is stopped."""
    warmup: int = 0
    """For median and percentile: nobody is stopped before this step."""
    interval: int = 1
    """For median and percentile: the steps between two comparisons."""
    eta: int = 0
    """For halving: the factor between two rungs."""
    lowest: int = 0
    """For halving: the steps of the lowest rung; 0 for a hundredth of the trial."""
    rate: int = 0
    """For halving: how many rungs are left out at the bottom."""

    def budget(self, steps: Sequence[int]) -> dict[str, Any]:
        """The study's budget, for trials that report at these steps."""
        epochs = max(len(steps), 1)
        if not self.eta:
            return {"epochs": epochs}
        lowest = self._lowest(steps)
        if lowest >= epochs:
            return {"epochs": epochs}
        return {"policy": "epochs", "epochs": {"min": lowest, "max": epochs}, "eta": self.eta}

    def search(self, steps: Sequence[int]) -> dict[str, Any]:
        """What belongs into the study's ``search``."""
        if self.early_stopping is None or len(steps) < 2:
            return {}
        if self.eta:
            return {"early_stopping": self.early_stopping} if "policy" in self.budget(steps) else {}
        apart = max((steps[-1] - steps[0]) // max(len(steps) - 1, 1), 1)
        counts = {
            "grace_epochs": sum(step < self.warmup for step in steps),
            "every_epochs": max(round(self.interval / apart), 1),
        }
        return {"early_stopping": {**self.early_stopping, **counts}}

    def _lowest(self, steps: Sequence[int]) -> int:
        """The epochs of halving's lowest rung."""
        times = int(self.eta**self.rate)
        if not self.lowest:
            return max(len(steps) // 100, 1) * times
        # From the first step on, whether the script counts from 0, from 1 or from the end of its first hundred.
        return sum(step - steps[0] < self.lowest * times for step in steps) or 1


def rule_of(pruner: BasePruner) -> Optional[Rule]:
    """The server's rule for a pruner; None if it has none, and the pruner has to decide here."""

    def read(name: str, default: Any) -> Any:  # a pruner keeps its settings to itself
        return getattr(pruner, f"_{name}", default)

    if type(pruner) is NopPruner:
        return Rule()
    if type(pruner) in (MedianPruner, PercentilePruner):
        percentile = float(read("percentile", 50.0))
        if not 0 < percentile < 100:
            return None
        early_stopping: dict[str, Any] = {
            "rule": "median" if percentile == 50.0 else "percentile",
            "min_trials": max(int(read("n_startup_trials", 5)), int(read("n_min_trials", 1)), 1),
        }
        if percentile != 50.0:
            early_stopping["percentile"] = percentile
        return Rule(early_stopping, int(read("n_warmup_steps", 0)), int(read("interval_steps", 1)))
    if type(pruner) is SuccessiveHalvingPruner and not read("bootstrap_count", 0):
        lowest = read("min_resource", None)
        return Rule(
            {"rule": "halving"},
            eta=int(read("reduction_factor", 4)),
            lowest=lowest if isinstance(lowest, int) else 0,
            rate=int(read("min_early_stopping_rate", 0)),
        )
    return None
