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


_ATTRIBUTES = (
    "numbers go with the metrics of trial.report, texts with trial.log_artifact('note.txt', b'...'), and "
    "study.annotate(tags=[...], note='...', trial=NUMBER) marks a trial"
)
_HERE = {
    "set_user_attr": _ATTRIBUTES,
    "user_attrs": _ATTRIBUTES,
    "set_system_attr": _ATTRIBUTES,
    "system_attrs": _ATTRIBUTES,
    "study_name": "it is study.name",
    "direction": "study.view['definition']['objective'] has it",
    "directions": "study.view['definition']['objective'] has them",
    "distributions": "study.view['definition']['space'] has them",
    "set_constraint": "report it as a metric, and say 'constraints' in the study's definition",
    "add_trial": "client.import_results(definition, results) makes a study of them",
    "add_trials": "client.import_results(definition, results) makes a study of them",
    "intermediate_values": "study.learning_curve(NUMBER) has them",
    "duration": "it is trial.seconds",
    "delete_study": "load_study(NAME).delete() does it",
    "get_all_study_summaries": "Client().studies() has them",
    "get_all_study_names": "Client().studies() has them",
    "visualization": "a study has plot_history() and its kin",
    "samplers": "the study's definition has 'search': {'method': 'tpe'}",
    "pruners": "the study's definition has 'search': {'early_stopping': {'rule': 'median'}}",
    "TrialPruned": "epochs() ends where a trial is not wanted, or report() raises TrialStopped",
}
"""Where things are that Optuna's objects have as attributes."""


def absent(kind: str, name: str) -> str:
    """What an AttributeError says of an attribute."""
    return f"{kind} has no attribute {name!r}" + (f": {_HERE[name]}" if name in _HERE else "")


_STATES = {
    "COMPLETE": ("completed",),
    "PRUNED": ("pruned",),
    "FAIL": ("failed", "lost", "cancelled"),
    "RUNNING": ("leased", "running"),
    "WAITING": ("queued",),
}
_ALL = {"paused", *(name for names in _STATES.values() for name in names)}


def states_of(states: Iterable[object]) -> set[str]:
    """The states by the names they have here; Optuna's are enumerations. ValueError for one that there is not."""
    found = {name for one in states for name in _STATES.get(str(getattr(one, "name", "")), (str(one),))}
    for name in found - _ALL:
        raise ValueError(f"there is no state {name!r}{did_you_mean(name, _ALL)}")
    return found
