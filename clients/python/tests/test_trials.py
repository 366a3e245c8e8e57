"""trials() in a script whose process is given one run after the other."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from conftest import StartAgent
from fake_agent import FakeAgent
from test_script import run_script

import tandem


def chain(start_agent: StartAgent, monkeypatch: pytest.MonkeyPatch, *trials: dict[str, object]) -> list[FakeAgent]:
    """Workers' sides of which each gives the process to the next; this process belongs to the first."""
    agents = [start_agent(**trial) for trial in trials]
    for one, following in zip(agents, agents[1:]):
        one.following = following
    for name, value in agents[0].environment().items():
        monkeypatch.setenv(name, value)
    return agents


def test_each_trial_has_its_own_values(start_agent: StartAgent, monkeypatch: pytest.MonkeyPatch) -> None:
    short = {"epochs": 1, "data_fraction": 1.0}
    agents = chain(
        start_agent,
        monkeypatch,
        {"number": 0, "params": {"rate": 0.1}, "budget": short},
        {"number": 1, "params": {"rate": 0.2}, "budget": short, "system": {"cpu_threads": 3}},
        {"number": 0, "params": {"rate": 0.1}, "first_epoch": 2},
    )
    (agents[2].checkpoint_dir / "checkpoint").touch()
    trials: list[tandem.Trial] = []
    for trial in tandem.trials():
        assert tandem.current_trial() is trial
        assert os.environ["TANDEM_SOCKET"] == agents[len(trials)].socket
        assert trial.restore(lambda path: None) == (len(trials) == 2)
        for _ in trial.epochs():
            trial.report(accuracy=trial.params["rate"])
        trials.append(trial)
    assert [trial.number for trial in trials] == [0, 1, 0]
    assert [[r["metrics"]["accuracy"] for r in agent.reports] for agent in agents] == [[0.1], [0.2], [0.1, 0.1]]
    with pytest.raises(tandem.LeaseLost, match="over"):
        trials[0].checkpoint(lambda path: Path(path).touch())


def test_what_not_every_run_has_does_not_stay(start_agent: StartAgent, monkeypatch: pytest.MonkeyPatch) -> None:
    chain(start_agent, monkeypatch, {}, {})
    monkeypatch.setenv("TANDEM_SECONDS", "12")
    found = [os.environ.get("TANDEM_SECONDS") for _ in tandem.trials()]
    assert found == ["12", None]


def test_a_stopped_trial_ends_and_the_next_begins(
    start_agent: StartAgent, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = chain(start_agent, monkeypatch, {}, {})
    first.directives[1] = {"action": "stop", "reason": "beaten"}
    for trial in tandem.trials():
        for _ in trial.epochs():
            trial.report(accuracy=0.5)
            trial.checkpoint(lambda path: Path(path).write_text("state"))
    assert ([r["epoch"] for r in first.reports], first.checkpoints) == ([1], [])
    assert ([r["epoch"] for r in second.reports], second.checkpoints) == ([1, 2, 3], [1, 2, 3])
    assert capsys.readouterr().err == "tandem: trial 0 of fake: beaten\n"


def test_who_goes_on_reporting_is_stopped(start_agent: StartAgent, monkeypatch: pytest.MonkeyPatch) -> None:
    (agent,) = chain(start_agent, monkeypatch, {})
    agent.directives[1] = agent.directives[2] = {"action": "stop", "reason": "beaten"}
    trial = next(tandem.trials())
    trial.report(1, accuracy=0.5)
    with pytest.raises(tandem.TrialStopped, match="beaten"):
        trial.report(2, accuracy=0.5)


def test_a_worker_that_does_not_know_the_call(start_agent: StartAgent, monkeypatch: pytest.MonkeyPatch) -> None:
    (agent,) = chain(start_agent, monkeypatch, {})
    agent.old = True
    assert len(list(tandem.trials())) == 1


def test_a_worker_that_is_gone(start_agent: StartAgent, monkeypatch: pytest.MonkeyPatch) -> None:
    (agent,) = chain(start_agent, monkeypatch, {})
    for _ in tandem.trials():
        agent.drop = ["before", "before", "before"]


def test_an_error_ends_the_script(start_agent: StartAgent, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = chain(start_agent, monkeypatch, {}, {})
    script = "import tandem\nfor trial in tandem.trials():\n    print(1 / trial.rung)\n"
    first.trial["rung"] = 1
    ended = run_script(script, first.environment())
    assert (ended.returncode, ended.stdout) == (1, "1.0\n")
    assert "ZeroDivisionError" in ended.stderr
    assert first.over and not second.over


def test_by_hand_there_is_one(capsys: pytest.CaptureFixture[str]) -> None:
    for trial in tandem.trials(params={"rate": 0.5}, epochs=2):
        for _ in trial.epochs():
            trial.report(accuracy=trial.params["rate"])
    assert capsys.readouterr().out.count("accuracy=0.5") == 2
    with pytest.raises(tandem.NotInTrial):
        next(tandem.trials())
