"""A checkpoint is the old one or the new one, whole; and it travels safely."""

from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path
from typing import Callable

import pytest
from conftest import StartAgent

import tandem
from tandem import archive


def content(folder: Path) -> dict[str, str]:
    return {p.relative_to(folder).as_posix(): p.read_text() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.fixture
def trial(start_agent: StartAgent) -> tandem.Trial:
    start_agent()
    trial = tandem.current_trial()
    trial.report(1, accuracy=0.1)
    return trial


def write(text: str) -> Callable[[str], object]:
    return lambda path: Path(path).write_text(text)


def test_the_new_one_replaces_the_old_one(trial: tandem.Trial) -> None:
    trial.checkpoint(write("first"))
    trial.checkpoint(write("second"))
    assert content(trial.checkpoint_dir) == {"checkpoint": "second"}


def test_a_crash_in_save_leaves_the_old_one(trial: tandem.Trial, start_agent: StartAgent) -> None:
    trial.checkpoint(write("good"))

    def crash(path: str) -> None:
        Path(path).write_text("half")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        trial.checkpoint(crash)
    assert content(trial.checkpoint_dir) == {"checkpoint": "good"}
    assert sorted(p.name for p in trial.checkpoint_dir.parent.iterdir()) == ["checkpoint", "s"]


def test_it_is_in_place_when_it_is_published(start_agent: StartAgent) -> None:
    agent = start_agent()
    trial = tandem.current_trial()
    trial.report(2, accuracy=0.1)
    at_publication: list[dict[str, str]] = []
    handle = agent.handle

    def watch(method: str, path: str, document: object) -> tuple[int, object]:
        if path == "/v1/checkpoint":
            at_publication.append(content(agent.checkpoint_dir))
        return handle(method, path, document)

    agent.handle = watch  # type: ignore[method-assign]
    trial.checkpoint(write("weights"))
    assert at_publication == [{"checkpoint": "weights"}]
    assert agent.checkpoints == [2]


def test_a_folder_can_be_saved_and_replaced(trial: tandem.Trial) -> None:
    def save(text: str) -> Callable[[str], object]:
        def into(path: str) -> None:
            Path(path).mkdir()
            (Path(path) / text).write_text(text)

        return into

    trial.checkpoint(save("a"))
    trial.checkpoint(save("b"))
    assert content(trial.checkpoint_dir) == {"checkpoint/b": "b"}
    trial.checkpoint(write("file"))
    assert content(trial.checkpoint_dir) == {"checkpoint": "file"}


def test_a_save_that_appends_an_extension_is_told(trial: tandem.Trial) -> None:
    with pytest.raises(tandem.TandemError, match=r"wrote \['checkpoint.npz'\] instead"):
        trial.checkpoint(lambda path: Path(path + ".npz").touch())
    with pytest.raises(tandem.TandemError, match="without writing anything"):
        trial.checkpoint(lambda path: None)


def test_a_link_is_refused(trial: tandem.Trial) -> None:
    with pytest.raises(tandem.TandemError, match="plain files and folders only"):
        trial.checkpoint(lambda path: Path(path).symlink_to("/etc/hostname"))


def test_there_is_nothing_to_keep_before_the_first_report(start_agent: StartAgent) -> None:
    start_agent()
    with pytest.raises(ValueError, match="nothing to keep yet"):
        tandem.current_trial().checkpoint(write("x"))


def test_equal_content_packs_to_equal_bytes(tmp_path: Path) -> None:
    packed: list[bytes] = []
    for name, order in (("one", ["a", "b"]), ("two", ["b", "a"])):
        folder = tmp_path / name
        (folder / "deep").mkdir(parents=True)
        for file in order:
            (folder / "deep" / file).write_text(file)
        os.utime(folder / "deep" / "a", (len(packed), len(packed)))
        out = io.BytesIO()
        archive.pack(folder, out)
        packed.append(out.getvalue())
    assert packed[0] == packed[1]
    target = tmp_path / "out"
    target.mkdir()
    archive.unpack(io.BytesIO(packed[0]), target)
    assert content(target) == {"deep/a": "a", "deep/b": "b"}


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ([member("../out")], "outside of its directory"),
        ([member("a/../../out")], "outside of its directory"),
        ([member("/etc/out")], "outside of its directory"),
        ([member("a\\out")], "outside of its directory"),
        ([member("link", tarfile.SYMTYPE, "/etc")], "neither a file nor a folder"),
        ([member("link", tarfile.LNKTYPE, "/etc/hostname")], "neither a file nor a folder"),
        ([member("device", tarfile.CHRTYPE)], "neither a file nor a folder"),
        ([member("pipe", tarfile.FIFOTYPE)], "neither a file nor a folder"),
    ],
)
def test_hostile_archives_are_refused(tmp_path: Path, members: list[tarfile.TarInfo], words: str) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as out:
        for info in members:
            out.addfile(info)
    packed.seek(0)
    target = tmp_path / "target"
    target.mkdir()
    with pytest.raises(tandem.TandemError, match=words):
        archive.unpack(packed, target)
    assert [p.name for p in tmp_path.iterdir()] == ["target"]
    assert list(target.iterdir()) == []


def test_a_name_that_comes_twice_is_refused(tmp_path: Path) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as out:
        out.addfile(member("a"))
        out.addfile(member("a"))
    packed.seek(0)
    with pytest.raises(tandem.TandemError, match="a name twice"):
        archive.unpack(packed, tmp_path)


def test_what_is_no_archive_is_said(tmp_path: Path) -> None:
    with pytest.raises(tandem.TandemError, match="not a readable archive"):
        archive.unpack(io.BytesIO(b"not a tar file at all" * 100), tmp_path)
