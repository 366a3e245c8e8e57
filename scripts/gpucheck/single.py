"""Trainings that have the GPU to themselves: profiles, energy, tuning of the system, two processes of one trial."""

from __future__ import annotations

import collections
import math
import statistics
from typing import Any

from .check import BOTH, CHECK, SCRIPT, TANDEM, Check, small
from .report import SKIPPED
from .site import Trouble

PROFILED = (
    "gpu.core_utilization",
    "gpu.memory_used_bytes",
    "gpu.power_watts",
    "gpu.core_clock_mhz",
    "gpu.temperature_celsius",
    "gpu.memory_utilization",
    "gpu.memory_clock_mhz",
    "gpu.pcie_receive_bytes_per_second",
    "gpu.pcie_send_bytes_per_second",
    "gpu.throttled",
)

ENERGY_OFF = 0.05
"""How far the mean ratio of joules may be from 1 by the driver's counter; twice that for sums of samples."""

KNOBS = {"loader_workers": {"values": [0, 4]}, "precision": {"values": ["fp32", "bf16"]}, "objective": "seconds"}

PROBED_MOST = 0.1
"""The largest part of a known script's epochs that may probe."""


def single(check: Check) -> None:
    name, site = "single", check.site
    details = check.study(name, [small(seconds=3, hold_gib=2), small(seconds=3, hold_gib=4)], 5, resources={"gpus": 1})
    best = (site.json("study", "recommend", name).get("best") or {}).get("number")
    check.add("there is a recommendation", f"trial {best}", TANDEM, best is not None)
    starts = [one for one in site.told(name) if one["kind"] == "start"]
    if not starts:
        raise Trouble("no script has started")
    visible, counts = {one["visible"] for one in starts}, {one.get("count", 1) for one in starts}
    seen = f"CUDA_VISIBLE_DEVICES {visible}, torch counts {counts} of {starts[0].get('name', 'CPU')}"
    check.add(
        "each script sees exactly its GPU", seen, SCRIPT, visible in ({"0"}, {check.driver.uuid()}) and counts == {1}
    )
    profiles(check, details)
    for detail in details:
        check.used(name, detail, alone=True)
    check.logs()


def host(report: dict[str, Any]) -> dict[str, Any]:
    return (report.get("profile") or {}).get("host") or {}


def profiles(check: Check, details: list[dict[str, Any]]) -> None:
    reports = [(detail["trial"]["number"], report) for detail in details for report in detail["reports"]]
    lacking = {name for _, report in reports for name in PROFILED if name not in host(report)}
    check.add(
        "each profile has the GPU's metrics", f"without {sorted(lacking)}" if lacking else "all", TANDEM, not lacking
    )
    values = [(name, value) for _, report in reports for name, value in host(report).items()]
    values += [("joules", report["energy"]["joules"]) for _, report in reports]
    strange = {name for name, value in values if not isinstance(value, (int, float)) or not math.isfinite(value)}
    check.add("all values are finite numbers", f"not {sorted(strange)}" if strange else "yes", TANDEM, not strange)
    busy = [host(report)[PROFILED[0]] for _, report in reports if report["epoch"] > 1 and PROFILED[0] in host(report)]
    if busy:
        mean = statistics.mean(busy)
        check.add(
            "the GPU was busy while it trained",
            f"{mean:.2f} of the time by the profiles",
            TANDEM,
            check.on_gpu(mean > 0.5),
        )
    check.report.figures["Profiles of the single trainings"] = [
        {"trial": number, "epoch": one["epoch"], "seconds": one["seconds"], "joules": one["energy"]["joules"]}
        | {name: host(one).get(name, "-") for name in PROFILED[:5]}
        for number, one in reports
    ]


def energy(check: Check) -> None:
    """The joules of the step single against the driver's, by epoch, without the first, which has the start in it."""
    rows = []
    for number in range(2):
        ends = {one["epoch"]: one["at"] for one in check.site.told("single", number) if one["kind"] == "epoch"}
        for report in check.site.json("study", "trial", "single", str(number))["reports"]:
            epoch, watts = report["epoch"], host(report).get("gpu.power_watts")
            if epoch - 1 in ends and epoch in ends:
                begin, end = ends[epoch - 1], ends[epoch]
                rows.append(
                    {
                        "trial": number,
                        "epoch": epoch,
                        "seconds": end - begin,
                        "tandem": report["energy"]["joules"],
                        "counter": check.sampler.counted(begin, end),
                        "samples": check.sampler.integral(begin, end),
                        "samples of the mean": check.sampler.integral(begin, end, instant=False),
                        "profile": watts and watts * report["seconds"],
                        "method": report["energy"]["method"],
                    }
                )
    check.report.figures["Joules by epoch"] = rows
    if not rows:
        raise Trouble("there is no epoch to compare: the step single did not come to its end")
    method = rows[0]["method"]
    if "nvml" not in method or "(CPU)" not in method:
        why = "the sum holds the CPU's measured joules" if "nvml" in method else ""
        check.add("joules are the GPU's, by the driver", method, TANDEM, SKIPPED if why else False, why)
        return
    for name, key, most in (
        ("the driver's energy counter", "counter", ENERGY_OFF),
        ("ten samples of power a second", "samples", 2 * ENERGY_OFF),
        ("the profile's power times seconds", "profile", 2 * ENERGY_OFF),
    ):
        ratios = [row["tandem"] / row[key] for row in rows if row[key]]
        if len(ratios) < 2:
            check.add(f"joules against {name}", "not told", BOTH, SKIPPED, str(check.sampler.refusals))
            continue
        mean, spread = statistics.mean(ratios), statistics.stdev(ratios)
        seen = f"ratio {mean:.3f} ± {spread:.3f}, {min(ratios):.3f} to {max(ratios):.3f} in {len(ratios)} epochs"
        check.add(f"joules against {name}", seen, BOTH, abs(mean - 1) <= most)


def tuned(check: Check, work: str) -> None:
    """A net whose loader workers and precision are tuned while it trains."""
    epochs = 8 if check.quick else 14
    detail = check.study(work, [small(work)], epochs, resources={"gpus": 1}, system=KNOBS)[0]
    by: dict[str, list[float]] = {}
    for report in detail["reports"]:
        if report["epoch"] > 1:
            by.setdefault(shown(report.get("system")), []).append(report["seconds"])
    check.report.figures[f"System tuning of the {work}"] = epochs_of(detail)
    if not by:
        raise Trouble("no epoch after the first was reported")
    medians = {setting: statistics.median(seconds) for setting, seconds in by.items()}
    seen = "; ".join(f"{setting}: {medians[setting]:.2f} s (median of {len(by[setting])})" for setting in medians)
    check.add("several settings are measured", seen, TANDEM, check.on_gpu(len(medians) >= 3))
    setting = detail["trial"].get("setting") or {}
    final, fastest = shown(setting.get("configuration")), min(medians, key=lambda one: medians[one])
    loss = medians.get(final, math.inf) / medians[fastest] - 1
    seen = f"{final} ({setting.get('phase')}); fastest {fastest}, by {100 * loss:.0f} %"
    check.add("it ends with the fastest, within 5 %", seen, CHECK, check.on_gpu(loss <= 0.05), setting.get("why", ""))
    first, last = (detail["reports"][at]["metrics"]["accuracy"] for at in (0, -1))
    check.add("the net learns", f"accuracy {first:.2f} to {last:.2f}", SCRIPT, check.on_gpu(last > 0.2))


def epochs_of(detail: dict[str, Any]) -> list[dict[str, Any]]:
    """With what each epoch of a trial ran, why, and what it took."""
    return [
        {
            "epoch": report["epoch"],
            "setting": shown(report.get("system")),
            "phase": report.get("system_phase", ""),
            "seconds": report["seconds"] - (report.get("setup_seconds") or 0),
            "joules": report["energy"]["joules"],
            "accuracy": report["metrics"]["accuracy"],
            "why": report.get("system_why", ""),
        }
        for report in detail["reports"]
    ]


def shown(configuration: Any) -> str:
    return ", ".join(f"{name}={value}" for name, value in sorted((configuration or {}).items()) if name != "gpus")


def resnet(check: Check) -> None:
    tuned(check, "resnet")


def transformer(check: Check) -> None:
    tuned(check, "transformer")


def known(check: Check) -> None:
    """The training of the step transformer in a second study, which is to go on with what that found."""
    if not check.site.told("transformer"):
        raise Trouble("nothing is known yet: the step transformer comes first")
    epochs = 10 if check.quick else 20
    detail = check.study("known", [small("transformer")], epochs, resources={"gpus": 1}, system=KNOBS)[0]
    rows = epochs_of(detail)
    check.report.figures["Second study of the transformer"] = rows
    count = collections.Counter(row["phase"] for row in rows)
    seen = ", ".join(f"{phase or 'no phase'} {times}" for phase, times in count.most_common())
    few = count["probing"] <= PROBED_MOST * len(rows)
    check.add(f"at most {PROBED_MOST:.0%} of a known script's epochs probe", seen, TANDEM, check.on_gpu(few))


def ddp(check: Check) -> None:
    """Two processes of one trial on one GPU."""
    detail = check.study("ddp", [small("ddp")], 12, resources={"gpu_share": 0.5, **check.cores})[0]
    ranks = [one for one in check.site.told("ddp") if one["kind"] == "rank"]
    seen = f"{len(ranks)} processes, {ranks[0]['how'] if ranks else ''}"
    check.add("two processes train one model", seen, SCRIPT, len({one["pid"] for one in ranks}) == 2)
    epochs = [one["epoch"] for one in detail["reports"]]
    check.add("there is one report an epoch", epochs, TANDEM, epochs == list(range(1, 13)))
    check.used("ddp", detail, alone=True)


def settings(check: Check) -> None:
    """Settings of the GPU, only where its owner allows that."""
    driver = check.driver
    if not check.change:
        check.add("power limits and clocks", "not touched", CHECK, SKIPPED, "only with --change-settings")
        return
    low, high = driver.limit_bounds()
    before, clock = driver.limit_milliwatts(), driver.highest_clock()
    watts, clocks = [before // 1000, int(low + 0.25 * (high - low)) // 1000], [clock, int(0.6 * clock)]
    knobs = {"gpu_power_watts": {"values": watts}, "gpu_clock_mhz": {"values": clocks}, "objective": "joules"}
    check.study("settings", [small(seconds=2)], 8, resources={"gpus": 1}, system=knobs)
    begin, end, _ = check.span("settings", 0)
    moments = check.sampler.between(begin, end)
    seen = {round(one.limit) for one in moments if one.limit}
    check.add("power limits that were in force", f"{sorted(seen)} W of {watts} W", "NVML", set(watts) <= seen)
    fast = sorted({one.clock for one in moments if one.clock})
    check.add(
        "clocks that were in force",
        f"{fast[0]} to {fast[-1]} MHz, of {clocks}",
        "NVML",
        check.on_gpu(fast[0] <= clocks[1]),
    )
    after = driver.limit_milliwatts()
    check.add("the power limit is put back", f"{after / 1000:g} W, before {before / 1000:g} W", "NVML", after == before)
