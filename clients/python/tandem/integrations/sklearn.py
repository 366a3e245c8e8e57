"""A cross-validated search for scikit-learn, with the folds as its budget::

search = TandemSearchCV(
    SVC(), {"C": {"type": "float", "low": 1e-3, "high": 1e3, "log": True}, "kernel": {"values": ["rbf", "linear"]}}
)
search.fit(X, y)
search.best_params_, search.best_score_, search.predict(X)
"""

from __future__ import annotations

import json
import math
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Optional

try:
    from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier
    from sklearn.metrics import check_scoring
    from sklearn.model_selection import check_cv
    from sklearn.utils.metaestimators import available_if
except ImportError as error:
    raise ImportError("tandem.integrations.sklearn needs scikit-learn: pip install scikit-learn") from error

from ..client import Client
from ..record import TrialRecord
from ..study import Study
from ..trial import Trial

_SCORE = "score"
"""The objective's metric: the mean over the folds trained so far."""


def _best_has(name: str) -> Any:
    def check(search: Any) -> bool:
        return hasattr(search.best_estimator_ if hasattr(search, "best_estimator_") else search.estimator, name)

    return available_if(check)


class TandemSearchCV(MetaEstimatorMixin, BaseEstimator):
    """Searches an estimator's parameters by cross-validation, as scikit-learn's own searches do.

    An epoch is a fold. All configurations are measured on one fold, the better ones on more, and only the best on all:
    about a third as many fits as n_trials times the folds. Any number of processes may work on the same ``study_name``
    with the same data; each is to call :meth:`fit`. ``space`` is that of a study file; ``search`` is laid over the
    study's ``search``; ``scoring`` and ``cv`` are scikit-learn's; ``client`` says which server. A configuration that
    raises has failed, with the exception as its reason, and the search goes on; if all do, :meth:`fit` raises
    ValueError.
    """

    def __init__(
        self,
        estimator: Any,
        space: Mapping[str, Any],
        *,
        n_trials: int = 50,
        scoring: Any = None,
        cv: Any = None,
        refit: bool = True,
        n_jobs: int = 1,
        study_name: Optional[str] = None,
        search: Optional[Mapping[str, Any]] = None,
        client: Optional[Client] = None,
    ) -> None:
        self.estimator = estimator
        self.space = space
        self.n_trials = n_trials
        self.scoring = scoring
        self.cv = cv
        self.refit = refit
        self.n_jobs = n_jobs
        self.study_name = study_name
        self.search = search
        self.client = client

    def fit(self, X: Any, y: Any = None, **fit_params: Any) -> TandemSearchCV:
        """Search, and with ``refit`` train the best configuration on all of the data.

        Sets ``best_params_``, ``best_score_``, ``best_estimator_``, ``cv_results_`` (one entry for each trial, with how
        many folds it was measured on) and ``study_``.
        """
        folds = list(check_cv(self.cv, y, classifier=is_classifier(self.estimator)).split(X, y))
        scorer = check_scoring(self.estimator, scoring=self.scoring)

        def objective(trial: Trial) -> None:
            scores: list[float] = []
            trial.restore(lambda path: scores.extend(json.loads(Path(path).read_text())))
            for epoch in trial.epochs():
                train, test = folds[epoch - 1]
                fold = clone(self.estimator).set_params(**trial.params)
                fold.fit(_rows(X, train), None if y is None else _rows(y, train), **fit_params)
                scores.append(float(scorer(fold, _rows(X, test), None if y is None else _rows(y, test))))
                trial.report(score=sum(scores) / len(scores), fold_score=scores[-1])
                trial.checkpoint(lambda path: Path(path).write_text(json.dumps(scores)))

        self.study_: Study = (self.client or Client()).create_study(
            self._definition(len(folds)), load_if_exists=self.study_name is not None
        )
        # As in scikit-learn's searches a configuration that cannot be fitted is the worst one, and the search goes on.
        self.study_.optimize(objective, n_jobs=self.n_jobs, catch=Exception)
        if not self.study_.progress.get("best"):
            raise ValueError(f"no configuration got a score: {_why_none(self.study_)}")
        self.best_params_ = dict(self.study_.best_params)
        self.best_score_ = self.study_.best_value
        self.cv_results_ = _results(self.study_)
        if self.refit:
            self.best_estimator_ = clone(self.estimator).set_params(**self.best_params_)
            self.best_estimator_.fit(X, y, **fit_params)
        return self

    def _definition(self, folds: int) -> dict[str, Any]:
        return {
            "name": self.study_name or f"{type(self.estimator).__name__}-{uuid.uuid4().hex[:8]}",
            "description": f"cross-validation of {type(self.estimator).__name__} with scikit-learn; an epoch is a fold",
            "objective": {"metric": _SCORE, "direction": "maximize"},
            "space": dict(self.space),
            "budget": {"policy": "epochs", "epochs": {"min": 1, "max": folds}} if folds > 1 else {"epochs": 1},
            "search": dict(self.search or {}),
            "stop": {"trials": self.n_trials},
            "retry": {"failures": 0},  # the same configuration on the same fold fails again
        }

    @_best_has("predict")
    def predict(self, X: Any) -> Any:
        """The best estimator's predictions."""
        return self._best().predict(X)

    @_best_has("predict_proba")
    def predict_proba(self, X: Any) -> Any:
        """The best estimator's probabilities."""
        return self._best().predict_proba(X)

    @_best_has("decision_function")
    def decision_function(self, X: Any) -> Any:
        """The best estimator's decision function."""
        return self._best().decision_function(X)

    @_best_has("transform")
    def transform(self, X: Any) -> Any:
        """What the best estimator makes of X."""
        return self._best().transform(X)

    def score(self, X: Any, y: Any = None) -> float:
        """The best estimator's score by ``scoring``."""
        best = self._best()
        return float(check_scoring(best, scoring=self.scoring)(best, X, y))

    def _best(self) -> Any:
        if not hasattr(self, "best_estimator_"):
            raise ValueError("there is no best estimator: call fit first, with refit=True")
        return self.best_estimator_


def _why_none(study: Study) -> str:
    """Of what the last of the trials that failed did; else how the study ended."""
    reasons = [record.reason for record in study.trials if record.state == "failed"]
    return f"{len(reasons)} failed, the last with {reasons[-1]}" if reasons else str(study.view.get("reason") or "")


def _results(study: Study) -> dict[str, list[Any]]:
    measured = [record for record in study.trials if record.value is not None]
    by_rank = sorted(measured, key=_goodness, reverse=True)
    rank = {record.number: i for i, record in enumerate(by_rank, start=1)}
    return {
        "params": [dict(record.params) for record in measured],
        "mean_test_score": [record.value for record in measured],
        "folds": [record.results[-1].budget.epochs for record in measured],
        "rank_test_score": [rank[record.number] for record in measured],
        "number": [record.number for record in measured],
    }


def _goodness(record: TrialRecord) -> tuple[int, float]:
    """More folds go before; NaN is the worst score."""
    value = record.value if record.value is not None else math.nan
    return record.results[-1].budget.epochs, -math.inf if math.isnan(value) else value


def _rows(data: Any, index: Any) -> Any:
    """The samples of the index: of a DataFrame, an array or a matrix, or a list."""
    if hasattr(data, "iloc"):
        return data.iloc[index]
    return data[index] if hasattr(data, "shape") else [data[i] for i in index]
