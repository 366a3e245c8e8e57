"""Results of elsewhere as a study's own trials."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from conftest import StartServer
from fake_server import TOKEN

import tandem

DEFINITION: dict[str, Any] = {
    "objective": [{"metric": "accuracy", "direction": "maximize"}],
    "space": {
        "rate": {"type": "float", "low": 1e-4, "high": 1, "log": True},
        "layers": {"type": "int", "low": 1, "high": 4},
        "kind": {"values": ["a", "b"]},
        "momentum": {"type": "float", "low": 0, "high": 0.9, "step": 0.1, "when": {"kind": "b"}},
    },
    "budget": {"epochs": 3},
    "search": {"method": "tpe", "promotion": "none"},
    "stop": {"trials": 6},
}
CSV = """number,params_rate,params_layers,params_kind,params_momentum,value
0,0.001,1,a,,0.5
1,0.1,2,b,0.3,0.875
2,0.01,9,a,,0.75
3,0.5,4,b,0.7,nan
"""


def test_a_csv_file_becomes_trials(
    real_client: tandem.Client, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "sweep.csv").write_text(CSV)
    with caplog.at_level(logging.WARNING, "tandem"):
        study = real_client.import_results({**DEFINITION, "name": "from-csv"}, tmp_path / "sweep.csv")
    assert "layers" in caplog.text  # of the row that does not fit
    first, second, diverged = study.trials
    assert (dict(first.params), first.value) == ({"rate": 0.001, "layers": 1, "kind": "a"}, 0.5)
    assert second.params["momentum"] == pytest.approx(0.3)
    assert diverged.value is not None
    assert diverged.value != diverged.value
    assert (study.best_trial.number, study.status) == (1, "paused")
    study.optimize(lambda trial: trial.params["rate"])
    assert (len(study.trials), study.status) == (6, "completed")


def test_a_study_of_nothing_but_results_is_over(real_client: tandem.Client) -> None:
    results = [{"params": {"rate": 0.1 * i, "layers": 1, "kind": "a"}, "value": 0.1 * i} for i in range(1, 7)]
    study = real_client.import_results({**DEFINITION, "name": "all-there"}, results)
    assert (len(study.trials), study.status) == (6, "completed")


def test_what_does_not_go(real_client: tandem.Client) -> None:
    result = {"params": {"rate": 0.01, "layers": 1, "kind": "a"}, "value": 0.5}
    ladder = {**DEFINITION, "name": "no-ladder", "budget": {"epochs": {"min": 1, "max": 9}}, "search": {}}
    formula = {
        **DEFINITION,
        "name": "no-formula",
        "objective": [{"expression": "accuracy / 2", "name": "half", "direction": "maximize"}],
    }
    for definition, results, says in (
        (ladder, [result], "up a ladder of budgets"),
        (formula, [result], "a formula as its objective"),
        ({**DEFINITION, "name": "too-many"}, [result] * 7, "over after 6 trials"),
        ({**DEFINITION, "name": "none-fits"}, [{**result, "params": {"rate": 5}}], "none of the 1 results fits"),
    ):
        with pytest.raises(ValueError, match=says):
            real_client.import_results(definition, results)
        with pytest.raises(tandem.NotFoundError):  # nothing is left of it
            real_client.study(definition["name"])


def test_took(start_server: StartServer) -> None:
    server = start_server(trials=1)
    study = tandem.Client(server.url, TOKEN).create_study({"name": "toy", "space": {}})
    with study:
        trial = study.ask()
        for wrong in (-1.0, float("inf"), float("nan")):
            with pytest.raises(ValueError, match="seconds must be"):
                trial.took(wrong)
        trial.took(12.5)
        study.tell(trial, 0.5)
    assert server.reports["s1-0"][0]["seconds"] == 12.5
