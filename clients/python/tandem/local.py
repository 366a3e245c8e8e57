"""A server on this machine that runs as long as a process uses it: TANDEM_SERVER=local."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Optional

from .binary import binary
from .errors import TandemError, UnavailableError, from_problem
from .transport import UnixConnection

NAME = "local"
_WHAT = "use a server on this machine"
_PATIENCE = 60.0
_PORT = 7171
_TAKEN = "another server has the database"
"""What a server says that cannot have the folder: another process was faster, or the server before is about to end."""
_ENDING = 15.0


@dataclass(frozen=True)
class Session:
    """What a server on this machine gave this process. The server revokes the token when the process ends."""

    url: str
    token: str
    ca: Optional[str]


_sessions: dict[Path, Session] = {}
_guard = threading.Lock()


def is_local(url: str) -> bool:
    """Whether the address means a server of this machine: local, or local:FOLDER."""
    return url == NAME or url.startswith(NAME + ":")


def session(url: str) -> Session:
    """The session of this process with the server that has the data folder; one is started if there is none."""
    if sys.platform != "linux":
        raise TandemError(
            f"{_WHAT}: servers run on Linux only: start one there (tandem serve), and name its address in TANDEM_SERVER"
        )
    folder = Path(url[len(NAME) + 1 :] or _usual_folder()).expanduser().absolute()
    with _guard:
        found = _sessions.get(folder)
        if found is None:
            found = _sessions[folder] = _join(folder) or _start(folder)
        return found


def _usual_folder() -> Path:
    """Where tandem serve keeps its data."""
    base = os.environ.get("XDG_DATA_HOME")
    return Path(base, "tandem") if base else Path.home() / ".local" / "share" / "tandem"


def _join(folder: Path) -> Optional[Session]:
    """A session with the server that has the folder; None if there is none."""
    try:
        place = os.open(folder / "local", os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return None
    try:  # by way of the open folder: a socket's own path may have 107 bytes only
        connection = UnixConnection(f"/proc/self/fd/{place}/server.sock")
        connection.request("POST", "/api/v1/sessions")
        answer = connection.getresponse()
    except (OSError, http.client.HTTPException):
        return None  # it has ended
    finally:
        os.close(place)
    if answer.status == http.client.CREATED:
        told = json.loads(answer.readline())
        os.dup(connection.sock.fileno())  # the connection ends with this process
        answer.close()
        connection.close()
        return Session(told["url"], told["token"], told.get("ca"))
    content = answer.read()
    connection.close()
    if answer.status == http.client.SERVICE_UNAVAILABLE:
        return None  # it ends
    if answer.status == http.client.NOT_FOUND:
        raise TandemError(f"{_WHAT}: the server that has {folder} is older than this client: update and restart it")
    raise from_problem(answer.status, json.loads(content), _WHAT)


def _start(folder: Path) -> Session:
    """A session with a new server; with that of another process, if that one was faster."""
    try:
        program = binary()
    except OSError as error:
        raise TandemError(f"{_WHAT}: {error}: install the package's wheel, which has it") from error
    arguments = [program, "serve", "--data", os.fspath(folder), "--while-used", "--listen", f"127.0.0.1:{_port()}"]
    began = time.monotonic()
    with tempfile.TemporaryFile() as log:
        server = _run(arguments, log)
        while True:
            found = _join(folder)
            if found is not None:
                server.returncode = 0  # it may outlive this process, which does not wait for it
                print(f"Tandem keeps results in {folder}. Web page: {found.url}/#token={found.token}", file=sys.stderr)
                return found
            waited = time.monotonic() - began
            if waited > _PATIENCE:
                raise UnavailableError(f"{_WHAT}: none answers in {folder}")
            if server.poll() is not None:
                log.seek(0)
                said = log.read().decode(errors="replace").strip()
                if _TAKEN not in said or waited > _ENDING:
                    raise TandemError(f"{_WHAT}: {said}")
                log.truncate(0)
                server = _run(arguments, log)
            time.sleep(0.05)


def _run(arguments: list[str], log: IO[bytes]) -> subprocess.Popen[bytes]:
    """Ctrl-C is for the trials here, which are given back to the server before it ends."""
    return subprocess.Popen(
        arguments, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log, start_new_session=True
    )


def _port() -> int:
    """The port of every server, if it is free; else any."""
    with contextlib.closing(socket.socket()) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", _PORT))
        except OSError:
            return 0
    return _PORT
