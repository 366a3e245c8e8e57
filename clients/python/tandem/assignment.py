"""What a trial is to train, and what the server wants next: plain values from the wire."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Optional, Protocol

from .precision import Variant


@dataclass(frozen=True)
class Budget:
    """What a trial may have spent when this run ends."""

    epochs: int
    """Passes in total, counted from the trial's first."""
    data_fraction: float
    """Share of the training data each pass uses, in (0, 1]."""
    seconds: float = 0.0
    """If set, the training time in total that spends the budget; epochs only bounds it above."""
    joules: float = 0.0
    """The same for the training's energy."""

    @property
    def measured(self) -> bool:
        """Whether it is an amount of time or energy: then only the server's answer says when it is spent."""
        return self.seconds > 0 or self.joules > 0

    @staticmethod
    def of(document: Mapping[str, Any]) -> Budget:
        """From a lease or from the worker's socket."""
        return Budget(
            epochs=int(document["epochs"]),
            data_fraction=float(document["data_fraction"]),
            seconds=float(document.get("seconds") or 0),
            joules=float(document.get("joules") or 0),
        )


@dataclass(frozen=True)
class Energy:
    """What an epoch consumed, and how that was obtained: "rapl", or "estimate: ..."."""

    joules: float
    method: str


@dataclass(frozen=True)
class Directive:
    """The answer to a report."""

    action: str
    """"continue", "pause", "stop" or "finish"."""
    reason: str = ""
    system: Mapping[str, Any] = field(default_factory=dict)

    @staticmethod
    def of(document: Mapping[str, Any]) -> Directive:
        """From the answer to a report."""
        return Directive(
            action=str(document.get("action", "continue")),
            reason=str(document.get("reason") or ""),
            system=dict(document.get("system") or {}),
        )


CONTINUE = Directive("continue")


@dataclass(frozen=True)
class Outcome:
    """What there is to say of an epoch when it ends."""

    epoch: int
    metrics: Mapping[str, float]
    seconds: float
    energy: Optional[Energy] = None
    """What it consumed, if that is known here."""
    system: Mapping[str, Any] = field(default_factory=dict)
    """The system configuration that was in force, as far as it is this process's to apply."""


@dataclass(frozen=True)
class Assignment:
    """One run of a trial: train first_epoch to budget.epochs with these values."""

    id: str
    study: str
    number: int
    params: Mapping[str, Any]
    system: Mapping[str, Any]
    budget: Budget
    first_epoch: int
    rung: int
    seed: int
    checkpoint_dir: Path
    objectives: tuple[str, ...]
    precisions: tuple[str, ...] = ()
    """In which the trained model is wanted, fp32 first; empty: as it is."""

    @staticmethod
    def of(document: Mapping[str, Any], checkpoint_dir: Path) -> Assignment:
        """From a lease or from the worker's socket, which use the same words."""
        return Assignment(
            id=str(document["trial_id"]),
            study=str(document["study"]),
            number=int(document["number"]),
            params=dict(document.get("params") or {}),
            system=dict(document.get("system") or {}),
            budget=Budget.of(document["budget"]),
            first_epoch=int(document["first_epoch"]),
            rung=int(document["rung"]),
            seed=int(document["seed"]),
            checkpoint_dir=checkpoint_dir,
            objectives=tuple(document.get("objectives") or ()),
            precisions=tuple(document.get("precisions") or ()),
        )


class Link(Protocol):
    """The way from a trial to whoever gave it out."""

    def begin(self, epoch: int) -> None:
        """Say that the training begins with this epoch: all before was preparation."""

    def report(self, outcome: Outcome) -> Directive:
        """Send what an epoch brought."""

    def publish(self, epoch: int) -> None:
        """Make the content of the checkpoint directory the trial's checkpoint."""

    def save_model(self, content: bytes) -> None:
        """Hand over the trial's model, an ONNX file."""

    def save_precision(self, variant: Variant, more: bool) -> None:
        """Hand over the trained model in a precision; more says that it is not the last one."""

    def log_artifact(self, name: str, content: bytes) -> None:
        """Keep a file with the trial."""

    def directive(self) -> Directive:
        """What the server wants now."""
