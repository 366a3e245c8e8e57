"""A worker's side of the script contract: the unix socket, the variables, the ladder of budgets.

The tests use it, and so can you, to see a script run through a ladder without
a server::

    python tests/fake_agent.py --params '{"learning_rate": 0.01}' --ladder 1:0.25,3:0.5,9:1 -- python train.py
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socketserver
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, Optional


class FakeAgent:
    """Serves one run of one trial on a unix socket in the folder, until closed."""

    def __init__(self, folder: Path, trial: Optional[Mapping[str, Any]] = None) -> None:
        self.checkpoint_dir = folder / "checkpoint"
        self.checkpoint_dir.mkdir(exist_ok=True)
        self.trial: dict[str, Any] = {
            "trial_id": "s1-0",
            "study": "fake",
            "number": 0,
            "params": {"learning_rate": 0.01, "layers": 2, "activation": "relu"},
            "system": {"cpu_threads": 1},
            "budget": {"epochs": 3, "data_fraction": 0.5},
            "first_epoch": 1,
            "rung": 0,
            "seed": 7,
            "checkpoint_dir": str(self.checkpoint_dir),
            "objectives": ["accuracy"],
            **(trial or {}),
        }
        self.reports: list[dict[str, Any]] = []
        self.keys: list[Optional[str]] = []
        self.checkpoints: list[int] = []
        self.models: list[bytes] = []
        self.artifacts: dict[str, bytes] = {}
        self.precisions: dict[str, bytes] = {}
        """The trained model in precisions, by what was said of it."""
        self.begins: list[int] = []
        self.old = False
        """Whether it is a worker of before /v1/begin, which takes no "system" in a report."""
        self.directives: dict[int, dict[str, Any]] = {}
        """What to answer the report of an epoch, other than continue or finish."""
        self.following: Optional[FakeAgent] = None
        """Who serves the process's next run; None: there is none."""
        self.over = False
        """Whether the script has asked for it."""
        self.drop: list[str] = []
        """How the next answers are lost: "before" or "after" the call took effect, or a status to answer."""
        self.socket = str(folder / "s")
        self._server = _Server(self.socket, _handler(self))
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def environment(self) -> dict[str, str]:
        """The variables a script is started with."""
        return {
            "TANDEM_SOCKET": self.socket,
            "TANDEM_STUDY": self.trial["study"],
            "TANDEM_TRIAL": self.trial["trial_id"],
            "TANDEM_PARAMS": json.dumps(self.trial["params"]),
            "TANDEM_SYSTEM": json.dumps(self.trial["system"]),
            "TANDEM_EPOCHS": str(self.trial["budget"]["epochs"]),
            "TANDEM_FIRST_EPOCH": str(self.trial["first_epoch"]),
            "TANDEM_DATA_FRACTION": str(self.trial["budget"]["data_fraction"]),
            "TANDEM_RUNG": str(self.trial["rung"]),
            "TANDEM_CHECKPOINT_DIR": str(self.checkpoint_dir),
            "TANDEM_SEED": str(self.trial["seed"]),
            "TANDEM_OBJECTIVES": json.dumps(self.trial["objectives"]),
        }

    def answer(self, epoch: int) -> dict[str, Any]:
        """The directive for the report of an epoch."""
        if epoch in self.directives:
            return self.directives[epoch]
        return {"action": "finish" if epoch >= self.trial["budget"]["epochs"] else "continue"}

    def handle(self, method: str, path: str, document: Any) -> tuple[int, Any]:
        """The contract: what a call does, and its answer."""
        if self.over:
            return 409, {"title": "Conflict", "status": 409, "code": "lease_lost", "detail": "this run is over"}
        if (method, path) == ("POST", "/v1/next") and not self.old:
            self.over = self.following is not None
            if self.following is None:
                return 200, {"next": False}
            return 200, {"next": True, "environment": self.following.environment()}
        if (method, path) == ("GET", "/v1/trial"):
            return 200, self.trial
        if (method, path) == ("GET", "/v1/directive"):
            last = self.reports[-1]["epoch"] if self.reports else 0
            return 200, self.answer(last) if last else {"action": "continue"}
        if (method, path) == ("POST", "/v1/begin") and not self.old:
            self.begins.append(document["epoch"])
            return 200, {}
        if (method, path) == ("POST", "/v1/report"):
            if self.old and "system" in document:
                return 400, {"title": "Bad Request", "status": 400, "code": "invalid", "detail": "unknown field"}
            if document["epoch"] not in [r["epoch"] for r in self.reports]:
                self.reports.append(document)
            return 200, self.answer(document["epoch"])
        if (method, path) == ("POST", "/v1/checkpoint"):
            self.checkpoints.append(document["epoch"])
            return 200, {"artifact": "0" * 64, "bytes": 0}
        return 404, {"title": "Not Found", "status": 404, "code": "not_found", "detail": f"no {method} {path}"}


class _Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True


def _handler(agent: FakeAgent) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _serve(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            content = self.rfile.read(length)
            if (self.command, self.path) == ("PUT", "/v1/model") and not agent.old:
                agent.models.append(content)
                self._reply(200, {})
                return
            if self.command == "PUT" and self.path.startswith("/v1/model?") and not agent.old:
                agent.precisions[self.path[len("/v1/model?") :]] = content
                self._reply(200, {})
                return
            if self.command == "PUT" and self.path.startswith("/v1/artifacts/") and not agent.old:
                agent.artifacts[self.path[len("/v1/artifacts/") :]] = content
                self._reply(200, {})
                return
            document = json.loads(content) if length and self.command != "PUT" else None
            agent.keys.append(self.headers.get("Idempotency-Key"))
            fault = agent.drop.pop(0) if agent.drop else ""
            if fault == "before":
                self.close_connection = True
                return
            if fault.isdigit():
                self._reply(int(fault), {"title": "fault", "status": int(fault), "code": "unavailable"})
                return
            status, answer = agent.handle(self.command, self.path.partition("?")[0], document)
            if fault == "after":
                self.close_connection = True
                return
            self._reply(status, answer)

        def _reply(self, status: int, document: Any) -> None:
            content = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PUT = _serve

        def log_message(self, format: str, *args: Any) -> None:
            pass

        def address_string(self) -> str:
            return "unix"

    return Handler


def climb(
    command: Sequence[str], ladder: Sequence[tuple[int, float]], trial: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Run the command once for each rung, each run continuing the one before; returns every report."""
    reports: list[dict[str, Any]] = []
    kept = 0  # the epoch of the last published checkpoint
    with tempfile.TemporaryDirectory(prefix="fake-agent-") as folder:
        for rung, (epochs, fraction) in enumerate(ladder):
            agent = FakeAgent(
                Path(folder),
                {
                    **trial,
                    "budget": {"epochs": epochs, "data_fraction": fraction},
                    "first_epoch": kept + 1,
                    "rung": rung,
                },
            )
            started = time.monotonic()
            result = subprocess.run(command, env={**os.environ, **agent.environment()}, check=False)
            seconds = time.monotonic() - started
            agent.close()
            Path(agent.socket).unlink()
            print(
                f"rung {rung}: epochs {kept + 1} to {epochs} of {fraction:.3g} of the data, {seconds:.1f} s", flush=True
            )
            for report in agent.reports:
                print(f"  epoch {report['epoch']}: {report['metrics']}", flush=True)
            reports += agent.reports
            if result.returncode != 0:
                raise SystemExit(f"the script failed with exit code {result.returncode}")
            kept = max(agent.checkpoints, default=0)
            if kept == 0:
                shutil.rmtree(agent.checkpoint_dir)
    return reports


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--params", type=json.loads, default={}, help="the trial's values, as JSON")
    parser.add_argument("--system", type=json.loads, default={"cpu_threads": 1})
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--objective", default="accuracy")
    parser.add_argument("--ladder", default="1:1", help="EPOCHS:DATA_FRACTION of each rung, with commas between")
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    ladder = [(int(e), float(f)) for e, f in (rung.split(":") for rung in options.ladder.split(","))]
    trial = {
        "params": options.params,
        "system": options.system,
        "seed": options.seed,
        "objectives": [options.objective],
    }
    climb(options.command, ladder, trial)


if __name__ == "__main__":
    main()
