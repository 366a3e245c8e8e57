"""A Tandem server and worker of the check's own, and the command line that asks them."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, Callable, Optional

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent

OVER = ("completed", "failed", "stopped")


class Trouble(Exception):
    """Why a step cannot go on."""


class Site:
    def __init__(self, binary: str, python: str, work: Path, variables: dict[str, str]) -> None:
        self.binary, self.python, self.work = binary, python, work
        self.notes = work / "notes"
        self.notes.mkdir()
        self._variables = variables
        self._server: Optional[subprocess.Popen] = None
        self._worker: Optional[subprocess.Popen] = None
        self._workers = 0
        self.url = self.token = ""
        self.sandbox, self.slots = "auto", "auto"

    # Processes.

    def _begin(self, name: str, arguments: list[str], environment: dict[str, str]) -> subprocess.Popen:
        with (self.work / f"{name}.log").open("ab") as log:
            return subprocess.Popen(
                [self.binary, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, **environment},
                start_new_session=True,
            )

    def serve(self) -> None:
        self._server = self._begin(
            "server",
            ["serve", "--data", str(self.work / "data"), "--listen", "127.0.0.1:0", "--heartbeat-seconds", "1"],
            {},
        )
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            said = (self.work / "server.log").read_text(errors="replace")
            address = re.search(r"Tandem answers at ([^,\s]+),", said)
            token = re.search(r"export TANDEM_TOKEN=(\S+)\n", said)
            if address and token:
                self.url, self.token = address.group(1), token.group(1)
                return
            if self._server.poll() is not None:
                break
            time.sleep(0.05)
        raise Trouble("the server did not start: " + said[-500:])

    def work_with(self, sandbox: str = "auto") -> None:
        """Start a worker, in place of the one there is."""
        self.end_worker()
        self._workers += 1
        self.sandbox = sandbox
        path = os.pathsep.join(filter(None, [str(ROOT / "clients" / "python"), os.environ.get("PYTHONPATH", "")]))
        arguments = ["worker", "--server", self.url, "--name", "gpu-check", "--probe", "never", "--drain", "5s"]
        arguments += ["--scratch", str(self.work / "scratch"), "--directory", str(HERE), "--sandbox", sandbox]
        arguments += ["--allow-write", str(self.notes), "--allow-read", str(HERE), "--slots", self.slots]
        arguments += ["--path", str(Path(self.python).parent)]  # opens the interpreter's environment to scripts
        # Next to nothing for the CPU, so that joules are the GPU's.
        arguments += ["--watts-per-core", "0.000001", "--idle-watts-per-core", "0.000001"]
        environment = {"TANDEM_TOKEN": self.token, "PYTHONPATH": path, **self._variables}
        self._worker = self._begin(f"worker-{self._workers}", arguments, environment)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            machines = self.ask("/api/v1/pool").get("machines") or []
            if any(one.get("state", "online") != "gone" for one in machines):
                return
            if self._worker.poll() is not None:
                break
            time.sleep(0.1)
        raise Trouble("the worker did not register: " + self.log(f"worker-{self._workers}")[-500:])

    def end_worker(self) -> None:
        _end(self._worker, 20)
        self._worker = None

    def close(self) -> None:
        self.end_worker()
        _end(self._server, 20)
        self._server = None

    def log(self, name: str) -> str:
        path = self.work / f"{name}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    # Questions.

    def ask(self, path: str) -> Any:
        request = urllib.request.Request(self.url + path, headers={"Authorization": "Bearer " + self.token})
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise Trouble(f"{path} is answered {error.code}: {error.read(500)!r}") from error
        except OSError as error:
            raise Trouble(f"{path} is not answered: {error}") from error

    def command(self, *arguments: str, timeout: float = 30) -> str:
        done = subprocess.run(
            [self.binary, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout,
            env={**os.environ, "TANDEM_SERVER": self.url, "TANDEM_TOKEN": self.token},
        )
        if done.returncode:
            raise Trouble(
                f"tandem {' '.join(arguments)} ends with {done.returncode}: {(done.stderr or done.stdout)[-600:]}"
            )
        return done.stdout

    def json(self, *arguments: str, timeout: float = 30) -> Any:
        return json.loads(self.command(*arguments, "--json", timeout=timeout))

    # Studies.

    def create(self, name: str, trials: list[dict[str, Any]], epochs: int, **more: Any) -> None:
        """A study of exactly these trainings. Its environment tells them where notes go."""
        study = {
            "name": name,
            "command": [self.python, str(HERE / "train.py")],
            "directory": str(HERE),
            "environment": {"GPU_CHECK_NOTES": str(self.notes), **self._variables},
            "objective": {"metric": "accuracy", "direction": "maximize"},
            "space": _space(trials),
            "budget": {"policy": "epochs", "epochs": {"min": epochs, "max": epochs}},
            "search": {"method": "random", "promotion": "none", "seed": 1, "initial": trials},
            "stop": {"trials": len(trials)},
            "retry": {"failures": 0},
            **more,
        }
        file = self.work / f"{name}.json"
        file.write_text(json.dumps(study, indent=1))
        self.command("study", "create", str(file))

    def wait(self, name: str, seconds: float, watch: Optional[Callable[[], None]] = None) -> dict[str, Any]:
        """The study once it is over. One that is not over in time is stopped, and the step fails."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            study = self.ask(f"/api/v1/studies/{name}")
            if study["status"] in OVER:
                return study
            if watch:
                watch()
            time.sleep(0.5)
        with contextlib.suppress(Trouble, subprocess.SubprocessError):
            shown = self.command("study", "show", name)
            (self.work / f"{name}.show.txt").write_text(shown)
        self.stop(name)
        raise Trouble(f"the study {name} was not over after {seconds:.0f} s (see {name}.show.txt)")

    def stop(self, name: str) -> None:
        with contextlib.suppress(Trouble, subprocess.SubprocessError):
            self.command("study", "stop", name)

    def trials(self, name: str, count: int) -> list[dict[str, Any]]:
        """What the command line says of each trial; kept among the logs."""
        found = []
        for number in range(count):
            found.append(self.json("study", "trial", name, str(number)))
            (self.work / f"{name}.trials.json").write_text(json.dumps(found, indent=1))
        return found

    def told(self, name: str, number: Optional[int] = None) -> list[dict[str, Any]]:
        """The notes of a study's trainings, by time."""
        found = []
        for path in self.notes.glob(f"{name}.{'*' if number is None else number}.*.jsonl"):
            for line in path.read_text(errors="replace").splitlines():
                with contextlib.suppress(ValueError):
                    found.append(json.loads(line))
        return sorted(found, key=lambda one: one["at"])

    def script_logs(self, name: str, count: int) -> None:
        for number in range(count):
            with contextlib.suppress(Trouble, subprocess.SubprocessError):
                (self.work / f"{name}.{number}.out.txt").write_text(self.command("study", "log", name, str(number)))


def _space(trials: list[dict[str, Any]]) -> dict[str, Any]:
    """A space that holds exactly the values of the trials."""
    space = {}
    for name in trials[0]:
        values = sorted({one[name] for one in trials}, key=str)
        space[name] = {"values": values}
    return space


def _end(process: Optional[subprocess.Popen], patience: float) -> None:
    if process is None or process.poll() is not None:
        return
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(patience)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
