"""Charts and tables for notebooks."""

from __future__ import annotations

import math
import sys
from typing import Any, Optional

import pytest
from conftest import StartServer, study_on

import tandem
from tandem import notebook, plots
from tandem.plots import Objective, Parameter

LOSS = Objective("loss", maximize=False)
RATE, LAYERS, KIND = (
    Parameter("rate", True, None),
    Parameter("layers", False, None),
    Parameter("kind", False, ["a", "b"]),
)


def record(number: int, values: list[list[float]], params: Optional[dict[str, Any]] = None) -> tandem.TrialRecord:
    """A trial with these values at the rungs 0, 1, ..."""
    budgets = [{"epochs": 3**rung, "data_fraction": 1.0} for rung in range(max(len(values), 1))]
    return tandem.TrialRecord.of(
        {
            "number": number,
            "id": f"s-{number}",
            "state": "paused",
            "params": params or {"rate": 10.0 ** -(number + 1), "layers": number + 1, "kind": "ab"[number % 2]},
            "rung": len(budgets) - 1,
            "budget": budgets[-1],
            "results": [{"rung": i, "budget": budgets[i], "values": v} for i, v in enumerate(values)],
        }
    )


TRIALS = [
    record(0, [[0.9]]),
    record(1, [[0.5], [0.4]]),
    record(2, [[math.nan]]),
    record(3, [[0.6], [0.3]]),
    record(4, []),
]


@pytest.fixture
def plotly() -> None:
    pytest.importorskip("plotly", reason="Plotly is not installed")


def test_history(plotly: None) -> None:
    figure = plots.history(TRIALS, LOSS)
    by_rung = {trace.name: (list(trace.x), list(trace.y)) for trace in figure.data}
    assert list(by_rung)[1] == "rung 1 (3 epochs)"
    assert by_rung["rung 1 (3 epochs)"] == ([1, 3], [0.4, 0.3])
    assert by_rung["best so far, at its highest rung"] == ([0, 1, 2, 3], [0.9, 0.4, 0.4, 0.3])
    assert plots.history([], LOSS).data[0].x in (None, ())


def test_the_direction_decides_what_is_best(plotly: None) -> None:
    figure = plots.history(TRIALS, Objective("accuracy", maximize=True))
    assert list(figure.data[-1].y) == [0.9, 0.4, 0.4, 0.4]


def test_curves(plotly: None) -> None:
    reports = {3: [{"epoch": 2, "metrics": {"loss": "NaN"}}, {"epoch": 1, "metrics": {"loss": 0.5}}], 4: []}
    (line,) = plots.curves(reports, "loss").data
    assert (line.name, list(line.x), line.y[0]) == ("trial 3", [1, 2], 0.5)
    assert math.isnan(line.y[1])


def test_parallel(plotly: None) -> None:
    conditional = Parameter("momentum", False, None)
    figure = plots.parallel(TRIALS, [RATE, LAYERS, KIND, conditional], LOSS)
    dimensions = {d.label: list(d["values"]) for d in figure.data[0].dimensions}
    assert dimensions["rate (log)"] == pytest.approx([-1, -2, -4])
    assert dimensions["kind"] == [0, 1, 1]
    assert dimensions["loss"] == [0.9, 0.4, 0.3]  # without the one that diverged
    assert "without momentum" in figure.layout.title.text


def test_importance(plotly: None) -> None:
    rows = [{"name": "rate", "share": 0.75, "chance": 0.001}, {"name": "layers", "share": 0.25, "chance": 0.4}]
    figure = plots.importance({"method": "PED-ANOVA", "rungs": [{"rung": 1, "trials": 12, "parameters": rows}]})
    assert list(figure.data[0].y) == ["layers", "rate"]
    assert list(figure.data[0].text) == ["25% (may be chance)", "75%"]
    assert "too few results" in plots.importance({"rungs": []}).layout.title.text


def test_pareto(plotly: None) -> None:
    two = [LOSS, Objective("latency", maximize=False, place=1)]
    figure = plots.pareto([record(0, [[1.0, 5.0]]), record(1, [[2.0, 1.0]]), record(2, [[3.0, 6.0]])], [0, 1], two)
    assert {trace.name: list(trace.x) for trace in figure.data} == {"beaten": [3.0], "Pareto front": [1.0, 2.0]}
    three = [*two, Objective("size", maximize=False, place=2)]
    figure = plots.pareto([record(0, [[1.0, 5.0, 7.0]])], [0], three)
    assert figure.data[1].type == "scatter3d"
    with pytest.raises(ValueError, match="one objective"):
        plots.pareto(TRIALS, [], [LOSS])


def test_slices(plotly: None) -> None:
    figure = plots.slices(TRIALS, [RATE, KIND], LOSS)
    assert [figure.layout.xaxis.type, figure.layout.xaxis2.type] == ["log", "category"]
    assert list(figure.data[1].x) == ["a", "b", "a", "b"]


def test_contour(plotly: None) -> None:
    figure = plots.contour(TRIALS, RATE, LAYERS, LOSS, rung=0)
    assert list(figure.data[0].z) == [0.9, 0.5, 0.6]
    assert "estimate" in figure.layout.title.text
    assert "rung 0" in plots.contour(TRIALS, RATE, LAYERS, LOSS).layout.title.text  # the one with the most


def test_edf(plotly: None) -> None:
    figure = plots.edf({"one": TRIALS, "other": [record(0, [[0.1]])]}, LOSS)
    assert (figure.data[0].name, list(figure.data[0].x)) == ("one, rung 0", [0.5, 0.6, 0.9])
    assert list(figure.data[0].y) == pytest.approx([1 / 3, 2 / 3, 1])


def test_of_a_real_study(plotly: None, real_client: tandem.Client) -> None:
    definition = {
        "name": "plotted",
        "objective": {"metric": "loss", "direction": "minimize"},
        "space": {
            "x": {"type": "float", "low": 1e-3, "high": 1, "log": True},
            "y": {"type": "int", "low": 1, "high": 9},
            "kind": {"values": ["a", "b"]},
        },
        "budget": {"policy": "epochs", "epochs": {"min": 1, "max": 3}},
        "stop": {"trials": 12},
    }

    def objective(trial: tandem.Trial) -> None:
        for epoch in trial.epochs():
            trial.report(loss=(trial.params["x"] - 0.1) ** 2 + trial.params["y"] / epoch)

    study = real_client.create_study(definition)
    study.optimize(objective)
    figures = [
        study.plot_history(),
        study.plot_curves(),
        study.plot_curves([0], metric="loss"),
        study.plot_parallel(),
        study.plot_importance(),
        study.plot_slice(),
        study.plot_slice(["kind"]),
        study.plot_contour("x", "y"),
        study.plot_edf(study),
    ]
    for figure in figures:
        assert figure.data
        assert figure.layout.title.text
        assert figure.to_html(include_plotlyjs=False, full_html=False)
    with pytest.raises(tandem.UnknownName, match="did you mean 'kind'"):
        study.plot_slice(["kinds"])
    with pytest.raises(ValueError, match="one objective"):
        study.plot_pareto()
    html = study._repr_html_()
    assert study.url in html
    assert "completed" in html
    assert f"trial {study.best_trial.number}" in study.best_trial._repr_html_()
    assert f"(trial {study.recommendation().number})" in study.recommendation()._repr_html_()


def test_without_plotly(start_server: StartServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "plotly", None)
    monkeypatch.setitem(sys.modules, "plotly.graph_objects", None)
    with pytest.raises(ImportError, match="pip install plotly"):
        plots.history(TRIALS, LOSS)


def test_tables_hold_no_markup_of_others(start_server: StartServer) -> None:
    study = study_on(start_server(trials=1))
    study.optimize(lambda trial: 0.5)
    assert "best accuracy" in study._repr_html_()
    assert "one seed only" in study.recommendation()._repr_html_()
    evil = record(7, [[0.5]], {"<script>": "<img src=x onerror=alert(1)>"})
    html = notebook.trial(evil)
    assert "<script" not in html
    assert "<img" not in html
    assert "&lt;img" in html
    view = {"name": "<b>", "status": "running", "progress": {}}
    assert "&lt;b&gt;" in notebook.study(view, "http://127.0.0.1/studies/1?a=1&b='")


def test_the_leading_trial_of_several_objectives_is_a_compromise() -> None:
    view = {
        "name": "two",
        "status": "running",
        "progress": {"best": {"metric": "accuracy", "value": 0.83, "values": [0.83, 12.5], "number": 5, "params": {}}},
        "definition": {"objective": [{"metric": "accuracy"}, {"expression": "latency * 1000", "name": "latency_ms"}]},
    }
    html = notebook.study(view, "http://127.0.0.1/studies/1")
    assert "best compromise: accuracy" in html
    assert "latency_ms" in html
    assert "12.5" in html


def test_an_answer_without_results(start_server: StartServer) -> None:
    study = study_on(start_server(trials=1))
    assert "nothing was measured yet" in study.recommendation()._repr_html_()
