"""Workers as jobs of a Ray cluster: the commands of ``tandem launch command --commands ray.yaml``.

They speak with Ray's Jobs API at RAY_API_SERVER_ADDRESS (or RAY_ADDRESS, by default http://127.0.0.1:8265), with the
token in RAY_AUTH_TOKEN if there is one. Ray need not be installed where the launcher runs::

    python3 -m tandem.integrations.ray submit tandem.gpu.a-0 --gpus 1 --cores 4 <script
    python3 -m tandem.integrations.ray list
    python3 -m tandem.integrations.ray cancel tandem.gpu.a-0
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Optional

_OURS = "tandem"
"""The metadata that marks a job as a worker's."""

_GRACE = "60"
"""For how many seconds Ray waits, once it has asked a job to end (SIGTERM), until it kills it; Ray's default is 3."""

_KEPT = 24 * 3600.0
"""For how many seconds a job that is over stays in Ray's list."""


class _Refused(Exception):
    """Ray does not do it; the text says why."""


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Runs one of the commands and returns what the process ends with."""
    options = _parser().parse_args(arguments)
    try:
        if options.command == "submit":
            _submit(options, sys.stdin.read())
        elif options.command == "list":
            for job in _list():
                print(json.dumps(job))
        else:
            for name in options.names:
                _cancel(name)
    except _Refused as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tandem.integrations.ray", description="Workers of Tandem as jobs of Ray.")
    commands = parser.add_subparsers(dest="command", required=True)
    submit = commands.add_parser("submit", help="submit the script on standard input")
    submit.add_argument("name", help="id of the job")
    submit.add_argument("--cores", type=float, default=1, metavar="N")
    submit.add_argument("--gpus", type=float, default=0, metavar="N")
    submit.add_argument("--gpu-type", default="", metavar="TYPE", help="Ray's accelerator type, such as H100")
    submit.add_argument("--memory-mib", type=int, default=0, metavar="N")
    submit.add_argument(
        "--node-label",
        type=_pair,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="of Ray's nodes (repeatable)",
    )
    submit.add_argument("--resource", type=_amount, action="append", default=[], metavar="NAME=N", help="(repeatable)")
    submit.add_argument("--log", default="", metavar="FILE", help="gets the output, where its folder is on the node")
    commands.add_parser("list", help="print a JSON object for each worker")
    commands.add_parser("cancel", help="take workers back").add_argument("names", nargs="+")
    return parser


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise argparse.ArgumentTypeError(f"{text!r} must be NAME=VALUE")
    return name, value


def _amount(text: str) -> tuple[str, float]:
    name, amount = _pair(text)
    try:
        return name, float(amount)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r}: {amount!r} is no number") from None


def _submit(options: argparse.Namespace, script: str) -> None:
    resources: dict[str, float] = dict(options.resource)
    if options.gpu_type:
        resources[f"accelerator_type:{options.gpu_type}"] = 0.001
    if options.log:
        log = shlex.quote(options.log)
        script = f"( : >>{log} ) 2>/dev/null && exec >>{log} 2>&1\n{script}"
    script = f"[ ! -e {shlex.quote(str(_withdrawn(options.name)))} ] || exit 0\n{script}"
    job: dict[str, Any] = {
        "entrypoint": script,
        "submission_id": options.name,
        "metadata": {_OURS: "worker"},
        "runtime_env": {"env_vars": {"RAY_JOB_STOP_WAIT_TIME_S": _GRACE}},
        "entrypoint_num_cpus": options.cores,
        "entrypoint_num_gpus": options.gpus,
        "entrypoint_resources": resources,
    }
    if options.memory_mib:
        job["entrypoint_memory"] = options.memory_mib << 20
    if options.node_label:
        job["entrypoint_label_selector"] = dict(options.node_label)
    try:
        _ask("POST", "", job)
    except _Refused:
        if options.name not in {one["submission_id"] for one in _jobs()}:
            raise  # else it was taken before, and the answer was lost


def _list() -> Iterator[dict[str, Any]]:
    for job in _jobs():
        name, end = job["submission_id"], job.get("end_time")
        if end and time.time() - end / 1000 > _KEPT:
            _withdrawn(name).unlink(missing_ok=True)
            _ask("DELETE", urllib.parse.quote(name, safe=""))
            continue
        told: dict[str, Any] = {"id": name, "name": name, **_state(job)}
        if told["state"] != "ended" and _withdrawn(name).exists():
            told.update(state="ended", cause="cancelled", why="taken back; Ray ends it as soon as it starts")
        if job.get("driver_agent_http_address"):
            told["node"] = urllib.parse.urlsplit(job["driver_agent_http_address"]).hostname
        yield told


def _state(job: dict[str, Any]) -> dict[str, Any]:
    status, message, code = job["status"], job.get("message") or "", job.get("driver_exit_code")
    if status == "PENDING":
        return {"state": "pending", "why": message}
    if status == "RUNNING":
        return {"state": "running"}
    if status == "SUCCEEDED":
        return {"state": "ended", "cause": "finished"}
    if status == "STOPPED":
        return {"state": "ended", "cause": "cancelled"}
    if code is None:  # no worker ended: its node did
        cause = "out_of_memory" if "OutOfMemory" in message else "node_failed"
        return {"state": "ended", "cause": cause, "why": message.partition("\n")[0]}
    why = f"its process was killed by signal {-code}" if code < 0 else f"its process failed with exit code {code}"
    return {"state": "ended", "cause": "failed", "why": why}  # Ray's words go on with the worker's log


def _withdrawn(name: str) -> Path:
    """Exists once a job that waited was taken back, which Ray cannot do before it starts."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "tandem" / "ray" / urllib.parse.quote(name, safe="")


def _cancel(name: str) -> None:
    if any(one["submission_id"] == name and one["status"] == "PENDING" for one in _jobs()):
        _withdrawn(name).parent.mkdir(parents=True, exist_ok=True)
        _withdrawn(name).touch()
    try:
        _ask("POST", urllib.parse.quote(name, safe="") + "/stop")
    except _Refused:
        if any(one["submission_id"] == name and not one.get("end_time") for one in _jobs()):
            raise  # else it is over already


def _jobs() -> list[dict[str, Any]]:
    return [job for job in _ask("GET", "") if (job.get("metadata") or {}).get(_OURS)]


def _ask(method: str, path: str, body: Optional[dict[str, Any]] = None) -> Any:
    where = os.environ.get("RAY_API_SERVER_ADDRESS") or os.environ.get("RAY_ADDRESS") or "http://127.0.0.1:8265"
    if not where.startswith(("http://", "https://")):
        raise _Refused(
            f"Ray's address {where!r} must begin with http:// or https://: set RAY_API_SERVER_ADDRESS to that of the "
            "dashboard, such as http://127.0.0.1:8265"
        )
    headers = {"Content-Type": "application/json"}
    if os.environ.get("RAY_AUTH_TOKEN"):
        headers["Authorization"] = "Bearer " + os.environ["RAY_AUTH_TOKEN"]
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{where.rstrip('/')}/api/jobs/{path}", data, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        said = error.read().decode(errors="replace").strip()
        raise _Refused(f"Ray says {error.code} to {method} {request.selector}: {_last(said)}") from None
    except (OSError, ValueError) as error:
        raise _Refused(f"Ray does not answer at {where} (RAY_API_SERVER_ADDRESS): {error}") from None


def _last(said: str) -> str:
    """The last line: before it is where in Ray an error was raised."""
    lines = said.splitlines()
    return lines[-1][:500] if lines else "nothing"


if __name__ == "__main__":
    sys.exit(main())
