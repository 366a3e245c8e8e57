"""A trial that several processes train together, such as those that torchrun starts.

The process of rank 0 talks to the worker. What it is answered, each other one does, too: so all of them end a run
after the same epoch, and none waits for another in a collective operation for ever.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Optional

from .assignment import Directive, Link, Outcome
from .errors import TandemError
from .precision import Variant

_LONGEST_PAUSE = 0.05
"""Seconds between two looks at what rank 0 was answered."""


def processes(variable: str = "WORLD_SIZE") -> int:
    """How many processes train together: torchrun's WORLD_SIZE, or LOCAL_WORLD_SIZE for those of this machine."""
    size = os.environ.get(variable, "1")
    return max(1, int(size)) if size.isdigit() else 1


def rank() -> int:
    """This process's number among them, from 0 on."""
    number = os.environ.get("RANK", "0")
    return int(number) if number.isdigit() else 0


def link(link: Link, folder: Path) -> Link:
    """The way to the worker for this process, made of its own one. The folder is the run's, and of no other run."""
    if processes() == 1:
        return link
    answers = folder / "answers"
    answers.mkdir(exist_ok=True)
    return Leader(link, answers) if rank() == 0 else Follower(answers)


class Leader:
    """Rank 0. It writes down every answer, numbered, before it follows it."""

    follows = False

    def __init__(self, link: Link, answers: Path) -> None:
        self._link = link
        self._answers = answers
        self._count = 0
        (answers / "leader").write_text(str(os.getpid()), encoding="utf-8")
        self.begin, self.publish = link.begin, link.publish
        self.save_model, self.save_precision = link.save_model, link.save_precision
        self.log_artifact = link.log_artifact

    def report(self, outcome: Outcome) -> Directive:
        return self._told(self._link.report(outcome))

    def directive(self) -> Directive:
        return self._told(self._link.directive())

    def _told(self, answer: Directive) -> Directive:
        self._count += 1
        text = json.dumps({"action": answer.action, "reason": answer.reason, "system": dict(answer.system)})
        part = self._answers / f"{self._count}.part"
        part.write_text(text, encoding="utf-8")
        part.rename(self._answers / str(self._count))
        return answer


class Follower:
    """Any other rank. It asks nobody: the n-th answer is that of rank 0."""

    follows = True

    def __init__(self, answers: Path) -> None:
        self._answers = answers
        self._count = 0

    def begin(self, epoch: int) -> None:
        pass

    def report(self, outcome: Outcome) -> Directive:
        return self.directive()

    def publish(self, epoch: int) -> None:
        pass

    def save_model(self, content: bytes) -> None:
        pass

    def save_precision(self, variant: Variant, more: bool) -> None:
        pass

    def log_artifact(self, name: str, content: bytes) -> None:
        pass

    def directive(self) -> Directive:
        self._count += 1
        pause = 0.001
        while True:
            text = _read(self._answers / str(self._count))
            if text is not None:
                return Directive.of(json.loads(text))
            if pause == _LONGEST_PAUSE and self._ended():
                raise TandemError("the process of rank 0 has ended, and so does this one")
            time.sleep(pause)
            pause = min(_LONGEST_PAUSE, 1.5 * pause)

    def _ended(self) -> bool:
        """Whether no answer can come any more: rank 0 is gone, or the run is, with its folder."""
        leader = _read(self._answers / "leader")
        if not leader:  # or not written yet
            return not self._answers.is_dir()
        try:
            os.kill(int(leader), 0)
        except ProcessLookupError:
            # It may have written the answer since the last look.
            return _read(self._answers / str(self._count)) is None
        except PermissionError:
            pass
        return False


def _read(path: Path) -> Optional[str]:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
