"""Optuna's study, whose optimize tells the server when it has ended."""

from __future__ import annotations

import re
import sys
import threading
import uuid
import warnings
from pathlib import Path
from typing import Any

import optuna

from ..errors import StudyOver
from ..optimize import ending
from .sampler import TandemSampler


class Study(optuna.Study):
    """Optuna's study on a Tandem server.

    When :meth:`optimize` ends, also by an exception or Ctrl-C, the server hears that this process works on the study
    no more: with the last one that does the study is paused there, and its time stops. The next optimize, here or in
    another process, lets it go on.
    """

    @classmethod
    def of(cls, study: optuna.Study) -> Study:
        """The same study."""
        return cls(study.study_name, study._storage, study.sampler, study.pruner)

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._loops = 0
        """How many calls of optimize are under way, in threads."""
        self._counting = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        del state["_counting"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._loops, self._counting = 0, threading.Lock()

    def optimize(self, *arguments: Any, **named: Any) -> None:
        """As Optuna's. Of a study that is over on the server nothing is run, and a warning says so."""
        sampler = self.sampler
        if not isinstance(sampler, TandemSampler):
            super().optimize(*arguments, **named)
            return
        over = sampler.over(self)
        if over is not None:
            warnings.warn(ending(over, 0), stacklevel=2)
            return
        with self._counting:
            self._loops += 1
        try:
            super().optimize(*arguments, **named)
        except StudyOver as ended:
            optuna.logging.get_logger("optuna.tandem").info(f"{ended}: optimize ends.")
        finally:
            with self._counting:
                self._loops -= 1
                last = self._loops == 0
            if last:
                sampler.leave()


def __getattr__(name: str) -> Any:
    """What optuna.study has besides, as a script finds it there."""
    return getattr(optuna.study, name)


def script_name() -> str:
    """A name for the study of a script that gives it none: the script's, with a sign of its own behind it."""
    path = getattr(sys.modules.get("__main__"), "__file__", None)
    found = "notebook" if "ipykernel" in sys.modules else "python"
    if path:
        found = Path(path).stem if Path(path).stem != "__main__" else Path(path).resolve().parent.name
    found = re.sub(r"[^A-Za-z0-9._-]", "-", found).lstrip("._-")[:100]
    return f"{found or 'study'}-{uuid.uuid4().hex[:8]}"
