"""What somebody waits for who gets nothing, said once: no worker runs a study, or others have its trials."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Optional

from .errors import TandemError

if TYPE_CHECKING:
    from .client import Client

PATIENCE = 5.0
"""Seconds to wait for a trial, or for a worker, before that is said: workers come and go."""
_NAMED = 3
"""Trials that a message names."""
_CAUSES = ("unfit", "unsuited", "drained", "excluded")
"""Causes of the server for which no worker that is there gets a trial, however long one waits."""

logger = logging.getLogger("tandem")


class Waiting:
    """What one call of ``wait`` has said of that."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._why, self._since, self._said = "", 0.0, False

    def look(self, view: Mapping[str, Any]) -> None:
        """Say why no worker runs the study of the view, if that lasts; again only when it has changed."""
        why = _unserved(view)
        if why != self._why:
            self._why, self._since, self._said = why, time.monotonic(), False
        if why and not self._said and time.monotonic() - self._since >= PATIENCE:
            self._said = True
            text = why.replace("'tandem worker", f"'tandem worker --server {self._url}")
            logger.warning("study %s waits: %s", view["name"], text)


def _unserved(view: Mapping[str, Any]) -> str:
    if view.get("status") == "paused":
        return _paused(view)
    trials = view["progress"].get("trials") or {}
    if any(trials.get(state) for state in ("leased", "running")):
        return ""
    return "; ".join(one["reason"] for one in view.get("waits") or () if one["cause"] in _CAUSES)


def _paused(view: Mapping[str, Any]) -> str:
    return f"it is paused: {view.get('reason') or 'resume() lets it go on'}"


def process_name() -> str:
    """This process, as workers are named."""
    return f"{socket.gethostname()}, process {os.getpid()}"[:128]


class Asking:
    """What a worker that asks for the trials of one study has said of those it has to wait for."""

    def __init__(self, client: Client, study: str) -> None:
        self._client = client
        self._study = study
        self._since: Optional[float] = None
        self._said: set[str] = set()

    def begin(self) -> None:
        """A trial is asked for."""
        if self._since is None:
            self._since = time.monotonic()

    def end(self) -> None:
        """A trial was given."""
        self._since = None

    def nothing(self, lease_seconds: float) -> None:
        """No trial was given: say what is waited for, and until when, if that lasts; of each trial once."""
        if self._since is None or time.monotonic() - self._since < PATIENCE:
            return
        with contextlib.suppress(TandemError):
            view = self._client.get("read the study", "studies", self._study)
            if view["status"] == "paused":
                self._say(view, {"paused": _paused(view)})
            else:
                self._say(view, self._held(), f"; one that is silent for {lease_seconds:.0f} s loses its trial")

    def _held(self) -> dict[str, str]:
        """The trials that other processes have, by id, each with who has it."""
        workers = self._client.get("list the workers", "workers")["workers"]
        return {
            trial: f"trial {trial.rpartition('-')[2]} is with {one['name']}, last heard of "
            f"{one['last_seen_seconds']:.0f} s ago"
            for one in workers
            for trial in one["trials"] or ()
            if trial.startswith(f"{self._study}-") and one["name"] != process_name()
        }

    def _say(self, view: Mapping[str, Any], why: Mapping[str, str], until: str = "") -> None:
        if why.keys() <= self._said:
            return
        self._said.update(why)
        more = f", and {len(why) - _NAMED} more" if len(why) > _NAMED else ""
        named = ", ".join(list(why.values())[:_NAMED])
        logger.warning("study %s has no trial to give now: %s%s%s", view["name"], named, more, until)
