"""What is checked. Each step is a function that adds rows to the report; it raises Trouble when it cannot go on."""

from __future__ import annotations

import json
import math
import os
import shutil
import statistics
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Optional

from .nvml import Driver, Sampler
from .report import FAIL, NOTE, PASS, SKIPPED, Report
from .site import Site, Trouble

TANDEM, DRIVER, CHECK, SCRIPT = "tandem", "the driver (NVML)", "this check", "the training script"

MEMORY_OFF = 0.05
"""How far memory may be off, as a part; and 256 MiB, whichever is more."""
UTILIZATION_OFF = 0.10
"""How far a utilization may be off, in parts of the whole GPU."""
ENERGY_OFF = 0.05
"""How far the mean ratio of joules may be from 1."""


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
    spans: list[tuple[float, float, str, float, int, int]] = field(default_factory=list)

    def add(self, step: str, asked: str, seen: Any, by: str, verdict: Any, reason: str = "") -> bool:
        return self.report.add(step, asked, seen, by, verdict, reason)

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
        finally:
            self.site.script_logs(name, len(trials))
            details = self.site.trials(name, len(trials))
        states = [one["trial"]["state"] for one in details]
        why = "; ".join(
            f"trial {one['trial']['number']}: {one['trial'].get('reason', '')}"
            for one in details
            if one["trial"]["state"] != "completed"
        )
        self.add(
            name,
            "all trials complete",
            f"study {study['status']}, trials {', '.join(states)}",
            TANDEM,
            set(states) == {"completed"},
            why,
        )
        return details


def gib(count: Optional[float]) -> str:
    return "?" if count is None else f"{count / 2**30:.2f} GiB"


def small(work: str = "small", seconds: float = 4, duty: float = 1, hold_gib: float = 1) -> dict[str, Any]:
    return {"work": work, "seconds": seconds, "duty": duty, "hold_gib": hold_gib}


# Step 1: what the machine is.


def smi(*query: str, timeout: float = 20) -> Optional[list[list[str]]]:
    program = shutil.which("nvidia-smi") or next(
        (p for p in ("/usr/local/nvidia/bin/nvidia-smi", "/usr/bin/nvidia-smi") if os.path.exists(p)), None
    )
    if not program:
        return None
    done = subprocess.run(
        [program, *query, "--format=csv,noheader,nounits"], capture_output=True, text=True, timeout=timeout
    )
    if done.returncode:
        return None
    return [[cell.strip() for cell in line.split(",")] for line in done.stdout.splitlines() if line.strip()]


def outside(check: Check) -> None:
    """PyTorch on the GPU without Tandem: what fails here is no fault of Tandem's. It also reads PyTorch's files once."""
    step, began = "outside", time.time()
    for path in ("/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-caps"):
        check.add(
            step,
            f"{path} before any training",
            oct(os.stat(path).st_mode & 0o777) if os.path.exists(path) else "not there",
            CHECK,
            NOTE,
        )
    code = "import torch; print(torch.__version__, torch.cuda.is_available() and (torch.ones(64, 64, device='cuda') @ torch.ones(64, 64, device='cuda')).sum().item())"
    done = subprocess.run([check.python, "-c", code], capture_output=True, text=True, timeout=max(10, check.left()))
    said = done.stdout.strip() or done.stderr.strip()[-300:]
    check.add(
        step,
        "PyTorch computes on the GPU without Tandem",
        f"{said}, in {time.time() - began:.0f} s",
        CHECK,
        "262144" in said or (SKIPPED if check.cpu else FAIL),
    )
    shared = os.statvfs("/dev/shm")
    check.add(step, "/dev/shm", gib(shared.f_bavail * shared.f_frsize), CHECK, NOTE)


def doctor(check: Check) -> None:
    step, site, driver = "doctor", check.site, check.driver
    found = {one["name"]: one for one in site.json("doctor", "--python", check.python, timeout=60)}
    (site.work / "doctor.json").write_text(json.dumps(found, indent=1))
    gpu = found["gpu"]
    said = gpu.get("detail") or gpu.get("reason", "")
    check.add(
        step,
        "the GPU is found",
        said,
        "tandem doctor",
        gpu["available"],
        gpu.get("reason", "") if gpu["available"] else "",
    )
    names = [driver.name()]
    check.add(
        step,
        "its name and the number of GPUs are the driver's",
        f"{said}; NVML: {driver.count} x {names[0]}",
        TANDEM + " and NVML",
        names[0] in said and said.count(names[0]) == driver.count,
    )
    check.add(
        step,
        "energy and processes are told (no remark)",
        gpu.get("reason") or "no remark",
        "tandem doctor",
        PASS if not gpu.get("reason") else FAIL,
        gpu.get("remedy", ""),
    )
    for name in (
        "knob gpus",
        "knob gpu_power_watts",
        "knob gpu_clock_mhz",
        "rapl",
        "perf counters",
        "cgroups",
        "torch",
        "onnx runtime",
        "sandbox",
    ):
        one = found.get(name, {})
        check.add(
            step,
            name,
            ("yes: " if one.get("available") else "no: ") + str(one.get("detail") or one.get("reason", "")),
            "tandem doctor",
            NOTE,
        )
    rows = smi("--query-gpu=name,uuid,driver_version,memory.total,power.limit,pci.bus_id")
    machine = next((one for one in site.ask("/api/v1/pool")["machines"]), {})
    (site.work / "pool.txt").write_text(json.dumps(machine, indent=1))
    if rows:
        name, uuid, version, memory, limit, _ = rows[0][:6]
        check.report.machine.update(gpu=name, driver=version, memory_mib=memory, power_limit_watts=limit, uuid=uuid)
        check.add(
            step,
            "nvidia-smi and this check's NVML agree",
            f"{name}, {uuid}; {driver.name()}, {driver.uuid()}",
            "nvidia-smi and NVML",
            name == driver.name() and uuid == driver.uuid(),
        )
        told = registered_memory(site)
        if told is None:
            check.add(step, "memory of the GPU as the worker registered it", "not shown by the API", TANDEM, NOTE)
        else:
            off = abs(told / 2**20 - float(memory))
            check.add(
                step,
                "memory of the GPU as the worker registered it",
                f"{gib(told)}; nvidia-smi {float(memory) / 1024:.2f} GiB",
                "tandem and nvidia-smi",
                off <= 0.02 * float(memory),
            )
    else:
        check.report.machine.update(gpu=driver.name(), uuid=driver.uuid())
        check.add(
            step,
            "nvidia-smi's own figures",
            "nvidia-smi is missing or fails",
            "nvidia-smi",
            SKIPPED,
            "this check's NVML is used instead",
        )


def registered_memory(site: Site) -> Optional[float]:
    """The bytes of the first GPU, wherever the pool's answer has them."""
    workers = site.ask("/api/v1/workers")
    listed = workers if isinstance(workers, list) else workers.get("workers") or workers.get("items") or []
    for one in listed:
        bytes_ = (one.get("machine") or {}).get("gpu_memory_bytes")
        if bytes_:
            return bytes_[0]
    return None


# The first study: does a script reach the GPU at all, and through the sandbox?


def reach(check: Check) -> None:
    step, site = "reach", check.site
    try:
        reached = first(check, "reach")
        reason = "" if reached else "the script did not see the GPU"
    except Trouble as trouble:
        reached, reason = False, str(trouble)
    check.add(
        step,
        f"a script reaches the GPU in the sandbox ({site.sandbox})",
        "yes" if reached else "no",
        SCRIPT,
        reached or (SKIPPED if check.cpu else FAIL),
        reason,
    )
    if not reached and not check.cpu:
        site.work_with("off")
        reached = first(check, "reach-open")
        check.add(step, "a script reaches the GPU without the sandbox", "yes" if reached else "no", SCRIPT, reached)


def first(check: Check, name: str) -> bool:
    check.study(name, [small(seconds=1)], 1, resources={"gpus": 1})
    starts = [one for one in check.site.told(name) if one["kind"] == "start"]
    return bool(starts) and starts[0]["cuda"]


# Steps 2 and 7: one training alone on the GPU, and its energy.


def single(check: Check) -> None:
    step, name, site = "single", "single", check.site
    trials = [small(seconds=3, hold_gib=2), small(seconds=3, hold_gib=4)]
    epochs = 4 if check.quick else 5
    details = check.study(name, trials, epochs, resources={"gpus": 1})
    recommended = site.json("study", "recommend", name)
    best = (recommended.get("best") or {}).get("number")
    check.add(step, "there is a recommendation", f"trial {best}", TANDEM, best is not None)
    starts = [one for one in site.told(name) if one["kind"] == "start"]
    visible = {one["visible"] for one in starts}
    seen = f"CUDA_VISIBLE_DEVICES {', '.join(map(str, visible))}, torch counts {sorted({one.get('count', 0) for one in starts})}, {starts[0].get('name', 'CPU')}"
    check.add(
        step,
        "each script sees exactly its GPU",
        seen,
        SCRIPT,
        (visible == {"0"} or visible == {check.driver.uuid()}) and all(one.get("count", 1) == 1 for one in starts),
    )
    profiles(check, step, details)
    for detail in details:
        used(check, step, name, detail, alone=True)
    site_logs(check, step)
    energy(check, details)


PROFILED = (
    "gpu.core_utilization",
    "gpu.memory_used_bytes",
    "gpu.power_watts",
    "gpu.core_clock_mhz",
    "gpu.temperature_celsius",
    "gpu.memory_utilization",
    "gpu.pcie_send_bytes_per_second",
    "gpu.throttled",
)


def profiles(check: Check, step: str, details: list[dict[str, Any]]) -> None:
    lacking, strange, rows = set(), [], []
    for detail in details:
        for report in detail["reports"]:
            host = (report.get("profile") or {}).get("host") or {}
            lacking.update(name for name in PROFILED if name not in host)
            strange += [
                name for name, value in host.items() if not isinstance(value, (int, float)) or not math.isfinite(value)
            ]
            if report["epoch"] > 1 and not isinstance(report["energy"]["joules"], (int, float)):
                strange.append("joules")
            rows.append(
                {
                    "trial": detail["trial"]["number"],
                    "epoch": report["epoch"],
                    "seconds": report["seconds"],
                    "joules": report["energy"]["joules"],
                    "method": report["energy"]["method"],
                    **{name: host.get(name, "-") for name in PROFILED[:5]},
                }
            )
    check.report.figures["Profiles of the single trainings"] = rows
    check.add(
        step,
        "each epoch's profile has the GPU's metrics",
        "all" if not lacking else "without " + ", ".join(sorted(lacking)),
        TANDEM,
        not lacking,
    )
    check.add(
        step,
        "all values are finite numbers",
        "yes" if not strange else ", ".join(sorted(set(strange))),
        TANDEM,
        not strange,
    )
    high = [
        row["gpu.core_utilization"]
        for row in rows
        if row["epoch"] > 1 and isinstance(row["gpu.core_utilization"], float)
    ]
    if high:
        check.add(
            step,
            "the GPU was busy while it trained",
            f"{statistics.mean(high):.2f} of the time (profile, epochs 2 on)",
            TANDEM,
            statistics.mean(high) > 0.5 or (SKIPPED if check.cpu else FAIL),
        )


def span(check: Check, name: str, number: int) -> tuple[float, float, set[int]]:
    """From when until when a trial trained, and its processes."""
    notes = check.site.told(name, number)
    last = max((one["at"] for one in notes if one["kind"] == "start"), default=0.0)
    mine = [one for one in notes if one["at"] >= last]
    pids = {one["pid"] for one in mine}
    begins, ends = (
        [one["at"] for one in mine if one["kind"] == "begin"],
        [one["at"] for one in mine if one["kind"] == "epoch"],
    )
    if not begins or not ends:
        raise Trouble(f"trial {number} of {name} left no notes of its training")
    return begins[0], ends[-1], pids


def used(check: Check, step: str, name: str, detail: dict[str, Any], alone: bool) -> None:
    """Compares what Tandem saw of a trial's use with the driver's account of its processes."""
    number, use = detail["trial"]["number"], detail["trial"].get("gpu_use")
    who = f"trial {number} of {name}"
    if not use:
        check.add(step, f"use of the GPU by {who}", "not seen", TANDEM, False)
        return
    begin, end, pids = span(check, name, number)
    moments = check.sampler.between(begin, end)
    held = [sum(max(0, one.processes[pid]) for pid in pids if pid in one.processes) for one in moments]
    shown = f"{gib(use['memory_bytes'])}, {use['utilization']:.2f} busy over {use['seconds']:.0f} s, {'alone' if use['alone'] else 'beside others'}, by {use.get('method')}"
    if not any(held):
        check.add(
            step,
            f"use of the GPU by {who}",
            shown,
            TANDEM,
            SKIPPED,
            f"the driver lists none of its processes {sorted(pids)} for this check; it lists {sorted({p for m in moments for p in m.processes})}",
        )
        return
    most = max(held)
    check.add(
        step,
        f"memory of {who}",
        f"{gib(use['memory_bytes'])}; driver {gib(most)}",
        TANDEM + " and NVML",
        abs(use["memory_bytes"] - most) <= max(MEMORY_OFF * most, 256 << 20),
    )
    if alone:
        theirs = statistics.mean(one.utilization or 0 for one in moments)
    else:
        theirs = statistics.mean(min(1.0, sum(one.shares.get(pid, 0) for pid in pids)) for one in moments)
    off = abs(use["utilization"] - theirs)
    if use["seconds"] > 0:
        check.add(
            step,
            f"share of time of {who}",
            f"{use['utilization']:.3f} over {use['seconds']:.0f} s; driver {theirs:.3f} over {end - begin:.0f} s",
            TANDEM + " and NVML",
            off <= UTILIZATION_OFF,
        )
    else:
        check.add(step, f"share of time of {who}", "the driver does not tell it by process", TANDEM, FAIL)
    check.report.figures.setdefault("Use of the GPU by trial", []).append(
        {
            "study": name,
            "trial": number,
            "processes": len(pids),
            "memory (tandem)": gib(use["memory_bytes"]),
            "memory (driver)": gib(most),
            "busy (tandem)": use["utilization"],
            "busy (driver)": theirs,
            "seconds": use["seconds"],
            "alone": use["alone"],
            "method": use.get("method", ""),
        }
    )


def site_logs(check: Check, step: str) -> None:
    said = []
    for path in sorted(check.site.work.glob("*.log")):
        said += [
            line
            for line in path.read_text(errors="replace").splitlines()
            if "level=ERROR" in line or "level=WARN" in line or "panic" in line
        ]
    errors = [line for line in said if "level=WARN" not in line]
    check.add(
        step,
        "no errors in the logs of server and worker",
        f"{len(errors)} errors, {len(said) - len(errors)} warnings",
        CHECK,
        not errors,
        " / ".join(said[:3]),
    )


def energy(check: Check, details: list[dict[str, Any]]) -> None:
    step, rows = "energy", []
    for detail in details:
        number = detail["trial"]["number"]
        notes = {one["epoch"]: one["at"] for one in check.site.told("single", number) if one["kind"] == "epoch"}
        for report in detail["reports"]:
            epoch = report["epoch"]
            if epoch - 1 not in notes or epoch not in notes:
                continue  # the first has the start in it
            begin, end = notes[epoch - 1], notes[epoch]
            counted, added, averaged = (
                check.sampler.counted(begin, end),
                check.sampler.integral(begin, end),
                check.sampler.integral(begin, end, instant=False),
            )
            watts = ((report.get("profile") or {}).get("host") or {}).get("gpu.power_watts")
            rows.append(
                {
                    "trial": number,
                    "epoch": epoch,
                    "seconds": end - begin,
                    "tandem J": report["energy"]["joules"],
                    "counter J": counted,
                    "samples J": added,
                    "mean-power samples J": averaged,
                    "profile W x s": watts and watts * report["seconds"],
                    "method": report["energy"]["method"],
                }
            )
    check.report.figures["Energy by epoch"] = rows
    if not rows:
        raise Trouble("no epoch to compare")
    if any("nvml" not in row["method"] for row in rows):
        check.add(step, "joules come from the driver", rows[0]["method"], TANDEM, False)
        return
    if any("CPU" not in row["method"] for row in rows):
        check.add(
            step,
            "joules of the GPU alone",
            rows[0]["method"],
            TANDEM,
            SKIPPED,
            "the sum holds the CPU's measured joules; compare the profile's watts",
        )
    for name, key, least in (
        ("the driver's energy counter", "counter J", ENERGY_OFF),
        ("the sum of ten power samples a second", "samples J", 2 * ENERGY_OFF),
        ("the profile's mean power times seconds", "profile W x s", 2 * ENERGY_OFF),
    ):
        ratios = [row["tandem J"] / row[key] for row in rows if row[key]]
        if len(ratios) < 2:
            check.add(step, f"joules against {name}", "not told", DRIVER, SKIPPED, str(check.sampler.refusals))
            continue
        mean, spread = statistics.mean(ratios), statistics.stdev(ratios)
        check.add(
            step,
            f"joules against {name}",
            f"ratio {mean:.3f}, deviation {spread:.3f}, {min(ratios):.3f} to {max(ratios):.3f} over {len(ratios)} epochs",
            "tandem and NVML",
            abs(mean - 1) <= least,
        )


# Step 3: several trials on one GPU.


def overlap(check: Check, name: str, count: int) -> float:
    """Seconds in which all of them trained at once, by their own notes."""
    spans = [span(check, name, number) for number in range(count)]
    return min(end for _, end, _ in spans) - max(begin for begin, _, _ in spans)


class Apps:
    """What nvidia-smi lists of processes, and what the pool shows, every two seconds."""

    def __init__(self, check: Check) -> None:
        self._check, self._last = check, 0.0
        self.lists: list[tuple[float, dict[int, float]]] = []
        self.most = 0

    def __call__(self) -> None:
        if time.time() - self._last < 2:
            return
        self._last = time.time()
        try:
            rows = smi("--query-compute-apps=pid,used_memory", timeout=5)
        except subprocess.TimeoutExpired:
            rows = None
        if rows is not None:
            listed = {}
            for row in rows:
                if len(row) == 2 and row[0].isdigit() and row[1].replace(".", "").isdigit():
                    listed[int(row[0])] = float(row[1])
            self.lists.append((time.time(), listed))
        runs = [
            run for machine in self._check.site.ask("/api/v1/pool")["machines"] for run in machine.get("running") or []
        ]
        self.most = max(self.most, sum(1 for run in runs if run.get("gpu")))

    def compare(self, step: str, name: str, details: list[dict[str, Any]]) -> None:
        for detail in details:
            number, use = detail["trial"]["number"], detail["trial"].get("gpu_use") or {}
            begin, end, pids = span(self._check, name, number)
            most = max(
                (sum(listed.get(pid, 0) for pid in pids) for at, listed in self.lists if begin <= at <= end), default=0
            )
            who = f"memory of trial {number} of {name}"
            if not most:
                self._check.add(
                    step,
                    who,
                    "nvidia-smi lists none of its processes",
                    "nvidia-smi",
                    SKIPPED,
                    f"{len(self.lists)} lists were taken",
                )
            else:
                told = use.get("memory_bytes", 0) / 2**20
                self._check.add(
                    step,
                    who,
                    f"{told:.0f} MiB; nvidia-smi {most:.0f} MiB",
                    "tandem and nvidia-smi",
                    abs(told - most) <= max(MEMORY_OFF * most, 256),
                )


def share(check: Check) -> None:
    name, seconds = "share", 4
    apps = Apps(check)
    trials = [small(seconds=seconds, duty=0.25, hold_gib=1 + number) for number in range(3)]
    details = check.study(name, trials, 4, watch=apps, resources={"gpu_share": 0.3, **check.cores})
    together = overlap(check, name, 3)
    check.add(
        name,
        "three trials with numbers train at once on one GPU",
        f"{together:.1f} s together; the pool showed {apps.most} at once",
        SCRIPT,
        together > 2,
    )
    for detail in details:
        used(check, name, name, detail, alone=False)
    apps.compare(name, name, details)


def auto(check: Check) -> None:
    name, epochs = "auto", 5
    apps = Apps(check)
    trials = [small(seconds=18, duty=0.25, hold_gib=1)] + [small(seconds=2.5, duty=0.25, hold_gib=2) for _ in range(2)]
    details = check.study(name, trials, epochs, watch=apps, resources={"gpu_share": "auto", **check.cores})
    spans = [span(check, name, number) for number in range(3)]
    alone = min(spans[1][0], spans[2][0]) - spans[0][0]
    check.add(
        name,
        "the first trial has the GPU to itself for a minute",
        f"the next one trained after {alone:.0f} s",
        SCRIPT,
        alone >= 55,
    )
    joined = overlap(check, name, 3)
    check.add(
        name,
        "then the others join it",
        f"all three trained {joined:.1f} s together; the pool showed {apps.most} at once",
        SCRIPT,
        joined > 2,
    )
    for detail in details:
        shared = detail["trial"].get("gpu_share") or {}
        check.add(
            name,
            f"what trial {detail['trial']['number']} was expected to use",
            f"{shared.get('utilization', 0):.2f} busy, {gib(shared.get('memory_bytes'))}: {shared.get('basis', 'no basis')}",
            TANDEM,
            NOTE,
        )
    for detail in details[1:]:
        used(check, name, name, detail, alone=False)
    apps.compare(name, name, details)


# Step 4: out of memory beside others.


def memory(check: Check) -> None:
    name = "memory"
    trials = [small(seconds=7, duty=0.25, hold_gib=4) for _ in range(2)] + [
        small("hog", seconds=2, duty=0.25, hold_gib=1)
    ]
    details = check.study(name, trials, 4, resources={"gpu_share": 0.25, **check.cores})
    hog = details[2]["trial"]
    asks = [one for one in check.site.told(name, 2) if one["kind"] == "asks"]
    check.add(
        name,
        "one asks for more than is left",
        "; ".join(f"{gib(one['bytes'])} with {gib(one['free'])} free" for one in asks) or "it never asked",
        SCRIPT,
        bool(asks),
    )
    shortage = hog.get("gpu_shortage") or {}
    check.add(name, "that is seen as out of GPU memory, once", str(shortage), TANDEM, shortage.get("times") == 1)
    check.add(name, "no retry is used", f"{hog['failures']} failures", TANDEM, hog["failures"] == 0)
    share_ = (hog.get("gpu_share") or {}).get("memory_bytes", 0)
    total = check.driver.memory()[0]
    check.add(
        name,
        "more memory is reserved then",
        f"{gib(shortage.get('need_bytes'))}, after {gib(0.25 * total)}; at its second run {gib(share_)}",
        TANDEM,
        (shortage.get("need_bytes") or 0) > 0.25 * total,
    )
    said = [event.get("reason") or event.get("detail") or "" for event in details[2]["events"]]
    words = next((text for text in said if "memory" in str(text)), "")
    check.add(name, "the reason is told", str(words)[:300] or "no event tells it", TANDEM, bool(words))
    begin, end, _ = span(check, name, 2)
    beside = [min(end, last) - max(begin, start) for start, last, _ in (span(check, name, number) for number in (0, 1))]
    check.add(
        name,
        "it comes back, and the neighbours train on",
        f"its second run trained {max(0, min(beside)):.1f} s beside both; neighbours {details[0]['trial']['state']}, {details[1]['trial']['state']} after {details[0]['trial']['lease_epoch']} and {details[1]['trial']['lease_epoch']} leases",
        SCRIPT + " and tandem",
        all(one["trial"]["state"] == "completed" and one["trial"]["lease_epoch"] == 1 for one in details[:2]),
    )


# Step 5: the system tuned while nets train.


def tuned(check: Check, work: str, epochs: int) -> None:
    name = work
    details = check.study(
        name,
        [small(work)],
        epochs,
        resources={"gpus": 1},
        system={
            "loader_workers": {"values": [0, 2] if check.cpu else [0, 4]},
            "precision": {"values": ["fp32", "bf16"]},
            "objective": "seconds",
        },
    )
    rows, by = [], {}
    for report in details[0]["reports"]:
        setting = ", ".join(f"{key}={value}" for key, value in sorted((report.get("system") or {}).items()))
        seconds = report["seconds"] - (report.get("setup_seconds") or 0)
        rows.append(
            {
                "epoch": report["epoch"],
                "setting": setting,
                "phase": report.get("system_phase", ""),
                "seconds": seconds,
                "joules": report["energy"]["joules"],
                "accuracy": report["metrics"]["accuracy"],
                "why": report.get("system_why", ""),
            }
        )
        if report["epoch"] > 1:
            by.setdefault(setting, []).append(seconds)
    check.report.figures[f"System tuning of the {work}"] = rows
    means = {setting: statistics.median(seconds) for setting, seconds in by.items()}
    check.add(
        name,
        "settings that were tried",
        "; ".join(f"{setting}: {means[setting]:.2f} s (median of {len(by[setting])})" for setting in means),
        TANDEM,
        len(means) >= 3 or (SKIPPED if check.cpu else FAIL),
    )
    setting = details[0]["trial"].get("setting") or {}
    final = ", ".join(f"{key}={value}" for key, value in sorted((setting.get("configuration") or {}).items()))
    fastest = min(means, key=means.get)
    loss = means.get(final, math.inf) / means[fastest] - 1
    check.add(
        name,
        "the setting in the end is the fastest of those measured, within 5 %",
        f"{final} ({setting.get('phase')}); fastest {fastest}, {100 * loss:.0f} % better; {setting.get('why', '')}",
        CHECK,
        loss <= 0.05 or (SKIPPED if check.cpu else FAIL),
    )
    check.add(
        name,
        "the net learns",
        f"accuracy {rows[0]['accuracy']:.2f} to {rows[-1]['accuracy']:.2f}",
        SCRIPT,
        rows[-1]["accuracy"] > 0.2 or (SKIPPED if check.cpu else FAIL),
    )


def resnet(check: Check) -> None:
    tuned(check, "resnet", 8 if check.quick else 14)


def transformer(check: Check) -> None:
    tuned(check, "transformer", 8 if check.quick else 14)


# Step 6: two processes of one trial.


def ddp(check: Check) -> None:
    name = "ddp"
    details = check.study(name, [small("ddp")], 5 if check.cpu else 12, resources={"gpu_share": 0.5, **check.cores})
    notes = check.site.told(name)
    ranks = {one["rank"]: one["pid"] for one in notes if one["kind"] == "rank"}
    check.add(
        name,
        "two processes train one model",
        f"{len(ranks)} processes: {next((one['how'] for one in notes if one['kind'] == 'rank'), '')}",
        SCRIPT,
        len(ranks) == 2,
    )
    reports = details[0]["reports"]
    check.add(
        name,
        "one report an epoch",
        f"{len(reports)} reports, epochs {[one['epoch'] for one in reports]}",
        TANDEM,
        [one["epoch"] for one in reports] == list(range(1, len(reports) + 1)),
    )
    used(check, name, name, details[0], alone=True)


# Step 8: inference.


def inference(check: Check) -> None:
    step, site = "inference", check.site
    probe = "import onnxruntime as o, json; print(json.dumps([o.__version__, o.get_available_providers()]))"
    done = subprocess.run([check.python, "-c", probe], capture_output=True, text=True, timeout=60)
    check.add(
        step,
        "Tandem runs models on a GPU",
        "no: tandem edge run and this-machine use ONNX Runtime on the CPU (docs/edge.md)",
        "the documentation",
        SKIPPED,
        "the product has no GPU inference",
    )
    if done.returncode:
        check.add(
            step,
            "ONNX Runtime with CUDA",
            "onnxruntime is not installed",
            CHECK,
            SKIPPED,
            done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "",
        )
        return
    version, providers = json.loads(done.stdout.strip().splitlines()[-1])
    check.add(step, "ONNX Runtime's providers", f"{version}: {', '.join(providers)}", CHECK, NOTE)
    path = site.notes / "resnet.onnx"
    if not path.exists() or not path.stat().st_size:
        why = [one.get("error", "") for one in site.told("resnet") if one["kind"] == "onnx"]
        check.add(
            step,
            "a model to run",
            "the ResNet was not written as ONNX",
            SCRIPT,
            SKIPPED,
            "; ".join(why) or "the step resnet did not run",
        )
        return
    check.add(step, "PyTorch's model becomes ONNX (tandem.model.to_onnx)", f"{path.stat().st_size} bytes", SCRIPT, PASS)
    measured = json.loads(
        site.command(
            "edge", "run", str(path), "--batch", "1,8", "--seconds", "2", "--json", timeout=max(5, check.left())
        )
    )
    (site.work / "edge.json").write_text(json.dumps(measured, indent=1))
    curve = measured.get("curve") or []
    check.add(
        step,
        "the same model on the CPU (tandem edge run)",
        "; ".join(f"batch {one['batch']}: {1000 * one['seconds']:.2f} ms" for one in curve),
        TANDEM,
        bool(curve),
    )
    if "CUDAExecutionProvider" not in providers:
        check.add(
            step,
            "the same model by CUDAExecutionProvider",
            "not there",
            CHECK,
            SKIPPED,
            "this onnxruntime is built without CUDA",
        )
        return
    code = (
        "import sys, time, numpy as n, onnxruntime as o\n"
        "s = o.InferenceSession(sys.argv[1], providers=['CUDAExecutionProvider'])\n"
        "x = {s.get_inputs()[0].name: n.zeros((8, 3, 32, 32), n.float32)}\n"
        "for _ in range(20): s.run(None, x)\n"
        "t = time.time()\n"
        "for _ in range(100): s.run(None, x)\n"
        "print(s.get_providers()[0], (time.time() - t) / 100)\n"
    )
    done = subprocess.run(
        [check.python, "-c", code, str(path)], capture_output=True, text=True, timeout=max(5, min(60, check.left()))
    )
    check.add(
        step,
        "the same model by CUDAExecutionProvider, batch 8",
        done.stdout.strip() or done.stderr.strip()[-200:],
        CHECK,
        "CUDAExecutionProvider" in done.stdout,
    )


# Step 9: settings of the GPU, only where its owner allows that.


def settings(check: Check) -> None:
    name, driver = "settings", check.driver
    if not check.change:
        check.add(name, "power limits and clocks", "not touched", CHECK, SKIPPED, "only with --change-settings")
        return
    low, high = driver.limit_bounds()
    before, clock = driver.limit_milliwatts(), driver.highest_clock()
    watts = [int(before / 1000), int((low + 0.25 * (high - low)) / 1000)]
    clocks = [clock, int(0.6 * clock)]
    check.study(
        name,
        [small(seconds=2)],
        8,
        resources={"gpus": 1},
        system={"gpu_power_watts": {"values": watts}, "gpu_clock_mhz": {"values": clocks}, "objective": "joules"},
    )
    begin, end, _ = span(check, name, 0)
    seen = sorted({round(one.limit) for one in check.sampler.between(begin, end) if one.limit})
    check.add(name, "power limits that were in force", f"{seen} W of {watts} W", DRIVER, set(watts) <= set(seen))
    fast = sorted({one.clock for one in check.sampler.between(begin, end) if one.clock})
    check.add(name, "clocks that were in force", f"{fast[0]} to {fast[-1]} MHz, of {clocks}", DRIVER, NOTE)
    after = driver.limit_milliwatts()
    check.add(
        name, "the power limit is put back", f"{after / 1000:g} W, before {before / 1000:g} W", DRIVER, after == before
    )


@dataclass(frozen=True)
class Step:
    name: str
    run: Callable[[Check], None]
    seconds: float
    """Its own time limit."""
    quick: bool = True


STEPS = (
    Step("outside", outside, 150),
    Step("doctor", doctor, 60),
    Step("reach", reach, 90),
    Step("single", single, 90),
    Step("share", share, 75),
    Step("memory", memory, 90),
    Step("auto", auto, 150, quick=False),
    Step("ddp", ddp, 60),
    Step("resnet", resnet, 80),
    Step("transformer", transformer, 80),
    Step("inference", inference, 40),
    Step("settings", settings, 60),
)
