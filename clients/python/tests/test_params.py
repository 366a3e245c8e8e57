"""Values by name, with help for a misspelt one, and suggest_* for those who come from Optuna."""

from __future__ import annotations

from typing import Any, Callable

import pytest

import tandem


@pytest.fixture
def trial() -> tandem.Trial:
    values: dict[str, Any] = {"learning_rate": 0.03, "layers": 6, "activation": "relu", "bias": True, "grid": 0.3}
    return tandem.current_trial(params=values)


def test_a_misspelt_name_gets_the_right_one(trial: tandem.Trial) -> None:
    with pytest.raises(KeyError) as error:
        trial.params["learning_rat"]
    assert isinstance(error.value, tandem.UnknownName)
    assert "no parameter 'learning_rat', did you mean 'learning_rate'?" in str(error.value)
    with pytest.raises(KeyError, match="no system setting 'cpu_threads': there are none"):
        trial.system["cpu_threads"]


def test_values_are_a_dictionary(trial: tandem.Trial) -> None:
    assert trial.params.get("depth", 3) == 3
    assert "layers" in trial.params
    assert {**trial.params}["layers"] == 6


Suggest = Callable[[tandem.Trial], object]
GOOD: list[tuple[Suggest, object]] = [
    (lambda t: t.suggest_float("learning_rate", 1e-4, 0.1, log=True), 0.03),
    (lambda t: t.suggest_float("learning_rate", 0.03, 0.1), 0.03),
    (lambda t: t.suggest_float("layers", 1, 8), 6.0),
    (lambda t: t.suggest_float("grid", 0.0, 1.0, step=0.1), 0.3),
    (lambda t: t.suggest_int("layers", 1, 8), 6),
    (lambda t: t.suggest_int("layers", 2, 8, step=2), 6),
    (lambda t: t.suggest_categorical("activation", ["relu", "tanh"]), "relu"),
    (lambda t: t.suggest_categorical("bias", [True, False]), True),
]
BAD: list[tuple[Suggest, str]] = [
    (lambda t: t.suggest_float("learning_rate", 0.1, 1.0), "outside of 0.1 to 1.0"),
    (lambda t: t.suggest_float("learning_rate", 0.0, 1.0, log=True), "not a range for log=True"),
    (lambda t: t.suggest_float("grid", 0.0, 1.0, step=0.2), "multiple of the step"),
    (lambda t: t.suggest_float("activation", 0.0, 1.0), "not a float"),
    (lambda t: t.suggest_float("bias", 0.0, 1.0), "not a float"),
    (lambda t: t.suggest_int("layers", 7, 8), "outside of 7 to 8"),
    (lambda t: t.suggest_int("layers", 1, 8, step=2), "multiple of the step"),
    (lambda t: t.suggest_int("learning_rate", 0, 1), "not an int"),
    (lambda t: t.suggest_categorical("activation", ["gelu"]), "not among the choices"),
    (lambda t: t.suggest_categorical("bias", [1, 0]), "not among the choices"),
]


@pytest.mark.parametrize(("suggest", "value"), GOOD)
def test_suggest_returns_the_value(trial: tandem.Trial, suggest: Suggest, value: object) -> None:
    assert suggest(trial) == value


@pytest.mark.parametrize(("suggest", "words"), BAD)
def test_suggest_refuses_what_the_study_does_not_declare(trial: tandem.Trial, suggest: Suggest, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        suggest(trial)
