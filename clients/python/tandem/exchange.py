"""Studies from Optuna's databases, and to MLflow."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Optional

from .client import Client
from .metrics import decode, decode_all
from .record import TrialRecord
from .study import Study

_STUDY_TAG, _TRIAL_TAG, _EPOCHS_TAG = "tandem.study", "tandem.trial", "tandem.epochs"
_BATCH = 1000
"""Metrics in one call to MLflow, which takes no more."""
_LONGEST_TAG = 5000
_STATUS = {"completed": "FINISHED", "paused": "FINISHED", "pruned": "KILLED", "cancelled": "KILLED"}
_OPEN = ("queued", "leased", "running")


def import_optuna(storage: Any, study_name: str, *, client: Optional[Client] = None) -> Study:
    """Make a study of a study in an Optuna storage, such as ``"sqlite:///sweep.db"``; returns it, ready to go on.

    Its space is what the trials asked for, conditions included as far as the trials show them. Completed trials
    become the study's own, with their intermediate values as learning curves; pruned and failed ones are left out.
    It has the name of Optuna's; :class:`ConflictError` if the server has such a study. In Optuna's storage
    it is noted which study that is. Needs Optuna.
    """
    from . import optuna as bridge  # says so if there is no Optuna

    import optuna  # isort: skip

    sampler = bridge.TandemSampler(client=client)
    # Loaded by Optuna itself: a study that the server has is not to be gone on with.
    theirs = optuna.load_study(study_name=study_name, storage=storage, sampler=sampler, pruner=bridge.TandemPruner())
    found = sampler.bring(theirs)
    found.close()
    return found


def export_mlflow(study: Study, tracking_uri: Optional[str] = None, *, experiment: Optional[str] = None) -> str:
    """Copy a study to MLflow: a parent run for the study and a run for each trial below it; returns the parent's id.

    Runs have the trial's parameters, its metrics by epoch, and tags for its state, rung, origin and reason. The
    experiment has the study's name unless another is given. What was exported before is brought up to date: trials
    that had not ended then are added or completed, and no run comes twice. Needs MLflow: ``pip install mlflow`` (or
    ``mlflow-skinny``). Without a ``tracking_uri`` MLflow's own settings decide.
    """
    try:
        from mlflow.entities import Metric, Param, RunTag
        from mlflow.tracking import MlflowClient
    except ImportError as error:
        raise ImportError("export_mlflow needs MLflow: pip install mlflow") from error
    return _Export(MlflowClient(tracking_uri), (Metric, Param, RunTag), study, experiment or study.name).run()


class _Export:
    def __init__(self, tracking: Any, kinds: tuple[Any, Any, Any], study: Study, experiment: str) -> None:
        self._tracking = tracking
        self._metric, self._param, self._tag = kinds
        self._study = study
        self._experiment = experiment

    def run(self) -> str:
        view = self._study.view
        known = self._tracking.get_experiment_by_name(self._experiment)
        place = known.experiment_id if known else self._tracking.create_experiment(self._experiment)
        runs = {
            (run.data.tags.get(_STUDY_TAG), run.data.tags.get(_TRIAL_TAG)): run
            for run in self._runs(place, f"tags.`{_STUDY_TAG}` = '{self._study.id}'")
        }
        parent = runs.get((self._study.id, None)) or self._start(
            place, self._study.name, _milliseconds(view["created"]), {_STUDY_TAG: self._study.id}
        )
        parent_id = str(parent.info.run_id)
        for record in self._study.trials:
            run = runs.get((self._study.id, str(record.number)))
            if run is not None and run.info.status != "RUNNING":
                continue  # exported when it had ended
            self._trial(place, parent_id, record, run)
        self._describe(parent, view)
        return parent_id

    def _trial(self, place: str, parent: str, record: TrialRecord, run: Optional[Any]) -> None:
        if run is None:
            started = _milliseconds(record.raw.get("started") or record.raw.get("created"))
            tags = {
                _STUDY_TAG: self._study.id,
                _TRIAL_TAG: str(record.number),
                "mlflow.parentRunId": parent,
            }
            run = self._start(place, f"trial {record.number}", started, tags)
            params = [self._param(name, str(value)) for name, value in record.params.items()]
            for batch in _batches(params, 100):
                self._tracking.log_batch(run.info.run_id, params=batch)
        run_id = run.info.run_id
        reports = self._study.learning_curve(record.number)
        exported = int(run.data.tags.get(_EPOCHS_TAG, 0))
        fresh = [report for report in reports if int(report["epoch"]) > exported]
        for batch in _batches(list(self._metrics(fresh)), _BATCH):
            self._tracking.log_batch(run_id, metrics=batch)
        tags = {"tandem.state": record.state, "tandem.rung": str(record.rung), "tandem.origin": record.origin}
        tags[_EPOCHS_TAG] = str(max((int(report["epoch"]) for report in reports), default=0))
        if record.reason:
            tags["tandem.reason"] = record.reason
        if record.energy_method:
            tags["tandem.energy_method"] = record.energy_method
        self._set_tags(run_id, tags)
        if record.state in _OPEN or (record.state == "paused" and self._study.status in ("running", "paused")):
            return  # it may go on
        ended = record.raw.get("finished") or (reports[-1].get("at") if reports else None)
        self._tracking.set_terminated(run_id, _STATUS.get(record.state, "FAILED"), _milliseconds(ended))

    def _metrics(self, reports: Sequence[Mapping[str, Any]]) -> Iterator[Any]:
        for report in reports:
            at, epoch = _milliseconds(report.get("at")), int(report["epoch"])
            values = {**decode_all(report["metrics"]), "epoch_seconds": float(report.get("seconds") or 0.0)}
            joules = (report.get("energy") or {}).get("joules")
            if joules:
                values["epoch_joules"] = float(joules)
            for name, value in values.items():
                if not math.isinf(value):  # MLflow's databases store the largest number instead
                    yield self._metric(_metric_name(name), value, at, epoch)

    def _describe(self, run: Any, view: Mapping[str, Any]) -> None:
        run_id, progress = run.info.run_id, view["progress"]
        best = progress.get("best")
        tags = {"tandem.status": str(view["status"]), "tandem.url": self._study.url}
        if best:
            tags["tandem.best_trial"] = str(best["number"])
            tags.update({f"tandem.best.{name}": str(value) for name, value in best["params"].items()})
            name, value = _metric_name(str(best["metric"])), decode(best["value"])
            if run.data.metrics.get(name) != value:
                now = self._metric(name, value, int(time.time() * 1000), int(progress.get("epochs") or 0))
                self._tracking.log_batch(run_id, metrics=[now])
        self._set_tags(run_id, tags)
        if view.get("finished"):
            self._tracking.set_terminated(run_id, "FINISHED", _milliseconds(view["finished"]))

    def _start(self, place: str, name: str, at: int, tags: Mapping[str, str]) -> Any:
        return self._tracking.create_run(place, start_time=at, tags=dict(tags), run_name=name)

    def _set_tags(self, run_id: str, tags: Mapping[str, str]) -> None:
        self._tracking.log_batch(run_id, tags=[self._tag(name, value[:_LONGEST_TAG]) for name, value in tags.items()])

    def _runs(self, place: str, where: str) -> Iterator[Any]:
        token = None
        while True:
            page = self._tracking.search_runs([place], where, max_results=_BATCH, page_token=token)
            yield from page
            token = page.token
            if not token:
                return


def _batches(items: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]


def _milliseconds(at: Any) -> int:
    """Since 1970, of a time as the server writes it: RFC 3339 with up to nine digits behind the second."""
    if not at:
        return 0
    text = str(at).replace("Z", "+00:00")
    whole, dot, rest = text.partition(".")
    if dot:
        digits = len(rest) - len(rest.lstrip("0123456789"))
        text = f"{whole}.{rest[:digits][:6]:0<6}{rest[digits:]}"
    return int(datetime.fromisoformat(text).timestamp() * 1000)


def _metric_name(name: str) -> str:
    """MLflow takes letters, digits, ``_ - . / :`` and spaces."""
    return "".join(c if c.isalnum() or c in "_-./: " else "_" for c in name)
