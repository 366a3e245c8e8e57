"""Run a program that knows nothing of Tandem: ``python -m tandem.wrap PATTERN PROGRAM [ARGUMENT ...]``.

``PATTERN`` finds an epoch and its metrics in a line of standard output by named groups, such as
``epoch (?P<epoch>\\d+) loss=(?P<loss>\\S+)``. Where they stand in several lines, join their patterns by ``|``: an
epoch is reported once all groups were seen. Without a group ``epoch``, each time counts as the next one.

In the arguments, ``{name}`` is a parameter, ``{epochs}`` the last epoch of the budget, ``{seed}`` the trial's seed and
``{{name}}`` the text in braces. ``{flags}`` stands for ``--name=value`` of each parameter, ``{overrides}`` for
``name=value``. The program is ended after the budget's last epoch, or, with ``{epochs}`` in an argument, if it trains
on behind that; if it ends well before, its last metrics count for that epoch. Checkpoints are its own matter: a
promoted trial begins again.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .errors import UnknownName
from .script import current_trial
from .trial import Trial

_GRACE = 5.0
"""Seconds that the program has to end when it is told to."""
_PLACE = re.compile(r"\{\{[A-Za-z_][\w.-]*\}\}|\{[A-Za-z_][\w.-]*\}")


def filled(arguments: Sequence[str], params: Mapping[str, Any], more: Mapping[str, Any]) -> list[str]:
    """The arguments with the trial's values in them."""
    written = {name: value if isinstance(value, str) else json.dumps(value) for name, value in params.items()}
    every = {**{name: str(value) for name, value in more.items()}, **written}

    def value(found: re.Match[str]) -> str:
        name = found[0][1:-1]
        if name.startswith("{"):
            return name
        if name not in every:
            hint = "{flags} and {overrides} have those that a trial has; {{name}} is the text in braces"
            raise UnknownName("parameter", name, sorted(every), hint)
        return every[name]

    words: list[str] = []
    for argument in arguments:
        if argument in ("{flags}", "{overrides}"):
            words += [("--" if argument == "{flags}" else "") + f"{name}={text}" for name, text in written.items()]
        else:
            words.append(_PLACE.sub(value, argument))
    return words


def epochs(pattern: re.Pattern[str], lines: Iterator[bytes]) -> Iterator[tuple[int, dict[str, float]]]:
    """The epochs that the lines tell, counted from 1, with their metrics. The lines are passed on."""
    seen: dict[str, str] = {}
    count, shift = 0, 0
    for line in lines:
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()
        for found in pattern.finditer(line.decode(errors="replace")):
            seen.update({name: text for name, text in found.groupdict().items() if text is not None})
        if len(seen) < len(pattern.groupindex):
            continue
        numbers = {name: _number(name, text) for name, text in seen.items()}
        seen, epoch = {}, int(numbers.pop("epoch", count + 1))
        if count == 0 and epoch == 0:
            shift = 1  # it counts from 0
        if epoch + shift > count:
            count = epoch + shift
            yield count, numbers


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        sys.exit(f"tandem.wrap: the group {name} found {text!r}, which is no number: narrow it, as in [-+.0-9e]+")


def run(trial: Trial, pattern: re.Pattern[str], command: Sequence[str], knows: bool) -> int:
    """Run the program for the trial; returns its exit code, or minus the signal that ended it.

    One that knows how many epochs it has may still save its model behind the last.
    """
    metrics: dict[str, float] = {}
    with subprocess.Popen(command, stdout=subprocess.PIPE) as program:
        assert program.stdout is not None
        try:
            for epoch, metrics in epochs(pattern, program.stdout):
                if trial.complete:
                    return 0  # it trains on
                trial.report(min(epoch, trial.epochs_total), **metrics)
                if trial.complete and knows:
                    continue
                if trial.complete or trial.directive.action != "continue":
                    return 0
            code = program.wait()
        finally:
            _end(program)
    if code == 0 and not metrics:
        groups = ", ".join(pattern.groupindex)
        sys.exit(f"tandem.wrap: the program ended, and its output never had all of {groups} ({pattern.pattern})")
    if code == 0 and not trial.complete:  # it was done early, by its own judgement
        trial.report(trial.epochs_total, **metrics)
    return code


def _end(program: subprocess.Popen[bytes]) -> None:
    if program.poll() is None:
        program.terminate()
        try:
            program.wait(_GRACE)
        except subprocess.TimeoutExpired:
            program.kill()


def main() -> None:
    """Run the program that the command line names, and end as it does."""
    if len(sys.argv) < 3 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    try:
        pattern = re.compile(sys.argv[1])
    except re.error as error:
        sys.exit(f"tandem.wrap: {sys.argv[1]} is no regular expression: {error}")
    if not set(pattern.groupindex) - {"epoch"}:
        sys.exit(f"tandem.wrap: {sys.argv[1]} names no metric: put one in a group, as in loss=(?P<loss>\\S+)")
    trial = current_trial()
    try:
        command = filled(sys.argv[2:], trial.params, {"epochs": trial.epochs_total, "seed": trial.seed})
    except UnknownName as error:
        sys.exit(f"tandem.wrap: {error}")
    code = run(trial, pattern, command, any("{epochs}" in argument for argument in sys.argv[2:]))
    if code < 0:  # as if it had been this process
        os.kill(os.getpid(), -code)
    sys.exit(code)


if __name__ == "__main__":
    main()
