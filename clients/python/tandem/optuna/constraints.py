"""What trials must keep to: Optuna's constraints, as the server has them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Callable, Optional

import optuna
from optuna.trial import FrozenTrial, TrialState

ConstraintsFunction = Callable[[FrozenTrial], Sequence[float]]
"""Optuna's constraints_func: a value for each constraint, at most 0 where the trial keeps to it."""

_KEY = "constraints"
"""The system attribute under which Optuna has what a constraints_func returned."""


class Constraints:
    """The constraints of one study: from a function, as samplers of Optuna's take it, or from the objective."""

    def __init__(self, function: Optional[ConstraintsFunction]) -> None:
        self._function = function
        self._known: list[str] = []
        """The metrics that the server has constraints on."""
        self._told: set[str] = set()

    def of(self, study: optuna.Study, trial: FrozenTrial, state: TrialState) -> dict[str, float]:
        """The constraints of a trial that has ended. What the function returns is stored in Optuna's study."""
        found = constraints_of(trial)
        if self._function is None or state not in (TrialState.COMPLETE, TrialState.PRUNED):
            return found
        values: Optional[tuple[float, ...]] = None
        try:
            returned = tuple(self._function(trial))
            if any(math.isnan(value) for value in returned):
                raise ValueError("Constraint values cannot be NaN.")
            values = returned
        finally:  # as Optuna does: a trial whose function failed has none
            study._storage.set_trial_system_attr(trial._trial_id, _KEY, values)
        return {**found, **{str(i): float(value) for i, value in enumerate(values)}}

    def document(self, trials: Iterable[Mapping[str, float]]) -> list[dict[str, Any]]:
        """The study file's constraints: those that any of the trials has."""
        names = dict.fromkeys(_metric(name) for trial in trials for name in trial)
        return [{"metric": name, "max": 0.0} for name in names]

    def adopt(self, definition: Mapping[str, Any]) -> None:
        """Take the constraints that the study on the server has."""
        self._known = [str(one.get("metric") or "") for one in definition.get("constraints") or ()]

    def metrics(self, constraints: Mapping[str, float]) -> dict[str, float]:
        """A trial's constraints as metrics. One that it lacks is met, as Optuna has it."""
        found: dict[str, float] = {name: 0.0 for name in self._known if name.startswith(_PREFIX)}
        for name, value in constraints.items():
            metric = _metric(name)
            found[metric] = value
            if metric not in self._known and metric not in self._told:
                self._told.add(metric)
                optuna.logging.get_logger("optuna.tandem").warning(
                    f"The constraint {name!r} is not known to the server, whose study was created without it: the "
                    "server does not heed it. Its values stand among the trials' metrics; Optuna's study heeds it."
                )
        return found


_PREFIX = "constraint_"


def constraints_of(trial: FrozenTrial) -> dict[str, float]:
    """What Optuna has of a trial's constraints, by name; those of a constraints_func are numbered from 0."""
    found = {str(i): float(value) for i, value in enumerate(trial.system_attrs.get(_KEY) or ())}
    for name, value in trial.system_attrs.items():
        if name.startswith(f"{_KEY}:"):
            found[name[len(_KEY) + 1 :]] = float(value)
    return found


def _metric(name: str) -> str:
    return _PREFIX + re.sub(r"[^A-Za-z0-9_]", "_", name)
