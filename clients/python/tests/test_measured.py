"""Budgets in seconds and joules: the server's answer, not a number of epochs, ends a run."""

from __future__ import annotations

from pathlib import Path
from typing import Optional

import pytest

from tandem.assignment import CONTINUE, Assignment, Budget, Directive, Energy, Outcome
from tandem.optimize import complete, outcome_of
from tandem.precision import Variant
from tandem.trial import Trial


class Meter:
    """A server to which every epoch takes 10 seconds."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.spent = 0.0
        self.published: list[int] = []
        self.energies: list[Optional[Energy]] = []

    def begin(self, epoch: int) -> None:
        pass

    def report(self, outcome: Outcome) -> Directive:
        self.spent += 10
        self.energies.append(outcome.energy)
        return Directive("finish") if self.spent >= self.budget.seconds else CONTINUE

    def publish(self, epoch: int) -> None:
        self.published.append(epoch)

    def directive(self) -> Directive:
        return CONTINUE

    def save_model(self, content: bytes) -> None:
        raise AssertionError("nothing here has a model")

    def save_precision(self, variant: Variant, more: bool) -> None:
        raise AssertionError("nothing here has a model")

    def log_artifact(self, name: str, content: bytes) -> None:
        raise AssertionError("nothing here is logged")


def measured(tmp_path: Path, seconds: float = 25, epochs: int = 1_000_000) -> tuple[Trial, Meter]:
    budget = Budget.of({"epochs": epochs, "data_fraction": 1, "seconds": seconds})
    link = Meter(budget)
    (tmp_path / "checkpoint").mkdir()
    assignment = Assignment("s-0", "timed", 0, {"x": 1}, {}, budget, 1, 0, 7, tmp_path / "checkpoint", ("accuracy",))
    return Trial(assignment, link), link


def test_the_loop_goes_on_until_the_budget_is_spent(tmp_path: Path) -> None:
    trial, link = measured(tmp_path)
    trained = []
    for epoch in trial.epochs():
        trained.append(epoch)
        assert not trial.complete
        trial.report(accuracy=0.5)
        trial.checkpoint(lambda path: Path(path).write_text("state"))
    assert trained == [1, 2, 3]
    assert link.published == trained  # the last epoch's too
    assert trial.complete and outcome_of(trial) == "budget_reached"
    complete(trial, None)  # there is nothing left to report


def test_epochs_bound_it(tmp_path: Path) -> None:
    trial, _ = measured(tmp_path, seconds=1000, epochs=2)
    for _ in trial.epochs():
        trial.report(accuracy=0.5)
    assert trial.last_reported == 2 and trial.complete


def test_every_report_needs_the_objective(tmp_path: Path) -> None:
    trial, _ = measured(tmp_path)
    for _ in trial.epochs():
        with pytest.raises(ValueError, match="accuracy"):
            trial.report(loss=0.5)
        break


def test_a_function_that_returns_too_early_is_told(tmp_path: Path) -> None:
    trial, _ = measured(tmp_path)
    for _ in trial.epochs():
        trial.report(accuracy=0.5)
        break
    assert outcome_of(trial) == "interrupted"
    with pytest.raises(ValueError, match=r"after epoch 1, before its budget was spent.*trial.epochs"):
        complete(trial, 0.9)


def test_energy_goes_with_its_epoch_only(tmp_path: Path) -> None:
    trial, link = measured(tmp_path, seconds=15)
    for epoch in trial.epochs():
        if epoch == 1:
            trial.used(12.5, "estimate: 10 W")
        trial.report(accuracy=0.5)
    assert link.energies == [Energy(12.5, "estimate: 10 W"), None]


def test_budgets_without_amounts_are_what_they_were() -> None:
    budget = Budget.of({"epochs": 3, "data_fraction": 0.5})
    assert not budget.measured and budget == Budget(3, 0.5)
