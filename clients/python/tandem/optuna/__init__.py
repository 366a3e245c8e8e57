"""Optuna, with its studies on a Tandem server.

An existing script changes one line::

    import tandem.optuna as optuna

and runs as it is: its objective, its callbacks, its plots. Trials are proposed by a study on the server (the
variables TANDEM_SERVER and TANDEM_TOKEN say where), which shows them live on its page, stops the bad ones early, and
lets any number of processes work on it. All that is not in this module comes from the Optuna that is installed.

A script that creates its studies in another way gives them :class:`TandemSampler` and :class:`TandemPruner`.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Optional, Union

try:
    import optuna as _optuna
except ImportError as error:
    raise ImportError("tandem.optuna runs scripts that are written for Optuna: pip install optuna") from error

from ..client import Client
from .sampler import TandemPruner, TandemSampler
from .study import Study, script_name

__all__ = ["Study", "TandemPruner", "TandemSampler", "create_study", "load_study"]

_METHODS = {
    "TPESampler": "tpe",
    "RandomSampler": "random",
    "CmaEsSampler": "cma-es",
    "GPSampler": "gp",
    "QMCSampler": "sobol",
}
"""The server's search methods by the sampler of Optuna's that does about the same."""
_OF_ONE_OBJECTIVE = ("gp", "cma-es")


def create_study(
    *,
    storage: Any = None,
    sampler: Optional[_optuna.samplers.BaseSampler] = None,
    pruner: Optional[_optuna.pruners.BasePruner] = None,
    study_name: Optional[str] = None,
    direction: Any = None,
    load_if_exists: bool = False,
    directions: Optional[Sequence[Any]] = None,
    client: Optional[Client] = None,
) -> _optuna.Study:
    """As optuna.create_study, with the proposals of a study on the server of the same name.

    A ``sampler`` of Optuna's is replaced by the server's method of that kind (TPE, random, CMA-ES, Gaussian process,
    quasi-Monte Carlo), and one without a counterpart is refused. ``client`` says which server; without one, the
    variables TANDEM_SERVER and TANDEM_TOKEN do. Without a ``study_name`` it is named after the script. The study that
    is returned is Optuna's own, whose optimize tells the server when it has ended.
    """
    created = _optuna.create_study(
        storage=storage,
        sampler=_sampler(sampler, client, load_if_exists, len(directions or [direction])),
        pruner=_pruner(pruner),
        study_name=study_name if study_name is not None else script_name(),
        direction=direction,
        load_if_exists=load_if_exists,
        directions=directions,
    )
    return Study.of(created)


def load_study(
    *,
    study_name: Optional[str],
    storage: Any,
    sampler: Optional[_optuna.samplers.BaseSampler] = None,
    pruner: Optional[_optuna.pruners.BasePruner] = None,
    client: Optional[Client] = None,
) -> _optuna.Study:
    """As optuna.load_study, with the proposals of the study on the server, which is created if there is none."""
    objectives = 1
    if type(sampler).__name__ in _METHODS:
        objectives = len(_optuna.load_study(study_name=study_name, storage=storage).directions)
    loaded = _optuna.load_study(
        study_name=study_name,
        storage=storage,
        sampler=_sampler(sampler, client, load_if_exists=True, objectives=objectives),
        pruner=_pruner(pruner),
    )
    return Study.of(loaded)


def _sampler(
    given: Optional[_optuna.samplers.BaseSampler], client: Optional[Client], load_if_exists: bool, objectives: int
) -> _optuna.samplers.BaseSampler:
    if isinstance(given, TandemSampler):
        given.use(client, load_if_exists)
        return given
    search: dict[str, Union[str, int]] = {}
    if given is not None:
        name = type(given).__name__
        if name not in _METHODS:
            raise ValueError(
                f"the server has no search like {name}: leave sampler out, give tandem.optuna.TandemSampler(), or one "
                f"of {', '.join(_METHODS)}; a study with {name} itself is made by optuna.create_study"
            )
        search["method"] = _METHODS[name]
        if objectives > 1 and _METHODS[name] in _OF_ONE_OBJECTIVE:
            raise ValueError(
                f"the server's {_METHODS[name]!r} takes one objective, and there are {objectives}: leave sampler out, "
                "for 'tpe'"
            )
        warnings.warn(
            f"the server searches in place of {name}, with method {_METHODS[name]!r}; its settings and its seed are "
            "left out: say sampler=tandem.optuna.TandemSampler(search={...}, seed=...) for others",
            stacklevel=3,
        )
    constrain = getattr(given, "_constraints_func", None)
    return TandemSampler(client=client, load_if_exists=load_if_exists, search=search, constraints_func=constrain)


def _pruner(given: Optional[_optuna.pruners.BasePruner]) -> TandemPruner:
    return given if isinstance(given, TandemPruner) else TandemPruner(given)


def __getattr__(name: str) -> Any:
    return getattr(_optuna, name)


def __dir__() -> list[str]:
    return sorted({*__all__, *dir(_optuna)})
