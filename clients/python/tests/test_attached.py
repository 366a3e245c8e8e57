"""Trials of this process carry the profile that the tandem binary takes of it."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator, Sequence
from typing import Any, Optional

import pytest
from real_server import binary

import tandem
from tandem import attached


@pytest.fixture(autouse=True)
def profiled(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A process that has not been profiled yet."""
    monkeypatch.delenv("TANDEM_PROFILE", raising=False)
    monkeypatch.setattr(attached, "_profiler", None)
    monkeypatch.setattr(attached, "_said", set())
    monkeypatch.setattr(attached, "PATIENCE", 60.0)  # machines that run tests may be slow
    yield
    if attached._profiler is not None:
        attached._profiler.close()


def trained(client: tandem.Client, n_jobs: int = 1) -> Sequence[Any]:
    """The reports of a study of two trials with two epochs each."""
    definition = {
        "name": f"here-{uuid.uuid4().hex[:8]}",
        "objective": {"metric": "value", "direction": "minimize"},
        "space": {"x": {"type": "float", "low": 0, "high": 1}},
        "budget": {"policy": "epochs", "epochs": {"min": 2, "max": 2}},
        "stop": {"trials": 2},
    }

    def objective(trial: tandem.Trial) -> None:
        for _ in trial.epochs():
            trial.report(value=sum(i * trial.params["x"] for i in range(100_000)))

    with client.create_study(definition) as study:
        study.optimize(objective, n_jobs=n_jobs)
        return [report for number in range(2) for report in study.learning_curve(number)]


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if "not profiled" in record.getMessage()]


def test_reports_carry_a_profile(real_client: tandem.Client, caplog: pytest.LogCaptureFixture) -> None:
    reports = trained(real_client)
    assert len(reports) == 4
    for report in reports:
        profile = report["profile"]
        assert profile["level"]
        assert profile["host"]["tree.cpu_user"] >= 0
    assert told(caplog) == []


@pytest.mark.parametrize(
    ("value", "name", "words"),
    [
        ("off", None, None),
        ("", "/absent/tandem", "/absent/tandem"),
        ("", "/bin/true", "does not profile"),
        ("", "/bin/cat", "does not profile"),
    ],
)
def test_without_a_profile(
    real_client: tandem.Client,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    value: str,
    name: Optional[str],
    words: Optional[str],
) -> None:
    """The study runs all the same, and why there is no profile is said once."""
    caplog.set_level(logging.WARNING, "tandem")
    monkeypatch.setenv("TANDEM_PROFILE", value)
    if name:
        monkeypatch.setenv("TANDEM_BINARY", name)
    reports = trained(real_client)
    assert len(reports) == 4
    assert not any(report.get("profile") for report in reports)
    if words is None:
        assert told(caplog) == []
    else:
        assert len(told(caplog)) == 1
        assert words in told(caplog)[0]


def test_trials_at_once_are_not_told_apart(real_client: tandem.Client, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "tandem")
    reports = trained(real_client, n_jobs=2)
    assert not any(report.get("profile") for report in reports)
    assert len(told(caplog)) == 1
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


def test_a_profiler_that_ends_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    found = binary()
    if found is None:
        pytest.skip("it needs a tandem: set TANDEM_BINARY")
    caplog.set_level(logging.WARNING, "tandem")
    assert attached.lap() is not None
    assert attached._profiler is not None
    attached._profiler._process.kill()
    attached._profiler._process.wait()
    assert attached.lap() is None
    assert attached.lap() is None
    assert len(told(caplog)) == 1
