"""How studies end for who runs them: as they did, and with the reason."""

from __future__ import annotations

import asyncio
import copy
import gc
import warnings
from types import SimpleNamespace
from typing import Any, Optional

import pytest

import tandem


class TrialPruned(Exception):
    """As Optuna has it."""


def definition(name: str, trials: int = 2, **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "objective": {"metric": "loss", "direction": "minimize"},
        "space": {"x": {"type": "float", "low": 0, "high": 1}},
        "budget": {"epochs": 1},
        "search": {"method": "random"},
        "stop": {"trials": trials},
        "retry": {"failures": 0},
        **more,
    }


def test_a_study_ends_with_the_last_trial_that_is_told(real_client: tandem.Client) -> None:
    study = real_client.create_study(definition("asked-and-told"))
    for _ in range(2):
        trial = study.ask()
        study.tell(trial, trial.params["x"])
    assert study.status == "completed"
    with pytest.raises(tandem.StudyOver):
        study.ask()


def broken(trial: tandem.Trial) -> float:
    raise RuntimeError("no data")


def test_a_study_whose_trials_all_failed_has_failed(real_client: tandem.Client) -> None:
    study = real_client.create_study(definition("all-failed"))
    with pytest.warns(UserWarning, match=r"study all-failed is failed: .* 2 of 2 failed; .* RuntimeError: no data"):
        study.optimize(broken, catch=RuntimeError)
    assert study.status == "failed"
    for best in ("best_trial", "best_params", "best_value"):
        with pytest.raises(ValueError, match=r"no trial of all-failed was measured: it is failed: .* no data"):
            getattr(study, best)


def test_optimize_of_a_study_that_is_over_says_so(real_client: tandem.Client) -> None:
    study = real_client.create_study(definition("over-already"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        study.optimize(lambda trial: trial.params["x"])
    with pytest.warns(
        UserWarning,
        match=r"study over-already is completed: the search is finished\. No trial was run: 'tandem study extend'",
    ):
        study.optimize(lambda trial: trial.params["x"])


def test_the_best_says_that_no_trial_keeps_to_the_constraints(real_client: tandem.Client) -> None:
    study = real_client.create_study(definition("none-feasible", constraints=[{"metric": "size", "max": 1}]))
    study.optimize(lambda trial: {"loss": 0.25, "size": 3}, n_trials=1)
    with pytest.warns(UserWarning, match="no trial of none-feasible keeps to its constraints: trial 0 comes nearest"):
        assert study.best_value == 0.25
    study.optimize(lambda trial: {"loss": 0.5, "size": 1}, n_trials=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        assert (study.best_value, study.best_trial.number) == (0.5, 1)


def test_asyncio_hears_the_same(real_client: tandem.Client) -> None:
    async def scene() -> None:
        async with tandem.AsyncClient(real_client.url) as client:
            study = await client.create_study(definition("async-best"))
            with pytest.raises(ValueError, match="has been measured yet"):
                await study.best_value()

            async def objective(trial: tandem.AsyncTrial) -> float:
                return float(trial.params["x"])

            await study.optimize(objective)
            assert await study.best_value() == study.study.best_value
            assert await study.best_params() == study.study.best_params
            assert (await study.best_trial()).number == study.study.best_trial.number
            assert [one.number for one in await study.best_trials()] == [study.study.best_trial.number]
            with pytest.warns(UserWarning, match="study async-best is completed: .* No trial was run"):
                await study.optimize(objective)

    asyncio.run(scene())


def test_a_study_rests_when_its_process_leaves(real_client: tandem.Client) -> None:
    study = real_client.create_study(definition("bounded", trials=9))
    study.optimize(lambda trial: trial.params["x"], n_trials=1)
    assert study.status == "paused"
    trial = study.ask()
    assert study.status == "running"
    study.leave()  # not while a trial is out
    study.tell(trial, 0.5)
    assert study.status == "running"
    study.leave()
    assert study.status == "paused"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"direction": "maximize"}, r"no argument 'direction': the definition has it: 'objective': \{'metric': 'loss', "
         r"'direction': 'maximize'\}\n.*import tandem\.optuna as optuna"),
        ({"study_name": "mine"}, "no argument 'study_name': the definition has it: 'name': 'mine'"),
        ({"load_if_exist": True}, "no argument 'load_if_exist', did you mean 'load_if_exists'"),
        ({}, "create_study needs the definition of the study: a dictionary such as"),
    ],
)  # fmt: skip
def test_what_belongs_into_the_definition_is_told_where(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(TypeError, match=said):
        tandem.create_study(**arguments)


def test_a_study_of_nan_alone_says_that_it_has_no_best(real_client: tandem.Client) -> None:
    study = real_client.create_study(definition("nan-alone"))
    study.optimize(lambda trial: float("nan"), n_trials=1)
    with pytest.raises(ValueError, match="each trial of nan-alone so far has NaN, which is never the best"):
        _ = study.best_value
    study.optimize(lambda trial: float("nan"))
    with pytest.raises(ValueError, match=r"no trial of nan-alone was measured: .* 2 of 2 reported NaN"):
        _ = study.best_value


def test_optimize_takes_what_optunas_takes(real_client: tandem.Client, capsys: pytest.CaptureFixture[str]) -> None:
    study = real_client.create_study(definition("as-optuna"))
    lost: list[Any] = []

    class Loop:
        def __init__(self, trial: tandem.Trial) -> None:
            self.itself, self.number = self, trial.number

        def __del__(self) -> None:
            lost.append(self.number)

    def objective(trial: tandem.Trial) -> float:
        Loop(trial)
        return 0.5

    gc.disable()
    try:
        study.optimize(objective, n_trials=1)
        assert (lost, capsys.readouterr().err) == ([], "")
        study.optimize(objective, n_trials=1, gc_after_trial=True, show_progress_bar=True)
        assert sorted(lost) == [0, 1]
        assert "as-optuna is completed: 2 completed; best loss 0.5 (trial " in capsys.readouterr().err
    finally:
        gc.enable()


def test_trials_are_got_by_state_and_enqueued_once(real_client: tandem.Client) -> None:
    study = real_client.create_study(definition("by-state"))
    for _ in range(2):
        study.enqueue_trial({"x": 0.25}, skip_if_exists=True)
    study.optimize(lambda trial: 0.5, n_trials=1)
    again = real_client.study(study.name)
    again.enqueue_trial({"x": 0.25}, skip_if_exists=True)
    assert not study.progress.get("enqueued")
    again.enqueue_trial({"x": 0.25})
    assert study.progress["enqueued"] == 1
    with pytest.raises(RuntimeError):
        study.optimize(broken, n_trials=1)
    complete = SimpleNamespace(name="COMPLETE")  # as an enumeration's
    assert [one.number for one in study.get_trials(deepcopy=False, states=(complete,))] == [0]
    assert [one.number for one in study.get_trials(states=["failed"])] == [1]
    assert len(study.get_trials()) == 2
    with pytest.raises(ValueError, match="there is no state 'complete', did you mean 'completed'"):
        study.get_trials(states=["complete"])


def test_what_optunas_objects_have_is_named(real_client: tandem.Client) -> None:
    study = real_client.create_study(definition("elsewhere"))
    trial = study.ask()
    for call in (
        lambda: study.set_user_attr("a", 1),  # type: ignore[attr-defined]
        lambda: trial.set_user_attr("a", 1),  # type: ignore[attr-defined]
        lambda: study.trials[0].user_attrs,  # type: ignore[attr-defined]
        lambda: study.enqueue_trial({"x": 0.5}, user_attrs={"a": 1}),
    ):
        with pytest.raises((AttributeError, TypeError), match=r"has no attribute '\w+': numbers go with the metrics"):
            call()
    with pytest.raises(AttributeError, match=r"module 'tandem' has no attribute 'delete_study': load_study\(NAME\)"):
        tandem.delete_study  # noqa: B018
    with pytest.raises(AttributeError, match=r"a study of Tandem has no attribute 'nonsense'$"):
        study.nonsense  # type: ignore[attr-defined]  # noqa: B018
    assert not hasattr(trial, "nonsense")
    assert copy.deepcopy(study.trials) == study.trials
    study.close()


@pytest.mark.parametrize("ends", [TrialPruned, None])
def test_a_loop_longer_than_the_budget_ends_with_it(
    real_client: tandem.Client, ends: Optional[type[Exception]]
) -> None:
    study = real_client.create_study(definition(f"long-{ends and ends.__name__}", trials=2, budget={"epochs": 3}))

    def objective(trial: tandem.Trial) -> float:
        for epoch in range(1, 101):
            trial.report(epoch, loss=0.5)
            if trial.should_prune():
                if ends:
                    raise ends
                break
        return 0.5

    study.optimize(objective)
    assert [(one.state, one.epochs) for one in study.trials] == [("completed", 3)] * 2


def test_an_objective_written_for_optuna_prunes(real_client: tandem.Client) -> None:
    rule = {"method": "random", "early_stopping": {"rule": "median", "min_trials": 1}}
    study = real_client.create_study(definition("prunes", trials=3, budget={"epochs": 3}, search=rule))

    def objective(trial: tandem.Trial) -> float:
        for epoch in range(1, 4):
            trial.report(epoch, loss=float(-trial.number if trial.number == 2 else trial.number))
            if trial.should_prune() or trial.number == 2:
                raise TrialPruned
        return float(trial.number)

    study.optimize(objective)
    assert [one.state for one in study.trials] == ["completed", "pruned", "failed"]
    assert "the objective gave up" in study.trial(2).reason
    with pytest.raises(RuntimeError):
        real_client.create_study(definition("raises-another")).optimize(broken)
