"""The sampler and the pruner by which Optuna's studies run on a Tandem server."""

from __future__ import annotations

import contextlib
import random
import re
import threading
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NoReturn, Optional

import optuna
from optuna.distributions import BaseDistribution
from optuna.pruners import BasePruner, MedianPruner
from optuna.samplers import BaseSampler, RandomSampler, TPESampler
from optuna.trial import TrialState

from ..client import Client
from ..errors import ConflictError, InvalidError, LeaseLost, NotFoundError, StudyOver, TandemError
from ..history import History, Measured
from ..params import same
from ..study import OVER, Study
from .constraints import Constraints, ConstraintsFunction, constraints_of
from .pruning import Rule, rule_of
from .run import Completed, Run, finite
from .space import Asked, Exploration, Space, covers, from_server, server_name, to_server, values_of

STUDY_KEY, TRIAL_KEY = "tandem:study", "tandem:trial"
"""System attributes of Optuna's study and trials: the Tandem study's id, the number of its trial."""

_NO_BOUND = 1_000_000
"""Trials. Optuna's optimize knows how many there are to be, and tells nobody."""


class TandemSampler(BaseSampler):
    """Takes proposals from a study on a Tandem server, and brings it the results.

    The first trials look at the space: each value of each choice is tried once, the rest is drawn at random, for at
    most ten trials. Then the study is created on the server under the name of Optuna's, with what was measured so
    far, and proposes. A study of that name which exists already is a :class:`ConflictError`, unless
    ``load_if_exists``: then this process works on it together with all others that do, and learns its space from it.

    Parameters that the server does not know (they showed up later, or their range changes from trial to trial) are
    drawn by ``independent_sampler`` (Optuna's TPE when None), and stand among the trial's metrics as
    ``params.<name>``. ``search`` is laid over the study's ``search``, which is a Gaussian process (``gp``) and with
    several objectives ``tpe``. ``client`` says which server; without one, TANDEM_SERVER and TANDEM_TOKEN do.
    ``constraints_func`` is as in Optuna's samplers: the server has each value as a constraint, and so has what an
    objective gives ``trial.set_constraint``.
    """

    def __init__(
        self,
        *,
        client: Optional[Client] = None,
        load_if_exists: bool = False,
        search: Optional[Mapping[str, Any]] = None,
        independent_sampler: Optional[BaseSampler] = None,
        seed: Optional[int] = None,
        constraints_func: Optional[ConstraintsFunction] = None,
    ) -> None:
        self.study: Optional[Study] = None
        """The study on the server; None while the first trials look at the space."""
        self._client = client or Client()
        self._load_if_exists = load_if_exists
        self._search: dict[str, Any] = dict(search or {})
        if seed is not None:
            self._search.setdefault("seed", seed + 1)  # the server counts from 1
        self._draws = RandomSampler(seed=seed)
        self._constraints = Constraints(constraints_func)
        self._independent = independent_sampler or TPESampler(seed=seed)
        self._exploration = Exploration(random.Random(seed))
        self._lock = threading.RLock()
        self._looked = False
        self._metrics: list[str] = []
        self._known: dict[str, Mapping[str, Any]] = {}
        """The parameters on the server, by name."""
        self._runs: dict[int, Run] = {}
        self._history: Optional[History] = None
        self._strange: set[str] = set()
        self._learned: dict[int, Completed] = {}
        """Trials that looked at the space here, by Optuna's id: the storage may not have their end yet."""
        self._looking: set[int] = set()
        """Running trials that look at the space."""

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_lock": None, "_runs": {}, "_looking": set(), "_history": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.RLock()
        self._history = History(self.study) if self.study is not None else None

    def use(self, client: Optional[Client] = None, load_if_exists: bool = False) -> None:
        """Take what create_study was given besides: the server to work on, and that the study may be there already."""
        self._client = client or self._client
        self._load_if_exists = self._load_if_exists or load_if_exists

    def reseed_rng(self) -> None:
        self._draws.reseed_rng()
        self._independent.reseed_rng()

    def before_trial(self, study: optuna.Study, trial: optuna.trial.FrozenTrial) -> None:
        self._independent.before_trial(study, trial)
        with self._lock:
            if self.study is None:
                self._look(study)

    def infer_relative_search_space(
        self, study: optuna.Study, trial: optuna.trial.FrozenTrial
    ) -> dict[str, BaseDistribution]:
        # All of a proposal's values are handed out one by one, against the range that the objective asks for.
        return {}

    def sample_relative(
        self, study: optuna.Study, trial: optuna.trial.FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        return {}

    def sample_independent(
        self,
        study: optuna.Study,
        trial: optuna.trial.FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        run = self._proposed(study, trial)
        if run is not None:
            name = server_name(param_name)
            value, known = run.trial.params.get(name), self._known.get(name)
            planned = value is not None and known is not None and covers(known, param_distribution)
            found = from_server(param_distribution, value) if planned else None
            if found is not None:
                return found[0]
        if self.study is None and not trial.system_attrs.get("fixed_params"):
            return self._explored(study, trial, param_name, param_distribution)
        if run is not None:
            self._tell_strange(param_name)
        return self._independent.sample_independent(study, trial, param_name, param_distribution)

    def after_trial(
        self,
        study: optuna.Study,
        trial: optuna.trial.FrozenTrial,
        state: TrialState,
        values: Optional[Sequence[float]],
    ) -> None:
        self._independent.after_trial(study, trial, state, values)
        run = self._runs.pop(trial._trial_id, None)
        self._looking.discard(trial._trial_id)
        try:
            constraints = self._constraints.of(study, trial, state)
        except BaseException:
            if run is not None:
                self._finish(run, trial, TrialState.FAIL, None)
            raise
        completed = None
        if state == TrialState.COMPLETE and values is not None:
            completed = _completed(trial, values, constraints)
        if run is not None:
            self._finish(run, trial, state, completed)
        elif completed is not None and completed.asked.params:
            with self._lock:
                if self.study is None:
                    self._look(study)
                if self.study is None:
                    self._learned[trial._trial_id] = completed
                    self._learn(study, completed)
                else:
                    self._record(completed)
        if self.study is not None and self.study.status in OVER:
            with contextlib.suppress(RuntimeError):  # outside of optimize there is nothing to stop
                study.stop()

    def bring(self, study: optuna.Study) -> Study:
        """Create the study on the server with what Optuna's has measured, before it runs a trial here.

        ValueError if nothing is completed in it; :class:`ConflictError` if the server has it already, or a study of
        that name.
        """
        with self._lock:
            kept = study._storage.get_study_system_attrs(study._study_id).get(STUDY_KEY)
            if kept is not None:
                with contextlib.suppress(NotFoundError):
                    raise ConflictError(
                        f"Optuna's study {study.study_name} is study {self._client.study(str(kept)).name} of the "
                        "server: open it with tandem.load_study"
                    )
            self._look(study)
            if self.study is None:
                completed = self._completed(study)
                if not completed:
                    raise ValueError(f"Optuna's study {study.study_name} has no completed trial: run one first")
                self._create(study, completed)
            assert self.study is not None
            return self.study

    def over(self, study: optuna.Study) -> Optional[Mapping[str, Any]]:
        """The study on the server if nothing more happens in it, before a trial is asked for; None if it goes on."""
        with self._lock:
            if self.study is None:
                self._look(study)
            view = self.study.view if self.study is not None else {}
        return view if view.get("status") in OVER else None

    def leave(self) -> None:
        """Tell the server that this process works on the study no more, unless trials that it asked for are out."""
        with self._lock:
            if self.study is None or self._history is None:
                return
            while self._history.spare:
                with contextlib.suppress(TandemError):
                    self.study.tell(self._history.spare.pop(), state="interrupted", reason="it was not needed here")
            self.study.leave()

    def forward(self, trial: optuna.trial.FrozenTrial) -> Optional[bool]:
        """Bring the server what the trial has reported so far; whether it is to be pruned, None if nobody there knows.

        For :class:`TandemPruner`.
        """
        run = self._runs.get(trial._trial_id)
        if run is None:
            return None
        run.forward(_reported(trial))
        return bool(run.stopped)

    # The study on the server.

    def _look(self, study: optuna.Study) -> None:
        """Find the study on the server, or all that is needed to create it."""
        kept = study._storage.get_study_system_attrs(study._study_id).get(STUDY_KEY)
        if kept is not None:
            with contextlib.suppress(NotFoundError):  # it was deleted there: Optuna's trials make a new one
                self._adopt(study, self._client.study(str(kept)))
                return
        name = _study_name(study)
        if not self._looked or self._load_if_exists:
            try:
                existing = self._client.study(name)
            except NotFoundError:
                pass
            else:
                if not self._load_if_exists:
                    raise ConflictError(
                        f"the server has a study named {name!r} already: choose another study_name, or go on with it "
                        "by load_if_exists=True"
                    )
                before = self._completed(study)
                self._adopt(study, existing)
                for one in before:  # no study of the server has had them yet
                    self._record(one)
                return
        if not self._looked:
            before = self._completed(study)
            for one in before:
                self._exploration.learn(one.asked)
            if Space([one.asked for one in before]).settled():
                self._create(study, before)
        self._looked = True

    def _learn(self, study: optuna.Study, completed: Completed) -> None:
        """Take a trial that looked at the space; create the study when they have shown enough."""
        self._exploration.learn(completed.asked)
        known = self._completed(study)
        if Space([one.asked for one in known]).settled():
            self._create(study, known)

    def _completed(self, study: optuna.Study) -> list[Completed]:
        """All trials that have completed, here and in other processes on Optuna's storage, in their order."""
        trials = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        known = {
            trial._trial_id: _completed(trial, trial.values, constraints_of(trial)) for trial in trials if trial.params
        }
        known.update(self._learned)
        return [known[trial_id] for trial_id in sorted(known)]

    def _create(self, study: optuna.Study, completed: Sequence[Completed]) -> None:
        name = _study_name(study)
        metrics = _metric_names(study)
        steps = max((one.steps for one in completed), key=len)
        rule = study.pruner.rule if isinstance(study.pruner, TandemPruner) else None
        rule = rule if rule is not None and len(metrics) == 1 else Rule()
        definition = {
            "name": name,
            "description": "Trials are run by a script that uses Optuna, through tandem.optuna.",
            "objective": [
                {"metric": metric, "direction": direction.name.lower()}
                for metric, direction in zip(metrics, study.directions)
            ],
            "space": Space([one.asked for one in completed]).document(),
            "budget": rule.budget(steps),
            "search": {**_default(metrics), **rule.search(steps), **self._search},
            "stop": {"trials": _NO_BOUND, "failures": 0},
            "retry": {"failures": 0},
        }
        constraints = self._constraints.document(one.constraints for one in completed)
        if constraints:
            definition["constraints"] = constraints
        try:
            created = self._client.create_study(definition)
        except ConflictError:
            if not self._load_if_exists:
                raise
            created = self._client.study(name)  # another process was faster
        self._adopt(study, created)
        for one in completed:
            self._record(one)

    def _adopt(self, study: optuna.Study, found: Study) -> None:
        view = found.view
        definition = view["definition"]
        directions = [str(one.get("direction")) for one in definition.get("objective") or ()]
        wanted = [direction.name.lower() for direction in study.directions]
        if directions != wanted:
            raise ValueError(
                f"study {found.name} on the server is to {', '.join(directions)}, and Optuna's is to "
                f"{', '.join(wanted)}: create it with the same directions, or under another study_name"
            )
        if len(view.get("rungs") or ()) > 1 and definition["search"].get("promotion") != "none":
            raise ValueError(
                f"study {found.name} on the server takes trials up a ladder of budgets, and an objective of Optuna's "
                "trains each in one go: give it one budget, such as budget: {epochs: 10}, or promotion: none"
            )
        self._metrics = [str(one.get("metric") or "") for one in definition["objective"]]
        if not all(self._metrics):
            raise ValueError(
                f"study {found.name} on the server has a formula as its objective, and an objective of Optuna's is a "
                "metric: choose another study_name"
            )
        self._known = {str(one["name"]): one for one in definition["space"]["parameters"]}
        self._constraints.adopt(definition)
        self.study, self._history = found, History(found)
        study._storage.set_study_system_attr(study._study_id, STUDY_KEY, found.id)
        optuna.logging.get_logger("optuna.tandem").info(f"Trials are proposed by {found.url}")

    # Trials.

    def _proposed(self, study: optuna.Study, trial: optuna.trial.FrozenTrial) -> Optional[Run]:
        """The server's proposal for the trial; None while nobody asks it, or the user has fixed the values."""
        found = self._runs.get(trial._trial_id)
        if found is not None or self.study is None or trial.system_attrs.get("fixed_params"):
            return found
        if trial._trial_id in self._looking:
            return None
        with self._lock:  # so that nobody takes what _record enqueues
            spare = self._history.spare if self._history is not None else []
            try:
                leased = spare.pop(0) if spare else self.study.ask()
            except StudyOver as over:
                _end(study, over)
        self._runs[trial._trial_id] = Run(leased, self._metrics)
        study._storage.set_trial_system_attr(trial._trial_id, TRIAL_KEY, leased.number)
        return self._runs[trial._trial_id]

    def _explored(
        self, study: optuna.Study, trial: optuna.trial.FrozenTrial, name: str, distribution: BaseDistribution
    ) -> Any:
        self._looking.add(trial._trial_id)
        values = values_of(distribution)
        if values is None:
            return self._draws.sample_independent(study, trial, name, distribution)
        with self._lock:
            return self._exploration.choose(name, values)

    def _finish(
        self, run: Run, trial: optuna.trial.FrozenTrial, state: TrialState, completed: Optional[Completed]
    ) -> None:
        """Tell the server how a trial that it proposed has ended."""
        assert self.study is not None
        try:
            if completed is None:
                run.forward(_reported(trial))
            if run.lost:
                self.study.tell(run.trial, state="interrupted")  # forgets it here, and raises LeaseLost
            elif run.stopped:
                self.study.tell(run.trial, reason=run.stopped)
            elif completed is None:
                self.study.tell(run.trial, state="failed", reason=_why(trial, state))
            else:
                other = self._differences(run, completed)
                if other:
                    self.study.tell(run.trial, state="failed", reason=f"not run as proposed: {other}")
                    with self._lock:
                        self._record(completed)
                else:
                    run.complete(completed, self._besides(completed, run.trial.params))
                    self.study.tell(run.trial, state="interrupted" if run.lost else None, reason=run.stopped)
        except LeaseLost as lost:
            optuna.logging.get_logger("optuna.tandem").warning(
                f"Trial {trial.number} ended, but the server had given it to another process: {lost}"
            )

    def _record(self, completed: Completed) -> None:
        """Bring the server a trial that it did not propose."""
        assert self._history is not None
        configuration = self._configuration(completed)
        metrics = {**dict(zip(self._metrics, completed.values)), **self._besides(completed, configuration)}
        try:
            self._history.record(Measured(configuration, metrics, completed.reported, completed.seconds))
        except (InvalidError, ConflictError, LeaseLost, StudyOver) as error:
            optuna.logging.get_logger("optuna.tandem").warning(
                f"A trial with {dict(completed.asked.params)} was not recorded on the server: {error}"
            )

    def _configuration(self, completed: Completed) -> dict[str, Any]:
        asked = completed.asked
        return {
            server_name(name): to_server(asked.distributions[name], value)
            for name, value in asked.params.items()
            if server_name(name) in self._known
        }

    def _differences(self, run: Run, completed: Completed) -> str:
        """Where the trial ran with another value than the one proposed; empty if nowhere."""
        proposed = run.trial.params
        found = [
            f"{name} was {value!r} instead of {proposed[name]!r}"
            for name, value in self._configuration(completed).items()
            if name in proposed and not same(proposed[name], value)
        ]
        return ", ".join(found)

    def _besides(self, completed: Completed, params: Mapping[str, Any]) -> dict[str, float]:
        """What the server gets with a result: the constraints, and the values that its trial does not have."""
        return {**finite(self._extra(completed, params)), **self._constraints.metrics(completed.constraints)}

    @staticmethod
    def _extra(completed: Completed, params: Mapping[str, Any]) -> dict[str, float]:
        """The values that the server's trial does not have, as metrics."""
        return {
            f"params.{server_name(name)}": float(value)
            for name, value in completed.asked.params.items()
            if isinstance(value, (int, float)) and server_name(name) not in params
            if not completed.asked.distributions[name].single()
        }

    def _tell_strange(self, name: str) -> None:
        if name in self._strange:
            return
        self._strange.add(name)
        optuna.logging.get_logger("optuna.tandem").warning(
            f"The parameter {name!r} is drawn by {type(self._independent).__name__} in this process: it, or its range, "
            "was not seen in the trials that looked at the space, so the server cannot propose it. Its values stand "
            "among the trials' metrics."
        )


class TandemPruner(BasePruner):
    """Reports to the server while a trial runs, and prunes the trials that it stops.

    What pruner means is done by the server (its early stopping) for Optuna's MedianPruner (the default),
    PercentilePruner, SuccessiveHalvingPruner and NopPruner. Any other decides here as ever: the server then hears of
    a pruned trial as one that failed, with the pruner as the reason. Works together with :class:`TandemSampler`.
    """

    def __init__(self, pruner: Optional[BasePruner] = None) -> None:
        self._pruner = pruner if pruner is not None else MedianPruner()
        self.rule = rule_of(self._pruner)
        """What the server is to do; None if the pruner decides here."""

    def prune(self, study: optuna.Study, trial: optuna.trial.FrozenTrial) -> bool:
        if not isinstance(study.sampler, TandemSampler):
            raise ValueError(
                f"TandemPruner works with TandemSampler, and the study has {type(study.sampler).__name__}: use "
                "tandem.optuna.create_study, or give the study both"
            )
        stopped = study.sampler.forward(trial)
        if stopped or self.rule is not None:
            return bool(stopped)
        return bool(self._pruner.prune(study, trial))


def _end(study: optuna.Study, over: StudyOver) -> NoReturn:
    """Let optimize end with this trial, which nobody tried: it has failed, as nothing was measured or pruned."""
    with contextlib.suppress(RuntimeError):  # outside of optimize there is nothing to stop
        study.stop()
    raise over


def _completed(trial: optuna.trial.FrozenTrial, values: Sequence[float], constraints: Mapping[str, float]) -> Completed:
    started = trial.datetime_start
    ended = trial.datetime_complete or datetime.now()
    seconds = max((ended - started).total_seconds(), 0.0) if started is not None else 0.0
    asked = Asked(dict(trial.distributions), dict(trial.params))
    steps = sorted(trial.intermediate_values)
    return Completed(asked, _reported(trial), steps, [float(value) for value in values], seconds, constraints)


def _reported(trial: optuna.trial.FrozenTrial) -> list[float]:
    return [float(value) for _, value in sorted(trial.intermediate_values.items())]


def _why(trial: optuna.trial.FrozenTrial, state: TrialState) -> str:
    if state == TrialState.PRUNED:
        step = f" at step {trial.last_step}" if trial.last_step is not None else ""
        return f"pruned by the script{step}"
    return "the objective failed; the script's output says how"


def _study_name(study: optuna.Study) -> str:
    """The name of the study on the server, which takes letters, digits and ``. _ -``."""
    found = re.sub(r"[^A-Za-z0-9._-]", "-", study.study_name)[:128]
    return found if re.match(r"[A-Za-z0-9]", found) else f"s{found}"[:128]


def _default(metrics: Sequence[str]) -> dict[str, Any]:
    """How the server searches, unless it is told: a Gaussian process takes one objective."""
    return {"method": "gp" if len(metrics) == 1 else "tpe", "promotion": "none"}


def _metric_names(study: optuna.Study) -> list[str]:
    given = getattr(study, "metric_names", None)
    if given is None:
        return ["value"] if len(study.directions) == 1 else [f"value_{i}" for i in range(len(study.directions))]
    found = [re.sub(r"[^A-Za-z0-9_]", "_", str(name)) for name in given]
    return [name if re.match(r"[A-Za-z]", name) and name not in _RESERVED else f"value_{name}" for name in found]


_RESERVED = (
    "epoch",
    "checkpoint",
    "train_seconds",
    "train_joules",
    "train_cost",
    "train_co2_g",
    "epochs",
    "data_fraction",
)
"""Metric names that mean something else to the server."""
