"""That no worker can run a study that somebody waits for, said once."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import Any

PATIENCE = 5.0
"""Seconds for which nothing can have run the study before that is said: workers come and go."""
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
    trials = view["progress"].get("trials") or {}
    if any(trials.get(state) for state in ("leased", "running")):
        return ""
    return "; ".join(one["reason"] for one in view.get("waits") or () if one["cause"] in _CAUSES)
