from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Callable

import pytest
from fake_agent import FakeAgent
from fake_server import TOKEN, FakeServer
from real_server import RealServer, binary, in_memory

import tandem

StartAgent = Callable[..., FakeAgent]
StartServer = Callable[..., FakeServer]


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TANDEM_SOCKET", "TANDEM_SERVER", "TANDEM_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TANDEM_PROFILE", "off")  # test_attached.py has it on
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS"):
        monkeypatch.setenv(name, "9")  # a trial sets them, and they are to be as before after the test


@pytest.fixture
def start_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StartAgent]:
    """Starts a worker's side and points this process to it."""
    started: list[FakeAgent] = []

    def start(**trial: Any) -> FakeAgent:
        folder = tmp_path / str(len(started)) if started else tmp_path
        folder.mkdir(exist_ok=True)
        agent = FakeAgent(folder, trial)
        monkeypatch.setenv("TANDEM_SOCKET", agent.socket)
        started.append(agent)
        return agent

    yield start
    for agent in started:
        agent.close()


@pytest.fixture
def start_server() -> Iterator[StartServer]:
    started: list[FakeServer] = []

    def start(*args: Any, **kwargs: Any) -> FakeServer:
        server = FakeServer(*args, **kwargs)
        started.append(server)
        return server

    yield start
    for server in started:
        server.close()


def study_on(server: FakeServer) -> tandem.Study:
    return tandem.Client(server.url, TOKEN).create_study({"name": "toy", "space": {}})


def wait_for(condition: Any) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline, "it did not come about within 10 s"
        time.sleep(0.005)


@pytest.fixture(scope="session")
def real_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealServer]:
    """A real server that the tests of the session share: each names its studies for itself."""
    if binary() is None:
        pytest.skip("it needs a server: set TANDEM_BINARY to a tandem, as scripts/test does")
    server = RealServer(tmp_path_factory.mktemp("server"))
    yield server
    server.close()


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[RealServer]:
    """A real server that the test may kill."""
    if binary() is None:
        pytest.skip("it needs a server: set TANDEM_BINARY to a tandem, as scripts/test does")
    server = RealServer(tmp_path)
    yield server
    server.close()


@pytest.fixture
def real_client(real_server: RealServer, monkeypatch: pytest.MonkeyPatch) -> tandem.Client:
    """A client of the real server, where also the environment points."""
    monkeypatch.setenv("TANDEM_SERVER", real_server.url)
    monkeypatch.setenv("TANDEM_TOKEN", real_server.token)
    return tandem.Client()


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Path]:
    """A folder that is quick to write to."""
    with tempfile.TemporaryDirectory(prefix="tandem-test-", dir=in_memory(tmp_path)) as folder:
        yield Path(folder)
