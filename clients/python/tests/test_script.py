"""current_trial() in a script that a worker started, and in one run by hand."""

from __future__ import annotations

import math
import os
import socket
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any, Optional

import pytest
from conftest import StartAgent

import tandem
from tandem.metrics import lacking


def test_a_trial_says_what_to_train(start_agent: StartAgent) -> None:
    agent = start_agent(number=4, rung=1, seed=2**64 - 1)
    trial = tandem.current_trial(params={"learning_rate": 99.0})
    assert (trial.number, trial.id, trial.study, trial.rung, trial.seed) == (4, "s1-0", "fake", 1, 2**64 - 1)
    assert trial.params == {"learning_rate": 0.01, "layers": 2, "activation": "relu"}
    assert trial.system["cpu_threads"] == 1
    assert trial.budget == tandem.Budget(epochs=3, data_fraction=0.5)
    assert (trial.epochs_total, trial.data_fraction, trial.objectives) == (3, 0.5, ("accuracy",))
    assert trial.checkpoint_dir == agent.checkpoint_dir
    assert tandem.current_trial() is trial


def test_epochs_runs_to_the_budget_and_report_knows_the_epoch(start_agent: StartAgent) -> None:
    agent = start_agent()
    trial = tandem.current_trial()
    for epoch in trial.epochs():
        trial.report(accuracy=epoch / 10, loss=1)
    assert [r["epoch"] for r in agent.reports] == [1, 2, 3]
    assert agent.reports[1]["metrics"] == {"accuracy": 0.2, "loss": 1.0}
    assert trial.directive.action == "finish"


def test_a_report_waits_for_a_server_that_is_away(start_agent: StartAgent, monkeypatch: pytest.MonkeyPatch) -> None:
    class Hasty(socket.socket):
        def settimeout(self, value: Optional[float]) -> None:
            super().settimeout(value if value is None else value / 100)

    monkeypatch.setattr(socket, "socket", Hasty)
    agent = start_agent()
    answer = agent.answer
    asked: list[int] = []

    def late(epoch: int) -> dict[str, Any]:
        asked.append(epoch)
        time.sleep(1)
        return answer(epoch)

    monkeypatch.setattr(agent, "answer", late)
    tandem.current_trial().report(accuracy=0.5)
    assert len(asked) == 1, "the script did not wait for its answer"


def test_a_misspelt_metric_is_told_at_the_first_report(
    start_agent: StartAgent, capsys: pytest.CaptureFixture[str]
) -> None:
    agent = start_agent()
    trial = tandem.current_trial()
    with pytest.raises(
        ValueError, match="must report every objective: the objective 'accuracy' is not among the metrics"
    ):
        for _ in trial.epochs():
            trial.report(acuracy=0.5)
    assert len(agent.reports) == 2
    told = capsys.readouterr().err
    assert told.count("tandem: ") == 1
    assert "epoch 1 was reported, but the objective 'accuracy' is not among the metrics" in told
    assert "did you mean 'acuracy'?" in told
    assert "The last epoch of the budget, 3, must have it" in told


def test_a_number_of_a_deployment_needs_the_section() -> None:
    assert "the server knows it if the study file has inference" in lacking(["edge.latency_ms"], {"accuracy": 0.5})
    assert "inference" not in lacking(["loss"], {"accuracy": 0.5})


def test_optunas_report_says_how_it_is_written_here(start_agent: StartAgent) -> None:
    start_agent()
    trial = tandem.current_trial()
    with pytest.raises(TypeError, match=r"metrics by name: trial\.report\(accuracy=0\.91\)"):
        trial.report(0.9, 1)  # type: ignore[arg-type]


def test_epochs_starts_behind_the_checkpoint(start_agent: StartAgent, tmp_path: Path) -> None:
    (tmp_path / "checkpoint").mkdir()
    (tmp_path / "checkpoint" / "checkpoint").write_text("weights after 2")
    start_agent(first_epoch=3, budget={"epochs": 5, "data_fraction": 1.0})
    trial = tandem.current_trial()
    found: list[str] = []
    assert trial.restore(lambda path: found.append(Path(path).read_text()))
    assert found == ["weights after 2"]
    seen = []
    for epoch in trial.epochs():
        seen.append(epoch)
        trial.report(accuracy=0.5)
    assert seen == [3, 4, 5]


def test_a_first_run_has_nothing_to_restore(start_agent: StartAgent) -> None:
    start_agent()
    assert not tandem.current_trial().restore(lambda path: pytest.fail(f"loaded {path}"))


def test_a_resumed_run_without_restore_is_warned(start_agent: StartAgent) -> None:
    start_agent(first_epoch=2)
    with pytest.warns(UserWarning, match="start untrained"):
        next(tandem.current_trial().epochs())


def test_a_resumed_run_that_reads_the_folder_itself_is_not_warned(start_agent: StartAgent) -> None:
    start_agent(first_epoch=2)
    trial = tandem.current_trial()
    assert trial.checkpoint_dir.is_dir()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        next(trial.epochs())


def test_restore_says_what_is_in_the_folder(start_agent: StartAgent, tmp_path: Path) -> None:
    (tmp_path / "checkpoint").mkdir()
    (tmp_path / "checkpoint" / "weights.pt").touch()
    start_agent(first_epoch=2)
    with pytest.raises(tandem.TandemError, match=r"it holds \['weights.pt'\]"):
        tandem.current_trial().restore(lambda path: None)


def test_pause_ends_the_loop_after_the_checkpoint(start_agent: StartAgent) -> None:
    agent = start_agent()
    agent.directives[2] = {"action": "pause", "reason": "the study is paused"}
    trial = tandem.current_trial()
    for _ in trial.epochs():
        trial.report(accuracy=0.1)
        if trial.should_stop():
            trial.checkpoint(lambda path: Path(path).write_text("kept"))
    assert [r["epoch"] for r in agent.reports] == [1, 2]
    assert agent.checkpoints == [2]


def test_stop_raises_through_except_exception(start_agent: StartAgent, capsys: pytest.CaptureFixture[str]) -> None:
    agent = start_agent()
    agent.directives[1] = {"action": "stop", "reason": "the study was stopped"}
    trial = tandem.current_trial()
    next(trial.epochs())
    with pytest.raises(tandem.TrialStopped) as stopped:
        try:
            trial.report(accuracy=0.1)
        except Exception:
            pytest.fail("a broad except kept a stopped trial going")
    assert stopped.value.code == 0
    assert stopped.value.reason == "the study was stopped"
    assert capsys.readouterr().err == "tandem: trial 0 of fake: the study was stopped\n"


def test_an_uncaught_stop_ends_the_script_cleanly(start_agent: StartAgent) -> None:
    agent = start_agent()
    agent.directives[1] = {"action": "stop", "reason": "no longer wanted"}
    script = """
import tandem
trial = tandem.current_trial()
try:
    for _ in trial.epochs():
        trial.report(accuracy=0.5)
        print("not reached")
finally:
    print("cleaned up")
"""
    ended = run_script(script, agent.environment())
    assert (ended.returncode, ended.stdout) == (0, "cleaned up\n")
    assert ended.stderr == "tandem: trial 0 of fake: no longer wanted\n"


def test_should_prune_asks_within_an_epoch(start_agent: StartAgent) -> None:
    agent = start_agent()
    trial = tandem.current_trial()
    for _ in trial.epochs():
        trial.report(accuracy=0.1)
        assert not trial.should_prune()
        agent.directives[1] = {"action": "pause"}
        assert trial.should_prune()
        break


def test_epochs_without_reports_still_follows_the_server(start_agent: StartAgent) -> None:
    agent = start_agent()
    agent.directives[1] = {"action": "pause"}
    trial = tandem.current_trial()
    seen = []
    for epoch in trial.epochs():
        seen.append(epoch)
        if epoch == 1:
            trial.report(accuracy=0.1)
            trial._directive = tandem.Directive("continue")  # as if the answer had come before the pause
            trial._reported = 0
    assert seen == [1]


def test_the_system_configuration_follows_the_server(start_agent: StartAgent) -> None:
    agent = start_agent()
    agent.directives[1] = {"action": "continue", "system": {"cpu_threads": 4}}
    trial = tandem.current_trial()
    next(trial.epochs())
    trial.report(accuracy=0.1)
    assert trial.system["cpu_threads"] == 4


class Scalar:
    """Something like a numpy or torch scalar."""

    def __float__(self) -> float:
        return 0.25


@pytest.mark.parametrize(
    ("value", "sent"),
    [
        (0.5, 0.5),
        (1, 1.0),
        (True, 1.0),
        (Scalar(), 0.25),
        (math.nan, "NaN"),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
    ],
)
def test_metrics_on_the_wire(start_agent: StartAgent, value: Any, sent: object) -> None:
    agent = start_agent()
    trial = tandem.current_trial()
    next(trial.epochs())
    trial.report(accuracy=value)
    assert agent.reports[0]["metrics"] == {"accuracy": sent}


@pytest.mark.parametrize("value", ["0.9", None, [0.1, 0.2], b"1"])
def test_what_is_no_number_is_refused(start_agent: StartAgent, value: Any) -> None:
    agent = start_agent()
    with pytest.raises(TypeError, match="metric 'accuracy' must be"):
        tandem.current_trial().report(1, accuracy=value)
    assert agent.reports == []


def test_without_the_loop_a_report_is_for_the_whole_budget(start_agent: StartAgent) -> None:
    agent = start_agent()
    trial = tandem.current_trial()
    trial.report(accuracy=0.9)
    assert agent.reports[0]["epoch"] == 3
    with pytest.raises(ValueError, match="reported already"):
        trial.report(accuracy=0.9)


@pytest.mark.parametrize(
    ("epoch", "error", "words"),
    [
        (0, ValueError, "1 to 3"),
        (4, ValueError, "1 to 3"),
        (0.9, TypeError, "by name"),
        (True, TypeError, "by name"),
        (2, ValueError, "reported already"),
        (1, ValueError, "reported already"),
    ],
)
def test_epochs_that_cannot_be_reported(
    start_agent: StartAgent, epoch: Any, error: type[Exception], words: str
) -> None:
    start_agent()
    trial = tandem.current_trial()
    trial.report(2, accuracy=0.5)
    with pytest.raises(error, match=words):
        trial.report(epoch, accuracy=0.5)


def test_the_last_report_needs_the_objective(start_agent: StartAgent) -> None:
    agent = start_agent()
    trial = tandem.current_trial()
    trial.report(1, loss=0.5)
    with pytest.raises(ValueError, match="objective 'accuracy' is not among the metrics, did you mean 'acuracy'"):
        trial.report(3, acuracy=0.5)
    assert len(agent.reports) == 1
    with pytest.raises(ValueError, match="at least one metric"):
        trial.report(3)


@pytest.mark.parametrize("fault", ["before", "after", "503", "429"])
def test_a_lost_answer_is_asked_for_again_under_the_same_key(start_agent: StartAgent, fault: str) -> None:
    agent = start_agent()
    trial = tandem.current_trial()
    agent.keys.clear()
    agent.drop = [fault]
    trial.report(1, accuracy=0.5)
    trial.report(2, accuracy=0.6)
    assert [r["epoch"] for r in agent.reports] == [1, 2]
    first, again, second = agent.keys
    assert first == again
    assert second not in (None, first)


def test_no_worker_and_no_values(start_agent: StartAgent) -> None:
    with pytest.raises(tandem.NotInTrial, match="TANDEM_SOCKET is not set"):
        tandem.current_trial()


def test_by_hand(capsys: pytest.CaptureFixture[str]) -> None:
    trial = tandem.current_trial(params={"lr": 0.01}, epochs=2, data_fraction=0.5, system={"cpu_threads": 2})
    assert (trial.params["lr"], trial.system["cpu_threads"], trial.data_fraction) == (0.01, 2, 0.5)
    written: list[str] = []

    def save(path: str) -> None:
        Path(path).write_text("tried")
        written.append(path)

    assert not trial.restore(lambda path: None)
    for _ in trial.epochs():
        trial.report(accuracy=0.5, loss=math.nan)
        trial.checkpoint(save)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("  (")[0] for line in lines] == [
        "epoch 1/2  accuracy=0.5  loss=nan",
        "epoch 2/2  accuracy=0.5  loss=nan",
    ]
    assert len(written) == 2


def run_script(script: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    source = str(Path(tandem.__file__).resolve().parent.parent)
    full = {**os.environ, **environment, "PYTHONPATH": source}
    return subprocess.run([sys.executable, "-c", script], env=full, capture_output=True, text=True, check=False)


def test_data_sets_are_found_by_their_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TANDEM_DATA_SCANS", "/data/scans")
    assert tandem.dataset("scans") == Path("/data/scans")
    with pytest.raises(tandem.UnknownName, match=r"no data set 'scan', did you mean 'scans'.*encryption.datasets"):
        tandem.dataset("scan")
