"""The report of a check: rows with a verdict each, and figures beside them."""

from __future__ import annotations

import json
import platform
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

PASS, FAIL, SKIPPED, NOTE = "pass", "fail", "skipped", "note"


@dataclass
class Row:
    step: str
    asked: str
    seen: str
    by: str
    verdict: str
    reason: str = ""


class Report:
    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.step = "start"
        self.figures: dict[str, Any] = {}
        self.machine: dict[str, Any] = {"kernel": platform.release(), "python": platform.python_version()}
        self._began = time.time()
        self.seconds: dict[str, float] = {}

    def add(self, asked: str, seen: Any, by: str, verdict: Any, reason: str = "") -> None:
        """A row of the present step. The verdict is one of the four words, or whether it passed."""
        if not isinstance(verdict, str):
            verdict = PASS if verdict else FAIL
        row = Row(self.step, asked, str(seen), by, verdict, reason)
        self.rows.append(row)
        why = f" ({reason})" if reason else ""
        took = time.time() - self._began
        print(f"gpu-check: {took:5.0f} s  {verdict:7}  {self.step}: {asked}: {row.seen}{why}", flush=True)

    def count(self, verdict: str) -> int:
        return sum(row.verdict == verdict for row in self.rows)

    def code(self) -> int:
        if self.count(FAIL):
            return 1
        return 0 if self.count(PASS) else 3

    def markdown(self) -> str:
        lines = ["# GPU check", ""]
        lines += [f"- {name}: {value}" for name, value in self.machine.items()]
        lines += [
            f"- took {time.time() - self._began:.0f} s: "
            + ", ".join(f"{name} {seconds:.0f} s" for name, seconds in self.seconds.items())
        ]
        lines += [f"- {self.count(PASS)} passed, {self.count(FAIL)} failed, {self.count(SKIPPED)} skipped", ""]
        lines += ["| step | asked | seen | measured by | verdict |", "|---|---|---|---|---|"]
        for row in self.rows:
            verdict = row.verdict + (f": {row.reason}" if row.reason else "")
            lines.append(
                "| " + " | ".join(_cell(text) for text in (row.step, row.asked, row.seen, row.by, verdict)) + " |"
            )
        for name, figure in self.figures.items():
            if isinstance(figure, list) and figure and isinstance(figure[0], dict):
                lines += ["", f"## {name}", "", *_table(figure)]
        return "\n".join(lines) + "\n"

    def write(self, out: Path) -> None:
        (out / "report.md").write_text(self.markdown())
        document = {
            "machine": self.machine,
            "seconds": {**self.seconds, "all": time.time() - self._began},
            "rows": [asdict(row) for row in self.rows],
            "figures": self.figures,
        }
        (out / "report.json").write_text(json.dumps(document, indent=1, default=str) + "\n")


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "/").split())[:600]


def _table(rows: list[dict[str, Any]]) -> list[str]:
    names = list(dict.fromkeys(name for row in rows for name in row))
    lines = ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
    for row in rows:
        lines.append("| " + " | ".join(_cell(_shown(row.get(name, ""))) for name in names) + " |")
    return lines


def _shown(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
