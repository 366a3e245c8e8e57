"""Results that were measured elsewhere, as a study begins with them."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Optional, Union

from .metrics import as_number, encode

WarmStart = Union[Sequence[Mapping[str, Any]], str, "os.PathLike[str]", Any]
"""A list of dictionaries, the path of a CSV file, or an Optuna study."""

MAX_RESULTS = 2000

_PREFIX = "params_"


def objectives_of(definition: Any) -> list[tuple[str, str]]:
    """Metric and direction of each objective: of a study file's content, or of YAML text as far as it shows them."""
    if isinstance(definition, Mapping):
        given = definition.get("objective") or []
        listed = [given] if isinstance(given, Mapping) else given
        return [(str(one.get("metric") or one.get("name") or ""), str(one.get("direction", ""))) for one in listed]
    text = _objective_of(str(definition))
    metrics = re.findall(r"""\bmetric["']?:[ \t]*["']?([A-Za-z_][A-Za-z0-9_.]*)""", text)
    directions = re.findall(r"""\bdirection["']?:[ \t]*["']?(maximize|minimize)""", text)
    return list(zip(metrics, directions)) if len(metrics) == len(directions) else []


def _objective_of(text: str) -> str:
    """What a study file in YAML says under objective, without comments; all of it where that cannot be told."""
    block = re.search(r"""^["']?objective["']?:.*(?:\n(?:[ \t\-#}\]].*)?)*""", text, re.MULTILINE)
    return re.sub(r"(?:^|(?<=\s))#.*", "", block.group() if block else text, flags=re.MULTILINE)


def observations(warm_start: WarmStart, objectives: list[tuple[str, str]]) -> list[dict[str, Any]]:
    """What a study can begin with; ValueError says what cannot be read."""
    found = read(warm_start, objectives)
    if len(found) > MAX_RESULTS:
        raise ValueError(f"warm_start has {len(found)} results: a study begins with at most {MAX_RESULTS}; choose some")
    return found


def read(warm_start: WarmStart, objectives: list[tuple[str, str]]) -> list[dict[str, Any]]:
    """The results, each with params, values (one for each objective) and what else is known."""
    if isinstance(warm_start, (str, os.PathLike)):
        found = _from_csv(Path(warm_start), objectives)
    elif hasattr(warm_start, "trials") and hasattr(warm_start, "directions"):
        found = _from_optuna(warm_start, objectives)
    else:
        found = [_from_mapping(i, one) for i, one in enumerate(warm_start)]
    if not found:
        raise ValueError("warm_start has no result in it")
    return found


def _from_mapping(i: int, given: Mapping[str, Any]) -> dict[str, Any]:
    known = {"params", "value", "values", "epochs", "data_fraction", "source"}
    if "params" not in given or ("value" in given) == ("values" in given) or not set(given) <= known:
        raise ValueError(
            f"warm_start[{i}] must have params and a value (or values, one for each objective), and may have epochs, "
            f"data_fraction and source; it has {', '.join(sorted(map(str, given)))}"
        )
    values = [given["value"]] if "value" in given else given["values"]
    result = {"params": dict(given["params"]), "values": _encoded(values)}
    result.update({name: given[name] for name in ("epochs", "data_fraction", "source") if given.get(name) is not None})
    return result


def _encoded(values: Iterable[Any]) -> list[Union[float, str]]:
    return [encode(as_number("value", value)) for value in values]


def _from_csv(path: Path, objectives: list[tuple[str, str]]) -> list[dict[str, Any]]:
    if not objectives:
        raise ValueError(
            f"{path}: the study file does not show its objective so that it can be read here: give warm_start as a list"
        )
    with path.open(newline="", encoding="utf-8-sig") as file:
        reader = csv.DictReader(file)
        header = list(reader.fieldnames or [])
        values = [_value_column(path, header, metric, len(objectives)) for metric, _ in objectives]
        prefixed = [name for name in header if name.startswith(_PREFIX)]
        others = {*values, "epochs", "data_fraction", "number", "state"}
        params = prefixed or [name for name in header if name not in others]
        found = []
        for row in reader:
            if all((row[name] or "").strip() for name in values):
                found.append(_from_row(row, values, params, path.name))
    return found


def _value_column(path: Path, header: Sequence[str], metric: str, objectives: int) -> str:
    names = [metric, f"value_{metric}", f"metrics_{metric}", *(["value"] if objectives == 1 else [])]
    for name in names:
        if name in header:
            return name
    raise ValueError(f"{path}: no column is named {metric}, the study's objective; it has {', '.join(header)}")


def _from_row(row: Mapping[str, str], values: Sequence[str], params: Sequence[str], source: str) -> dict[str, Any]:
    result: dict[str, Any] = {
        "params": {
            name[len(_PREFIX) :] if name.startswith(_PREFIX) else name: _scalar(row[name].strip())
            for name in params
            if (row[name] or "").strip()
        },
        "values": _encoded(float(row[name]) for name in values),
        "source": source,
    }
    for name in ("epochs", "data_fraction"):
        if (row.get(name) or "").strip():
            result[name] = float(row[name])
    return result


def _scalar(text: str) -> Union[bool, int, float, str]:
    if text in ("true", "True", "false", "False"):
        return text.lower() == "true"
    for kind in (int, float):
        try:
            number: Union[int, float] = kind(text)
        except ValueError:
            continue
        if number == number and abs(number) != float("inf"):
            return number
    return text


def _from_optuna(study: Any, objectives: list[tuple[str, str]]) -> list[dict[str, Any]]:
    theirs = [direction.name.lower() for direction in study.directions]
    ours = [direction for _, direction in objectives]
    if ours and theirs != ours:
        raise ValueError(
            f"the Optuna study is to {', '.join(theirs)}, and this study is to {', '.join(ours)}: "
            "the values do not mean the same"
        )
    found = []
    for trial in study.trials:
        measured = _measured(trial, len(theirs))
        if measured is not None and trial.params:
            source = f"Optuna study {study.study_name}"[:128]
            found.append({"params": dict(trial.params), "source": source, **measured})
    return found


def _measured(trial: Any, objectives: int) -> Optional[dict[str, Any]]:
    """The values of a trial that completed; of one that was pruned the last intermediate one, with its epoch."""
    if trial.state.name == "COMPLETE":
        return {"values": _encoded(trial.values)}
    steps = sorted(trial.intermediate_values)
    if trial.state.name == "PRUNED" and objectives == 1 and steps:
        epochs = steps[-1] + (1 if steps[0] <= 0 else 0)
        return {"values": _encoded([trial.intermediate_values[steps[-1]]]), "epochs": max(epochs, 1)}
    return None
