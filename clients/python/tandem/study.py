"""A study as a program sees it: run it, watch it, read its answer."""

from __future__ import annotations

import gc
import sys
import threading
import time
import warnings
import weakref
from collections.abc import Iterator, Mapping, Sequence
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional, Union
from urllib.parse import urlencode

from . import notebook, plots
from .client import Client
from .errors import LeaseLost, StudyOver, TandemError
from .metrics import decode, decode_list
from .names import absent, states_of
from .optimize import Callback, Objective, Outcome, Runner, caught, check, complete, count, outcome_of
from .params import same
from .plots import Figure
from .record import Recommendation, TrialRecord
from .transport import Request
from .trial import Trial
from .waiting import PATIENCE, Waiting
from .worker import LeaseLink, Session, fetch

if TYPE_CHECKING:
    import pandas

OVER = ("completed", "stopped", "failed")
"""What a study's status is when nothing more happens in it."""
_PAGE = 1000


class Study:
    """One study of a server. Its numbers are asked for anew at each access.

    ``owner`` is the user whose it is; ``admin`` stands for the administrators.
    """

    def __init__(self, client: Client, view: Mapping[str, Any]) -> None:
        self.client = client
        self.id = str(view["id"])
        self.name = str(view["name"])
        self.owner = str(view.get("owner", "admin"))
        self._session: Optional[Session] = None
        # By the run: one that is told may be asked for again, promoted, before the answer to its end is here.
        self._asked: dict[Trial, LeaseLink] = {}
        self._asking = 0
        self._enqueued: list[Mapping[str, Any]] = []
        self._lock = threading.Lock()
        self._at_exit: Optional[weakref.finalize[Any, Any]] = None

    def __repr__(self) -> str:
        return f"<tandem.Study {self.name!r} on {self.client.url}>"

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            raise AttributeError(absent("a study of Tandem", name))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled as its name: the trials that were asked for here stay here."""
        return Study, (self.client, {"id": self.id, "name": self.name, "owner": self.owner})

    @property
    def view(self) -> Mapping[str, Any]:
        """The whole study as the server describes it: definition, rungs, progress."""
        found: Mapping[str, Any] = self._get()
        return found

    @property
    def status(self) -> str:
        """running, paused, completed, stopped or failed."""
        return str(self.view["status"])

    @property
    def progress(self) -> Mapping[str, Any]:
        """Trials by state, epochs, seconds, energy, the best so far.

        Of a study that tunes system parameters also ``saved`` (seconds and joules against the default
        configuration with their 95% intervals; absent where no difference was measured),
        ``epochs_by_phase`` and ``system_use``.
        """
        found: Mapping[str, Any] = self.view["progress"]
        return found

    @property
    def url(self) -> str:
        """The study's web page."""
        return f"{self.client.url}/studies/{self.id}"

    def optimize(
        self,
        objective: Objective,
        n_trials: Optional[int] = None,
        timeout: Optional[float] = None,
        n_jobs: int = 1,
        catch: Union[type[Exception], Sequence[type[Exception]]] = (),
        callbacks: Sequence[Callback] = (),
        gc_after_trial: bool = False,
        show_progress_bar: bool = False,
    ) -> None:
        """Run ``objective(trial)`` in this process until the study is over or a bound is reached.

        n_trials counts runs of the objective: a trial that is promoted runs
        again, to a larger budget. No run is started after ``timeout`` seconds.
        ``n_jobs`` runs go on at once, each in a thread. A run that raises is
        recorded as failed, and the exception ends this call unless it is one
        of ``catch``. Each callback gets the study and the trial's record after
        a run. ``gc_after_trial`` collects garbage then, and ``show_progress_bar``
        prints how far the study is to standard error. Ctrl-C gives the running trials back; they continue later, from
        their checkpoints, wherever a worker asks for them. A warning says that
        the study was over already, so that nothing was run, or that it failed.
        """
        check(objective, callbacks, timeout)
        runs = None if n_trials is None else count("n_trials", n_trials, 0)
        after: list[Callback] = [*callbacks]
        if gc_after_trial:
            after.append(_collect)
        if show_progress_bar:
            after.append(_show)
        Runner(self, objective, (runs, timeout), caught(catch), after).run(count("n_jobs", n_jobs, 1))

    def ask(self, timeout: Optional[float] = None) -> Trial:
        """A trial to run here; answer it with :meth:`tell`.

        Waits while the study has none to give (it is paused, or all are with
        other workers), for at most ``timeout`` seconds: then TimeoutError.
        Raises :class:`StudyOver` when the study has ended.
        """
        if timeout is not None and not isinstance(timeout, Real):
            raise TypeError(f"ask takes a timeout in seconds, not {timeout!r}: parameters are in the study's space")
        with self._lock:
            if self._session is None:
                self._session = Session(self.client, self.id)
                # Also at the end of the process: what was asked for and not told is given back.
                self._at_exit = weakref.finalize(self, self._session.close)
            session = self._session
            self._asking += 1  # several threads may ask at once
            session.reserve(len(session.held()) + self._asking)
        try:
            return self._await(session, timeout)
        finally:
            with self._lock:
                self._asking -= 1

    def _await(self, session: Session, timeout: Optional[float]) -> Trial:
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            left = PATIENCE if deadline is None else deadline - time.monotonic()
            leased = session.lease(min(max(left, 0.0), PATIENCE))
            if leased is not None:
                trial, self._asked[trial] = leased
                return trial
            if session.study_over:
                raise StudyOver(f"study {self.name} has ended: there is no trial to ask for")
            if deadline is not None and time.monotonic() >= deadline:
                raise TimeoutError(f"study {self.name} had no trial to give for {timeout} s")

    def tell(self, trial: Trial, value: Outcome = None, *, state: Optional[str] = None, reason: str = "") -> str:
        """End a trial that :meth:`ask` gave; returns the state it has now.

        ``value`` is what an objective would return, and may be left out when
        the last epoch of the budget was reported. ``state="failed"`` records a
        failure, ``state="interrupted"`` gives the trial back to continue later.
        """
        if state not in (None, "failed", "interrupted"):
            raise ValueError(f"state must be 'failed', 'interrupted' or left out, not {state!r}")
        if not isinstance(trial, Trial):
            raise TypeError(f"tell takes the trial that ask gave, not {trial!r}")
        link = self._asked.get(trial)
        if link is None:
            raise ValueError(f"trial {trial.number} was not asked for here, or has been told already")
        if state is None:
            complete(trial, value)
        try:
            answer = link.finish(state or outcome_of(trial), reason)
        except LeaseLost:
            self._forget(trial, link)
            raise
        self._forget(trial, link)
        return answer

    def _forget(self, trial: Trial, link: LeaseLink) -> None:
        self._asked.pop(trial, None)
        if self._session is not None:
            self._session.release(link)

    def enqueue(self, *configurations: Mapping[str, Any]) -> int:
        """Try these configurations before anything the search proposes, in this order; returns how many wait now.

        Parameters that a configuration lacks are drawn by the server; those that do not exist in it are left
        out. They count toward ``stop.trials``. Raises :class:`InvalidError` when one does not fit the space (then
        none is enqueued), and :class:`ConflictError` when the study is over or has no trial left for them.
        """
        if not configurations:
            raise ValueError("give at least one configuration, such as enqueue({'learning_rate': 0.01})")
        document = {"configurations": [dict(configuration) for configuration in configurations]}
        answer = self.client.post(f"enqueue in study {self.name}", document, "studies", self.id, "enqueue")
        return int(answer["waiting"])

    def enqueue_trial(
        self, params: Mapping[str, Any], user_attrs: Optional[Mapping[str, Any]] = None, skip_if_exists: bool = False
    ) -> None:
        """:meth:`enqueue` of one configuration, under the name that Optuna has for it.

        With ``skip_if_exists`` nothing is done if a trial has these values, or this object has enqueued them before.
        """
        if user_attrs:
            raise TypeError(absent("a trial of Tandem", "user_attrs"))
        known = [*self._enqueued, *(record.params for record in self._pages())] if skip_if_exists else []
        if any(params.keys() <= one.keys() and all(same(one[name], params[name]) for name in params) for one in known):
            return
        self.enqueue(params)
        self._enqueued.append(dict(params))

    def get_trials(self, deepcopy: bool = True, states: Optional[Sequence[Any]] = None) -> list[TrialRecord]:
        """:attr:`trials`, those in some states only: of :attr:`TrialRecord.state`, or Optuna's. All are copies."""
        wanted = None if states is None else states_of(states)
        return [one for one in self._pages() if wanted is None or one.state in wanted]

    def trial(self, number: int) -> TrialRecord:
        """One trial."""
        return TrialRecord.of(self._get("trials", number)["trial"])

    def learning_curve(self, number: int) -> list[Mapping[str, Any]]:
        """Every report of a trial, in order: epoch, rung, metrics, seconds, energy."""
        found: list[Mapping[str, Any]] = self._get("trials", number)["reports"] or []
        return found

    def samples(self, number: int) -> list[Mapping[str, Any]]:
        """What was sampled of a trial about once a second, by lease: begin, seconds, epochs and metrics.

        The lists have one length. The metrics are rates per second, or means of states; "NaN" where one is missing.
        ``energy_method`` says how ``machine.watts`` were obtained: where it starts with "estimate", they are one.
        """
        found: list[Mapping[str, Any]] = self._get("trials", number, "samples")["leases"]
        return found

    @property
    def trials(self) -> list[TrialRecord]:
        """All trials, by number."""
        return list(self._pages())

    @property
    def best_trial(self) -> TrialRecord:
        """The best of the trials measured at the highest rung; ValueError, which says why, as long as there is none."""
        return self.trial(int(self._leading()["number"]))

    @property
    def best_params(self) -> Mapping[str, Any]:
        """The values of :attr:`best_trial`."""
        return self.best_trial.params

    @property
    def best_value(self) -> float:
        """The first objective of :attr:`best_trial`; where that was repeated, the mean of its trainings."""
        return decode(self._leading()["value"])

    def _leading(self) -> Mapping[str, Any]:
        view = self.view
        best: Optional[Mapping[str, Any]] = view["progress"].get("best")
        if best:
            if best.get("violation"):
                text = f"no trial of {self.name} keeps to its constraints: trial {best['number']} comes nearest"
                warnings.warn(text, stacklevel=4)
            return best
        if view["status"] in OVER:
            raise ValueError(f"no trial of {self.name} was measured: it is {_ending(view)}")
        if (view["progress"].get("trials") or {}).get("completed"):
            raise ValueError(f"each trial of {self.name} so far has NaN, which is never the best")
        raise ValueError(f"no trial of {self.name} has been measured yet")

    @property
    def best_trials(self) -> list[TrialRecord]:
        """The trials of the Pareto front, the best compromise first; with one objective the best trial."""
        return [self.trial(int(one["number"])) for one in self.pareto()["trials"]]

    def pareto(self) -> Mapping[str, Any]:
        """The trials that no other beats in all objectives, at the highest rung with a feasible measurement.

        As the server describes it: ``{"objectives": [{"name", "direction", "reference", "given"}], "rung",
        "trials": [{"number", "rank", "values", "params"}], "hypervolume", "notes"}``. The hypervolume is
        measured from the references, and is missing where it cannot be told.
        """
        found: Mapping[str, Any] = self._get("pareto")
        return {**found, "trials": [{**one, "values": decode_list(one["values"])} for one in found["trials"]]}

    def importance(self, *, objective: int = 0, rung: Optional[int] = None) -> Mapping[str, Any]:
        """Which parameters made the good trials good, for each rung, the highest first.

        As the server describes it: ``{"rungs": [{"rung", "trials", "parameters": [...]}], ...}``. Each
        parameter has its ``name``, its ``share``, and the ``chance`` of as much if it did nothing: above
        0.05 the share says nothing. ``objective`` is the place of one of several objectives.
        """
        found: Mapping[str, Any] = self._analysis("importance", objective=objective, rung=rung)
        return found

    def advise(self) -> Mapping[str, Any]:
        """What the results tell: ranges to widen, values at which trials fail, parameters that depend on each other
        or hardly matter, and whether more trials are worth it.

        As the server describes it: ``{"pieces": [{"kind", "parameter", "found", "do", "evidence", "chance",
        ...}], "notes": [...]}``. What chance would show as well is not named.
        """
        found: Mapping[str, Any] = self._get("advice")
        return found

    def correlations(self) -> Mapping[str, Any]:
        """How far each rung's ranking of trials holds at the next rung and at the top one.

        As the server describes it: ``{"rungs": [{"from", "to", "trials", "spearman", "low", "high",
        "corrected", ...}], "notes": [...]}``. ``spearman`` is what the trials measured at both show;
        ``corrected`` estimates the same for all trials of the lower rung.
        """
        found: Mapping[str, Any] = self._get("correlations")
        return found

    def recommendation(self) -> Recommendation:
        """The study's answer, with how far it can be trusted."""
        return Recommendation.of(self._get("recommendation"))

    def download_checkpoint(self, directory: Union[str, Path], number: Optional[int] = None) -> Path:
        """Put a trial's last checkpoint (the winner's when no number is given) into a new directory."""
        record = self.best_trial if number is None else self.trial(number)
        if not record.raw.get("checkpoint"):
            raise TandemError(f"trial {record.number} of {self.name} has no checkpoint")
        target = Path(directory)
        target.mkdir(parents=True)
        fetch(self.client, record.raw["checkpoint"], target)
        return target

    def artifact(self, number: int, name: str) -> bytes:
        """The content of a file that the trial's script logged; :attr:`TrialRecord.artifacts` has their names."""
        path = self.client.path("studies", self.id, "trials", number, "artifacts", name)
        return bytes(self.client.transport.send(Request("GET", path, f"download {name}", read=lambda r: r.read())))

    def trials_dataframe(self, attrs: Optional[Sequence[str]] = None) -> pandas.DataFrame:
        """All trials as a pandas.DataFrame: one row each, params_<name> and metrics_<name> as columns.

        ``value`` is the first objective at the highest rung measured, and with several objectives there is a column
        value_<name> for each. ``joules`` is missing where no energy is known; where ``energy_method`` starts with
        "estimate" it is one. ``attrs`` are the columns to have, such as ``("number", "value", "params")``.
        """
        try:
            import pandas
        except ImportError as error:
            raise ImportError("trials_dataframe() needs pandas: pip install pandas") from error
        names = [objective.name for objective in self._objectives()]
        found = pandas.DataFrame([_row(record, names) for record in self._pages()])
        if attrs is None:
            return found
        return found[[c for name in attrs for c in found.columns if c == name or c.startswith(f"{name}_")]]

    def plot_history(self, *, objective: int = 0) -> Figure:
        """Each trial's value by its number, and the best so far. Plots need Plotly: ``pip install plotly``."""
        return plots.history(self._pages(), self._objectives()[objective])

    def plot_curves(self, numbers: Optional[Sequence[int]] = None, *, metric: Optional[str] = None) -> Figure:
        """Learning curves of these trials, or of the twenty best; of the first objective, or of a metric."""
        if numbers is None:
            path = f"{self.client.path('studies', self.id, 'trials')}?sort=rank&limit=20"
            page = self.client.transport.send(Request("GET", path, f"list the trials of {self.name}"))
            numbers = [int(document["number"]) for document in page["trials"] or ()]
        reports = {number: self.learning_curve(number) for number in numbers}
        return plots.curves(reports, metric or self._objectives()[0].name)

    def plot_parallel(self, *, objective: int = 0) -> Figure:
        """Parallel coordinates: a line for each trial over its parameters; drag along an axis to choose."""
        definition = self.view["definition"]
        return plots.parallel(self._pages(), plots.parameters_of(definition), self._objectives(definition)[objective])

    def plot_importance(self, *, objective: int = 0) -> Figure:
        """Which parameters made the good trials good; see :meth:`importance`."""
        return plots.importance(self.importance(objective=objective))

    def plot_pareto(self) -> Figure:
        """The trials by their first two or three objectives, and which of them no other beats."""
        front = [int(one["number"]) for one in self.pareto()["trials"]]
        return plots.pareto(self._pages(), front, self._objectives())

    def plot_slice(self, params: Optional[Sequence[str]] = None, *, objective: int = 0) -> Figure:
        """A panel for each parameter, its values against the trials'."""
        definition = self.view["definition"]
        chosen = plots.choose(plots.parameters_of(definition), params)
        return plots.slices(self._pages(), chosen, self._objectives(definition)[objective])

    def plot_contour(self, first: str, second: str, *, objective: int = 0, rung: Optional[int] = None) -> Figure:
        """The objective over two parameters, interpolated between the trials of a rung: an estimate."""
        definition = self.view["definition"]
        one, other = plots.choose(plots.parameters_of(definition), [first, second])
        return plots.contour(self._pages(), one, other, self._objectives(definition)[objective], rung)

    def plot_edf(self, *others: Study, objective: int = 0, rung: Optional[int] = None) -> Figure:
        """The distribution of the trials' values, beside those of other studies of the same objective."""
        studies = {study.name: study._pages() for study in (self, *others)}
        return plots.edf(studies, self._objectives()[objective], rung)

    def _objectives(self, definition: Optional[Mapping[str, Any]] = None) -> list[plots.Objective]:
        return plots.objectives_of(self.view["definition"] if definition is None else definition)

    def _repr_html_(self) -> str:
        return notebook.study(self.view, self.url)

    def pause(self) -> None:
        """Start no further run; running ones take a checkpoint and end."""
        self._post("pause")

    def resume(self) -> None:
        """Go on after a pause."""
        self._post("resume")

    def stop(self) -> None:
        """End the study for everyone: running trials are cancelled."""
        self._post("stop")

    def extend(
        self,
        *,
        trials: int = 0,
        seconds: float = 0,
        data_passes: float = 0,
        training_seconds: float = 0,
        joules: float = 0,
        cost: float = 0,
        co2_g: float = 0,
    ) -> None:
        """Give the study more of what its stop section bounds; one that is over goes on where it ended.

        The numbers say how much more: than the limits of a study that runs, and than was used of one that
        is over. Raises :class:`TandemError` if it could not go on with that.
        """
        more = {
            "trials": trials,
            "seconds": seconds,
            "data_passes": data_passes,
            "training_seconds": training_seconds,
            "joules": joules,
            "cost": cost,
            "co2_g": co2_g,
        }
        given = {name: value for name, value in more.items() if value}
        self.client.post(f"extend {self.name}", given, "studies", self.id, "extend")

    def set(self, *, priority: Optional[int] = None, parallel: Optional[int] = None) -> None:
        """Change the study's priority, and how many of its trials run at once at most; ``parallel=0`` is no bound.

        It holds for the next trial; those that run go on.
        """
        given = {name: value for name, value in (("priority", priority), ("parallel", parallel)) if value is not None}
        self.client.post(f"change {self.name}", given, "studies", self.id, "set")

    def retry_failed(self) -> None:
        """Try each failed or lost trial again, as a new trial with the same parameters and ``retry_of``.

        A study that is over goes on for that. Raises :class:`TandemError` if none failed that was not tried
        again already.
        """
        self.client.post(f"retry {self.name}", {"retry_failed": True}, "studies", self.id, "extend")

    def annotate(
        self,
        *,
        tags: Sequence[str] = (),
        remove_tags: Sequence[str] = (),
        note: Optional[str] = None,
        trial: Optional[int] = None,
    ) -> None:
        """Add tags to the study, or to one of its trials, take some off, and replace the note.

        What is not given stays; an empty note removes the one that is there.
        """
        amendment: dict[str, Any] = {"add_tags": list(tags), "remove_tags": list(remove_tags)}
        if note is not None:
            amendment["note"] = note
        whose = ("trials", trial) if trial is not None else ()
        self.client.post(f"annotate {self.name}", amendment, "studies", self.id, *whose, "annotate")

    @property
    def tags(self) -> tuple[str, ...]:
        """The words that people find the study by."""
        return tuple(self.view.get("tags") or ())

    @property
    def note(self) -> str:
        """What people wrote about the study; empty without a note."""
        return str(self.view.get("note") or "")

    def share(self, name: str, days: float = 30.0) -> str:
        """A link for a browser that shows this study, and nothing else, until it expires or is revoked.

        Whoever has it can look, and change nothing. ``name`` says for whom it is: the list of links on the
        study's page and the server's audit log show it.
        """
        link = self.client.post(
            f"share {self.name}", {"name": name, "ttl_seconds": days * 86400}, "studies", self.id, "links"
        )
        return f"{self.client.url}{link['path']}"

    def delete(self) -> None:
        """Remove the study with everything that belongs to it."""
        path = self.client.path("studies", self.id)
        self.client.transport.send(Request("DELETE", path, f"delete study {self.name}"))

    def wait(self, progress: bool = True, interval: float = 2.0) -> Recommendation:
        """Wait until the study is over, showing how far it is on standard error; returns the recommendation.

        If no worker can run it for some seconds, a warning says why, and how one is started.
        """
        shown, waiting = "", Waiting(self.client.url)
        while True:
            view = self.view
            waiting.look(view)
            line = _progress_line(view)
            if progress and line != shown:
                print(line, file=sys.stderr, flush=True)
                shown = line
            if view["status"] in OVER:
                return self.recommendation()
            time.sleep(interval)

    def close(self) -> None:
        """Give back the trials asked for and not told. The study can go on, here or in another process."""
        if self._session is not None:
            self._session.close()
            self._session = None
            self._asked.clear()
        if self._at_exit is not None:
            self._at_exit.detach()

    def leave(self) -> None:
        """:meth:`close`, unless trials that were asked for have not been told yet.

        A study without a command rests on the server, and its time with it, once the last process that worked on it
        has left. It goes on as soon as one asks again.
        """
        with self._lock:
            if self._asked or self._asking:
                return
        self.close()

    def __enter__(self) -> Study:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _pages(self) -> Iterator[TrialRecord]:
        offset = 0
        base = self.client.path("studies", self.id, "trials")
        while True:
            path = f"{base}?sort=number&order=asc&limit={_PAGE}&offset={offset}"
            page = self.client.transport.send(Request("GET", path, f"list the trials of {self.name}"))
            for document in page["trials"] or ():
                yield TrialRecord.of(document)
            offset += _PAGE
            if offset >= int(page["total"]):
                return

    def _analysis(self, part: str, **query: Optional[Union[int, str]]) -> Any:
        asked = urlencode({name: value for name, value in query.items() if value is not None})
        path = self.client.path("studies", self.id, part)
        return self.client.transport.send(Request("GET", f"{path}?{asked}", f"read study {self.name}"))

    def _get(self, *parts: Union[str, int]) -> Any:
        return self.client.get(f"read study {self.name}", "studies", self.id, *parts)

    def _post(self, action: str) -> None:
        self.client.post(f"{action} study {self.name}", None, "studies", self.id, action)


def _row(record: TrialRecord, objectives: Sequence[str]) -> dict[str, Any]:
    row: dict[str, Any] = {"number": record.number, "state": record.state, "value": record.value}
    if len(objectives) > 1:
        row.update({f"value_{name}": None for name in objectives})
        row.update({f"value_{name}": value for name, value in zip(objectives, record.values)})
    row.update(
        {
            "rung": record.rung,
            "epochs": record.epochs,
            "seconds": record.seconds,
            "joules": record.joules if record.energy_method else None,
            "energy_method": record.energy_method or None,
            "origin": record.origin,
            "reason": record.reason or None,
            "tags": " ".join(record.tags) or None,
            "note": record.note or None,
        }
    )
    row.update({f"params_{name}": value for name, value in record.params.items()})
    row.update({f"metrics_{name}": value for name, value in record.metrics.items()})
    return row


def _collect(study: Study, record: TrialRecord) -> None:
    gc.collect()


def _show(study: Study, record: TrialRecord) -> None:
    print(_progress_line(study.view), file=sys.stderr, flush=True)


def _ending(view: Mapping[str, Any]) -> str:
    """How a study ended, and why."""
    reason = view.get("reason")
    return f"{view['status']}: {reason}" if reason else str(view["status"])


def _progress_line(view: Mapping[str, Any]) -> str:
    progress = view["progress"]
    counts = ", ".join(f"{count} {state}" for state, count in (progress.get("trials") or {}).items() if count)
    best = progress.get("best")
    leading = f"; {notebook.leading(best)} {best['value']} (trial {best['number']})" if best else ""
    return f"{view['name']} is {view['status']}: {counts or 'no trials yet'}{leading}"
