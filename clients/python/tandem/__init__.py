"""Tandem's Python client.

In a training script that a worker starts::

    trial = tandem.current_trial()
    for epoch in trial.epochs():
        trial.report(accuracy=train_one_epoch(trial.params, trial.data_fraction))

or, to load libraries and data once for several trials::

    for trial in tandem.trials():
        for epoch in trial.epochs():
            trial.report(accuracy=train_one_epoch(trial.params, trial.data_fraction))

In your own process::

    study = tandem.create_study("study.yaml")
    study.optimize(objective)
    print(study.best_params)
"""

from __future__ import annotations

from pathlib import Path as _Path
from typing import TYPE_CHECKING, Any, Optional

from .assignment import Budget, Directive
from .errors import (
    AuthError,
    ConflictError,
    ExhaustedError,
    Fault,
    InvalidError,
    LeaseLost,
    NotFoundError,
    NotInTrial,
    ServerError,
    StudyOver,
    TandemError,
    TrialStopped,
    UnavailableError,
    UnknownName,
)
from .mixture import refuse_mixture
from .names import absent, misplaced
from .script import current_trial, dataset, trials
from .trial import Trial
from .version import VERSION as __version__

refuse_mixture(_Path(__file__).resolve().parent.parent)

if TYPE_CHECKING:
    from .asynchronous import AsyncClient, AsyncStudy, AsyncTrial
    from .client import Client, Definition
    from .exchange import export_mlflow, import_optuna
    from .model import ModelError
    from .record import Recommendation, Result, TrialRecord
    from .study import Study
    from .warm import WarmStart

__all__ = [
    "AsyncClient",
    "AsyncStudy",
    "AsyncTrial",
    "AuthError",
    "Budget",
    "Client",
    "ConflictError",
    "Directive",
    "ExhaustedError",
    "Fault",
    "InvalidError",
    "LeaseLost",
    "ModelError",
    "NotFoundError",
    "NotInTrial",
    "Recommendation",
    "Result",
    "ServerError",
    "Study",
    "StudyOver",
    "TandemError",
    "Trial",
    "TrialRecord",
    "TrialStopped",
    "UnavailableError",
    "UnknownName",
    "WarmStart",
    "__version__",
    "create_study",
    "current_trial",
    "dataset",
    "export_mlflow",
    "import_optuna",
    "import_results",
    "load_study",
    "trials",
]


def create_study(
    definition: Optional[Definition] = None,
    *,
    load_if_exists: bool = False,
    warm_start: Optional[WarmStart] = None,
    url: Optional[str] = None,
    token: Optional[str] = None,
    **unknown: Any,
) -> Study:
    """Create a study on the server at url; see :meth:`Client.create_study`.

    What belongs into the definition, such as the direction, is a TypeError that says where.
    """
    if definition is None or unknown:
        raise TypeError(misplaced(unknown))
    from .client import Client

    return Client(url, token).create_study(definition, load_if_exists=load_if_exists, warm_start=warm_start)


def import_results(
    definition: Definition, results: WarmStart, *, url: Optional[str] = None, token: Optional[str] = None
) -> Study:
    """Create a study whose first trials were measured elsewhere; see :meth:`Client.import_results`."""
    from .client import Client

    return Client(url, token).import_results(definition, results)


def load_study(name: str, *, url: Optional[str] = None, token: Optional[str] = None) -> Study:
    """The study with the name or the id, on the server at url."""
    from .client import Client

    return Client(url, token).study(name)


_ON_DEMAND = {
    "AsyncClient": "asynchronous",
    "AsyncStudy": "asynchronous",
    "AsyncTrial": "asynchronous",
    "Client": "client",
    "ModelError": "model",
    "Recommendation": "record",
    "Result": "record",
    "Study": "study",
    "TrialRecord": "record",
    "WarmStart": "warm",
    "export_mlflow": "exchange",
    "import_optuna": "exchange",
}
"""Names whose modules a training script seldom needs, and should not wait for."""


def __getattr__(name: str) -> Any:
    if name not in _ON_DEMAND:
        raise AttributeError(absent(f"module {__name__!r}", name))
    import importlib

    return getattr(importlib.import_module(f".{_ON_DEMAND[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
