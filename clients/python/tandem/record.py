"""What the server knows of trials and studies, as values to read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Optional

from . import metrics as values
from . import notebook
from . import params as parameters
from .assignment import Budget
from .names import absent


@dataclass(frozen=True)
class Result:
    """A trial's measurement at a rung it completed."""

    rung: int
    budget: Budget
    values: tuple[float, ...]
    """One for each objective, in the study's order."""
    violation: float = 0.0
    """By how much the study's constraints are missed; 0 if the result is feasible."""
    estimated: bool = False
    """Whether joules that are an estimate went into a value."""


@dataclass(frozen=True)
class TrialRecord:
    """A trial as the server has it, at the time of asking."""

    number: int
    id: str
    state: str
    """queued, leased, running, paused, completed, pruned, failed, lost or cancelled."""
    params: Mapping[str, Any]
    rung: int
    budget: Budget
    results: tuple[Result, ...]
    metrics: Mapping[str, float]
    """All metrics of the newest report."""
    epochs: int
    """Epochs trained and kept, over all runs."""
    seconds: float
    joules: float
    energy_method: str
    """How the joules were obtained; what starts with "estimate" is an estimate."""
    origin: str
    repeat_of: Optional[int]
    """The number of the trial that this one trains again, None for all others."""
    retry_of: Optional[int]
    """The number of the failed trial that this one tries again, None for all others."""
    reason: str
    raw: Mapping[str, Any] = field(repr=False)
    """The document as it came."""

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            raise AttributeError(absent("a trial's record of Tandem", name))

    def _repr_html_(self) -> str:
        return notebook.trial(self)

    @property
    def feasible(self) -> bool:
        """Whether the newest result keeps to the study's constraints; false as long as there is none."""
        return bool(self.results) and self.results[-1].violation == 0

    @property
    def values(self) -> tuple[float, ...]:
        """All objectives at the highest rung measured; empty if there is none yet."""
        return self.results[-1].values if self.results else ()

    @property
    def value(self) -> Optional[float]:
        """The first objective at the highest rung measured; None if there is none yet."""
        return self.results[-1].values[0] if self.results and self.results[-1].values else None

    @property
    def tags(self) -> tuple[str, ...]:
        """The words that people find it by."""
        return tuple(self.raw.get("tags") or ())

    @property
    def note(self) -> str:
        """What people wrote about it; empty without a note."""
        return str(self.raw.get("note") or "")

    @property
    def artifacts(self) -> tuple[Mapping[str, Any], ...]:
        """The files that its script logged: ``name``, ``kind``, ``bytes``, ``epoch``, by name."""
        return tuple(self.raw.get("artifacts") or ())

    @property
    def cost(self) -> Mapping[str, Any]:
        """What it cost by the server's prices: ``amount``, ``currency``, ``co2_g`` and ``method``, as far as they are
        known; empty where the server has none.
        """
        return dict(self.raw.get("cost") or {})

    @staticmethod
    def of(document: Mapping[str, Any]) -> TrialRecord:
        """From the server's answer."""
        energy = document.get("energy") or {}
        return TrialRecord(
            number=int(document["number"]),
            id=str(document["id"]),
            state=str(document["state"]),
            params=parameters.parameters(document.get("params") or {}),
            rung=int(document.get("rung", 0)),
            budget=Budget.of(document["budget"]),
            results=tuple(_result(r) for r in document.get("results") or ()),
            metrics=values.decode_all(document.get("last")),
            epochs=int(document.get("epochs", 0)),
            seconds=values.decode(document.get("seconds", 0.0)),
            joules=values.decode(energy.get("joules", 0.0)),
            energy_method=str(energy.get("method", "")),
            origin=str(document.get("origin", "")),
            repeat_of=document.get("repeat_of"),
            retry_of=document.get("retry_of"),
            reason=str(document.get("reason") or ""),
            raw=document,
        )


@dataclass(frozen=True)
class Recommendation:
    """The answer of a study."""

    number: Optional[int]
    """The winning trial, None as long as nothing was measured."""
    params: Mapping[str, Any]
    value: Optional[float]
    metric: str
    metrics: Mapping[str, float]
    system: Mapping[str, Any]
    full_budget: bool
    """Whether the winner was measured at the top rung."""
    notes: tuple[str, ...]
    """Plain sentences on how far the answer can be trusted."""
    results: int
    """How many trainings of the winner ``value`` is the mean of; more than 1 with ``search.repeats``, 0 before any."""
    standard_error: Optional[float]
    """The standard error of that mean, None with fewer than two."""
    raw: Mapping[str, Any] = field(repr=False)

    def _repr_html_(self) -> str:
        return notebook.recommendation(self)

    @property
    def deployments(self) -> tuple[Mapping[str, Any], ...]:
        """How to run the winner's model on each of the study's devices, as in docs/edge.md.

        Each has ``device``, ``configuration``, ``latency_seconds`` and ``joules_per_sample`` (``value``, ``low``,
        ``high``), ``samples_per_second``, ``memory_bytes``, ``method`` (``measured``, or ``estimate: ...``) and
        ``program``, which runs the model so. Empty where the study has no inference section, or no model was saved.
        """
        return tuple(self.raw.get("deployments") or ())

    @staticmethod
    def of(document: Mapping[str, Any]) -> Recommendation:
        """From the server's answer."""
        best = document.get("best")
        repeated = (best or {}).get("repeated") or {}
        errors = repeated.get("standard_errors")
        return Recommendation(
            number=int(best["number"]) if best else None,
            params=parameters.parameters(best["params"] if best else {}),
            value=values.decode(best["value"]) if best else None,
            metric=str(best["metric"]) if best else "",
            metrics=values.decode_all(document.get("metrics")),
            system=parameters.system(document.get("system") or {}),
            full_budget=bool(document.get("full_budget")),
            notes=tuple(document.get("notes") or ()),
            results=int(repeated.get("results", 1 if best else 0)),
            standard_error=values.decode(errors[0]) if errors else None,
            raw=document,
        )


def _result(document: Mapping[str, Any]) -> Result:
    return Result(
        rung=int(document["rung"]),
        budget=Budget.of(document["budget"]),
        values=tuple(values.decode(v) for v in document.get("values") or ()),
        violation=values.decode(document.get("violation", 0.0)),
        estimated=bool(document.get("estimated")),
    )
