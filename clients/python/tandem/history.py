"""Results that were measured elsewhere, as trials of a study."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .assignment import Outcome
from .errors import InvalidError, TandemError, TrialStopped
from .metrics import decode_list
from .params import same
from .trial import Trial

if TYPE_CHECKING:
    from .study import Study

logger = logging.getLogger("tandem")

_TRIES = 20


@dataclass(frozen=True)
class Measured:
    """A trial that ran elsewhere."""

    params: Mapping[str, Any]
    metrics: Mapping[str, float]
    """Of its end; the study's objectives are among them."""
    curve: Sequence[float] = ()
    """The first objective after each epoch, if it is known; the last epoch's is taken from metrics."""
    seconds: float = 0.0


class History:
    """Brings a study trials that it did not propose: each is enqueued, leased, and reported as what it was."""

    def __init__(self, study: Study) -> None:
        self.study = study
        self.spare: list[Trial] = []
        """Trials leased while looking for another one; whoever runs trials here runs these first."""

    def record(self, measured: Measured) -> Trial:
        """Make it a trial of the study.

        Raises :class:`InvalidError` if the parameters do not fit the space, :class:`ConflictError` if the study is
        over or has no trial left for it.
        """
        trial = self._enqueued(measured.params)
        last = trial.epochs_total
        before = list(measured.curve)[: last - 1]
        share = measured.seconds / (len(before) + 1)
        trial.took(share)
        reason = ""
        try:
            # The result first: early stopping does not judge what is measured already.
            trial.report(last, **measured.metrics)
        except TrialStopped as stopped:
            reason = str(stopped)
        else:
            for epoch, value in enumerate(before, start=1):
                trial._link.report(Outcome(epoch, {trial.objectives[0]: float(value)}, share))
        self.study.tell(trial, reason=reason)
        return trial

    def _enqueued(self, params: Mapping[str, Any]) -> Trial:
        for _ in range(_TRIES):
            self.study.enqueue(params)
            waiting = 1
            while waiting:
                trial = self.study.ask()
                if all(same(trial.params[name], value) for name, value in params.items() if name in trial.params):
                    return trial
                self.spare.append(trial)
                waiting = int(self.study.progress.get("enqueued") or 0)
            # Another process has it, and trains it: here it is enqueued anew.
        raise TandemError(
            f"study {self.study.name} gave the trial that was enqueued to other workers, {_TRIES} times: pause them "
            "while results are brought in"
        )


def import_results(study: Study, observations: Sequence[Mapping[str, Any]]) -> None:
    """Record every observation as a trial of the study; those that do not fit its space are left out, and logged."""
    view = study.view
    definition = view["definition"]
    metrics = [str(one.get("metric") or "") for one in definition["objective"]]
    if not all(metrics):
        raise ValueError(f"study {study.name} has a formula as its objective: results can be imported for metrics only")
    if len(view["rungs"]) > 1 and definition["search"].get("promotion") != "none":
        raise ValueError(
            f"study {study.name} takes trials up a ladder of budgets, and the results are of trials that ended: give "
            "it one budget, such as budget: {epochs: 10}, or promotion: none. For a study with a ladder use them as "
            "its warm_start"
        )
    bound = int(definition["stop"].get("trials") or 0)
    if bound and len(observations) > bound:
        raise ValueError(
            f"there are {len(observations)} results, and study {study.name} is over after {bound} trials: give it "
            f"stop: {{trials: {len(observations)}}} or more"
        )
    history, left_out = History(study), 0
    try:
        for one in observations:
            values = dict(zip(metrics, decode_list(one["values"])))
            try:
                history.record(Measured(one["params"], values))
            except InvalidError as error:
                left_out += 1
                logger.warning("a result with %s is left out: %s", dict(one["params"]), error)
    finally:
        study.close()
    if left_out == len(observations):
        raise ValueError(f"none of the {left_out} results fits the space of study {study.name}; the log says why")
