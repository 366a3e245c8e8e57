"""Running an objective for trial after trial, in this process."""

from __future__ import annotations

import contextlib
import logging
import operator
import threading
import time
import traceback
import warnings
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any, Callable, Optional, SupportsFloat, Union

from .errors import LeaseLost, TandemError, TrialStopped
from .record import TrialRecord
from .trial import Trial
from .worker import LeaseLink, Session

if TYPE_CHECKING:
    from .study import Study

logger = logging.getLogger("tandem")

Outcome = Union[SupportsFloat, Mapping[str, SupportsFloat], Sequence[SupportsFloat], None]
"""What an objective returns: the objective's value, or metrics by name, or one value for each
objective, or nothing if it reported the last epoch itself."""
Objective = Callable[[Trial], Outcome]
Callback = Callable[["Study", TrialRecord], None]

_WAIT_SECONDS = 5.0


def complete(trial: Trial, outcome: Outcome) -> None:
    """Report what the objective returned as the last epoch of the budget, unless that has been reported."""
    if trial.complete or trial.directive.action in ("pause", "stop"):
        return
    if trial.budget.measured:
        raise ValueError(
            f"the objective returned after epoch {trial.last_reported}, before its budget was spent: with a budget in "
            "seconds or joules report in 'for epoch in trial.epochs()' until that loop ends"
        )
    if outcome is None:
        raise ValueError(
            f"the objective returned nothing, and epoch {trial.epochs_total}, the last of this budget, was not reported"
        )
    trial.report(trial.epochs_total, **_metrics(trial, outcome))


def outcome_of(trial: Trial) -> str:
    """How the run ended, in the server's word."""
    return "budget_reached" if trial.complete else "interrupted"


def ending(view: Mapping[str, Any], runs: int) -> str:
    """What somebody who expects results of so many runs has to know of a study that is over; empty if nothing."""
    ended = f"study {view['name']} is {view['status']}: {view.get('reason') or 'nothing more happens in it'}"
    if runs == 0:
        return f"{ended}. No trial was run: 'tandem study extend' gives it more, or take another name"
    return ended if view["status"] == "failed" else ""


Catch = Union[type[Exception], Sequence[type[Exception]]]
"""Which exceptions of an objective do not end optimize."""


def check(objective: Any, callbacks: Any, timeout: Any = None) -> None:
    """Raise TypeError for what optimize would stumble over only after it has run a trial, or not at all."""
    if not callable(objective):
        raise TypeError(f"objective must be a function of a trial, not {objective!r}")
    if callable(callbacks) or not all(map(callable, callbacks)):
        raise TypeError(f"callbacks must be a list of functions, such as [show], not {callbacks!r}")
    if timeout is not None and not isinstance(timeout, Real):
        raise TypeError(f"timeout must be a number of seconds, not {timeout!r}")


def count(name: str, value: Any, least: int) -> int:
    """A count among the arguments; ValueError if it is no whole number or too small."""
    if not hasattr(value, "__index__") or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, not {value!r}")
    return operator.index(value)


def caught(catch: Catch) -> tuple[type[Exception], ...]:
    """The exceptions as a tuple; TypeError for anything else."""
    found = (catch,) if isinstance(catch, (type, str)) else tuple(catch)
    if not all(isinstance(one, type) and issubclass(one, BaseException) for one in found):
        raise TypeError(f"catch must be exceptions, such as ValueError, not {catch!r}")
    return found


class Runner:
    """One call of Study.optimize."""

    def __init__(
        self,
        study: Study,
        objective: Objective,
        bounds: tuple[Optional[int], Optional[float]],
        catch: tuple[type[Exception], ...],
        callbacks: Sequence[Callback],
    ) -> None:
        self._study = study
        self._objective = objective
        self._left, timeout = bounds
        self._deadline = None if timeout is None else time.monotonic() + timeout
        self._catch = catch
        self._callbacks = callbacks
        self._lock = threading.Lock()
        self._ending = False
        self._runs = 0
        self._error: Optional[BaseException] = None
        self._reminded = False

    def run(self, n_jobs: int) -> None:
        """Run until a bound is reached or the study is over; raises what the objective raised."""
        session = Session(self._study.client, self._study.id, n_jobs)
        try:
            if n_jobs == 1:
                self._work(session)
            else:
                self._work_in_threads(session, n_jobs)
        finally:
            self._ending = True
            session.close()
        if self._error is not None:
            raise self._error
        if session.study_over:
            warning = ending(self._study.view, self._runs)
            if warning:
                warnings.warn(warning, stacklevel=3)

    def _work_in_threads(self, session: Session, n_jobs: int) -> None:
        threads = [
            threading.Thread(target=self._work, args=(session,), name=f"tandem-{i}", daemon=True) for i in range(n_jobs)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive():
                thread.join(0.5)  # in steps, so that Ctrl-C is noticed

    def _work(self, session: Session) -> None:
        try:
            while self._take():
                leased = session.lease(self._wait())
                if leased is None:
                    self._give_back()
                    if session.study_over:
                        return
                    self._remind()
                    continue
                self._run(session, *leased)
        except BaseException as error:
            # The other threads end after the trial they are on.
            self._ending = True
            self._error = self._error or error

    def _run(self, session: Session, trial: Trial, link: LeaseLink) -> None:
        with self._lock:
            self._runs += 1
        try:
            state = self._attempt(trial, link)
        except LeaseLost as lost:
            logger.warning("trial %d: %s; going on with the next", trial.number, lost)
            return
        finally:
            session.release(link)
        logger.info("trial %d, rung %d: %s", trial.number, trial.rung, state)
        if self._callbacks:
            record = self._study.trial(trial.number)
            for callback in self._callbacks:
                callback(self._study, record)

    def _attempt(self, trial: Trial, link: LeaseLink) -> str:
        """Run the objective and finish the lease; returns the trial's state."""
        try:
            complete(trial, self._objective(trial))
            return link.finish(outcome_of(trial), trial.directive.reason)
        except LeaseLost:
            raise
        except TrialStopped as stopped:
            return _given_up(trial, link, stopped)
        except Exception as error:
            if link.ended:
                raise LeaseLost(f"trial {trial.id}: {link.ended}") from error
            if type(error).__name__ == "TrialPruned":  # Optuna's
                return _given_up(trial, link, error)
            logger.warning("trial %d failed: %s: %s", trial.number, type(error).__name__, error)
            with contextlib.suppress(TandemError):
                link.log(traceback.format_exc())
            with contextlib.suppress(TandemError):
                state = link.finish("failed", f"{type(error).__name__}: {error}")
                if isinstance(error, self._catch):
                    return state
            raise
        except BaseException as error:
            with contextlib.suppress(TandemError):
                link.finish("interrupted", f"{type(error).__name__} in the objective")
            raise

    def _take(self) -> bool:
        with self._lock:
            if self._ending or self._left == 0 or (self._deadline is not None and time.monotonic() >= self._deadline):
                return False
            if self._left is not None:
                self._left -= 1
            return True

    def _remind(self) -> None:
        """Say once which trials ``ask`` gave that nobody has told the end of: they may be what the study waits for."""
        held = sorted(trial.number for trial in list(self._study._asked))
        with self._lock:
            told, self._reminded = self._reminded, self._reminded or bool(held)
        if held and not told:
            text = "study %s has no trial to give; ask() gave %s in this process: tell() how they ended"
            logger.warning(text, self._study.name, held)

    def _give_back(self) -> None:
        with self._lock:
            if self._left is not None:
                self._left += 1

    def _wait(self) -> float:
        if self._deadline is None:
            return _WAIT_SECONDS
        return min(_WAIT_SECONDS, max(0.0, self._deadline - time.monotonic()))


def _given_up(trial: Trial, link: LeaseLink, why: BaseException) -> str:
    """Finish the lease of an objective that has ended by itself; returns the trial's state."""
    if trial.directive.action == "continue":
        return link.finish("failed", f"the objective gave up: {why}")
    return link.finish(outcome_of(trial), str(why))


def _metrics(trial: Trial, outcome: Outcome) -> dict[str, Any]:
    if isinstance(outcome, Mapping):
        return dict(outcome)
    if isinstance(outcome, (list, tuple)):
        if len(outcome) != len(trial.objectives):
            given = f"the objective returned {len(outcome)} values for {len(trial.objectives)} objectives"
            raise ValueError(f"{given}: return one each for {', '.join(trial.objectives)}")
        return dict(zip(trial.objectives, outcome))
    if len(trial.objectives) != 1:
        raise ValueError(f"the study needs the metrics {list(trial.objectives)}: return a dictionary of them")
    return {trial.objectives[0]: outcome}
