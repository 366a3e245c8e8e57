"""Runs a script that is written for Optuna as it is, and with its import changed to tandem.optuna, and compares.

    TANDEM_SERVER=... TANDEM_TOKEN=... python bench/optuna/bridge.py --runs 5 quadratic.py

The script must leave its study in a global variable ``study``. Both ways run in turn, each time from scratch, with
nothing seeded: a run is a seed. For each number of trials it prints the median over the runs of the best value so far
(and the quartiles), after how many trials a run first is as good as the median of Optuna's ends, and how many
intermediate values were reported, which is what pruning saves.
"""

from __future__ import annotations

import argparse
import json
import re
import runpy
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Optional

CHANGED = ("import optuna\n", "import tandem.optuna as optuna\n")
SHOWN = (10, 20, 30, 50, 75, 100)


def run(script: str, path: Path, tandem: bool) -> dict[str, Any]:
    """One run of the script; its trials as values that can be compared."""
    if tandem:
        if script.count(CHANGED[0]) != 1:
            raise SystemExit(f"{path} does not have the one line {CHANGED[0]!r}")
        script = script.replace(*CHANGED)
    with tempfile.TemporaryDirectory() as folder:
        changed = Path(folder) / path.name
        changed.write_text(script)
        started = time.monotonic()
        study = runpy.run_path(str(changed), run_name="__main__")["study"]
    return {
        "way": "tandem" if tandem else "optuna",
        "seconds": time.monotonic() - started,
        "direction": study.direction.name.lower(),
        "values": [t.value if t.state.name == "COMPLETE" else None for t in study.trials],
        "pruned": sum(t.state.name == "PRUNED" for t in study.trials),
        "reported": sum(len(t.intermediate_values) for t in study.trials),
    }


def best_so_far(values: list[Optional[float]], minimize: bool) -> list[Optional[float]]:
    """After each trial the best of those that were completed; None before the first."""
    found: list[Optional[float]] = []
    best: Optional[float] = None
    for value in values:
        if value is not None and (best is None or (value < best if minimize else value > best)):
            best = value
        found.append(best)
    return found


def summary(runs: list[dict[str, Any]]) -> str:
    """The table."""
    minimize = runs[0]["direction"] == "minimize"
    curves: dict[str, list[list[Optional[float]]]] = {"optuna": [], "tandem": []}
    for one in runs:
        curves[one["way"]].append(best_so_far(one["values"], minimize))
    ends = [curve[-1] for curve in curves["optuna"] if curve and curve[-1] is not None]
    goal = statistics.median(ends)
    lines = ["| trials | Optuna, median (quartiles) | Tandem, median (quartiles) |", "|---|---|---|"]
    most = min(len(curve) for way in curves.values() for curve in way)
    for trials in [*(n for n in SHOWN if n < most), most]:
        cells = []
        for way in ("optuna", "tandem"):
            at = [v for curve in curves[way] if (v := curve[trials - 1]) is not None]
            low, middle, high = statistics.quantiles(at, n=4, method="inclusive") if len(at) > 1 else at * 3
            cells.append(f"{middle:.6g} ({low:.4g} to {high:.4g})")
        lines.append(f"| {trials} | {cells[0]} | {cells[1]} |")
    for way in ("optuna", "tandem"):
        reached = []
        for curve in curves[way]:
            there = [i for i, v in enumerate(curve, 1) if v is not None and (v <= goal if minimize else v >= goal)]
            reached.append(there[0] if there else None)
        known = sorted(n for n in reached if n is not None)
        middle = known[len(reached) // 2] if len(known) > len(reached) // 2 else None
        mine = [one for one in runs if one["way"] == way]
        lines.append(
            f"{way}: as good as the median of Optuna's ends ({goal:.6g}) after {middle or 'more than all'} trials "
            f"(median; all: {', '.join(str(n or 'never') for n in reached)}); "
            f"pruned {statistics.mean(o['pruned'] for o in mine):.0f}, "
            f"reports {statistics.mean(o['reported'] for o in mine):.0f}, "
            f"{statistics.mean(o['seconds'] for o in mine):.1f} s a run"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("script", type=Path, help="a script written for Optuna")
    parser.add_argument("--runs", type=int, default=5, help="of each way")
    parser.add_argument("--trials", type=int, help="so many trials in place of the script's n_trials")
    parser.add_argument("--way", choices=("optuna", "tandem"), help="only one of them, for a script that takes long")
    parser.add_argument("--out", type=Path, help="where to keep every run, a line of JSON each; those there count too")
    options = parser.parse_args()
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    script = options.script.read_text()
    if options.trials:
        script = re.sub(r"n_trials=\d+", f"n_trials={options.trials}", script)
    runs = []
    if options.out and options.out.exists():
        runs = [json.loads(line) for line in options.out.read_text().splitlines()]
    for number in range(options.runs):
        for way in ("optuna", "tandem"):
            if options.way not in (None, way):
                continue
            runs.append(run(script, options.script, way == "tandem"))
            print(f"run {number + 1}, {runs[-1]['way']}: {runs[-1]['seconds']:.1f} s", file=sys.stderr, flush=True)
            if options.out:
                with options.out.open("a") as file:
                    file.write(json.dumps(runs[-1]) + "\n")
    if {one["way"] for one in runs} == {"optuna", "tandem"}:
        print(summary(runs))


if __name__ == "__main__":
    main()
