"""The profile of this process, which the tandem binary takes from outside."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import queue
import subprocess
import threading
from collections.abc import Mapping
from typing import Any, Optional

from .binary import binary

logger = logging.getLogger("tandem")

PATIENCE = 2.0
"""Seconds that a report waits for the profile of its epoch."""

_lock = threading.Lock()
_profiler: Optional[Profiler] = None
_said: set[str] = set()


class Profiler:
    """``tandem profile --attach`` on this process."""

    def __init__(self, binary: str) -> None:
        self._process = subprocess.Popen(
            [binary, "profile", "--attach", str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is this process's
        )
        self.pid = os.getpid()
        self._answers: queue.SimpleQueue[Optional[Mapping[str, Any]]] = queue.SimpleQueue()
        threading.Thread(target=self._listen, name="tandem-profile", daemon=True).start()
        if self._next(10 * PATIENCE) is None:
            self.close()
            raise OSError(f"{binary} does not profile this process")

    def lap(self) -> Optional[Mapping[str, Any]]:
        """End an epoch; returns its profile, None if there is none in time."""
        assert self._process.stdin is not None
        self._process.stdin.write(b"lap\n")
        self._process.stdin.flush()
        answer = self._next(PATIENCE)
        if answer is None:
            raise OSError("it does not answer")
        profile = answer.get("profile")
        return profile if isinstance(profile, dict) else None

    def close(self) -> None:
        """End the profiler."""
        with contextlib.suppress(OSError):
            self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(PATIENCE)

    def _next(self, seconds: float) -> Optional[Mapping[str, Any]]:
        try:
            return self._answers.get(timeout=seconds)
        except queue.Empty:
            return None

    def _listen(self) -> None:
        assert self._process.stdout is not None
        with contextlib.suppress(ValueError, OSError):
            for line in self._process.stdout:
                self._answers.put(json.loads(line))
        self._answers.put(None)


def lap() -> Optional[Mapping[str, Any]]:
    """End an epoch of this process; returns its profile, None where there is none.

    The profiler starts with the first call. Where it cannot, or no longer answers, that is said once.
    """
    global _profiler
    with _lock:
        if os.environ.get("TANDEM_PROFILE", "") == "off" or "failed" in _said:
            return None
        try:
            if _profiler is None or _profiler.pid != os.getpid():  # a child that was forked is another process
                _profiler = Profiler(binary())
            return _profiler.lap()
        except (OSError, ValueError) as error:
            _say("failed", f"trials of this process are not profiled: {error}")
            if _profiler is not None and _profiler.pid == os.getpid():
                _profiler.close()
            _profiler = None
            return None


def several() -> None:
    """Say once that trials which run at once in one process have no profile of their own.

    Nothing is wrong then, so that it is no warning.
    """
    with _lock:
        if os.environ.get("TANDEM_PROFILE", "") != "off":
            text = "trials that run at once in this process are not profiled: nobody can tell them apart"
            _say("several", text, logging.INFO)


def _say(what: str, text: str, level: int = logging.WARNING) -> None:
    if what not in _said:
        _said.add(what)
        logger.log(level, "%s (TANDEM_PROFILE=off: do not try)", text)
