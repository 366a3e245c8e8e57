"""Processes that train a trial together."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import tandem
from tandem import ranks
from tandem.assignment import Directive, Outcome
from tandem.errors import TandemError
from tandem.precision import Variant
from tandem.threads import Threads


class Answers:
    """Answers like a worker, and counts what it is asked."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def begin(self, epoch: int) -> None:
        self.calls.append("begin")

    def report(self, outcome: Outcome) -> Directive:
        self.calls.append("report")
        action = "pause" if outcome.epoch == 2 else "continue"
        return Directive(action, "of rank 0", {"cpu_threads": outcome.epoch})

    def publish(self, epoch: int) -> None:
        self.calls.append("publish")

    def save_model(self, content: bytes) -> None:
        self.calls.append("model")

    def save_precision(self, variant: Variant, more: bool) -> None:
        self.calls.append("precision")

    def log_artifact(self, name: str, content: bytes) -> None:
        self.calls.append("artifact")

    def directive(self) -> Directive:
        self.calls.append("directive")
        return Directive("stop", "nobody wants it")


def test_every_rank_is_answered_what_the_first_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    worker = Answers()
    monkeypatch.setenv("RANK", "0")
    leader = ranks.link(worker, tmp_path)
    monkeypatch.setenv("RANK", "1")
    follower = ranks.link(worker, tmp_path)
    told: list[Directive] = []
    follows = threading.Thread(target=lambda: told.extend([follower.report(Outcome(1, {}, 1.0)), *asked()]))

    def asked() -> list[Directive]:
        return [follower.directive(), follower.directive()]

    follows.start()
    for one in (leader, follower):
        one.begin(1)
        one.publish(1)
        one.save_model(b"")
        one.log_artifact("a", b"")
    first = [leader.report(Outcome(1, {}, 1.0)), leader.report(Outcome(2, {}, 1.0)), leader.directive()]
    follows.join(60)
    assert told == first
    assert [one.action for one in told] == ["continue", "pause", "stop"]
    assert worker.calls == ["begin", "publish", "model", "artifact", "report", "report", "directive"]


def test_no_rank_waits_for_one_that_is_gone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "0")
    leader = ranks.link(Answers(), tmp_path)
    leader.report(Outcome(1, {}, 1.0))
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    (tmp_path / "answers" / "leader").write_text(str(gone.pid))
    monkeypatch.setenv("RANK", "1")
    follower = ranks.link(Answers(), tmp_path)
    assert follower.report(Outcome(1, {}, 1.0)).action == "continue"  # what it has said still counts
    with pytest.raises(TandemError, match="rank 0 has ended"):
        follower.report(Outcome(2, {}, 1.0))
    shutil.rmtree(tmp_path / "answers")
    with pytest.raises(TandemError, match="rank 0 has ended"):
        follower.directive()


def test_one_process_has_its_own_way(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    worker = Answers()
    for size in ("1", "none", ""):
        monkeypatch.setenv("WORLD_SIZE", size)
        assert ranks.link(worker, tmp_path) is worker
    assert list(tmp_path.iterdir()) == []


def test_processes_divide_the_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS"):
        monkeypatch.setenv(name, "9")
    for wanted, each in ((8, "2"), (2, "1")):
        Threads(4).apply(wanted)
        assert os.environ["OMP_NUM_THREADS"] == each


def test_by_hand_the_first_rank_prints(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for rank in ("0", "1"):
        monkeypatch.setenv("RANK", rank)
        trial: Any = tandem.current_trial(params={}, epochs=1)
        for _ in trial.epochs():
            trial.report(accuracy=0.5)
        assert ("accuracy=0.5" in capsys.readouterr().out) == (rank == "0")
