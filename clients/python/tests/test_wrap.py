"""tandem.wrap: programs that know nothing of Tandem."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from conftest import StartAgent
from fake_agent import FakeAgent

CLIENT = Path(__file__).resolve().parents[1]
TWO = r"epoch (?P<epoch>\d+) loss=(?P<loss>\S+)"


def wrapped(agent: FakeAgent, pattern: str, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tandem.wrap", pattern, *command],
        env={**os.environ, **agent.environment(), "PYTHONPATH": str(CLIENT), "PYTHONUNBUFFERED": "1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def told(agent: FakeAgent) -> list[tuple[int, dict[str, float]]]:
    return [(r["epoch"], r["metrics"]) for r in agent.reports]


def test_a_plain_script_is_tuned_and_ended_at_its_budget(start_agent: StartAgent, tmp_path: Path) -> None:
    agent = start_agent(objectives=["loss"])
    script = tmp_path / "train.py"
    script.write_text(
        "import sys, time\n"
        "for epoch in range(1, 1000):\n"
        "    print(f'epoch {epoch} loss={epoch / 10}', *sys.argv[1:])\n"
        "    time.sleep(0.02)\n"
    )
    words = ("--lr={learning_rate}", "{{layers}}", "{flags}", "{overrides}")
    ran = wrapped(agent, TWO, sys.executable, str(script), *words)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert told(agent) == [(1, {"loss": 0.1}), (2, {"loss": 0.2}), (3, {"loss": 0.3})]
    flags = "--learning_rate=0.01 --layers=2 --activation=relu"
    assert ran.stdout.splitlines()[0] == f"epoch 1 loss=0.1 --lr=0.01 {{layers}} {flags} {flags.replace('--', '')}"


def test_a_program_that_knows_its_epochs_may_save_its_model(start_agent: StartAgent) -> None:
    for loop, saved in (("for epoch in 1 2 3", "0"), ("for epoch in 1 2 3 4", "")):
        agent = start_agent(objectives=["loss"])
        script = f'{loop}; do echo "epoch $epoch loss=$epoch"; done; sleep 0.3; echo "saved $#"'
        ran = wrapped(agent, TWO, "sh", "-c", script + " # {epochs}")
        assert (ran.returncode, ran.stderr, ran.stdout.partition("saved ")[2].strip()) == (0, "", saved)
        assert [epoch for epoch, _ in told(agent)] == [1, 2, 3]


def test_metrics_stand_in_several_lines_and_epochs_count_from_0(start_agent: StartAgent, tmp_path: Path) -> None:
    agent = start_agent(objectives=["acc"])
    script = tmp_path / "train.py"
    script.write_text("for epoch in range(9): print(f'Epoch [{epoch}]\\nacc 0.1\\racc 0.{epoch + 2}\\nloss nan')")
    ran = wrapped(agent, r"\[(?P<epoch>\d+)|acc (?P<acc>[.\d]+)|loss (?P<loss>\S+)", sys.executable, str(script))
    assert (ran.returncode, ran.stderr) == (0, "")
    assert told(agent) == [(epoch, {"acc": (epoch + 1) / 10, "loss": "NaN"}) for epoch in (1, 2, 3)]


def test_a_program_that_is_done_early_is_measured(start_agent: StartAgent) -> None:
    agent = start_agent(objectives=["loss"])
    assert wrapped(agent, r"loss=(?P<loss>\S+)", "sh", "-c", "echo loss=2; echo loss=1").returncode == 0
    assert told(agent) == [(1, {"loss": 2.0}), (2, {"loss": 1.0}), (3, {"loss": 1.0})]


def test_it_ends_as_the_program_does(start_agent: StartAgent) -> None:
    agent = start_agent()
    assert wrapped(agent, TWO, "sh", "-c", "echo epoch 1 loss=1; exit 3").returncode == 3
    assert wrapped(agent, TWO, "sh", "-c", "kill -9 $$").returncode == -9
    assert told(agent) == [(1, {"loss": 1.0})]


def test_it_says_what_is_wrong(start_agent: StartAgent) -> None:
    agent = start_agent()
    for said, pattern, argument in (
        ("its output never had all of epoch, loss", TWO, "epoch 1"),
        ("found '0.5,', which is no number", TWO, "epoch 1 loss=0.5,"),
        ("there is no parameter 'learning_rat', did you mean 'learning_rate'?", TWO, "{learning_rat}"),
        ("is no regular expression", "(", ""),
        ("names no metric", r"epoch (?P<epoch>\d+)", ""),
    ):
        ran = wrapped(agent, pattern, "echo", argument)
        assert ran.returncode == 1 and said in ran.stderr, ran.stderr
    assert told(agent) == []
