"""Measured values, as numbers here and as JSON on the wire.

NaN and the infinities are values like any other: a diverged trial says so. JSON
has no numbers for them, so they travel as "NaN", "Infinity" and "-Infinity".
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, SupportsFloat, Union

from .names import did_you_mean

_WORDS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def as_number(name: str, value: SupportsFloat) -> float:
    """The value as a float: ints, floats, numpy and torch scalars; text and arrays are refused."""
    if isinstance(value, (str, bytes)):
        raise TypeError(f"metric {name!r} must be a number, not the text {value!r}")
    try:
        return float(value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(f"metric {name!r} must be one number, not {type(value).__name__}: {error}") from error


def encode(value: float) -> Union[float, str]:
    """The JSON form of a value."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return value


def encode_all(values: Mapping[str, float]) -> dict[str, Union[float, str]]:
    """The JSON form of named values."""
    return {name: encode(value) for name, value in values.items()}


def decode(value: Any) -> float:
    """A value from JSON."""
    if isinstance(value, str):
        if value not in _WORDS:
            raise ValueError(f"{value!r} is not a number")
        return _WORDS[value]
    return float(value)


def decode_all(values: Any) -> dict[str, float]:
    """Named values from JSON; none for an absent object."""
    return {str(name): decode(value) for name, value in (values or {}).items()}


def decode_list(values: Iterable[Any]) -> list[float]:
    """Values from JSON, in order."""
    return [decode(value) for value in values]


def require(objectives: Iterable[str], values: Mapping[str, float]) -> None:
    """Raise if an objective's metric is missing from the last report of a budget."""
    lack = lacking(objectives, values)
    if lack:
        raise ValueError(f"the last epoch of the budget must report every objective: {lack}")


def lacking(objectives: Iterable[str], values: Mapping[str, float]) -> str:
    """What to say early of a report without an objective, which only a budget's last one must have; empty: nothing."""
    for name in objectives:
        if name not in values:
            hint = (
                " (the server knows it if the study file has inference, docs/edge.md)"
                if name.startswith("edge.")
                else ""
            )
            return f"the objective {name!r} is not among the metrics{did_you_mean(name, values)}{hint}"
    return ""
