"""A study that nobody can run: who waits for it is told so once."""

from __future__ import annotations

import asyncio
import logging
import os
import shlex
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest
from conftest import StartServer, study_on, wait_for
from fake_server import TOKEN
from real_server import RealServer, binary

import tandem
from tandem import waiting

PAUSED = "it is paused: paused by a user"
NOBODY = {"cause": "unfit", "reason": "no worker is connected: start one with 'tandem worker'"}


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(waiting, "PATIENCE", 0.0)
    caplog.set_level(logging.WARNING, logger="tandem")


def test_the_command_that_it_names_starts_a_worker(
    own_server: RealServer, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    script = tmp_path / "train.sh"
    script.write_text('echo \'{"epoch": 1, "loss": 0.5}\'\n')
    study = tandem.Client(own_server.url, own_server.token).create_study(
        {
            "name": "alone",
            "command": ["sh", str(script)],
            "directory": str(tmp_path),
            "objective": {"metric": "loss", "direction": "minimize"},
            "space": {"x": {"type": "float", "low": 0, "high": 1}},
            "budget": {"policy": "epochs", "epochs": {"min": 1, "max": 1}},
            "stop": {"trials": 1},
        }
    )
    answers: list[tandem.Recommendation] = []
    thread = threading.Thread(target=lambda: answers.append(study.wait(progress=False, interval=0.02)))
    thread.start()
    wait_for(lambda: caplog.messages)
    assert caplog.messages[0].startswith("study alone waits: no worker is connected: start one with 'tandem worker ")
    command = shlex.split(caplog.messages[0].split("'")[1])
    worker = subprocess.Popen(
        [str(binary()), *command[1:], "--probe", "never", "--scratch", str(tmp_path / "scratch")],
        env={**os.environ, "TANDEM_TOKEN": own_server.token},
        stderr=subprocess.DEVNULL,
    )
    try:
        thread.join(60)
        assert [answer.value for answer in answers] == [0.5]
        assert len(caplog.messages) == 1
    finally:
        worker.kill()
        worker.wait()


def test_it_is_said_again_only_when_it_has_changed(start_server: StartServer, caplog: pytest.LogCaptureFixture) -> None:
    study = study_on(start_server())
    busy = {"cause": "busy", "reason": "1 worker that suits it is busy"}
    small = {"cause": "unfit", "reason": "resources.gpus is 8, more than 4 GPUs (large)"}
    said = waiting.Waiting(study.client.url)
    for waits, running in (
        ([], 0),
        ([busy], 0),
        ([NOBODY], 1),
        ([NOBODY], 0),
        ([NOBODY], 0),
        ([small], 0),
        ([busy], 0),
        ([NOBODY], 0),
    ):
        view: dict[str, Any] = {"name": "toy", "progress": {"trials": {"running": running}}, "waits": waits}
        said.look(view)
    none = f"study toy waits: no worker is connected: start one with 'tandem worker --server {study.client.url}'"
    assert caplog.messages == [none, f"study toy waits: {small['reason']}", none]


def test_what_lasts_a_moment_is_not_said(
    start_server: StartServer, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = start_server(trials=1)
    study = study_on(server)
    server.studies[study.id]["waits"] = [NOBODY]

    async def scene() -> None:
        async with tandem.AsyncClient(server.url, TOKEN) as client:
            waits = asyncio.create_task((await client.study("toy")).wait(interval=0.01))
            looked = len(server.sent(study.id, "GET"))
            while len(server.sent(study.id, "GET")) < looked + 3:
                await asyncio.sleep(0.01)
            waits.cancel()

    monkeypatch.setattr(waiting, "PATIENCE", 60.0)
    asyncio.run(scene())
    assert caplog.messages == []
    monkeypatch.setattr(waiting, "PATIENCE", 0.0)
    asyncio.run(scene())
    assert len(caplog.messages) == 1


def few(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "objective": {"metric": "loss", "direction": "minimize"},
        "space": {"x": {"type": "float", "low": 0, "high": 1}},
        "budget": {"epochs": 1},
        "stop": {"trials": 1},
    }


def ask_elsewhere(study: tandem.Study, monkeypatch: pytest.MonkeyPatch) -> tandem.Trial:
    """Ask for a trial as another process."""
    with monkeypatch.context() as patch:
        patch.setattr("tandem.worker.process_name", lambda: "box, process 1")
        return study.ask()


def test_who_asks_hears_once_which_trial_others_have(
    real_client: tandem.Client, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tandem.optimize._WAIT_SECONDS", 0.05)
    study = real_client.create_study(few("held-elsewhere"))
    with real_client.study(study.name) as other:
        held = ask_elsewhere(other, monkeypatch)
        for _ in range(2):
            with pytest.raises(TimeoutError):
                study.ask(timeout=0.05)
        [message] = caplog.messages
        assert message.startswith(f"study {study.name} has no trial to give now: trial 0 is with box, process 1, last")
        assert message.endswith(" s ago; one that is silent for 60 s loses its trial")
        thread = threading.Thread(target=study.optimize, args=(lambda trial: 0.5,))
        thread.start()
        wait_for(lambda: len(caplog.messages) == 2)  # another session's
        other.tell(held, 0.5)
        thread.join(60)
    with pytest.raises(tandem.StudyOver):
        study.ask()
    assert sum("has no trial to give" in one for one in caplog.messages) == 2


def test_nothing_is_said_of_trials_of_this_process_nor_at_once(
    real_client: tandem.Client, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = real_client.create_study(few("held-here"))
    with real_client.study(study.name) as other:
        other.ask()
        with pytest.raises(TimeoutError):
            study.ask(timeout=0.05)
    monkeypatch.setattr(waiting, "PATIENCE", 60.0)
    with real_client.study(study.name) as other:
        ask_elsewhere(other, monkeypatch)
        with pytest.raises(TimeoutError):
            study.ask(timeout=0.05)
    assert caplog.messages == []
    study.close()


def test_who_asks_hears_that_the_study_is_paused(real_client: tandem.Client, caplog: pytest.LogCaptureFixture) -> None:
    study = real_client.create_study(few("paused-by-hand"))
    study.pause()
    with pytest.raises(TimeoutError):
        study.ask(timeout=0.05)
    assert caplog.messages == [f"study {study.name} has no trial to give now: {PAUSED}"]
    study.close()
    caplog.clear()
    said = waiting.Waiting(study.client.url)
    said.look(study.view)
    assert caplog.messages == [f"study {study.name} waits: {PAUSED}"]
