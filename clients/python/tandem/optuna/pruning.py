"""Optuna's pruners as rules of the server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Optional

from optuna.pruners import BasePruner, MedianPruner, NopPruner, PercentilePruner, SuccessiveHalvingPruner


@dataclass(frozen=True)
class Rule:
    """How the server is to stop trials early."""

    early_stopping: Optional[dict[str, Any]] = None
    """``search.early_stopping`` of the study; None: nobody is stopped."""
    eta: int = 0
    """For halving: the factor between two rungs."""
    lowest: int = 0
    """For halving: the epochs of the lowest rung; 0 leaves them to :meth:`budget`."""

    def budget(self, epochs: int) -> dict[str, Any]:
        """The study's budget, for trials of so many epochs."""
        lowest = self.lowest or max(epochs // 100, 1)
        if not self.eta or lowest >= epochs:
            return {"epochs": epochs}
        return {"policy": "epochs", "epochs": {"min": lowest, "max": epochs}, "eta": self.eta}

    def search(self, epochs: int) -> dict[str, Any]:
        """What belongs into the study's ``search``."""
        if self.early_stopping is None or (self.eta and "policy" not in self.budget(epochs)) or epochs < 2:
            return {}
        return {"early_stopping": self.early_stopping}


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
            "grace_epochs": int(read("n_warmup_steps", 0)),
            "min_trials": max(int(read("n_startup_trials", 5)), int(read("n_min_trials", 1)), 1),
            "every_epochs": int(read("interval_steps", 1)),
        }
        if percentile != 50.0:
            early_stopping["percentile"] = percentile
        return Rule(early_stopping)
    if type(pruner) is SuccessiveHalvingPruner and not read("bootstrap_count", 0):
        eta = int(read("reduction_factor", 4))
        lowest = read("min_resource", None)
        rate = int(read("min_early_stopping_rate", 0))
        return Rule({"rule": "halving"}, eta, int(lowest) * eta**rate if isinstance(lowest, int) else 0)
    return None
