"""A client against a server: creating, finding, retrying, and what it makes of refusals."""

from __future__ import annotations

import gc
import json
import math
import socket
import threading
import warnings
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from conftest import StartServer, study_on
from fake_server import TOKEN, FakeServer, Problem

import tandem

DEFINITION = {"name": "toy", "space": {"x": {"type": "int", "low": 0, "high": 9}}}


@pytest.fixture
def server(start_server: StartServer) -> FakeServer:
    return start_server()


@pytest.fixture
def client(server: FakeServer) -> tandem.Client:
    return tandem.Client(server.url, TOKEN)


def test_a_study_from_a_dictionary(server: FakeServer, client: tandem.Client) -> None:
    study = client.create_study(DEFINITION)
    assert (study.id, study.name, study.status) == ("s1", "toy", "running")
    (call,) = server.sent("/studies")
    assert (call.json, call.content_type) == (DEFINITION, "application/json")
    assert study.url == f"{server.url}/studies/s1"


def test_a_study_from_a_file(server: FakeServer, client: tandem.Client, tmp_path: Path) -> None:
    text = "name: from-yaml\nspace:\n  x: {type: int, low: 0, high: 9}\n"
    (tmp_path / "study.yaml").write_text(text)
    (tmp_path / "study.json").write_text(json.dumps({**DEFINITION, "name": "from-json"}))
    assert client.create_study(tmp_path / "study.yaml").name == "from-yaml"
    assert client.create_study(str(tmp_path / "study.json")).name == "from-json"
    assert client.create_study(tmp_path / "study.yaml", load_if_exists=True).id == "s1"
    assert [call.content_type for call in server.sent("/studies")] == [
        "application/yaml",
        "application/json",
        "application/yaml",
    ]
    assert server.sent("/studies")[0].body.decode() == text
    with pytest.raises(FileNotFoundError):
        client.create_study(tmp_path / "missing.yaml")


def test_a_name_that_is_taken(client: tandem.Client) -> None:
    first = client.create_study(DEFINITION)
    with pytest.raises(tandem.ConflictError, match="there is a study named toy"):
        client.create_study(DEFINITION)
    assert client.create_study(DEFINITION, load_if_exists=True).id == first.id


def test_faults_are_named_with_their_paths(client: tandem.Client) -> None:
    with pytest.raises(tandem.InvalidError) as error:
        client.create_study({"name": "broken"})
    assert error.value.errors == [
        tandem.Fault("space", "is missing"),
        tandem.Fault("budget.eta", "must be at least 2", value=1, line=7),
    ]
    assert str(error.value).splitlines() == [
        "create the study: the study has 2 faults",
        "  space: is missing",
        "  budget.eta (line 7): must be at least 2 (got 1)",
    ]
    assert (error.value.code, error.value.status) == ("invalid", 422)


def test_values_of_numpy_are_sent_and_others_named(server: FakeServer, client: tandem.Client) -> None:
    class Scalar:  # as numpy's: what it is in Python is behind tolist
        def tolist(self) -> int:
            return 3

    study = client.create_study({**DEFINITION, "stop": {"trials": Scalar()}})
    assert server.sent("/studies")[0].json["stop"] == {"trials": 3}
    for wrong, named in (
        (date(2026, 1, 2), r"^configurations\[1\]\.x: must be .*, not datetime\.date\(2026, 1, 2\)"),
        (math.inf, r"^configurations\[1\]\.x: must be .* a finite number, not inf"),
    ):
        with pytest.raises((TypeError, ValueError), match=named):
            study.enqueue({"x": 1}, {"x": wrong})


def test_finding_studies(client: tandem.Client) -> None:
    assert client.studies() == []
    client.create_study(DEFINITION)
    assert [s.name for s in client.studies()] == ["toy"]
    assert client.study("toy").id == client.study("s1").id == "s1"
    with pytest.raises(tandem.NotFoundError, match="find the study: there is no study nought"):
        client.study("nought")
    assert client.workers() == []


def test_a_preview_stores_nothing(client: tandem.Client) -> None:
    assert client.preview(DEFINITION) == {"rungs": [{"index": 0}]}
    with pytest.raises(tandem.InvalidError, match="preview the study: the study has 1 fault\n  space: is missing"):
        client.preview({"name": "broken"})
    assert client.studies() == []


def test_the_environment_names_the_server(server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    assert tandem.Client().url == "http://127.0.0.1:7171"
    monkeypatch.setenv("TANDEM_SERVER", server.url + "/")
    monkeypatch.setenv("TANDEM_TOKEN", TOKEN)
    assert tandem.create_study(DEFINITION).id == tandem.load_study("toy").id


@pytest.mark.parametrize("url", ["127.0.0.1:7171", "ftp://host", "http://", "http://host/path", "http://host?a=b"])
def test_an_address_that_is_none(url: str) -> None:
    with pytest.raises(ValueError, match="the server's address is http"):
        tandem.Client(url)


def test_a_wrong_token(server: FakeServer) -> None:
    with pytest.raises(tandem.AuthError, match="set TANDEM_TOKEN"):
        tandem.Client(server.url, "wrong").studies()
    assert len(server.calls) == 1


@pytest.mark.parametrize("fault", ["before", "after", "503", "429", "502"])
def test_a_call_is_made_once_however_often_it_is_sent(server: FakeServer, client: tandem.Client, fault: str) -> None:
    server.faults = [("/studies", fault), ("/studies", fault)]
    client.create_study(DEFINITION)
    first, second, third = server.sent("/studies")
    assert first.key == second.key == third.key
    assert len(server.studies) == 1
    client.create_study({**DEFINITION, "name": "other"})
    assert server.sent("/studies")[-1].key != first.key


class Clock:
    """Time that passes only where somebody sleeps."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def test_patience_ends(server: FakeServer, client: tandem.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr("tandem.transport.time", clock)
    server.faults = [("/studies", "503")] * 50
    client.transport.patience = 0.5
    with pytest.raises(tandem.UnavailableError, match="list the studies: not now"):
        client.studies()
    assert 3 <= len(server.calls) <= 4  # it waits 0.05 to 0.1 s, then up to twice as long each time
    assert 0.1 < clock.now <= 0.5


def test_nobody_there() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(tandem.UnavailableError, match=f"{url} cannot be reached: ConnectionRefusedError"):
        tandem.Client(url, patience=0).studies()


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (404, "not_found", tandem.NotFoundError),
        (409, "conflict", tandem.ConflictError),
        (409, "lease_lost", tandem.LeaseLost),
        (413, "exhausted", tandem.ExhaustedError),
        (403, "forbidden", tandem.AuthError),
        (422, "key_reused", tandem.InvalidError),
        (500, "internal", tandem.ServerError),
        (418, "teapot", tandem.TandemError),
    ],
)
def test_refusals_are_not_retried(
    server: FakeServer, client: tandem.Client, status: int, code: str, kind: type[Exception]
) -> None:
    def refuse(call: Any) -> Any:
        raise Problem(status, code, "no")

    server.handle = refuse  # type: ignore[method-assign]
    with pytest.raises(kind, match="list the studies: no") as error:
        client.studies()
    assert type(error.value) is kind
    assert len(server.calls) == 1


def test_an_answer_that_is_no_problem_document(server: FakeServer, client: tandem.Client) -> None:
    server.handle = lambda call: (500, b"<html>proxy error</html>")  # type: ignore[method-assign]
    with pytest.raises(tandem.ServerError, match="list the studies: <html>proxy error"):
        client.studies()


def test_a_connection_closed_while_idle_is_opened_again(server: FakeServer, client: tandem.Client) -> None:
    client.transport.patience = 0.0  # so that only the immediate second attempt is left
    assert client.studies() == []
    client.transport._local.kept.connection.sock.shutdown(socket.SHUT_RDWR)
    assert client.studies() == []


def test_threads_do_not_share_a_connection(start_server: StartServer) -> None:
    study = study_on(start_server())
    names: list[str] = []
    threads = [threading.Thread(target=lambda: names.append(study.view["name"])) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert names == ["toy"] * 8


def test_connections_are_closed_with_their_thread_and_client(start_server: StartServer) -> None:
    server = start_server()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        client = tandem.Client(server.url, TOKEN)
        thread = threading.Thread(target=client.studies)
        thread.start()
        thread.join()
        client.studies()
        del client, thread
        gc.collect()
    port = server.url.rpartition(":")[2]
    assert [str(one.message) for one in said if f"raddr=('127.0.0.1', {port})" in str(one.message)] == []
