"""A checkpoint directory as one tar file, the form in which it travels and is addressed by its hash.

Equal content gives equal bytes: names in order, no times, no owners. Unpacking
trusts nothing: only plain files and folders, only below the target, bounded.
"""

from __future__ import annotations

import hashlib
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from .errors import TandemError

MAX_FILES = 100_000
MAX_BYTES = 1 << 40


class Damaged(TandemError):
    """The archive is none, or holds what no checkpoint may: nobody can go on from it."""


def pack(directory: Path, out: BinaryIO) -> None:
    """Write the directory's content to out."""
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in _walk(directory):
            info = tarfile.TarInfo(path.relative_to(directory).as_posix())
            if path.is_dir():
                info.type, info.mode = tarfile.DIRTYPE, 0o755
                archive.addfile(info)
                continue
            info.size, info.mode = path.stat().st_size, 0o644
            with path.open("rb") as file:
                archive.addfile(info, file)


def unpack(source: BinaryIO, directory: Path) -> None:
    """Put the archive's content into the directory, which must be empty; :class:`Damaged` says that it cannot be."""
    files, size = 0, 0
    try:
        with tarfile.open(fileobj=source, mode="r:*") as archive:
            for member in archive:
                files, size = files + 1, size + member.size
                if files > MAX_FILES or size > MAX_BYTES:
                    raise TandemError(f"the checkpoint has more than {MAX_FILES:,} files or {MAX_BYTES:,} bytes")
                _extract(archive, member, directory)
    except (tarfile.TarError, EOFError) as error:
        raise Damaged(f"the checkpoint is not a readable archive: {error}") from error
    except (FileExistsError, IsADirectoryError, NotADirectoryError) as error:
        raise Damaged(f"the checkpoint has a name twice: {error.filename}") from error


def digest(file: BinaryIO) -> str:
    """The SHA-256 of what is left to read, in lower-case hexadecimal."""
    found = hashlib.sha256()
    for block in iter(lambda: file.read(1 << 20), b""):
        found.update(block)
    return found.hexdigest()


def _walk(directory: Path) -> Iterator[Path]:
    for path in sorted(directory.iterdir(), key=lambda p: p.name):
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            raise TandemError(f"a checkpoint holds plain files and folders only, {path.name} is something else")
        yield path
        if path.is_dir():
            yield from _walk(path)


def _extract(archive: tarfile.TarFile, member: tarfile.TarInfo, directory: Path) -> None:
    name = PurePosixPath(member.name)
    if name.is_absolute() or ".." in name.parts or "\\" in member.name:
        raise Damaged(f"the checkpoint names a file outside of its directory: {member.name!r}")
    target = directory / name
    if member.isdir():
        target.mkdir(parents=True, exist_ok=True)
        return
    if not member.isreg() or member.issparse():
        raise Damaged(f"the checkpoint holds something that is neither a file nor a folder: {member.name!r}")
    target.parent.mkdir(parents=True, exist_ok=True)
    content = archive.extractfile(member)
    # "x": a name that comes twice is refused instead of followed.
    with target.open("xb") as file:
        if content is not None:
            shutil.copyfileobj(content, file)
