"""Workers as jobs of Ray, on a server that answers as Ray's does. A real one: TestRay in workers/launcher/command."""

from __future__ import annotations

import io
import json
import subprocess
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tandem.integrations import ray

WAITS = "It may be waiting for resources (CPUs, GPUs, memory, custom resources) to become available."


class Jobs(BaseHTTPRequestHandler):
    jobs: dict[str, dict[str, Any]]
    asked: list[str]
    token: str

    def do_GET(self) -> None:
        self.answer(200, list(self.jobs.values()))

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.asked.append(self.path)
        if self.path.endswith("/stop"):
            name = self.path.split("/")[-2]
            return self.answer(200, {"stopped": True}) if name in self.jobs else self.answer(404, None)
        job = json.loads(body)
        if job["submission_id"] in self.jobs:
            return self.answer(500, None, b"Traceback\nValueError: Job with submission_id exists already")
        self.jobs[job["submission_id"]] = {**job, "status": "PENDING", "message": WAITS, "end_time": None}
        return self.answer(200, {"submission_id": job["submission_id"]})

    def do_DELETE(self) -> None:
        del self.jobs[self.path.split("/")[-1]]
        self.answer(200, {})

    def answer(self, status: int, content: Any, text: bytes = b"") -> None:
        if self.headers.get("Authorization", "") != self.token:
            status, text = 401, b"Unauthorized"
        body = text or json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None: ...


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[type[Jobs]]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr("sys.stdin", io.StringIO("echo it ran\n"))
    handler = type("Site", (Jobs,), {"jobs": {}, "asked": [], "token": ""})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("RAY_API_SERVER_ADDRESS", f"http://127.0.0.1:{server.server_address[1]}")
    yield handler
    server.shutdown()
    server.server_close()


def listed(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    capsys.readouterr()
    assert ray.main(["list"]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def submitted(*arguments: str) -> int:
    return ray.main(["submit", "tandem.gpu.a-0", *arguments])


def test_a_worker_is_submitted_with_what_it_needs(site: type[Jobs], tmp_path: Path) -> None:
    log = tmp_path / "it's.log"
    words = ["--cores=4", "--gpus=2", "--gpu-type=H100", "--memory-mib=1024", "--resource=fast=1"]
    assert submitted(*words, "--node-label=zone=a", "--node-label=disk=ssd", f"--log={log}") == 0
    job = site.jobs["tandem.gpu.a-0"]
    assert (job["entrypoint_num_cpus"], job["entrypoint_num_gpus"], job["entrypoint_memory"]) == (4, 2, 1 << 30)
    assert job["entrypoint_resources"] == {"accelerator_type:H100": 0.001, "fast": 1}
    assert job["entrypoint_label_selector"] == {"zone": "a", "disk": "ssd"}
    assert int(job["runtime_env"]["env_vars"]["RAY_JOB_STOP_WAIT_TIME_S"]) > 20  # a worker's drain
    subprocess.run(["/bin/sh", "-c", job["entrypoint"]], check=True)
    assert log.read_text() == "it ran\n"


def test_what_is_empty_asks_for_nothing(site: type[Jobs]) -> None:
    assert submitted("--gpu-type", "", "--memory-mib", "0", "--log", "/no/such/folder/log") == 0
    job = site.jobs["tandem.gpu.a-0"]
    assert job["entrypoint_resources"] == {}
    assert "entrypoint_memory" not in job
    assert "entrypoint_label_selector" not in job
    ran = subprocess.run(["/bin/sh", "-c", job["entrypoint"]], capture_output=True, text=True, check=True)
    assert ran.stdout == "it ran\n"


def test_a_worker_is_submitted_once(site: type[Jobs]) -> None:
    assert submitted() == 0
    assert submitted() == 0  # its answer was lost
    assert len(site.jobs) == 1


@pytest.mark.parametrize(
    ("told", "want"),
    [
        ({"status": "PENDING", "message": WAITS}, {"state": "pending", "why": WAITS}),
        (
            {"status": "RUNNING", "driver_agent_http_address": "http://10.0.0.7:52365"},
            {"state": "running", "node": "10.0.0.7"},
        ),
        ({"status": "SUCCEEDED", "driver_exit_code": 0}, {"state": "ended", "cause": "finished"}),
        ({"status": "STOPPED"}, {"state": "ended", "cause": "cancelled"}),
        (
            {
                "status": "FAILED",
                "driver_exit_code": 4,
                "message": "It failed with exit code 4, last available logs (\nx",
            },
            {"state": "ended", "cause": "failed", "why": "its process failed with exit code 4"},
        ),
        (
            {
                "status": "FAILED",
                "driver_exit_code": -9,
                "message": "It failed with exit code -9: level=INFO msg=leased",
            },
            {"state": "ended", "cause": "failed", "why": "its process was killed by signal 9"},
        ),
        (
            {"status": "FAILED", "driver_exit_code": None, "message": "The node has died.\nmore"},
            {"state": "ended", "cause": "node_failed", "why": "The node has died."},
        ),
        (
            {"status": "FAILED", "driver_exit_code": None, "message": "ray.exceptions.OutOfMemoryError"},
            {"state": "ended", "cause": "out_of_memory", "why": "ray.exceptions.OutOfMemoryError"},
        ),
    ],
)
def test_states(
    site: type[Jobs], capsys: pytest.CaptureFixture[str], told: dict[str, Any], want: dict[str, Any]
) -> None:
    site.jobs["w"] = {"submission_id": "w", "metadata": {"tandem": "worker"}, "end_time": None, **told}
    site.jobs["other"] = {"submission_id": "other", "metadata": None, "status": "RUNNING"}
    assert listed(capsys) == [{"id": "w", "name": "w", **want}]


def test_what_waits_is_taken_back(site: type[Jobs], capsys: pytest.CaptureFixture[str]) -> None:
    submitted()
    assert ray.main(["cancel", "tandem.gpu.a-0"]) == 0
    assert site.asked[-1] == "/api/jobs/tandem.gpu.a-0/stop"
    assert [(one["state"], one["cause"]) for one in listed(capsys)] == [("ended", "cancelled")]
    # Ray starts it all the same, before it stops it: the worker does not begin.
    script = site.jobs["tandem.gpu.a-0"]["entrypoint"]
    assert subprocess.run(["/bin/sh", "-c", script], capture_output=True, check=True).stdout == b""


def test_what_runs_is_asked_to_end(site: type[Jobs], capsys: pytest.CaptureFixture[str]) -> None:
    submitted()
    site.jobs["tandem.gpu.a-0"]["status"] = "RUNNING"
    assert ray.main(["cancel", "tandem.gpu.a-0", "over-long-ago"]) == 0
    assert [one["state"] for one in listed(capsys)] == ["running"]  # until it has handed its trials back


def test_what_is_long_over_goes(site: type[Jobs], capsys: pytest.CaptureFixture[str]) -> None:
    for name, hours in (("old", 25), ("new", 23)):
        end = (time.time() - hours * 3600) * 1000
        site.jobs[name] = {
            "submission_id": name,
            "metadata": {"tandem": "worker"},
            "status": "STOPPED",
            "end_time": end,
        }
    assert [one["name"] for one in listed(capsys)] == ["new"]
    assert list(site.jobs) == ["new"]


def test_tokens(site: type[Jobs], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    site.token = "Bearer secret"
    assert ray.main(["list"]) == 1
    assert capsys.readouterr().err == "Ray says 401 to GET /api/jobs/: Unauthorized\n"
    monkeypatch.setenv("RAY_AUTH_TOKEN", "secret")
    assert ray.main(["list"]) == 0


@pytest.mark.parametrize(
    ("address", "says"),
    [("ray://head:10001", "must begin with http://"), ("http://127.0.0.1:1", "Ray does not answer at")],
)
def test_addresses(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, address: str, says: str
) -> None:
    monkeypatch.setenv("RAY_API_SERVER_ADDRESS", address)
    assert ray.main(["list"]) == 1
    assert says in capsys.readouterr().err


@pytest.mark.parametrize("wrong", ["--refuse", "--resource=fast", "--resource=fast=x"])
def test_wrong_options_are_refused(site: type[Jobs], wrong: str) -> None:
    with pytest.raises(SystemExit):
        submitted(wrong)
    assert not site.jobs
