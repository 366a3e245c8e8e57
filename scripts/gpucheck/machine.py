"""What the machine is, and whether a script reaches its GPU."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Optional

from .check import BOTH, CHECK, SCRIPT, SMI, TANDEM, Check, gib, run, small, smi
from .report import NOTE, SKIPPED
from .site import Site, Trouble

ENOUGH_GIB = 48
"""Some virtual machines have their memory only once somebody uses it, and a worker counts it when it starts."""

TOUCH = """
import time
held, end = [], time.time() + 15
while time.time() < end:
    total = int(open("/proc/meminfo").read().split()[1]) >> 20
    if total >= %d or len(held) >= 0.7 * total:
        break
    held.append(bytearray(1 << 30))
    held[-1][::4096] = b"x" * (1 << 18)
print(total)
"""

COMPUTE = """
import torch
there = torch.cuda.is_available()
ones = torch.ones(64, 64, device="cuda" if there else "cpu")
print(torch.__version__, there, (ones @ ones).sum().item())
"""


def outside(check: Check) -> None:
    """PyTorch on the GPU without Tandem: what fails here is no fault of Tandem's. PyTorch's files are read once."""
    for name in ("/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-caps"):
        path = Path(name)
        check.add(
            f"{name} before any training", oct(path.stat().st_mode & 0o777) if path.exists() else "no", CHECK, NOTE
        )
    began = time.time()
    said = run([check.python, "-c", COMPUTE], max(10, check.left()))
    there = "True 262144" in said
    seen = f"{said}, in {time.time() - began:.0f} s"
    check.add("PyTorch computes on the GPU without Tandem", seen, CHECK, check.on_gpu(there))
    if not check.cpu:
        check.add(
            "memory of the machine, once it was used",
            run([check.python, "-c", TOUCH % ENOUGH_GIB], 40) + " GiB",
            CHECK,
            NOTE,
        )
    shared = os.statvfs("/dev/shm")
    check.add("/dev/shm", gib(shared.f_bavail * shared.f_frsize), CHECK, NOTE)
    lines = [
        run(["sh", "-c", line], 30)
        for line in ("ls -l /dev/nvidia*", "ldconfig -p | grep -i nvidia", "free -m", "ulimit -a", "nvidia-smi -q")
    ]
    check.keep(
        "machine.txt", "\n\n".join([f"LD_LIBRARY_PATH={os.environ.get('LD_LIBRARY_PATH')}", check.driver.path, *lines])
    )


def doctor(check: Check) -> None:
    driver, site = check.driver, check.site
    found = {one["name"]: one for one in site.json("doctor", "--python", check.python, timeout=90)}
    check.keep("doctor.json", found)
    gpu = found["gpu"]
    said, remark = gpu.get("detail") or gpu.get("reason", ""), gpu.get("reason", "")
    check.add("doctor finds the GPU", said, TANDEM, gpu["available"])
    agree = said.count(driver.name()) == driver.count
    check.add("its name and number are the driver's", f"{said}; {driver.count} x {driver.name()}", BOTH, agree)
    check.add(
        "doctor has no remark on energy and processes", remark or "none", TANDEM, not remark, gpu.get("remedy", "")
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
            name,
            ("yes: " if one.get("available") else "no: ") + (one.get("detail") or one.get("reason", "")),
            TANDEM,
            NOTE,
        )
    check.report.machine.update(gpu=driver.name(), uuid=driver.uuid())
    rows = smi("--query-gpu=name,uuid,driver_version,memory.total,power.limit")
    if not rows or len(rows[0]) < 5:
        check.add("nvidia-smi's own figures", "nvidia-smi is missing or fails", SMI, SKIPPED, "NVML is used instead")
        return
    name, uuid, version, memory, limit = rows[0][:5]
    check.report.machine.update(driver=version, memory_mib=memory, power_limit_watts=limit)
    seen = f"{name}, {uuid}; {driver.name()}, {driver.uuid()}"
    check.add(
        "nvidia-smi and this check's NVML agree",
        seen,
        "nvidia-smi and NVML",
        (name, uuid) == (driver.name(), driver.uuid()),
    )
    told = registered_memory(site)
    if told is None:
        check.add("memory of the GPU as the worker registered it", "the worker registered none", TANDEM, False)
    else:
        seen = f"{gib(told)}; nvidia-smi {float(memory) / 1024:.2f} GiB"
        near = abs(told / 2**20 - float(memory)) <= 0.02 * float(memory)
        check.add("memory of the GPU as the worker registered it", seen, "tandem and nvidia-smi", near)


def registered_memory(site: Site) -> Optional[float]:
    """The bytes of the first GPU, as the worker registered them."""
    answer = site.ask("/api/v1/workers")
    for one in answer if isinstance(answer, list) else answer.get("workers") or answer.get("items") or []:
        counts = (one.get("machine") or {}).get("gpu_memory_bytes")
        if counts:
            return counts[0]
    return None


def reach(check: Check) -> None:
    """Does a script reach the GPU at all, and through the sandbox?"""
    try:
        reached, why = first(check, "reach")
    except Trouble as trouble:
        reached, why = False, str(trouble)
    seen = "yes" if reached else "no"
    check.add(
        f"a script reaches the GPU in the sandbox ({check.site.sandbox})", seen, SCRIPT, check.on_gpu(reached), why
    )
    if not reached and not check.cpu:
        check.site.work_with("off")
        reached, why = first(check, "reach-open")
        check.add("a script reaches the GPU without the sandbox", "yes" if reached else "no", SCRIPT, reached, why)


def first(check: Check, name: str) -> tuple[bool, str]:
    check.study(name, [small(seconds=1)], 1, resources={"gpus": 1})
    starts = [one for one in check.site.told(name) if one["kind"] == "start"]
    if starts and starts[0]["cuda"]:
        return True, ""
    return False, "torch sees no GPU" if starts else "the script did not start"
