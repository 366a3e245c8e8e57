"""What all steps have at hand, and what several of them compare."""

from __future__ import annotations

import contextlib
import json
import shutil
import statistics
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Optional

from .nvml import Driver, Sampler
from .report import NOTE, SKIPPED, Report
from .site import Site, Trouble

TANDEM, NVML, SMI, CHECK, SCRIPT = "tandem", "NVML", "nvidia-smi", "this check", "the training script"
BOTH = "tandem and NVML"

MEMORY_OFF = 0.05
"""How far memory may be off, as a part; or 256 MiB, if that is more."""
UTILIZATION_OFF = 0.10
"""How far a utilization may be off, in parts of the whole GPU."""
LEAST_SECONDS = 5
"""For how long a utilization must have been seen to be compared."""


@dataclass
class Check:
    site: Site
    driver: Driver
    sampler: Sampler
    report: Report
    python: str
    cpu: bool
    quick: bool
    change: bool
    left: Callable[[], float]
    """Seconds until this step's time is over."""

    def add(self, asked: str, seen: Any, by: str, verdict: Any, why: str = "") -> None:
        self.report.add(asked, seen, by, verdict, why)

    def on_gpu(self, passed: bool) -> Any:
        """A verdict that trainings on the CPU cannot give."""
        return SKIPPED if self.cpu and not passed else passed

    @property
    def cores(self) -> dict[str, int]:
        """What a trial that shares the machine reserves; a double's worker has slots instead."""
        return {} if self.cpu else {"cores": 4}

    def study(
        self,
        name: str,
        trials: list[dict[str, Any]],
        epochs: int,
        watch: Optional[Callable[[], None]] = None,
        **more: Any,
    ) -> list[dict[str, Any]]:
        """Runs a study to its end and returns its trials."""
        self.site.create(name, trials, epochs, **more)
        try:
            study = self.site.wait(name, self.left(), watch)
        except Trouble:
            self.site.script_logs(name, len(trials))
            with contextlib.suppress(Trouble):  # it may not have that many
                self.site.trials(name, len(trials))
            raise
        self.site.script_logs(name, len(trials))
        details = self.site.trials(name, len(trials))
        states = [one["trial"]["state"] for one in details]
        why = [f"trial {number}: {one['trial'].get('reason', '')}" for number, one in enumerate(details)]
        unlike = [text for text, state in zip(why, states) if state != "completed"]
        seen = f"study {study['status']}, trials {', '.join(states)}"
        self.add("all trials complete", seen, TANDEM, not unlike, "; ".join(unlike))
        return details

    def span(self, name: str, number: int) -> tuple[float, float, set[int]]:
        """From when until when a trial's last run trained, and its processes."""
        notes = self.site.told(name, number)
        last = max((one["at"] for one in notes if one["kind"] == "start"), default=0.0)
        mine = [one for one in notes if one["at"] >= last]
        begins = [one["at"] for one in mine if one["kind"] == "begin"]
        ends = [one["at"] for one in mine if one["kind"] == "epoch"]
        if not begins or not ends:
            raise Trouble(f"trial {number} of {name} left no notes of its training")
        return begins[0], ends[-1], {one["pid"] for one in mine}

    def used(self, name: str, detail: dict[str, Any], alone: bool) -> None:
        """Compares what Tandem saw of a trial's use of the GPU with the driver's account of its processes."""
        number, use = detail["trial"]["number"], detail["trial"].get("gpu_use")
        if not use:
            self.add(f"use of the GPU by trial {number}", "not seen", TANDEM, False)
            return
        begin, end, pids = self.span(name, number)
        moments = self.sampler.between(begin, end)
        held = [sum(max(0, one.processes[pid]) for pid in pids if pid in one.processes) for one in moments]
        if not any(held):
            listed = sorted({pid for one in moments for pid in one.processes})
            why = f"the driver lists none of {sorted(pids)} for this check, but {listed}"
            self.add(f"use of the GPU by trial {number}", use, TANDEM, SKIPPED, why)
            return
        most = max(held)
        near = abs(use["memory_bytes"] - most) <= max(MEMORY_OFF * most, 256 << 20)
        self.add(f"memory of trial {number}", f"{gib(use['memory_bytes'])}; driver {gib(most)}", BOTH, near)
        # Tandem counts from the first time that the process is on the GPU, before it trains.
        begin = min(begin, end - use["seconds"])
        moments = self.sampler.between(begin, end)
        if alone:
            busy = statistics.mean(one.utilization or 0 for one in moments)
        else:
            busy = statistics.mean(min(1, sum(one.shares.get(pid, 0) for pid in pids)) for one in moments)
        how = "alone" if use["alone"] else "with others"
        seen = f"{use['utilization']:.3f} over {use['seconds']:.0f} s {how}; driver {busy:.3f} over {end - begin:.0f} s"
        verdict: Any = use["seconds"] > 0 and abs(use["utilization"] - busy) <= UTILIZATION_OFF
        why = ""
        if 0 < use["seconds"] < LEAST_SECONDS:
            verdict, why = NOTE, "seen for too short a time to compare"
        elif alone and use.get("method") == "device":
            verdict, why = NOTE, "at first the driver listed no process of the worker's, so the whole GPU was counted"
        self.add(f"busy share of trial {number}", seen, BOTH, verdict, why)
        self.report.figures.setdefault("Use of the GPU by trial", []).append(
            {
                "study": name,
                "trial": number,
                "processes": len(pids),
                "memory (tandem)": gib(use["memory_bytes"]),
                "memory (driver)": gib(most),
                "busy (tandem)": use["utilization"],
                "busy (driver)": busy,
                "seconds": use["seconds"],
                "alone": use["alone"],
                "method": use.get("method", ""),
            }
        )

    def logs(self) -> None:
        """No part of Tandem has complained."""
        said = []
        for path in sorted(self.site.work.glob("*.log")):
            lines = path.read_text(errors="replace").splitlines()
            said += [line for line in lines if any(word in line for word in ("level=ERROR", "level=WARN", "panic"))]
        errors = [line for line in said if "level=WARN" not in line]
        seen = f"{len(errors)} errors, {len(said) - len(errors)} warnings"
        self.add("no errors in the logs of server and worker", seen, CHECK, not errors, " / ".join(said[:3]))

    def keep(self, name: str, value: Any) -> None:
        """Keeps a value among the logs."""
        (self.site.work / name).write_text(value if isinstance(value, str) else json.dumps(value, indent=1))


def gib(count: Optional[float]) -> str:
    return "?" if count is None else f"{count / 2**30:.2f} GiB"


def small(work: str = "small", seconds: float = 4, duty: float = 1, hold_gib: float = 1) -> dict[str, Any]:
    """A training, by the parameters that train.py takes."""
    return {"work": work, "seconds": seconds, "duty": duty, "hold_gib": hold_gib}


def run(command: list[str], timeout: float) -> str:
    """What a program prints; what it complains of where it prints nothing or fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=timeout)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"failed: {error}"
    if done.returncode:
        return f"failed with {done.returncode}: {(done.stderr or done.stdout).strip()[-400:]}"
    return done.stdout.strip() or done.stderr.strip()[-400:]


def smi(*query: str, timeout: float = 20) -> Optional[list[list[str]]]:
    """The cells that nvidia-smi answers; None where it is missing or fails."""
    places = (shutil.which("nvidia-smi"), "/usr/local/nvidia/bin/nvidia-smi")
    program = next((place for place in places if place and Path(place).exists()), None)
    if not program:
        return None
    said = run([program, *query, "--format=csv,noheader,nounits"], timeout)
    if said.startswith("failed"):
        return None
    return [[cell.strip() for cell in line.split(",")] for line in said.splitlines() if line.strip()]
