"""The command: options, one step after the other, and the report."""

from __future__ import annotations

import argparse
import contextlib
import gzip
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import traceback
from pathlib import Path
from typing import Optional

from . import nvml, steps
from .check import Check
from .report import FAIL, SKIPPED, Report
from .site import Site, Trouble


def options(arguments: Optional[list[str]]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="scripts/gpu-check",
        description="Prove Tandem's GPU features on a machine with an NVIDIA GPU. Writes DIR/report.md, "
        "DIR/report.json, DIR/samples.csv and DIR/logs.tar.gz. The GPU's settings stay as they are, unless "
        "--change-settings is given.",
        epilog="Steps: "
        + ", ".join(step.name for step in steps.STEPS)
        + ". Exit code: 0 all passed, 1 a check failed, "
        "2 wrong arguments, 3 nothing could be checked, such as without an NVIDIA driver.",
    )
    parser.add_argument(
        "--binary", required=True, metavar="PATH", help="the tandem to check, or it packed by gzip (.gz)"
    )
    parser.add_argument("--out", required=True, metavar="DIR", help="folder for the report; made if it is not there")
    parser.add_argument(
        "--python", default="python3", help="the interpreter with PyTorch, for the trainings (default python3)"
    )
    parser.add_argument("--only", default="", metavar="STEP,STEP", help="run these steps only")
    parser.add_argument(
        "--quick", action="store_true", help="fewer epochs, and not the step auto, which takes two minutes"
    )
    parser.add_argument(
        "--seconds",
        type=float,
        default=540,
        help="time for everything; steps that do not fit are skipped (default 540)",
    )
    parser.add_argument(
        "--change-settings", action="store_true", help="also set power limits and clocks, and put them back"
    )
    parser.add_argument(
        "--nvml",
        default="",
        metavar="PATH",
        help="the driver's library for this check's own figures (default: looked for)",
    )
    parser.add_argument(
        "--cpu", action="store_true", help="for developers: train on the CPU, with a double of the driver"
    )
    parser.add_argument("--keep", action="store_true", help="keep the working folder")
    chosen = parser.parse_args(arguments)
    names = [step.name for step in steps.STEPS]
    chosen.only = [name for name in chosen.only.split(",") if name]
    for name in chosen.only:
        if name not in names:
            parser.error(f"there is no step {name}: they are {', '.join(names)}")
    if not Path(chosen.binary).exists():
        parser.error(f"there is no {chosen.binary}: build it with go build -o bin/tandem ./cmd/tandem")
    python = shutil.which(chosen.python)
    if not python:
        parser.error(f"there is no {chosen.python}: name an interpreter with --python")
    chosen.python = str(Path(python).absolute())  # a link tells Python of its environment
    return chosen


def chosen_steps(chosen: argparse.Namespace) -> list[steps.Step]:
    if chosen.only:
        return [step for step in steps.STEPS if step.name in chosen.only]
    return [step for step in steps.STEPS if step.quick or not chosen.quick]


def main(arguments: Optional[list[str]] = None) -> int:
    chosen = options(arguments)
    out = Path(chosen.out)
    out.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix="gpu-check-", dir="/tmp"))  # the paths of sockets must be short
    report, sampler = Report(), None
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the report is written
    try:
        driver = nvml.Driver(chosen.nvml)
        sampler = nvml.Sampler(driver)
        sampler.start()
        checked(chosen, work, report, driver, sampler)
    except nvml.Absent as absent:
        for step in chosen_steps(chosen):
            report.step = step.name
            report.add("the whole step", "-", "this check", SKIPPED, str(absent))
    finally:
        report.write(out)
        if sampler:
            sampler.stop()
            sampler.write(out / "samples.csv")
            (work / "shares.txt").write_text("\n".join(sampler.raw))
        pack(work, out / "logs.tar.gz")
        if chosen.keep:
            print(f"gpu-check: the working folder is {work}")
        else:
            shutil.rmtree(work, ignore_errors=True)
    print(f"gpu-check: the report is {out / 'report.md'}")
    return report.code()


def pack(work: Path, archive: Path) -> None:
    """Keeps the logs, the studies and what the scripts printed."""
    with tarfile.open(archive, "w:gz") as packed:
        for path in sorted(work.rglob("*")):
            name = path.relative_to(work)
            wanted = path.suffix in (".log", ".json", ".jsonl", ".txt") and name.parts[0] not in ("data", "scratch")
            if wanted and path.is_file() and path.stat().st_size < 8 << 20:
                packed.add(path, arcname=str(name))


def checked(chosen: argparse.Namespace, work: Path, report: Report, driver: nvml.Driver, sampler: nvml.Sampler) -> None:
    end = time.monotonic() + chosen.seconds
    binary = unpacked(chosen.binary, work)
    report.machine["tandem"] = subprocess.run([binary, "--version"], capture_output=True, text=True).stdout.strip()
    variables = {}
    if chosen.cpu:
        folder = work / "notes" / "gpus"
        variables = {"GPU_CHECK_DOUBLE": str(folder)}
        os.environ["TANDEM_TEST_GPUS"] = str(folder)
    site = Site(binary, chosen.python, work, variables)
    if chosen.cpu:
        folder.mkdir()
        site.slots = "3"
    limit = [end]
    check = Check(
        site,
        driver,
        sampler,
        report,
        chosen.python,
        chosen.cpu,
        chosen.quick,
        chosen.change_settings,
        left=lambda: limit[0] - time.monotonic(),
    )
    try:
        for step in chosen_steps(chosen):
            if step.name != "outside" and not site.url:
                # After the driver has made its devices.
                site.serve()
                site.work_with("auto")
            began, report.step = time.monotonic(), step.name
            if end - began < min(15, step.seconds):
                report.add(
                    "the whole step",
                    "-",
                    "this check",
                    SKIPPED,
                    f"no time is left of {chosen.seconds:.0f} s",
                )
                continue
            limit[0] = min(end, began + step.seconds)
            one(step, check)
            report.seconds[step.name] = time.monotonic() - began
            report.write(Path(chosen.out))  # in case that the whole is ended early
        if sampler.refusals or sampler.strange:
            report.machine["driver does not tell this check"] = (
                f"{sampler.refusals or 'nothing'}; {sampler.strange} odd samples of processes were left out"
            )
    except Trouble as trouble:
        report.add("server and worker start", str(trouble), "this check", FAIL)
    finally:
        site.close()


def one(step: steps.Step, check: Check) -> None:
    """A step that fails stops no other."""
    try:
        step.run(check)
    except Trouble as trouble:
        check.add("the step comes to its end", str(trouble), "this check", FAIL)
    except Exception as error:
        with contextlib.suppress(OSError):
            (check.site.work / f"{step.name}.trace.txt").write_text(traceback.format_exc())
        where = traceback.extract_tb(error.__traceback__)[-1]
        check.add(
            "the step comes to its end",
            f"{type(error).__name__}: {error} ({Path(where.filename).name}:{where.lineno})",
            "this check",
            FAIL,
        )


def unpacked(binary: str, work: Path) -> str:
    """The program, which what brought it here may have left packed, or without the right to run."""
    path = work / "tandem"
    content = Path(binary).read_bytes()
    path.write_bytes(gzip.decompress(content) if binary.endswith(".gz") else content)
    path.chmod(0o755)
    return str(path)
