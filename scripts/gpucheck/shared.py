"""Several trials on one GPU."""

from __future__ import annotations

import time
from typing import Any

from .check import MEMORY_OFF, SCRIPT, SMI, TANDEM, Check, gib, small, smi
from .report import NOTE, SKIPPED


class Apps:
    """What nvidia-smi lists of processes, and how many trials the pool shows on GPUs, every two seconds."""

    def __init__(self, check: Check) -> None:
        self._check, self._last = check, 0.0
        self._lists: list[tuple[float, dict[int, float]]] = []
        self.most = 0

    def __call__(self) -> None:
        if time.time() - self._last < 2:
            return
        self._last = time.time()
        rows = smi("--query-compute-apps=pid,used_memory", timeout=5)
        if rows is not None:
            told = [row for row in rows if len(row) == 2 and row[0].isdigit() and row[1].replace(".", "").isdigit()]
            self._lists.append((time.time(), {int(pid): float(held) for pid, held in told}))
        machines = self._check.site.ask("/api/v1/pool")["machines"]
        self.most = max(self.most, sum(1 for one in machines for run in one.get("running") or [] if run.get("gpu")))

    def compare(self, name: str, details: list[dict[str, Any]]) -> None:
        for number, detail in enumerate(details):
            begin, end, pids = self._check.span(name, number)
            sums = [sum(listed.get(pid, 0) for pid in pids) for at, listed in self._lists if begin <= at <= end]
            most, told = max(sums, default=0), (detail["trial"].get("gpu_use") or {}).get("memory_bytes", 0) / 2**20
            if most:
                near = abs(told - most) <= max(MEMORY_OFF * most, 256)
                seen = f"{told:.0f} MiB; nvidia-smi {most:.0f} MiB"
                self._check.add(f"memory of trial {number}", seen, "tandem and nvidia-smi", near)
            else:
                why = f"{len(self._lists)} lists were taken"
                self._check.add(f"memory of trial {number}", "nvidia-smi does not list it", SMI, SKIPPED, why)


def together(check: Check, name: str) -> float:
    """Seconds in which all three trials trained at once, by their own notes."""
    spans = [check.span(name, number) for number in range(3)]
    return min(end for _, end, _ in spans) - max(begin for begin, _, _ in spans)


def share(check: Check) -> None:
    """Three trials with a number each."""
    name, apps = "share", Apps(check)
    trials = [small(duty=0.25, hold_gib=1 + number) for number in range(3)]
    details = check.study(name, trials, 4, watch=apps, resources={"gpu_share": 0.3, **check.cores})
    seconds = together(check, name)
    seen = f"{seconds:.1f} s together; the pool showed {apps.most} at once"
    check.add("three trials train at once on one GPU", seen, SCRIPT, seconds > 2)
    for detail in details:
        check.used(name, detail, alone=False)
    apps.compare(name, details)


def auto(check: Check) -> None:
    """Three trials of which nothing is known: the first is observed alone for a minute."""
    name, apps = "auto", Apps(check)
    trials = [small(seconds=18, duty=0.25)] + [small(seconds=2.5, duty=0.25, hold_gib=2) for _ in range(2)]
    details = check.study(name, trials, 5, watch=apps, resources={"gpu_share": "auto", **check.cores})
    spans = [check.span(name, number) for number in range(3)]
    alone = min(spans[1][0], spans[2][0]) - spans[0][0]
    check.add(
        "the first has the GPU to itself for a minute", f"the next trained after {alone:.0f} s", SCRIPT, alone >= 55
    )
    seconds = together(check, name)
    seen = f"all three trained {seconds:.1f} s together; the pool showed {apps.most} at once"
    check.add("then the others join it", seen, SCRIPT, seconds > 2)
    for number, detail in enumerate(details):
        expected = detail["trial"].get("gpu_share") or {}
        busy, held = expected.get("utilization", 0), gib(expected.get("memory_bytes"))
        seen = f"{busy:.2f} busy, {held}: {expected.get('basis', 'no basis')}"
        check.add(f"what trial {number} was expected to use", seen, TANDEM, NOTE)
    check.used(name, details[0], alone=False)
    for detail in details[1:]:
        check.used(name, detail, alone=False)
    apps.compare(name, details)


def memory(check: Check) -> None:
    """One runs out of memory beside two others."""
    name, part = "memory", 0.25
    trials = [small(seconds=7, duty=0.25, hold_gib=4) for _ in range(2)] + [small("hog", seconds=2, duty=0.25)]
    details = check.study(name, trials, 4, resources={"gpu_share": part, **check.cores})
    hog = details[2]["trial"]
    asks = [one for one in check.site.told(name, 2) if one["kind"] == "asks"]
    seen = "; ".join(f"{gib(one['bytes'])} with {gib(one['free'])} free" for one in asks)
    check.add("one asks for more than is left", seen or "it never asked", SCRIPT, bool(asks))
    shortage, reserved = hog.get("gpu_shortage") or {}, part * check.driver.memory()[0]
    check.add("that is seen as out of GPU memory, once", shortage, TANDEM, shortage.get("times") == 1)
    check.add("it uses no retry", f"{hog['failures']} failures", TANDEM, hog["failures"] == 0)
    need, again = shortage.get("need_bytes") or 0, (hog.get("gpu_share") or {}).get("memory_bytes", 0)
    seen = f"{gib(need)} instead of {gib(reserved)}; its second run has {gib(again)}"
    check.add("more memory is reserved for it", seen, TANDEM, need > reserved)
    events = [str(one.get("reason") or one.get("detail") or "") for one in details[2]["events"]]
    words = next((text for text in events if "memory" in text), "")
    check.add("an event tells the reason", words[:300] or "none does", TANDEM, bool(words))
    begin, end, _ = check.span(name, 2)
    spans = [check.span(name, number) for number in (0, 1)]
    beside = min(min(end, last) - max(begin, first) for first, last, _ in spans)
    others = [one["trial"] for one in details[:2]]
    leases = [one["lease_epoch"] for one in others]
    seen = f"its second run trained {max(0, beside):.1f} s with both; they had {leases} leases"
    survived = all(one["state"] == "completed" and one["lease_epoch"] == 1 for one in others)
    check.add("it comes back, and the others train on", seen, "the training scripts and tandem", survived)
