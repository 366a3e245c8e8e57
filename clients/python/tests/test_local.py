"""TANDEM_SERVER=local: a server that runs as long as a process uses it."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from real_server import PATIENCE, binary, in_memory

import tandem

SCRIPT = """
import sys, tandem

client = tandem.Client()
print(client.url, flush=True)
study = client.create_study({
    "name": "toy", "objective": {"metric": "score", "direction": "maximize"},
    "space": {"x": {"type": "float", "low": 0, "high": 1}},
    "budget": {"epochs": 1}, "search": {"method": "random", "seed": 1}, "stop": {"trials": 6},
}, load_if_exists=True)
for line in sys.stdin:  # a trial for each line
    with study:
        trial = study.ask()
        study.tell(trial, trial.params["x"])
    print(len(study.trials), flush=True)
print(study.best_value, flush=True)
"""


@pytest.mark.parametrize("system", ["win32", "darwin"])
def test_a_system_without_servers_says_so(monkeypatch: pytest.MonkeyPatch, system: str) -> None:
    monkeypatch.setattr(sys, "platform", system)
    with pytest.raises(tandem.TandemError, match=r"servers run on Linux only.*TANDEM_SERVER"):
        tandem.Client("local")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    if binary() is None:
        pytest.skip("it needs a server: set TANDEM_BINARY to a tandem, as scripts/test does")
    deep = Path(tempfile.mkdtemp(prefix="tandem-test-", dir=in_memory(tmp_path)))
    data = deep / ("deep" * 30) / "it's here"  # a socket's path may have 107 bytes only
    monkeypatch.setenv("TANDEM_SERVER", f"local:{data}")
    yield data
    shutil.rmtree(deep, ignore_errors=True)


def start() -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-W", "always::ResourceWarning", "-c", SCRIPT],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None and process.stderr is not None
    said = process.stdout.readline().strip()
    assert said, process.stderr.read()
    return said


def tell(process: subprocess.Popen[str]) -> str:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()
    return line(process)


def ends(url: str) -> bool:
    """Whether the server ends within the patience."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", urlsplit(url).port or 0), timeout=PATIENCE).close()
        except ConnectionRefusedError:
            return True
        time.sleep(0.1)
    return False


def test_the_server_serves_all_processes_and_ends_with_the_last(folder: Path) -> None:
    first = start()
    url = line(first)
    assert tell(first) == "1"
    second = start()
    assert line(second) == url
    assert tell(second) == "2"
    _, said = first.communicate(timeout=PATIENCE)
    assert first.returncode == 0 and f"Tandem keeps results in {folder}" in said and "/#token=tandem_admin_" in said
    assert "ResourceWarning" not in said
    time.sleep(7)  # longer than a server without users lives
    assert tell(second) == "3"
    _, said = second.communicate(timeout=PATIENCE)
    assert second.returncode == 0 and said == ""
    assert ends(url)
    third = start()  # what was measured is still there
    line(third)
    assert tell(third) == "4"
    third.send_signal(signal.SIGKILL)
    third.communicate(timeout=PATIENCE)
    assert ends(url)


def test_processes_that_start_at_once_share_a_server(folder: Path) -> None:
    several = [start() for _ in range(4)]
    assert len({line(one) for one in several}) == 1
    for one in several:
        tell(one)
    for one in several:
        one.communicate(timeout=PATIENCE)
        assert one.returncode == 0


def test_a_server_that_is_there_is_used_and_goes_on(folder: Path) -> None:
    tandem_program = binary()
    assert tandem_program is not None
    server = subprocess.Popen(
        [tandem_program, "serve", "--data", str(folder), "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True
    )
    assert server.stdout is not None
    assert "Tandem answers at" in server.stdout.readline()
    user = start()
    url = line(user)
    user.communicate(timeout=PATIENCE)
    time.sleep(7)
    assert server.poll() is None and not_ended(url)
    server.terminate()
    server.communicate(timeout=PATIENCE)


def not_ended(url: str) -> bool:
    with socket.create_connection(("127.0.0.1", urlsplit(url).port or 0), timeout=PATIENCE):
        return True


def test_what_cannot_be_started_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="leave the token out"):
        tandem.Client(token="mine")
    monkeypatch.setenv("TANDEM_TOKEN", "of another server")
    folder.parent.mkdir(parents=True)
    folder.write_text("a file")
    with pytest.raises(tandem.TandemError, match=r"use a server on this machine: .*not a directory"):
        tandem.Client()
    monkeypatch.setenv("TANDEM_BINARY", "")
    monkeypatch.setenv("PATH", os.defpath)
    with pytest.raises(tandem.TandemError, match="install the package's wheel"):
        tandem.Client()


def test_a_study_that_exists_with_fewer_trials_says_how_it_gets_more(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    client = tandem.Client()
    definition: dict[str, Any] = {
        "name": "toy",
        "objective": {"metric": "score", "direction": "maximize"},
        "space": {
            "x": {"type": "float", "low": 0, "high": 1, "log": False},
            "n": {"type": "int", "low": 1, "high": 9, "step": 1},
            "rate": {"type": "float", "low": 1e-4, "high": 0.1, "log": True},
            "size": {"type": "ordinal", "values": (16, 32)},
            "kind": {"values": ["a", True, 1.5], "when": {"n": [1, 2]}},
        },
        "budget": {"epochs": 1},
        "search": {"method": "random"},
    }
    first = client.create_study({**definition, "stop": {"trials": 6}})
    for trials in (6, 2):  # nothing is missing
        assert client.create_study({**definition, "stop": {"trials": trials}}, load_if_exists=True).id == first.id
    assert caplog.messages == []
    other: dict[str, Any] = {**definition, "objective": {"metric": "score", "direction": "minimize"}}
    other["space"] = {**definition["space"], "x": {"type": "float", "low": 0, "high": 2}, "y": {"values": ("a", "b")}}
    del other["space"]["kind"]
    assert client.create_study({**other, "stop": {"trials": 6}}, load_if_exists=True).id == first.id
    assert caplog.messages == [
        "study toy exists and goes on with its own definition: its objective is [('score', 'maximize')], not "
        "[('score', 'minimize')]; it has no parameter y; its x has high 1, not 2; it has the parameter kind. "
        "A study under another name has yours"
    ]
    caplog.clear()
    again = client.create_study({**definition, "stop": {"trials": 10}}, load_if_exists=True)
    assert caplog.messages == ["study toy exists and ends after 6 trials, not 10: study.extend(trials=4) gives it more"]
    again.extend(trials=4)
    caplog.clear()
    assert client.create_study({**definition, "stop": {"trials": 10}}, load_if_exists=True).id == first.id
    assert caplog.messages == []
