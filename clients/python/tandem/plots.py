"""Charts of a study for notebooks, with Plotly: each function takes what was measured and returns a figure.

They are methods of :class:`Study` (``study.plot_history()``); a figure shows itself in a notebook, and
``figure.write_html("history.html")`` keeps it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Optional

from .errors import UnknownName
from .metrics import decode
from .record import TrialRecord

if TYPE_CHECKING:
    import plotly.graph_objects

Figure = Any
"""A plotly.graph_objects.Figure."""

_TEMPLATE = "plotly_white"
_ENOUGH = 5
"""So many results at a rung make a chart of that rung."""


@dataclass(frozen=True)
class Objective:
    """One objective of a study."""

    name: str
    maximize: bool
    place: int = 0
    """Its place among the objectives, from 0."""

    def better(self, one: float, other: float) -> bool:
        """Whether the first value is the better one; NaN is never."""
        if math.isnan(other):
            return not math.isnan(one)
        return one > other if self.maximize else one < other


@dataclass(frozen=True)
class Parameter:
    """A parameter of a study's space, as its definition has it."""

    name: str
    log: bool
    values: Optional[Sequence[Any]]
    """The choices; None for a range."""


def objectives_of(definition: Mapping[str, Any]) -> list[Objective]:
    """The objectives of a study's definition."""
    return [
        Objective(str(one.get("name") or one.get("metric")), one.get("direction") == "maximize", place)
        for place, one in enumerate(definition["objective"])
    ]


def parameters_of(definition: Mapping[str, Any]) -> list[Parameter]:
    """The parameters of a study's definition, in its order."""
    return [
        Parameter(str(one["name"]), bool(one.get("log")), one.get("values") or None)
        for one in definition["space"]["parameters"]
    ]


def history(trials: Iterable[TrialRecord], objective: Objective) -> Figure:
    """Each trial's newest value by its number, in a colour for its rung, and the best so far at the highest rung."""
    go = _plotly()
    figure = go.Figure()
    measured = [(record, _value(record, objective)) for record in trials if record.results]
    for rung in sorted({record.results[-1].rung for record, _ in measured}):
        here = [(record, value) for record, value in measured if record.results[-1].rung == rung]
        figure.add_scatter(
            x=[record.number for record, _ in here],
            y=[value for _, value in here],
            mode="markers",
            name=f"rung {rung} ({_budget(here[0][0])})",
            text=[_hover(record) for record, _ in here],
        )
    numbers, best = _best_so_far(measured, objective)
    figure.add_scatter(x=numbers, y=best, mode="lines", line_shape="hv", name="best so far, at its highest rung")
    return _named(figure, f"History of {objective.name}", "trial", objective.name)


def curves(reports: Mapping[int, Sequence[Mapping[str, Any]]], metric: str) -> Figure:
    """The metric after each epoch, a line for each trial (by its number)."""
    go = _plotly()
    figure = go.Figure()
    for number, rows in reports.items():
        known = sorted((int(row["epoch"]), decode(row["metrics"][metric])) for row in rows if metric in row["metrics"])
        if known:
            figure.add_scatter(
                x=[epoch for epoch, _ in known], y=[value for _, value in known], mode="lines", name=f"trial {number}"
            )
    return _named(figure, f"Learning curves of {metric}", "epoch", metric)


def parallel(trials: Iterable[TrialRecord], parameters: Sequence[Parameter], objective: Objective) -> Figure:
    """A line for each measured trial over its parameters and its newest value; drag along an axis to choose trials.

    Lines are drawn where a trial has all of the parameters; conditional ones are left out if fewer than two have.
    """
    go = _plotly()
    measured = [record for record in trials if record.results and math.isfinite(_value(record, objective))]
    shown = [p for p in parameters if sum(p.name in record.params for record in measured) == len(measured)]
    dimensions = [_axis(p, [record.params[p.name] for record in measured]) for p in shown]
    dimensions.append({"label": "rung", "values": [record.results[-1].rung for record in measured], "tickformat": "d"})
    values = [_value(record, objective) for record in measured]
    dimensions.append({"label": objective.name, "values": values})
    figure = go.Figure(
        go.Parcoords(
            dimensions=dimensions,
            line={"color": values, "colorscale": "Viridis", "showscale": True, "reversescale": not objective.maximize},
        )
    )
    left_out = [p.name for p in parameters if p not in shown]
    title = f"Parameters and {objective.name}"
    if left_out:
        title += f"<br><sup>without {', '.join(left_out)}, which not all trials have</sup>"
    return _named(figure, title)


def importance(analysis: Mapping[str, Any]) -> Figure:
    """The shares of the highest rung of an importance analysis; grey where chance alone would do as much."""
    go = _plotly()
    rungs = analysis.get("rungs") or []
    rows = sorted(rungs[0]["parameters"], key=lambda row: float(row["share"])) if rungs else []
    sure = [float(row.get("chance") or 0.0) <= 0.05 for row in rows]
    figure = go.Figure(
        go.Bar(
            x=[float(row["share"]) for row in rows],
            y=[str(row["name"]) for row in rows],
            orientation="h",
            marker_color=["#2f6fde" if one else "#b8bec8" for one in sure],
            text=[f"{float(row['share']):.0%}" + ("" if one else " (may be chance)") for row, one in zip(rows, sure)],
        )
    )
    at = f" at rung {rungs[0]['rung']}, of {rungs[0]['trials']} trials" if rungs else ": too few results yet"
    return _named(figure, f"Importance{at} ({analysis.get('method', '')})", "share", "")


def pareto(trials: Iterable[TrialRecord], front: Iterable[int], objectives: Sequence[Objective]) -> Figure:
    """The first two or three objectives of all measured trials, and which of them no other beats."""
    go = _plotly()
    if len(objectives) < 2:
        raise ValueError("the study has one objective: a Pareto front needs two; plot_history() shows one")
    numbers = set(front)
    shown = objectives[:3]
    figure = go.Figure()
    measured = [record for record in trials if record.results]
    for name, chosen in (("beaten", False), ("Pareto front", True)):
        here = [record for record in measured if (record.number in numbers) == chosen]
        places = dict(zip("xyz", ([record.values[o.place] for record in here] for o in shown)))
        draw = go.Scatter3d if len(shown) == 3 else go.Scatter
        figure.add_trace(
            draw(
                **places,
                mode="markers",
                name=name,
                text=[_hover(record) for record in here],
                marker={"symbol": "diamond" if chosen else "circle", "size": 9 if chosen else 6},
            )
        )
    if len(shown) == 3:
        figure.update_layout(scene=dict(zip(("xaxis_title", "yaxis_title", "zaxis_title"), (o.name for o in shown))))
    return _named(figure, "Pareto front", shown[0].name, shown[1].name)


def slices(trials: Iterable[TrialRecord], parameters: Sequence[Parameter], objective: Objective) -> Figure:
    """A panel for each parameter: its value against the trial's newest, in a colour for its rung."""
    _plotly()
    from plotly.subplots import make_subplots

    measured = [record for record in trials if record.results]
    figure = make_subplots(rows=1, cols=max(len(parameters), 1), shared_yaxes=True)
    for column, parameter in enumerate(parameters, start=1):
        having = [record for record in measured if parameter.name in record.params]
        figure.add_scatter(
            x=[_shown(record.params[parameter.name], parameter) for record in having],
            y=[_value(record, objective) for record in having],
            mode="markers",
            marker={
                "color": [record.results[-1].rung for record in having],
                "coloraxis": "coloraxis",
            },
            text=[_hover(record) for record in having],
            showlegend=False,
            row=1,
            col=column,
        )
        figure.update_xaxes(title=parameter.name, type=_scale(parameter), row=1, col=column)
    figure.update_layout(coloraxis={"colorscale": "Viridis", "colorbar": {"title": "rung"}})
    figure.update_yaxes(title=objective.name, col=1)
    return _named(figure, f"{objective.name} by parameter")


def contour(
    trials: Iterable[TrialRecord], first: Parameter, second: Parameter, objective: Objective, rung: Optional[int] = None
) -> Figure:
    """The objective over two parameters, interpolated between the trials measured at one rung (the highest with five).

    Between the points it is an estimate: a linear interpolation, and nothing is known of the other parameters.
    """
    go = _plotly()
    having = [r for r in trials if r.results and first.name in r.params and second.name in r.params]
    rung = _rung(having) if rung is None else rung
    points = []
    for record in having:
        value = next((result.values[objective.place] for result in record.results if result.rung == rung), math.nan)
        if math.isfinite(value):
            points.append((_shown(record.params[first.name], first), _shown(record.params[second.name], second), value))
    figure = go.Figure()
    figure.add_contour(
        x=[x for x, _, _ in points],
        y=[y for _, y, _ in points],
        z=[z for _, _, z in points],
        colorscale="Viridis",
        reversescale=not objective.maximize,
        connectgaps=True,
        colorbar={"title": objective.name},
    )
    figure.add_scatter(
        x=[x for x, _, _ in points], y=[y for _, y, _ in points], mode="markers", name="measured", showlegend=False
    )
    figure.update_xaxes(type=_scale(first))
    figure.update_yaxes(type=_scale(second))
    title = f"{objective.name} at rung {rung}, interpolated between {len(points)} trials (an estimate)"
    return _named(figure, title, first.name, second.name)


def edf(studies: Mapping[str, Iterable[TrialRecord]], objective: Objective, rung: Optional[int] = None) -> Figure:
    """The share of trials with a value up to each one, at one rung (of each study the highest with five results)."""
    go = _plotly()
    figure = go.Figure()
    for name, trials in studies.items():
        measured = [record for record in trials if record.results]
        at = _rung(measured) if rung is None else rung
        values = sorted(
            result.values[objective.place]
            for record in measured
            for result in record.results
            if result.rung == at and math.isfinite(result.values[objective.place])
        )
        figure.add_scatter(
            x=values,
            y=[i / len(values) for i in range(1, len(values) + 1)],
            mode="lines",
            line_shape="hv",
            name=f"{name}, rung {at}",
        )
    return _named(figure, f"Distribution of {objective.name}", objective.name, "share of the trials")


def choose(parameters: Sequence[Parameter], names: Optional[Sequence[str]]) -> list[Parameter]:
    """The parameters with the names, all without; a :class:`KeyError` that names the nearest if there is none."""
    if names is None:
        return list(parameters)
    known = {parameter.name: parameter for parameter in parameters}
    for name in names:
        if name not in known:
            raise UnknownName("parameter", name, list(known))
    return [known[name] for name in names]


def _plotly() -> Any:
    try:
        import plotly.graph_objects
    except ImportError as error:
        raise ImportError("plots need Plotly: pip install plotly") from error
    return plotly.graph_objects


def _named(figure: plotly.graph_objects.Figure, title: str, x: str = "", y: str = "") -> Figure:
    figure.update_layout(template=_TEMPLATE, title=title)
    if x:
        figure.update_layout(xaxis_title=x)
    if y:
        figure.update_layout(yaxis_title=y)
    return figure


def _value(record: TrialRecord, objective: Objective) -> float:
    return record.values[objective.place]


def _rung(trials: Sequence[TrialRecord]) -> int:
    """The highest rung with enough results, else the one with the most."""
    counts: dict[int, int] = {}
    for record in trials:
        for result in record.results:
            counts[result.rung] = counts.get(result.rung, 0) + 1
    enough = [rung for rung, count in counts.items() if count >= _ENOUGH]
    return max(enough) if enough else max(counts, key=lambda rung: (counts[rung], rung), default=0)


def _best_so_far(
    measured: Sequence[tuple[TrialRecord, float]], objective: Objective
) -> tuple[list[int], list[Optional[float]]]:
    """By the trials' numbers: the best value of the highest rung that any of the trials up to there has reached."""
    numbers, found = [], []
    rung, best = -1, math.nan
    for record, value in sorted(measured, key=lambda one: one[0].number):
        at = record.results[-1].rung
        if at > rung:
            rung, best = at, value
        elif at == rung and objective.better(value, best):
            best = value
        numbers.append(record.number)
        found.append(None if math.isnan(best) else best)
    return numbers, found


def _axis(parameter: Parameter, values: Sequence[Any]) -> dict[str, Any]:
    """A dimension of parallel coordinates, which take numbers only."""
    if parameter.values is not None:
        choices = [str(choice) for choice in parameter.values]
        return {
            "label": parameter.name,
            "values": [choices.index(str(value)) for value in values],
            "tickvals": list(range(len(choices))),
            "ticktext": choices,
        }
    if parameter.log:
        logs = [math.log10(float(value)) for value in values]
        ticks = list(range(math.floor(min(logs, default=0)), math.ceil(max(logs, default=0)) + 1))
        return {
            "label": f"{parameter.name} (log)",
            "values": logs,
            "tickvals": ticks,
            "ticktext": [f"1e{tick}" for tick in ticks],
        }
    return {"label": parameter.name, "values": [float(value) for value in values]}


def _shown(value: Any, parameter: Parameter) -> Any:
    return str(value) if parameter.values is not None else value


def _scale(parameter: Parameter) -> str:
    if parameter.values is not None:
        return "category"
    return "log" if parameter.log else "linear"


def _budget(record: TrialRecord) -> str:
    budget = record.results[-1].budget
    epochs = f"{budget.epochs} epoch{'s' if budget.epochs != 1 else ''}"
    return epochs if budget.data_fraction == 1 else f"{epochs} on {budget.data_fraction:.0%} of the data"


def _hover(record: TrialRecord) -> str:
    return "<br>".join([f"trial {record.number}", *(f"{name} = {value}" for name, value in record.params.items())])
