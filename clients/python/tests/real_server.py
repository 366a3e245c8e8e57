"""A real server, for what a stand-in cannot show: the search, the rules of early stopping, a restart."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from typing import Optional

PATIENCE = 60.0
"""Seconds for a server to start."""


def in_memory(otherwise: Path) -> Path:
    """A folder in memory, where that can be had: servers are killed here, machines are not, and a disk is slow."""
    memory = Path("/dev/shm")
    return memory if memory.is_dir() and os.access(memory, os.W_OK) else otherwise


def binary() -> Optional[str]:
    """The tandem to start, as scripts/test builds it; None if there is none."""
    found = os.environ.get("TANDEM_BINARY", "")
    return found if found and Path(found).is_file() else None


class RealServer:
    """``tandem serve`` on a data folder, behind an address that stays the same while it is killed and started."""

    def __init__(self, folder: Path) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="tandem-test-", dir=in_memory(folder)))
        self._process: Optional[subprocess.Popen[bytes]] = None
        self._log = folder / "server.log"
        self._door = Door()
        self.url = f"http://127.0.0.1:{self._door.port}"
        self.token = ""
        self.start()

    def start(self) -> None:
        """Start it, and wait until it answers."""
        tandem = binary()
        assert tandem is not None
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [tandem, "serve", "--data", str(self._folder / "data"), "--listen", "127.0.0.1:0"],
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            greeting = self._log.read_text()
            token = re.search(r"export TANDEM_TOKEN=(\S+)\n[^$]*More tokens", greeting)
            at = re.search(r"Tandem answers at http://127\.0\.0\.1:(\d+),", greeting)
            if at and (token or self.token):
                self.token = self.token or (token.group(1) if token else "")
                self._door.target = int(at.group(1))
                return
            if self._process.poll() is not None:
                break
            time.sleep(0.02)
        raise AssertionError(f"the server did not start:\n{self._log.read_text()}")

    def kill(self) -> None:
        """End it as a power cut would."""
        assert self._process is not None
        self._door.target = None
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """End it for good."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._door.close()
        shutil.rmtree(self._folder, ignore_errors=True)


class Door:
    """A port that passes connections on to another port, and hangs up as long as there is none."""

    def __init__(self) -> None:
        self.target: Optional[int] = None
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                caller, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._pass_on, args=(caller,), daemon=True).start()

    def _pass_on(self, caller: socket.socket) -> None:
        target = self.target
        try:
            if target is None:
                raise ConnectionRefusedError
            server = socket.create_connection(("127.0.0.1", target), timeout=PATIENCE)
        except OSError:
            caller.close()
            return
        server.settimeout(None)
        back = threading.Thread(target=_pump, args=(server, caller), daemon=True)
        back.start()
        _pump(caller, server)
        back.join()
        caller.close()
        server.close()


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while True:
            block = source.recv(1 << 16)
            if not block:
                break
            sink.sendall(block)
    for end, how in ((sink, socket.SHUT_WR), (source, socket.SHUT_RD)):
        with contextlib.suppress(OSError):
            end.shutdown(how)
