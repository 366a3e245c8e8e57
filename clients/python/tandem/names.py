"""Finding the name a person meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A clause to append to "there is no ...": the nearest name, or all that exist."""
    names = sorted(known)
    if not names:
        return ": there are none"
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    listed = ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
    return f", did you mean {near[0]!r}? There are: {listed}" if near else f": there are {listed}"


_IN_A_DEFINITION = {
    "direction": "the definition has it: 'objective': {'metric': 'loss', 'direction': DIRECTION}",
    "directions": "the definition has one for each objective: 'objective': [{'metric': 'loss', 'direction': ...}, ...]",
    "study_name": "the definition has it: 'name': NAME",
    "name": "the definition has it: 'name': NAME",
    "sampler": "the definition has it: 'search': {'method': 'tpe'}",
    "pruner": "the definition has it: 'search': {'early_stopping': {'rule': 'median'}}",
    "storage": "leave it out: the server at url, or in TANDEM_SERVER, keeps the study",
}
"""Where a study has what other tools take as arguments."""


def misplaced(arguments: Mapping[str, object]) -> str:
    """What is wrong with arguments of create_study, each with what is right; without any, the definition is missing."""
    known = ["definition", "load_if_exists", "warm_start", "url", "token"]
    lines = [
        f"create_study has no argument {name!r}: "
        + _IN_A_DEFINITION[name].replace(name.upper(), repr(value)).replace("NAME", repr(value))
        if name in _IN_A_DEFINITION
        else f"create_study has no argument {name!r}{did_you_mean(name, known)}"
        for name, value in arguments.items()
    ]
    if not lines:
        lines.append(
            "create_study needs the definition of the study: a dictionary such as {'name': 'first', 'objective': "
            "{'metric': 'loss', 'direction': 'minimize'}, 'space': {'x': {'type': 'float', 'low': 0, 'high': 1}}}, or "
            "the path of a study file"
        )
    if set(arguments) & set(_IN_A_DEFINITION):
        lines.append("A script that is written for Optuna runs as it is with: import tandem.optuna as optuna")
    return "\n".join(lines)
