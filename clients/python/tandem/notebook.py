"""How studies, trials and answers look in a notebook: small tables, without scripts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from typing import TYPE_CHECKING, Any, Optional

if TYPE_CHECKING:
    from .record import Recommendation, TrialRecord

_LEFT = "style='text-align:left'"


def study(view: Mapping[str, Any], url: str) -> str:
    """A study: its state, its trials, the best so far, and the way to its page."""
    progress = view.get("progress") or {}
    counts = ", ".join(f"{count} {state}" for state, count in (progress.get("trials") or {}).items() if count)
    best = progress.get("best")
    rows: list[tuple[str, Any]] = [("status", view["status"]), ("trials", counts or "none yet")]
    if best:
        rows.append((leading(best), f"{_number(best['value'])} (trial {best['number']})"))
        further = zip(view["definition"]["objective"][1:], (best.get("values") or ())[1:])
        rows += [(str(one.get("name") or one.get("metric")), _number(value)) for one, value in further]
        rows += [(name, value) for name, value in (best.get("params") or {}).items()]
    title = f'<a href="{escape(url, quote=True)}">{escape(str(view["name"]))}</a>'
    return _table(f"study {title}", rows)


def leading(best: Mapping[str, Any]) -> str:
    """What the leading trial's value is: with several objectives another trial may be better in each of them."""
    return f"best {'compromise: ' if best.get('values') else ''}{best['metric']}"


def trial(record: TrialRecord) -> str:
    """A trial: its state, its value and its parameters."""
    rows: list[tuple[str, Any]] = [("state", record.state), ("rung", record.rung), ("epochs", record.epochs)]
    if record.value is not None:
        rows.append(("value" if len(record.values) == 1 else "values", ", ".join(map(_number, record.values))))
    rows.append(("seconds", _number(record.seconds)))
    if record.energy_method:
        rows.append(("joules", f"{_number(record.joules)} ({record.energy_method})"))
    if record.reason:
        rows.append(("reason", record.reason))
    return _table(f"trial {record.number}", [*rows, *record.params.items()])


def recommendation(answer: Recommendation) -> str:
    """An answer: the parameters, their value, and how far to trust it."""
    if answer.number is None:
        return _table("recommendation", [("", "nothing was measured yet")])
    error = f" ± {_number(answer.standard_error)} (standard error)" if answer.standard_error is not None else ""
    rows: list[tuple[str, Any]] = [(answer.metric, f"{_number(answer.value)}{error} (trial {answer.number})")]
    rows += [*answer.params.items(), *answer.system.items()]
    return _table("recommendation", rows) + "".join(f"<p>{escape(note)}</p>" for note in answer.notes)


def _table(title: str, rows: Iterable[tuple[str, Any]]) -> str:
    body = "".join(
        f"<tr><th {_LEFT}>{escape(str(name))}</th><td {_LEFT}>{escape(str(value))}</td></tr>" for name, value in rows
    )
    return f"<table><caption {_LEFT}><b>{title}</b></caption>{body}</table>"


def _number(value: Optional[Any]) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
