"""What the first trials of an Optuna script show of its space, and how its pruners translate."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any, Callable

import pytest

pytest.importorskip("optuna", reason="Optuna is not installed")

from optuna import pruners
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

from tandem.optuna.pruning import rule_of
from tandem.optuna.space import (
    Asked,
    Exploration,
    Space,
    covers,
    from_server,
    labels,
    server_name,
    to_server,
    values_of,
)

Suggest = Callable[..., Any]


def explored(objective: Callable[[Suggest], None], seed: int = 0) -> list[Asked]:
    """The trials it takes to look at the space of an objective that asks suggest(name, distribution)."""
    exploration = Exploration(random.Random(seed))
    draws = random.Random(seed)
    trials: list[Asked] = []
    while not Space(trials).settled():
        distributions: dict[str, Any] = {}
        params: dict[str, Any] = {}

        def suggest(
            name: str,
            distribution: Any,
            distributions: dict[str, Any] = distributions,
            params: dict[str, Any] = params,
        ) -> Any:
            values = values_of(distribution)
            if values is not None:
                params[name] = exploration.choose(name, values)
            elif isinstance(distribution, IntDistribution):
                params[name] = draws.randint(distribution.low, distribution.high)
            else:
                params[name] = draws.uniform(distribution.low, distribution.high)
            distributions[name] = distribution
            return params[name]

        objective(suggest)
        trials.append(Asked(distributions, params))
        exploration.learn(trials[-1])
        assert len(trials) <= 10
    return trials


def conditions(trials: list[Asked]) -> dict[str, Mapping[str, Any]]:
    return {name: document["when"] for name, document in Space(trials).document().items() if "when" in document}


def test_numbers_alone_are_known_after_one_trial() -> None:
    def objective(suggest: Suggest) -> None:
        suggest("x", FloatDistribution(-10, 10))
        suggest("lr", FloatDistribution(1e-5, 1e-1, log=True))
        suggest("momentum", FloatDistribution(0, 1, step=0.25))
        suggest("n", IntDistribution(4, 128, step=4))

    trials = explored(objective)
    assert len(trials) == 1
    assert Space(trials).document() == {
        "x": {"type": "float", "low": -10, "high": 10},
        "lr": {"type": "float", "low": 1e-5, "high": 1e-1, "log": True},
        "momentum": {"type": "float", "low": 0, "high": 1, "step": 0.25},
        "n": {"type": "int", "low": 4, "high": 128, "step": 4},
    }


def test_branches() -> None:
    def objective(suggest: Suggest) -> None:
        if suggest("classifier", CategoricalDistribution(("SVC", "RandomForest"))) == "SVC":
            suggest("svc_c", FloatDistribution(1e-10, 1e10, log=True))
        else:
            suggest("rf_max_depth", IntDistribution(2, 32, log=True))

    trials = explored(objective)
    assert len(trials) == 2
    assert conditions(trials) == {"svc_c": {"classifier": ["SVC"]}, "rf_max_depth": {"classifier": ["RandomForest"]}}


def test_layers() -> None:
    def objective(suggest: Suggest) -> None:
        for i in range(suggest("n_layers", IntDistribution(1, 3))):
            suggest(f"n_units_l{i}", IntDistribution(4, 128))
            suggest(f"dropout_l{i}", FloatDistribution(0.2, 0.5))
        suggest("optimizer", CategoricalDistribution(("Adam", "RMSprop", "SGD")))
        suggest("lr", FloatDistribution(1e-5, 1e-1, log=True))

    for seed in range(20):
        trials = explored(objective, seed)
        assert len(trials) <= 4
        assert conditions(trials) == {
            "n_units_l1": {"n_layers": [2, 3]},
            "dropout_l1": {"n_layers": [2, 3]},
            "n_units_l2": {"n_layers": [3]},
            "dropout_l2": {"n_layers": [3]},
        }


def test_a_branch_in_a_branch() -> None:
    def objective(suggest: Suggest) -> None:
        suggest("scale", CategoricalDistribution((True, False)))
        if suggest("model", CategoricalDistribution(("net", "tree", "linear"))) != "net":
            return
        if suggest("optimizer", CategoricalDistribution(("adam", "sgd", "rmsprop"))) == "sgd":
            suggest("momentum", FloatDistribution(0, 1))

    for seed in range(20):
        trials = explored(objective, seed)
        assert conditions(trials) == {"optimizer": {"model": ["net"]}, "momentum": {"optimizer": ["sgd"]}}


def test_what_one_parameter_does_not_tell_is_always_there() -> None:
    def objective(suggest: Suggest) -> None:
        a = suggest("a", CategoricalDistribution((0, 1)))
        b = suggest("b", CategoricalDistribution((0, 1)))
        if a != b:
            suggest("c", FloatDistribution(0, 1))

    trials = explored(objective)
    assert conditions(trials) == {}


def test_a_range_that_changes_is_left_out() -> None:
    def objective(suggest: Suggest) -> None:
        high = suggest("high", IntDistribution(1, 4))
        suggest("x", IntDistribution(0, 10 * high))

    space = Space(explored(objective))
    assert space.changing == {"x"}
    assert list(space.document()) == ["high"]


def test_nothing_to_search() -> None:
    with pytest.raises(ValueError, match="asks for no parameter"):
        Space([Asked({"x": FloatDistribution(1, 1)}, {"x": 1.0})]).document()


def test_two_names_that_become_one() -> None:
    trial = Asked({"a b": FloatDistribution(0, 1), "a_b": FloatDistribution(0, 1)}, {"a b": 0.5, "a_b": 0.5})
    with pytest.raises(ValueError, match="both be 'a_b'"):
        Space([trial]).document()


@pytest.mark.parametrize(
    ("given", "known"),
    [("lr", "lr"), ("l2 (log)", "l2__log_"), ("2nd", "_2nd"), ("größe", "gr__e"), ("x" * 200, "x" * 128)],
)
def test_names(given: str, known: str) -> None:
    assert server_name(given) == known


@pytest.mark.parametrize(
    ("choices", "known"),
    [
        (("a", "b"), ["a", "b"]),
        ((None, "relu"), ["None", "relu"]),
        ((True, 1, "1"), [True, 1, "1"]),
        ((1, 1.0), ["0: 1", "1: 1.0"]),
        ((None, "None"), ["0: None", "1: 'None'"]),
        ((float("inf"), 2.5), ["inf", 2.5]),
    ],
)
def test_choices(choices: tuple[Any, ...], known: list[Any]) -> None:
    assert labels(choices) == known
    distribution = CategoricalDistribution(choices)
    for choice in choices:
        back = from_server(distribution, to_server(distribution, choice))
        assert back is not None
        assert back[0] is choice
    assert from_server(distribution, "something else") is None


def test_values_outside_of_what_is_asked_for_are_not_taken() -> None:
    assert from_server(FloatDistribution(0, 1), 1.5) is None
    assert from_server(FloatDistribution(0, 1), "0.5") is None
    assert from_server(IntDistribution(0, 10, step=5), 3) is None
    assert from_server(IntDistribution(0, 10, step=5), 5.0) == (5,)
    assert from_server(FloatDistribution(0, 1, step=0.1), 0.30000000000000004) == (0.30000000000000004,)


@pytest.mark.parametrize(
    ("asked", "whole"),
    [
        (FloatDistribution(0, 1), True),
        (FloatDistribution(0.25, 0.5), True),
        (FloatDistribution(0, 2), False),
        (FloatDistribution(-1, 1), False),
        (IntDistribution(0, 1), True),
    ],
)
def test_a_range_that_the_server_covers(asked: BaseDistribution, whole: bool) -> None:
    assert covers({"type": "float", "low": 0, "high": 1}, asked) == whole


def test_steps_and_choices_that_the_server_covers() -> None:
    stepped = {"type": "float", "low": 0, "high": 1, "step": 0.2}
    for step, whole in ((0.2, True), (0.4, True), (0.1, False), (None, False)):
        assert covers(stepped, FloatDistribution(0, 1 if step is None else 0.8, step=step)) == whole
    known = {"type": "categorical", "low": 0, "high": 0, "values": ["a", "b", "None"]}
    for choices, whole in ((("a", None), True), (("a", "b", "c"), False)):
        assert covers(known, CategoricalDistribution(choices)) == whole
    assert covers({"type": "ordinal", "low": 0, "high": 0, "values": [32, 64]}, IntDistribution(32, 64))


def test_pruners() -> None:
    median = rule_of(pruners.MedianPruner(n_startup_trials=3, n_warmup_steps=2, interval_steps=5))
    assert median is not None
    wanted = {"rule": "median", "grace_epochs": 2, "min_trials": 3, "every_epochs": 5}
    assert median.search(range(10)) == {"early_stopping": wanted}
    assert (median.search([0]), median.budget(range(10))) == ({}, {"epochs": 10})
    assert (median.search([]), median.budget([])) == ({}, {"epochs": 1})
    percentile = rule_of(pruners.PercentilePruner(25.0))
    assert percentile is not None
    assert percentile.search(range(10))["early_stopping"]["percentile"] == 25.0
    nobody = rule_of(pruners.NopPruner())
    assert nobody is not None
    assert nobody.search(range(10)) == {}
    halving = rule_of(pruners.SuccessiveHalvingPruner(min_resource=2, reduction_factor=3, min_early_stopping_rate=1))
    assert halving is not None
    assert halving.budget(range(50)) == {"policy": "epochs", "epochs": {"min": 6, "max": 50}, "eta": 3}
    assert halving.search(range(50)) == {"early_stopping": {"rule": "halving"}}
    assert (halving.budget(range(5)), halving.search(range(5))) == ({"epochs": 5}, {})
    automatic = rule_of(pruners.SuccessiveHalvingPruner())
    assert automatic is not None
    assert automatic.budget(range(1000))["epochs"] == {"min": 10, "max": 1000}
    later = rule_of(pruners.SuccessiveHalvingPruner(reduction_factor=3, min_early_stopping_rate=2))
    assert later is not None
    assert later.budget(range(1000))["epochs"] == {"min": 90, "max": 1000}
    for other in (pruners.ThresholdPruner(upper=1.0), pruners.HyperbandPruner(), pruners.PercentilePruner(0.0)):
        assert rule_of(other) is None


def test_pruners_count_in_steps_and_the_server_in_reports() -> None:
    """A script that reports every 100 steps, first before it trains, then after the first hundred."""
    for steps in (range(0, 2000, 100), range(100, 2100, 100)):
        median = rule_of(pruners.MedianPruner(n_warmup_steps=500, interval_steps=200))
        assert median is not None
        found = median.search(steps)["early_stopping"]
        assert found["grace_epochs"] == sum(step < 500 for step in steps)
        assert found["every_epochs"] == 2
        halving = rule_of(pruners.SuccessiveHalvingPruner(min_resource=500))
        assert halving is not None
        assert halving.budget(steps) == {"policy": "epochs", "epochs": {"min": 5, "max": 20}, "eta": 4}
    often = rule_of(pruners.MedianPruner(interval_steps=10))
    assert often is not None
    assert often.search([0, 100])["early_stopping"]["every_epochs"] == 1


def test_halving_begins_at_the_same_report_wherever_steps_begin() -> None:
    halving = rule_of(pruners.SuccessiveHalvingPruner(min_resource=2))
    assert halving is not None
    assert halving.budget(range(1, 51)) == halving.budget(range(50))
    assert halving.budget(range(50))["epochs"] == {"min": 2, "max": 50}
