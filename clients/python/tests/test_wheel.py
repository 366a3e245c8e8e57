"""The wheel that carries the binary and the client, installed where nothing else is."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from real_server import binary

from tandem.__main__ import main

ROOT = Path(__file__).resolve().parents[3]
needs_wheel = pytest.mark.skipif(importlib.util.find_spec("wheel") is None, reason="wheel is not installed")


@pytest.mark.skipif(binary() is None, reason="TANDEM_BINARY names no tandem")
@needs_wheel
def test_the_wheel_is_all_that_the_quick_start_needs(tmp_path: Path) -> None:
    tag = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    make = [sys.executable, str(ROOT / "scripts/make-wheel"), str(binary()), tag, str(tmp_path), "--stored"]
    wheel = subprocess.run(make, check=True, capture_output=True, text=True).stdout.strip()
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv")], check=True)
    place = tmp_path / "venv/bin"
    install = [sys.executable, "-m", "pip", "--python", str(place / "python"), "install", "--no-compile", "--no-index"]
    subprocess.run([*install, "--quiet", wheel], check=True)
    clean = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "LANG": "C.UTF-8"}

    def run(*line: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(line, env=clean, cwd=tmp_path, capture_output=True, text=True)

    version = json.loads(run(str(place / "tandem"), "version", "--json").stdout)
    assert (
        version["go"].startswith("go1.")
        and version["platform"] == "linux/" + {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine]
    )
    assert run(str(place / "tandem"), "example", "quick-start").returncode == 0
    again = run(str(place / "tandem"), "example", "quick-start")
    assert again.returncode == 2 and "exists already" in again.stderr
    study = tmp_path / "quick-start/study.yaml"
    study.write_text(
        study.read_text()
        .replace("trials: 27", "trials: 2")
        .replace("max: 27", "max: 9")
        .replace("seconds: 300", "seconds: 60")
    )
    ran = run(
        str(place / "tandem"), "run", "quick-start/study.yaml", "--data", "data", "--listen", "127.0.0.1:0", "--json"
    )
    assert ran.returncode == 0, ran.stderr  # though the environment is not activated
    assert json.loads(ran.stdout)["study"]["progress"]["best"]["value"] > 0.5

    # By the distribution's name, as uvx calls it, and by Python, without the PATH.
    for line in ([str(place / "tandem-tune")], [str(place / "python"), "-m", "tandem"]):
        assert json.loads(run(*line, "version", "--json").stdout) == version
    (place / "tandem").rename(place / "elsewhere")
    lacking = run(str(place / "tandem-tune"), "version")
    assert lacking.returncode == 1 and "client only" in lacking.stderr

    # The distribution "tandem" on the package index is somebody else's: it is told, and only that one.
    packages = next((tmp_path / "venv/lib").glob("python*/site-packages"))
    other = packages / "tandem-0.9.dist-info"
    other.mkdir()
    (other / "RECORD").write_text("tandem_helpers/__init__.py,sha256=x,1\n")
    assert run(str(place / "python"), "-c", "import tandem").returncode == 0
    (other / "RECORD").write_text("tandem/__init__.py,sha256=x,1\n")
    told = run(str(place / "python"), "-c", "import tandem")
    assert told.returncode == 1 and "tandem-0.9" in told.stderr and "pip uninstall tandem" in told.stderr


@needs_wheel
def test_a_wheel_for_windows_has_a_program_for_windows(tmp_path: Path) -> None:
    program = tmp_path / "tandem.exe"
    program.write_bytes(b"MZ")
    make = [sys.executable, str(ROOT / "scripts/make-wheel"), str(program), "win_amd64", str(tmp_path), "--stored"]
    wheel = subprocess.run(make, check=True, capture_output=True, text=True).stdout.strip()
    place = tmp_path / "installed"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-compile", "--only-binary=:all:"]
    subprocess.run([*install, "--platform", "win_amd64", "--target", str(place), wheel], check=True)
    assert (place / "bin/tandem.exe").read_bytes() == b"MZ"
    assert (place / "tandem/__init__.py").is_file()


def test_on_windows_the_command_waits_for_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "tandem"
    program.write_text('#!/bin/sh\necho "$@" >"$TO"\nexit 3\n')
    program.chmod(0o755)
    monkeypatch.setenv("TANDEM_BINARY", str(program))
    monkeypatch.setenv("TO", str(tmp_path / "said"))
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setattr(sys, "argv", ["tandem-tune", "study", "list"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 3
    assert (tmp_path / "said").read_text() == "study list\n"
