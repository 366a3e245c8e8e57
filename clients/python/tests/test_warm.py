"""Results of elsewhere, as a study begins with them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from conftest import StartServer

import tandem
from tandem.warm import objectives_of

DEFINITION = {
    "name": "toy",
    "objective": {"metric": "accuracy", "direction": "maximize"},
    "space": {"x": {"type": "int", "low": 0, "high": 9}},
}
YAML = "name: toy\nobjective: [{metric: accuracy, direction: maximize}]\nspace: {x: {type: int, low: 0, high: 9}}\n"


def warm(server: Any, definition: Any, results: Any) -> Any:
    tandem.create_study(definition, warm_start=results, url=server.url, token="secret")
    return server.prior


def test_a_list(start_server: StartServer) -> None:
    sent = warm(
        start_server(),
        DEFINITION,
        [
            {"params": {"x": 1}, "value": float("nan"), "epochs": 3},
            {"params": {"x": 2}, "values": [0.5], "source": "me"},
        ],
    )
    assert sent == [
        {"params": {"x": 1}, "values": ["NaN"], "epochs": 3},
        {"params": {"x": 2}, "values": [0.5], "source": "me"},
    ]


@pytest.mark.parametrize(
    "text",
    [
        "x,kind,accuracy,epochs,data_fraction\n1,a,0.5,9,\n2,b,nan,,0.5\n3,c,,1,1\n",
        ",number,value,params_x,params_kind,epochs,data_fraction,state\n"
        "0,0,0.5,1,a,9,,COMPLETE\n1,1,nan,2,b,,0.5,COMPLETE\n2,2,,3,c,1,1,FAIL\n",
    ],
)
def test_a_csv_file(start_server: StartServer, tmp_path: Path, text: str) -> None:
    path, study = tmp_path / "sweep.csv", tmp_path / "study.yaml"
    path.write_text(text)
    study.write_text(YAML)
    want = [
        {"params": {"x": 1, "kind": "a"}, "values": [0.5], "source": "sweep.csv", "epochs": 9.0},
        {"params": {"x": 2, "kind": "b"}, "values": ["NaN"], "source": "sweep.csv", "data_fraction": 0.5},
    ]
    assert warm(start_server(), DEFINITION, path) == want
    server = start_server()
    assert warm(server, study, str(path)) == want
    assert server.sent("/studies")[0].json["study_file"] == YAML


def optuna_study(*directions: str) -> SimpleNamespace:
    def trial(state: str, **more: Any) -> SimpleNamespace:
        trial = {"params": {"x": 4}, "values": None, "intermediate_values": {}, **more}
        return SimpleNamespace(state=SimpleNamespace(name=state), **trial)

    trials = [
        trial("COMPLETE", values=[0.25]),
        trial("PRUNED", intermediate_values={0: 0.1, 1: 0.2}),
        trial("PRUNED"),
        trial("FAIL"),
    ]
    return SimpleNamespace(
        study_name="sweep", trials=trials, directions=[SimpleNamespace(name=direction) for direction in directions]
    )


def test_an_optuna_study(start_server: StartServer) -> None:
    source = "Optuna study sweep"
    assert warm(start_server(), DEFINITION, optuna_study("MAXIMIZE")) == [
        {"params": {"x": 4}, "values": [0.25], "source": source},
        {"params": {"x": 4}, "values": [0.2], "source": source, "epochs": 2},
    ]
    with pytest.raises(ValueError, match="is to minimize, and this study is to maximize"):
        warm(start_server(), DEFINITION, optuna_study("MINIMIZE"))


@pytest.mark.parametrize(
    ("results", "says"),
    [
        ([], "no result"),
        ([{"x": 1, "accuracy": 0.5}], "must have params"),
        ([{"params": {"x": 1}, "value": 0.5}] * 2001, "at most 2000"),
    ],
)
def test_what_cannot_be_read(start_server: StartServer, results: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        warm(start_server(), DEFINITION, results)


def test_a_csv_file_without_the_objective(start_server: StartServer, tmp_path: Path) -> None:
    path = tmp_path / "sweep.csv"
    path.write_text("x,loss\n1,0.5\n")
    with pytest.raises(ValueError, match="no column is named accuracy"):
        warm(start_server(), DEFINITION, path)


def test_the_objective_of_a_study_file(tmp_path: Path) -> None:
    dotted = """name: toy
# metric: accuracy, direction: minimize
objective:
  metric: edge.latency_ms  # metric: loss
  direction: minimize
constraints:
  - {metric: memory, max: 20}
space: {x: {type: int, low: 0, high: 9}}
"""
    assert objectives_of(dotted) == [("edge.latency_ms", "minimize")]
    assert objectives_of(YAML) == [("accuracy", "maximize")]
    listed = "objective:\n- metric: a\n  direction: maximize\n\n- metric: b.c\n  direction: minimize\nname: x\n"
    assert objectives_of(listed) == [("a", "maximize"), ("b.c", "minimize")]
    assert objectives_of("{name: toy, objective: {metric: a, direction: maximize}}") == [("a", "maximize")]
    formula = {"objective": {"expression": "a / b", "name": "ratio", "direction": "minimize"}}
    assert objectives_of(formula) == [("ratio", "minimize")]
