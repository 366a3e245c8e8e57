"""The check's own door to the NVIDIA driver: it shares nothing with Tandem's."""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Optional

PLACES = (
    "libnvidia-ml.so.1",
    "/usr/local/nvidia/lib64/libnvidia-ml.so.1",
    "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1",
    "/usr/lib64/libnvidia-ml.so.1",
)

INSTANT_POWER = 186  # NVML_FI_DEV_POWER_INSTANT


class Absent(Exception):
    """No driver answers here."""


class _Process(ctypes.Structure):
    _fields_ = [("pid", ctypes.c_uint), ("bytes", ctypes.c_ulonglong), ("gi", ctypes.c_uint), ("ci", ctypes.c_uint)]


class _Sample(ctypes.Structure):
    _fields_ = [("pid", ctypes.c_uint), ("at", ctypes.c_ulonglong)] + [
        (name, ctypes.c_uint) for name in ("cores", "memory", "encoder", "decoder")
    ]


class _Field(ctypes.Structure):
    _fields_ = [
        ("id", ctypes.c_uint),
        ("scope", ctypes.c_uint),
        ("at", ctypes.c_longlong),
        ("latency", ctypes.c_longlong),
        ("type", ctypes.c_uint),
        ("code", ctypes.c_int),
        ("value", ctypes.c_ulonglong),
    ]


class Driver:
    """NVML, by the names and structures of NVIDIA's nvml.h."""

    def __init__(self, path: str = "") -> None:
        tried = []
        for place in (path,) if path else PLACES:
            try:
                self._library = ctypes.CDLL(place)
                self.path = place
                break
            except OSError as error:
                tried.append(str(error))
        else:
            raise Absent("no NVIDIA driver: " + "; ".join(tried[:1]))
        code = self._library.nvmlInit_v2()
        if code:
            raise Absent(f"no NVIDIA driver that works: nvmlInit_v2 answers {code}")
        count = ctypes.c_uint()
        self._call("nvmlDeviceGetCount_v2", ctypes.byref(count))
        if not count.value:
            raise Absent("no NVIDIA GPU: the driver lists none")
        self.count = count.value
        handle = ctypes.c_void_p()
        self._call("nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(0), ctypes.byref(handle))
        self._device = handle

    def _call(self, name: str, *arguments: Any) -> None:
        function = getattr(self._library, name, None)
        code = 13 if function is None else function(*arguments)
        if code:
            raise OSError(code, f"{name} answers {code}")

    def _text(self, name: str, *before: Any) -> str:
        buffer = ctypes.create_string_buffer(96)
        self._call(name, *before, buffer, ctypes.c_uint(96))
        return buffer.value.decode(errors="replace")

    def name(self) -> str:
        return self._text("nvmlDeviceGetName", self._device)

    def uuid(self) -> str:
        return self._text("nvmlDeviceGetUUID", self._device)

    def driver(self) -> str:
        return self._text("nvmlSystemGetDriverVersion")

    def _number(self, name: str, kind: Any = ctypes.c_uint) -> int:
        value = kind()
        self._call(name, self._device, ctypes.byref(value))
        return int(value.value)

    def millijoules(self) -> int:
        return self._number("nvmlDeviceGetTotalEnergyConsumption", ctypes.c_ulonglong)

    def milliwatts(self) -> int:
        return self._number("nvmlDeviceGetPowerUsage")

    def limit_milliwatts(self) -> int:
        return self._number("nvmlDeviceGetPowerManagementLimit")

    def clock(self) -> int:
        value = ctypes.c_uint()
        self._call("nvmlDeviceGetClockInfo", self._device, ctypes.c_int(1), ctypes.byref(value))
        return value.value

    def highest_clock(self) -> int:
        value = ctypes.c_uint()
        self._call("nvmlDeviceGetMaxClockInfo", self._device, ctypes.c_int(1), ctypes.byref(value))
        return value.value

    def limit_bounds(self) -> tuple[int, int]:
        low, high = ctypes.c_uint(), ctypes.c_uint()
        self._call("nvmlDeviceGetPowerManagementLimitConstraints", self._device, ctypes.byref(low), ctypes.byref(high))
        return low.value, high.value

    def instant_milliwatts(self) -> int:
        """The power of this moment; nvmlDeviceGetPowerUsage is a mean over a second on many GPUs."""
        one = _Field(id=INSTANT_POWER)
        self._call("nvmlDeviceGetFieldValues", self._device, ctypes.c_int(1), ctypes.byref(one))
        if one.code:
            raise OSError(one.code, "the power of this moment is not told")
        return int(one.value) if one.type != 1 else int(one.value & 0xFFFFFFFF)

    def utilization(self) -> int:
        pair = (ctypes.c_uint * 2)()
        self._call("nvmlDeviceGetUtilizationRates", self._device, pair)
        return pair[0]

    def memory(self) -> tuple[int, int]:
        """Total and used bytes, the driver's own part among the latter."""
        three = (ctypes.c_ulonglong * 3)()
        self._call("nvmlDeviceGetMemoryInfo", self._device, three)
        return three[0], three[2]

    def processes(self) -> dict[int, int]:
        """The bytes that each computing process holds; -1 where the driver does not tell."""
        room = 256
        listed = (_Process * room)()
        count = ctypes.c_uint(room)
        self._call("nvmlDeviceGetComputeRunningProcesses_v3", self._device, ctypes.byref(count), listed)
        return {one.pid: -1 if one.bytes == 2**64 - 1 else one.bytes for one in listed[: count.value]}

    def shares(self, since_us: int) -> list[tuple[int, int, int]]:
        """Pid, time in microseconds and percent of the cores' time of what ran since a time: as the driver answers."""
        room = 1024
        listed = (_Sample * room)()
        count = ctypes.c_uint(room)
        try:
            self._call(
                "nvmlDeviceGetProcessUtilization",
                self._device,
                listed,
                ctypes.byref(count),
                ctypes.c_ulonglong(since_us),
            )
        except OSError as error:
            if error.errno == 6:  # nothing ran
                return []
            raise
        return [(one.pid, one.at, one.cores) for one in listed[: count.value]]


@dataclass
class Moment:
    """One look at the GPU. What the driver did not tell is None or empty."""

    at: float
    watts: Optional[float] = None
    instant: Optional[float] = None
    joules: Optional[float] = None
    utilization: Optional[float] = None
    used: Optional[int] = None
    limit: Optional[float] = None
    clock: Optional[int] = None
    processes: dict[int, int] = field(default_factory=dict)
    shares: dict[int, float] = field(default_factory=dict)


class Sampler(threading.Thread):
    """Looks at the GPU ten times a second for as long as the check runs."""

    def __init__(self, driver: Driver, every: float = 0.1) -> None:
        super().__init__(daemon=True)
        self._driver, self._every = driver, every
        self.moments: list[Moment] = []
        self.refusals: dict[str, str] = {}
        self._never: set[str] = set()
        self._over = threading.Event()
        self.strange = 0
        """Samples of processes that are older than was asked for, or above 100 percent."""
        self.raw: list[str] = []
        """What the driver answered of processes' shares, as it came: pid, age in seconds, percent."""

    def stop(self) -> None:
        self._over.set()
        self.join(timeout=5)

    def run(self) -> None:
        with contextlib.suppress(OSError):
            os.nice(-5)
        while not self._over.wait(self._every):
            self.moments.append(self._look())

    def _look(self) -> Moment:
        driver, now = self._driver, Moment(time.time())

        def ask(name: str, function: Any, *arguments: Any) -> Any:
            if name in self._never:
                return None
            try:
                return function(*arguments)
            except OSError as error:
                self.refusals[name] = str(error)
                if error.errno in (3, 13):  # not supported, no such function
                    self._never.add(name)
                return None

        def scaled(value: Optional[int], by: float) -> Optional[float]:
            return None if value is None else value * by

        now.joules = scaled(ask("energy counter", driver.millijoules), 1e-3)
        now.watts = scaled(ask("power", driver.milliwatts), 1e-3)
        now.instant = scaled(ask("power of the moment", driver.instant_milliwatts), 1e-3)
        now.utilization = scaled(ask("utilization", driver.utilization), 0.01)
        memory = ask("memory", driver.memory)
        now.used = memory[1] if memory else None
        now.limit = scaled(ask("power limit", driver.limit_milliwatts), 1e-3)
        now.clock = ask("clock", driver.clock)
        now.processes = ask("processes", driver.processes) or {}
        since = int((now.at - 1) * 1e6)
        found: dict[int, tuple[int, int]] = {}
        answered = ask("utilization of processes", driver.shares, since) or []
        if answered and len(self.raw) < 6000:
            ages = " ".join(f"{pid}:{now.at - at / 1e6:.2f}:{percent}" for pid, at, percent in answered)
            self.raw.append(f"{now.at:.2f},{now.utilization},{ages}")
        for pid, at, percent in answered:
            if at <= since or percent > 100:
                self.strange += 1
            elif at >= found.get(pid, (0, 0))[0]:
                found[pid] = at, percent
        now.shares = {pid: percent / 100 for pid, (_, percent) in found.items()}
        return now

    def between(self, begin: float, end: float) -> list[Moment]:
        return [one for one in list(self.moments) if begin <= one.at <= end]

    def counted(self, begin: float, end: float) -> Optional[float]:
        """Joules by the driver's energy counter between two times, straight lines drawn between its readings."""
        first, last = self._joules_at(begin), self._joules_at(end)
        return None if first is None or last is None else last - first

    def _joules_at(self, at: float) -> Optional[float]:
        before = after = None
        for one in list(self.moments):
            if one.joules is None:
                continue
            if one.at <= at:
                before = one
            elif after is None:
                after = one
        if before is None or after is None:
            return None
        part = (at - before.at) / (after.at - before.at)
        return before.joules + part * (after.joules - before.joules)

    def integral(self, begin: float, end: float, instant: bool = True) -> Optional[float]:
        """Joules by adding up power, sample by sample."""
        points = []
        for one in list(self.moments):
            watts = one.instant if instant and one.instant is not None else one.watts
            if watts is not None:
                points.append((one.at, watts))
        total, covered = 0.0, 0.0
        for (left, low), (right, high) in zip(points, points[1:]):
            begin_here, end_here = max(left, begin), min(right, end)
            if end_here > begin_here and right - left < 2:
                total += (end_here - begin_here) * (low + high) / 2
                covered += end_here - begin_here
        return total if covered > 0.9 * (end - begin) else None

    def write(self, path: Path) -> None:
        """As CSV, one line a look."""
        with path.open("w", encoding="utf-8") as file:
            file.write("time,watts,instant_watts,joules,utilization,used_mib,limit_watts,clock_mhz,processes\n")
            for one in list(self.moments):
                who = " ".join(
                    f"{pid}:{held >> 20 if held >= 0 else '?'}:{one.shares.get(pid, 0):.2f}"
                    for pid, held in sorted(one.processes.items())
                )
                values = [f"{one.at:.3f}"] + [
                    "" if value is None else f"{value:.3f}".rstrip("0").rstrip(".")
                    for value in (
                        one.watts,
                        one.instant,
                        one.joules,
                        one.utilization,
                        None if one.used is None else one.used / 2**20,
                    )
                ]
                values += [
                    "" if one.limit is None else f"{one.limit:g}",
                    "" if one.clock is None else str(one.clock),
                    who,
                ]
                file.write(",".join(values) + "\n")
