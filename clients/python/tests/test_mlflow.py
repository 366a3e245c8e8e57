"""A study in MLflow's own store."""

from __future__ import annotations

from pathlib import Path

import pytest

import tandem

DEFINITION = {
    "objective": {"metric": "loss", "direction": "minimize"},
    "space": {"x": {"type": "float", "low": 0, "high": 1}, "kind": {"values": ["a", "b"]}},
    "budget": {"policy": "epochs", "epochs": {"min": 1, "max": 3}},
    "search": {"method": "random"},
    "stop": {"trials": 6},
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("store", ["file", "sqlite"])
def test_a_study_becomes_runs(
    real_client: tandem.Client, tmp_path: Path, store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mlflow = pytest.importorskip("mlflow", reason="MLflow is not installed")
    if store == "sqlite":
        pytest.importorskip("sqlalchemy", reason="SQLAlchemy is not installed")
        pytest.importorskip("alembic", reason="Alembic is not installed")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    uri = f"sqlite:///{tmp_path}/mlflow.db" if store == "sqlite" else (tmp_path / "runs").as_uri()
    study = real_client.create_study({**DEFINITION, "name": f"mlflow-{store}"})

    def objective(trial: tandem.Trial) -> None:
        for epoch in trial.epochs():
            if trial.number == 1:
                raise RuntimeError("one")
            trial.report(epoch, **{"loss": trial.params["x"] / epoch, "odd(name)": float("nan")})
            trial.checkpoint(lambda path: Path(path).write_text("x"))

    study.optimize(objective, n_trials=3, catch=RuntimeError)
    parent = tandem.export_mlflow(study, uri)
    study.optimize(objective, catch=RuntimeError)
    assert tandem.export_mlflow(study, uri) == parent
    assert tandem.export_mlflow(study, uri) == parent

    tracking = mlflow.tracking.MlflowClient(uri)
    experiment = tracking.get_experiment_by_name(study.name)
    runs = {run.data.tags.get("tandem.trial"): run for run in tracking.search_runs([experiment.experiment_id])}
    records = {str(record.number): record for record in study.trials}
    assert set(runs) == {None, *records}
    for number, record in records.items():
        run = runs[number]
        assert run.data.tags["mlflow.parentRunId"] == parent
        assert run.data.params == {name: str(value) for name, value in record.params.items()}
        assert run.data.tags["tandem.state"] == record.state
        history = tracking.get_metric_history(run.info.run_id, "loss")
        curve = [(int(r["epoch"]), float(r["metrics"]["loss"])) for r in study.learning_curve(record.number)]
        assert sorted((m.step, m.value) for m in history) == sorted(curve)
        assert run.info.status == {"completed": "FINISHED", "pruned": "KILLED", "failed": "FAILED"}[record.state]
    assert runs["1"].data.tags["tandem.reason"].startswith("RuntimeError: one")
    top = runs[None]
    assert (top.info.run_id, top.info.status) == (parent, "FINISHED")
    assert top.data.tags["tandem.best_trial"] == str(study.best_trial.number)
    assert top.data.metrics["loss"] == pytest.approx(study.best_value)


def test_without_mlflow(real_client: tandem.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "mlflow", None)
    monkeypatch.setitem(sys.modules, "mlflow.entities", None)
    study = real_client.create_study({**DEFINITION, "name": "no-mlflow"})
    with pytest.raises(ImportError, match="pip install mlflow"):
        tandem.export_mlflow(study)
