"""The space that a define-by-run objective asks for, as the trials that ran show it.

Optuna's objectives say what they want while they run; a study wants its space
beforehand. So the first trials look: each value of each choice is tried once,
and what was asked for where tells the parameters and their conditions. Nothing
here talks to a server or to a storage.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Optional, Union

from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

MOST_VALUES = 10
"""A choice or an int with so many values at most may decide on which other parameters there are."""

ENOUGH_TRIALS = 10
"""After so many trials the space is what they have shown, whatever is still open: Optuna's own samplers and Tandem's
``tpe`` draw as many at random."""

_LONGEST_NAME = 128

Value = Union[bool, int, float, str]
"""A value as the server has it."""


def server_name(name: str) -> str:
    """A parameter's name on the server, which takes letters, digits and ``_ . -``."""
    found = re.sub(r"[^A-Za-z0-9_.-]", "_", name)
    return (found if re.match(r"[A-Za-z_]", found) else f"_{found}")[:_LONGEST_NAME]


def labels(choices: Sequence[Any]) -> list[Value]:
    """The choices of a categorical as the server has them: None and other objects become text."""
    found: list[Value] = [choice if _plain(choice) else str(choice) for choice in choices]
    distinct = {(isinstance(label, bool), isinstance(label, str), label) for label in found}
    if len(distinct) < len(found):
        return [f"{i}: {choice!r}" for i, choice in enumerate(choices)]
    return found


def to_server(distribution: BaseDistribution, value: Any) -> Value:
    """A value that the objective was given, as the server has it."""
    if isinstance(distribution, CategoricalDistribution):
        return labels(distribution.choices)[_index(distribution.choices, value)]
    return int(value) if isinstance(distribution, IntDistribution) else float(value)


def from_server(distribution: BaseDistribution, value: Any) -> Optional[tuple[Any]]:
    """The server's value as the objective wants it, alone in a tuple; None if the objective does not ask for it.

    In a tuple, as None may be a choice.
    """
    if isinstance(distribution, CategoricalDistribution):
        for choice, label in zip(distribution.choices, labels(distribution.choices)):
            if label == value and isinstance(label, bool) == isinstance(value, bool):
                return (choice,)
        return None
    if isinstance(value, (bool, str)):
        return None
    found = int(value) if isinstance(distribution, IntDistribution) else float(value)
    if not distribution.low <= found <= distribution.high:
        return None
    if distribution.step and not _on_grid(found, distribution.low, distribution.step):
        return None
    return (found,)


def covers(known: Mapping[str, Any], distribution: BaseDistribution) -> bool:
    """Whether the server's parameter ranges over all that the objective asks for: else it would never propose some."""
    values = known.get("values")
    if isinstance(distribution, CategoricalDistribution):
        return not values or all(label in values for label in labels(distribution.choices))
    if values:
        return True
    if known.get("step") and not (distribution.step and _on_grid(distribution.step, 0, known["step"])):
        return False
    low, high = float(known["low"]), float(known["high"])
    slack = 1e-12 * max(abs(low), abs(high))
    return bool(low - slack <= distribution.low and distribution.high <= high + slack)


def values_of(distribution: BaseDistribution) -> Optional[list[Any]]:
    """All values, if they are few and not single; None for everything else."""
    if distribution.single():
        return None
    if isinstance(distribution, CategoricalDistribution):
        return list(distribution.choices) if len(distribution.choices) <= MOST_VALUES else None
    if isinstance(distribution, IntDistribution) and not distribution.log:
        found = range(distribution.low, distribution.high + 1, distribution.step)
        return list(found) if len(found) <= MOST_VALUES else None
    return None


@dataclass(frozen=True)
class Asked:
    """What a trial that completed was asked for, in its order, and what it got."""

    distributions: Mapping[str, BaseDistribution]
    params: Mapping[str, Any]

    def place(self, name: str) -> int:
        """Which of the few values of a parameter it had."""
        return _index(values_of(self.distributions[name]) or [], self.params[name])


@dataclass(frozen=True)
class Condition:
    """A parameter is there where another one has one of these values."""

    name: str
    values: tuple[Any, ...]


class Space:
    """What trials have shown of an objective's space."""

    def __init__(self, trials: Iterable[Asked]) -> None:
        self._trials = list(trials)
        self.order: list[str] = []
        """The parameters, in the order they were asked for."""
        self.distributions: dict[str, BaseDistribution] = {}
        """What each ranges over; of one whose range changes from trial to trial the last that was seen."""
        self.changing: set[str] = set()
        """Parameters whose range is not the same in all trials: no search can plan with them."""
        for trial in self._trials:
            self._take(trial)

    def _take(self, trial: Asked) -> None:
        before = ""
        for name, distribution in trial.distributions.items():
            if name not in self.distributions:
                self.order.insert(self.order.index(before) + 1 if before else 0, name)
            elif self.distributions[name] != distribution:
                self.changing.add(name)
            self.distributions[name] = distribution
            before = name

    @property
    def parameters(self) -> list[str]:
        """Those that a search can propose: more than one value, and the same range in all trials."""
        return [name for name in self.order if name not in self.changing and not self.distributions[name].single()]

    def explanations(self, name: str) -> list[Condition]:
        """The conditions on one other parameter that agree with all trials; none for a parameter of all trials."""
        having = [trial for trial in self._trials if name in trial.params]
        lacking = [trial for trial in self._trials if name not in trial.params]
        if not lacking:
            return []
        found = []
        for other in self.parameters[: self.parameters.index(name)]:
            values = values_of(self.distributions[other])
            if values is None or any(other not in trial.params for trial in having):
                continue
            yes = {trial.place(other) for trial in having}
            no = {trial.place(other) for trial in lacking if other in trial.params}
            if no and not yes & no:
                found.append(Condition(other, tuple(v for i, v in enumerate(values) if i not in no)))
        return found

    def condition(self, name: str) -> Optional[Condition]:
        """When the parameter is there; None if that is always, or not told by one other parameter alone."""
        found = self.explanations(name)
        return found[0] if len(found) == 1 else None

    def settled(self) -> bool:
        """Whether every value of every choice was tried, and no condition can be read in two ways."""
        if not self._trials:
            return False
        if len(self._trials) >= ENOUGH_TRIALS:
            return True
        for name in self.parameters:
            values = values_of(self.distributions[name])
            tried = {trial.place(name) for trial in self._trials if name in trial.params} if values else set()
            if values and len(tried) < len(values):
                return False
        return all(len(self.explanations(name)) < 2 for name in self.parameters)

    def document(self) -> dict[str, dict[str, Any]]:
        """The space of a study file."""
        found: dict[str, dict[str, Any]] = {}
        for name in self.parameters:
            known = server_name(name)
            if known in found:
                raise ValueError(
                    f"two parameters of the objective would both be {known!r} on the server, which takes letters, "
                    f"digits and '_', '.', '-' in names: rename {name!r} or the other one"
                )
            found[known] = _document(self.distributions[name])
            condition = self.condition(name)
            if condition is not None:
                ranges = self.distributions[condition.name]
                found[known]["when"] = {
                    server_name(condition.name): [to_server(ranges, value) for value in condition.values]
                }
        if not found:
            raise ValueError(
                "the objective asks for no parameter that can be searched: call trial.suggest_float, suggest_int or "
                "suggest_categorical in it, with more than one value"
            )
        return found


@dataclass
class Exploration:
    """Chooses the values of the first trials, so that few of them show the whole space."""

    draws: random.Random
    _given: dict[str, list[int]] = field(default_factory=dict)
    _below: dict[tuple[str, int], set[str]] = field(default_factory=dict)
    """Parameters that were asked for, later in the trial, where a parameter had a value."""

    def learn(self, trial: Asked) -> None:
        """Take note of what a completed trial was asked for."""
        few = [(name, values) for name, d in trial.distributions.items() if (values := values_of(d))]
        for i, (name, values) in enumerate(few):
            place = trial.place(name)
            given = self._counts(name, len(values))
            given[place] = max(given[place], 1)
            self._below.setdefault((name, place), set()).update(later for later, _ in few[i + 1 :])

    def choose(self, name: str, values: Sequence[Any]) -> Any:
        """A value that was not tried yet; else one under which something was not; else any."""
        given = self._counts(name, len(values))
        fresh = [i for i, count in enumerate(given) if count == 0]
        open_below = [i for i in range(len(values)) if any(map(self._open, self._below.get((name, i), ())))]
        i = self.draws.choice(fresh or open_below or list(range(len(values))))
        given[i] += 1
        return values[i]

    def _counts(self, name: str, size: int) -> list[int]:
        given = self._given.setdefault(name, [])
        given.extend([0] * (size - len(given)))
        return given

    def _open(self, name: str) -> bool:
        return 0 in self._given.get(name, [0])


def _document(distribution: BaseDistribution) -> dict[str, Any]:
    if isinstance(distribution, CategoricalDistribution):
        return {"type": "categorical", "values": labels(distribution.choices)}
    kind = "int" if isinstance(distribution, IntDistribution) else "float"
    if kind == "float" and not isinstance(distribution, FloatDistribution):
        raise ValueError(f"the server has no counterpart of {distribution!r}")
    found: dict[str, Any] = {"type": kind, "low": distribution.low, "high": distribution.high}
    if distribution.log:
        found["log"] = True
    elif distribution.step not in (None, 1) or (kind == "float" and distribution.step):
        found["step"] = distribution.step
    return found


def _on_grid(value: float, low: float, step: float) -> bool:
    steps = (value - low) / step
    return math.isclose(steps, round(steps), abs_tol=1e-6)


def _plain(choice: Any) -> bool:
    return isinstance(choice, (bool, int, str)) or (isinstance(choice, float) and math.isfinite(choice))


def _index(values: Sequence[Any], value: Any) -> int:
    for i, one in enumerate(values):
        if one is value or (type(one) is type(value) and one == value):
            return i
    return list(values).index(value)
