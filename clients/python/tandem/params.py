"""A trial's values: a dictionary that helps with a misspelt name, and Optuna's way to read it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Optional, TypeVar, Union

from .errors import UnknownName

Value = Union[bool, int, float, str]
Choice = TypeVar("Choice", bool, int, float, str)


class Values(dict[str, Any]):
    """Named values of a trial; a missing name raises a KeyError that says which names there are."""

    def __init__(self, values: Mapping[str, Any], kind: str, hint: str = "") -> None:
        super().__init__(values)
        self._kind = kind
        self._hint = hint

    def __missing__(self, name: str) -> Any:
        raise UnknownName(self._kind, name, list(self), self._hint)


def parameters(values: Mapping[str, Any]) -> Values:
    """The search space's values of a trial."""
    return Values(values, "parameter", "the space of the study decides, and conditions may leave one out of a trial")


def system(values: Mapping[str, Any]) -> Values:
    """The system configuration of a trial."""
    return Values(values, "system setting", "the section system of the study decides")


def check_float(name: str, value: Any, low: float, high: float, step: Optional[float], log: bool) -> float:
    """The value, if it is what suggest_float(name, low, high, ...) may return."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(f"parameter {name!r} is {value!r}, not a float: the study declares another type for it")
    _check_range(name, value, low, high, log)
    if step is not None and not _on_grid(float(value), low, step):
        raise ValueError(f"parameter {name!r} is {value!r}, which is not {low} plus a multiple of the step {step}")
    return float(value)


def check_int(name: str, value: Any, low: int, high: int, step: int, log: bool) -> int:
    """The value, if it is what suggest_int(name, low, high, ...) may return."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"parameter {name!r} is {value!r}, not an int: the study declares another type for it")
    _check_range(name, value, low, high, log)
    if (value - low) % step != 0:
        raise ValueError(f"parameter {name!r} is {value}, which is not {low} plus a multiple of the step {step}")
    return value


def check_choice(name: str, value: Any, choices: Sequence[Choice]) -> Choice:
    """The value, if it is one of the choices given to suggest_categorical."""
    for choice in choices:
        if choice == value and isinstance(choice, bool) == isinstance(value, bool):
            return choice
    raise ValueError(
        f"parameter {name!r} is {value!r}, which is not among the choices {list(choices)!r}: "
        "the study's space decides, make the two agree"
    )


def _check_range(name: str, value: float, low: float, high: float, log: bool) -> None:
    if low > high or (log and low <= 0):
        raise ValueError(f"parameter {name!r}: ({low}, {high}) is not a range" + (" for log=True" if log else ""))
    slack = 1e-12 * max(abs(low), abs(high))
    if not low - slack <= value <= high + slack:
        raise ValueError(
            f"parameter {name!r} is {value!r}, outside of {low} to {high}: "
            "the study's space decides, make the two agree"
        )


def _on_grid(value: float, low: float, step: float) -> bool:
    steps = (value - low) / step
    return math.isclose(steps, round(steps), abs_tol=1e-6)


def same(one: Any, other: Any) -> bool:
    """Whether two values are the same up to rounding: the server puts a number next to a step onto the step."""
    if isinstance(one, bool) or isinstance(other, bool) or isinstance(one, str) or isinstance(other, str):
        return type(one) is type(other) and bool(one == other)
    return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)
