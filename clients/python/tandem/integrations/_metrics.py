"""What a library has logged, as the metrics of a report."""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from typing import Any, Optional, Union

from ..errors import UnknownName
from ..trial import Trial

Chosen = Union[Mapping[str, str], Sequence[str], None]
"""Which of the logged values to report: their names, or {"name in the report": "logged name"}; None: every number."""


def chosen(logged: Mapping[str, Any], which: Chosen) -> dict[str, float]:
    """The metrics to report; a :class:`KeyError` that names the nearest if one was not logged."""
    if which is None:
        return {name: float(value) for name, value in logged.items() if _number(value)}
    names = which if isinstance(which, Mapping) else {name: name for name in which}
    for source in names.values():
        if source not in logged:
            raise UnknownName("logged metric", source, [str(name) for name in logged], "log it in every epoch")
    return {name: float(logged[source]) for name, source in names.items()}


def require_first(first: int, wanted: int, advice: str) -> None:
    """Raise if training begins with another epoch than the trial's run."""
    if first != wanted:
        raise ValueError(f"training begins with epoch {first}, and this run of the trial with epoch {wanted}: {advice}")


def done_early(trial: Trial, metrics: Mapping[str, float]) -> None:
    """Report the last metrics for the budget's last epoch where training ended before it by its own judgement.

    Without that the trial would have failed. Where the server wanted the end, and where a budget in seconds or joules
    ends, is not told by epochs.
    """
    if metrics and trial.directive.action == "continue" and not (trial.complete or trial.budget.measured):
        trial.report(trial.epochs_total, **metrics)


def _number(value: Any) -> bool:
    if isinstance(value, numbers.Real):
        return True
    size: Optional[Any] = getattr(value, "numel", None)  # of a tensor
    return callable(size) and size() == 1
