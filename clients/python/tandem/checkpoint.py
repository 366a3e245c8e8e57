"""The checkpoint on disk: it is the old one or the new one, whole, never a mixture.

A training script hands over a function that writes one file (or one folder) to
the path it is given. It writes beside the checkpoint directory; only when that
has succeeded is it renamed into place. What outlives the machine is the server's
copy, so nothing is synced here.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Callable

from .errors import TandemError

NAME = "checkpoint"


def write(directory: Path, save: Callable[[str], object]) -> None:
    """Replace the directory's checkpoint by what save writes; if save raises, the old one stays."""
    directory.mkdir(parents=True, exist_ok=True)
    # A sibling is on the same file system, so that the rename is atomic, and
    # outside of what the worker packs.
    temporary = Path(tempfile.mkdtemp(prefix=f".{directory.name}-", dir=directory.parent))
    try:
        fresh = temporary / NAME
        save(str(fresh))
        _check_written(fresh)
        _check_plain(fresh)
        _put_in_place(fresh, directory / NAME)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def find(directory: Path) -> Path:
    """The path to load from."""
    path = directory / NAME
    if not path.exists():
        content = sorted(p.name for p in directory.iterdir()) if directory.is_dir() else []
        raise TandemError(
            f"the trial continues from a checkpoint, but {directory} holds no {NAME!r} (it holds {content}): "
            "if the script writes its own files there, read them from trial.checkpoint_dir instead of restore()"
        )
    return path


def _check_written(fresh: Path) -> None:
    if fresh.is_file() or fresh.is_dir():
        return
    written = sorted(p.name for p in fresh.parent.iterdir())
    if written:
        raise TandemError(
            f"save wrote {written} instead of the path it was given: some functions append an extension; "
            "open the path yourself, as in: with open(path, 'wb') as file: numpy.savez(file, ...)"
        )
    raise TandemError("save returned without writing anything to the path it was given")


def _put_in_place(fresh: Path, target: Path) -> None:
    if target.exists():
        # A folder cannot be replaced in one step, and ext4 writes a file out that
        # replaces another. Nobody reads in between: the checkpoint counts only once
        # it has been published.
        target.rename(fresh.parent / "replaced")
    fresh.rename(target)


def _check_plain(path: Path) -> None:
    if path.is_symlink() or not (path.is_file() or path.is_dir()):
        raise TandemError(f"a checkpoint holds plain files and folders only, {path.name} is something else")
    if path.is_dir():
        for entry in path.iterdir():
            _check_plain(entry)
