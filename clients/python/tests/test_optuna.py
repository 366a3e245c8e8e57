"""Scripts that are written for Optuna, on a real server."""

from __future__ import annotations

import math
import runpy
import warnings
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("optuna", reason="Optuna is not installed")

import optuna as plain
from optuna.trial import TrialState

import tandem
import tandem.optuna as optuna


@pytest.fixture(autouse=True)
def quiet() -> None:
    plain.logging.set_verbosity(plain.logging.ERROR)


def server_study(study: plain.Study) -> tandem.Study:
    sampler = study.sampler
    assert isinstance(sampler, optuna.TandemSampler)
    assert sampler.study is not None
    return sampler.study


def same_trials(study: plain.Study) -> None:
    """That the server has the trials of Optuna's study, with their values."""
    ours = [(r.value, dict(r.params)) for r in server_study(study).trials if r.state == "completed"]
    theirs = [(t.value, t.params) for t in study.trials if t.state == TrialState.COMPLETE]
    assert sorted(ours, key=str) == sorted(theirs, key=str)


def test_the_quick_start(real_client: tandem.Client, tmp_path: Path) -> None:
    """Optuna's own, as its documentation has it, with one line changed."""
    script = """
import optuna

def objective(trial):
    x = trial.suggest_float("x", -10, 10)
    return (x - 2) ** 2

study = optuna.create_study()
study.optimize(objective, n_trials=40)

study.best_params  # E.g. {'x': 2.002108042}
"""
    (tmp_path / "script.py").write_text(script.replace("import optuna", "import tandem.optuna as optuna"))
    study = runpy.run_path(str(tmp_path / "script.py"))["study"]
    assert len(study.trials) == 40
    assert study.best_value < 4.0  # 40 draws at random miss that with a chance of 0.01%, and these are better
    ours = server_study(study)
    assert ours.best_value == study.best_value
    assert ours.best_params == study.best_params
    assert [r.value for r in ours.trials] == [t.value for t in study.trials]
    assert {r.origin for r in ours.trials} > {"enqueued"}


def test_a_space_with_branches(real_client: tandem.Client) -> None:
    def objective(trial: plain.Trial) -> Any:
        if trial.suggest_categorical("classifier", ["SVC", "RandomForest"]) == "SVC":
            return abs(math.log10(trial.suggest_float("svc_c", 1e-10, 1e10, log=True)))
        return trial.suggest_int("rf_max_depth", 2, 32, log=True) / 4

    study = optuna.create_study(study_name="branches")
    study.optimize(objective, n_trials=25)
    parameters = {p["name"]: p for p in server_study(study).view["definition"]["space"]["parameters"]}
    assert parameters["svc_c"]["when"] == [{"parameter": "classifier", "in": ["SVC"]}]
    assert parameters["rf_max_depth"]["when"] == [{"parameter": "classifier", "in": ["RandomForest"]}]
    assert [dict(r.params) for r in server_study(study).trials] == [t.params for t in study.trials]


def test_choices_that_json_does_not_have(real_client: tandem.Client) -> None:
    seen: set[Any] = set()

    def objective(trial: plain.Trial) -> Any:
        seen.add(trial.suggest_categorical("size", [None, 3, 2.5, True, "big"]))
        return trial.suggest_float("learning rate", 0, 1)

    study = optuna.create_study(study_name="choices")
    study.optimize(objective, n_trials=12)
    assert seen == {None, 3, 2.5, True, "big"}
    assert server_study(study).best_params["learning_rate"] == study.best_params["learning rate"]


def curve(trial: plain.Trial, epochs: int = 10) -> Any:
    x = trial.suggest_float("x", 0, 1)
    value = 0.0
    for step in range(epochs):
        value = x * (1 - math.exp(-(step + 1) / 3))
        trial.report(value, step)
        if trial.should_prune():
            raise plain.TrialPruned
    return value


def test_the_server_prunes(real_client: tandem.Client) -> None:
    study = optuna.create_study(study_name="pruned", direction="maximize")
    study.optimize(curve, n_trials=20)
    ours = server_study(study).trials
    states = {TrialState.COMPLETE: "completed", TrialState.PRUNED: "pruned"}
    assert [r.state for r in ours] == [states[t.state] for t in study.trials]
    pruned = [t for t in study.trials if t.state == TrialState.PRUNED]
    assert len(pruned) >= 1
    assert all(r.reason.startswith("stopped early") for r in ours if r.state == "pruned")
    assert server_study(study).view["definition"]["search"]["early_stopping"]["rule"] == "median"
    first = server_study(study).learning_curve(0)
    assert [r["epoch"] for r in sorted(first, key=lambda r: int(r["epoch"]))] == list(range(1, 11))
    last = pruned[-1]
    reported = server_study(study).learning_curve(last.number)
    assert [r["metrics"]["value"] for r in reported] == [last.intermediate_values[i] for i in range(len(reported))]
    assert len(reported) == len(last.intermediate_values) < 10


def test_what_completes_is_not_pruned_afterwards(real_client: tandem.Client) -> None:
    """An objective that reports, and does not ask whether to go on."""

    def objective(trial: plain.Trial) -> Any:
        x = trial.suggest_float("x", 0, 1)
        for step in range(5):
            trial.report(x * step, step)
        return x * 4

    study = optuna.create_study(study_name="unasked", direction="maximize")
    study.optimize(objective, n_trials=9)
    assert [r.state for r in server_study(study).trials] == ["completed"] * 9
    epochs = [sorted(int(e["epoch"]) for e in server_study(study).learning_curve(n)) for n in range(9)]
    assert epochs == [[1, 2, 3, 4, 5]] * 9


def test_a_pruner_that_the_server_does_not_have(real_client: tandem.Client) -> None:
    study = optuna.create_study(
        study_name="threshold", direction="maximize", pruner=plain.pruners.ThresholdPruner(lower=0.1)
    )
    study.optimize(curve, n_trials=12)
    looked = min(t.number for t in study.trials if t.state == TrialState.COMPLETE)
    pruned = [t.number for t in study.trials if t.state == TrialState.PRUNED and t.number > looked]
    failed = [r for r in server_study(study).trials if r.state == "failed"]
    assert len(failed) == len(pruned)
    assert all(r.reason.startswith("pruned by the script at step") for r in failed)


def test_a_parameter_that_shows_up_late(real_client: tandem.Client) -> None:
    def objective(trial: plain.Trial) -> Any:
        x = trial.suggest_float("x", 0, 1)
        if trial.number >= 3:
            x += trial.suggest_float("late", 0, 1)
        return x

    study = optuna.create_study(study_name="late")
    study.optimize(objective, n_trials=8)
    ours = server_study(study).trials
    assert [t.params.get("late") for t in study.trials] == [r.metrics.get("params.late") for r in ours]
    assert [r.value for r in ours] == [t.value for t in study.trials]
    assert study.trials[-1].params["late"] is not None


def test_ranges_that_change(real_client: tandem.Client) -> None:
    def objective(trial: plain.Trial) -> Any:
        most = trial.suggest_int("most", 1, 5)
        return trial.suggest_float("share", 0, most) / most

    study = optuna.create_study(study_name="changing")
    study.optimize(objective, n_trials=12)
    ours = server_study(study)
    assert [p["name"] for p in ours.view["definition"]["space"]["parameters"]] == ["most"]
    assert [r.value for r in ours.trials] == [t.value for t in study.trials]


def test_a_range_that_is_widened_later_is_searched_as_a_whole(
    real_client: tandem.Client, caplog: pytest.LogCaptureFixture
) -> None:
    study = optuna.create_study(study_name="widened", sampler=optuna.TandemSampler(seed=7))
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=4)
    told = "The parameter 'x' is drawn by TPESampler"
    plain.logging.set_verbosity(plain.logging.WARNING)
    logger = plain.logging.get_logger("optuna.tandem")
    logger.addHandler(caplog.handler)
    try:
        study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=4)
        assert told not in caplog.text
        study.optimize(lambda trial: trial.suggest_float("x", 0, 1000), n_trials=8)
        assert told in caplog.text
    finally:
        logger.removeHandler(caplog.handler)
    assert max(trial.params["x"] for trial in study.trials) > 1


def test_values_that_the_user_fixes(real_client: tandem.Client) -> None:
    study = optuna.create_study(study_name="fixed")
    study.enqueue_trial({"x": 0.25})
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1) + trial.suggest_float("y", 0, 1), n_trials=4)
    study.enqueue_trial({"x": 0.75})
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1) + trial.suggest_float("y", 0, 1), n_trials=2)
    assert (study.trials[0].params["x"], study.trials[4].params["x"]) == (0.25, 0.75)
    same_trials(study)


def test_threads(real_client: tandem.Client) -> None:
    study = optuna.create_study(study_name="threads")
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=20, n_jobs=3)
    same_trials(study)
    assert len(server_study(study).trials) == 20


def test_ask_and_tell_and_several_objectives(real_client: tandem.Client) -> None:
    study = optuna.create_study(study_name="two", directions=["minimize", "maximize"])
    for _ in range(6):
        trial = study.ask()
        x = trial.suggest_float("x", 0, 1)
        study.tell(trial, [x, x**2])
    ours = server_study(study).trials
    assert [list(r.values) for r in ours] == [t.values for t in study.trials]
    assert [o["direction"] for o in server_study(study).view["definition"]["objective"]] == ["minimize", "maximize"]


def test_failures(real_client: tandem.Client) -> None:
    def objective(trial: plain.Trial) -> Any:
        x = trial.suggest_float("x", 0, 1)
        if trial.number == 3:
            raise RuntimeError("three")
        return math.nan if trial.number == 4 else x

    study = optuna.create_study(study_name="failing")
    study.optimize(objective, n_trials=6, catch=(RuntimeError,))
    assert [r.state for r in server_study(study).trials] == [
        "failed" if t.state == TrialState.FAIL else "completed" for t in study.trials
    ]
    assert server_study(study).status == "paused"  # nobody asks for its trials any more


@pytest.mark.parametrize("asks", [True, False])
def test_a_trial_whose_lease_is_lost_runs_to_its_end(
    real_client: tandem.Client, caplog: pytest.LogCaptureFixture, asks: bool
) -> None:
    """Somebody else has the trial on the server: that is no verdict about it, and no error of the script."""
    name = f"lost-{asks}"
    study = optuna.create_study(study_name=name)

    def objective(trial: plain.Trial) -> Any:
        x = trial.suggest_float("x", 0, 1)
        if trial.number == 3:
            study.sampler._runs[trial._trial_id].trial._link.lease_epoch += 1
        for step in range(3):
            trial.report(x, step)
            if asks and trial.should_prune():
                assert trial.number != 3
                raise plain.TrialPruned
        return x

    plain.logging.enable_propagation()
    plain.logging.set_verbosity(plain.logging.WARNING)
    try:
        study.optimize(objective, n_trials=5)
    finally:
        plain.logging.disable_propagation()
    assert len(study.trials) == 5
    assert study.trials[3].state == TrialState.COMPLETE
    assert "Trial 3 ended, but the server had given it to another process" in caplog.text
    ours = server_study(study)
    assert study.trials[3].value not in [r.value for r in ours.trials if r.state == "completed"]
    assert not ours._asked


def test_a_study_goes_on(real_client: tandem.Client, memory: Path) -> None:
    storage = f"sqlite:///{memory}/sweep.db"

    def run(trials: int, **more: Any) -> plain.Study:
        study = optuna.create_study(study_name="goes-on", storage=storage, load_if_exists=True, **more)
        study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=trials)
        return study

    first = server_study(run(4)).id
    again = run(3)
    assert server_study(again).id == first
    same_trials(again)
    assert len(server_study(again).trials) == 7
    server_study(again).delete()
    anew = run(2)  # with all that Optuna's storage has
    assert server_study(anew).id != first
    same_trials(anew)
    assert len(server_study(anew).trials) == 9


def test_two_processes_share_a_study(real_client: tandem.Client) -> None:
    """Without a storage of Optuna's: each has its own in memory, and the server has all trials."""
    studies = [optuna.create_study(study_name="shared", load_if_exists=True) for _ in range(2)]
    for _ in range(4):
        for study in studies:
            study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=1)
    assert server_study(studies[0]).id == server_study(studies[1]).id
    values = sorted(t.value for study in studies for t in study.trials)
    assert sorted(r.value or 0.0 for r in server_study(studies[0]).trials) == values


def test_a_name_that_is_taken_is_told_before_anything_runs(real_client: tandem.Client) -> None:
    definition = {
        "name": "taken",
        "objective": {"metric": "loss", "direction": "minimize"},
        "space": {"x": {"type": "float", "low": 0, "high": 1}},
    }
    real_client.create_study(definition)
    calls: list[int] = []

    def objective(trial: plain.Trial) -> Any:
        calls.append(trial.number)
        return trial.suggest_float("x", 0, 1)

    with pytest.raises(tandem.ConflictError, match="load_if_exists=True"):
        optuna.create_study(study_name="taken").optimize(objective, n_trials=1)
    with pytest.raises(ValueError, match="takes trials up a ladder"):
        optuna.create_study(study_name="taken", load_if_exists=True).optimize(objective, n_trials=1)
    with pytest.raises(ValueError, match="is to minimize, and Optuna's is to maximize"):
        optuna.create_study(study_name="taken", direction="maximize", load_if_exists=True).optimize(objective, 1)
    assert calls == []


def test_a_study_that_was_made_on_the_server(real_client: tandem.Client) -> None:
    """Its space is known: no trial has to look, and what the objective asks for decides what it gets."""
    real_client.create_study(
        {
            "name": "made",
            "objective": {"metric": "loss", "direction": "minimize"},
            "space": {"x": {"type": "float", "low": 0, "high": 1}, "unused": {"values": ["a", "b"]}},
            "budget": {"epochs": 1},
            "search": {"method": "random"},
            "stop": {"trials": 5},
        }
    )
    study = optuna.create_study(study_name="made", load_if_exists=True)
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=50)
    ours = server_study(study)
    assert ours.status == "completed"
    completed = [t for t in study.trials if t.state == TrialState.COMPLETE]
    assert len(completed) == 5
    assert len(study.trials) <= 6  # the one that heard that the study is over was pruned
    assert [(r.params["x"], r.value) for r in ours.trials] == [(t.params["x"], t.value) for t in completed]


def test_the_web_page_can_stop_it(real_client: tandem.Client) -> None:
    study = optuna.create_study(study_name="stopped")

    def stop(study: plain.Study, trial: plain.trial.FrozenTrial) -> None:
        if trial.number == 4:
            server_study(study).stop()

    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=50, callbacks=[stop])
    assert len(study.trials) <= 6


def test_samplers(real_client: tandem.Client) -> None:
    with pytest.warns(UserWarning, match="method 'random'"):
        study = optuna.create_study(study_name="at-random", sampler=plain.samplers.RandomSampler(seed=1))
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=2)
    assert server_study(study).view["definition"]["search"]["method"] == "random"
    with pytest.raises(ValueError, match="no search like NSGAIISampler"):
        optuna.create_study(sampler=plain.samplers.NSGAIISampler())
    chosen = optuna.TandemSampler(search={"method": "gp"}, seed=41)
    study = optuna.create_study(study_name="gp", sampler=chosen)
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=2)
    search = server_study(study).view["definition"]["search"]
    assert (search["method"], search["seed"]) == ("gp", 42)
    rule = {"rule": "percentile", "percentile": 75.0, "min_trials": 2}
    own = optuna.create_study(study_name="own-rule", sampler=optuna.TandemSampler(search={"early_stopping": rule}))
    own.optimize(curve, n_trials=2)
    used = server_study(own).view["definition"]["search"]["early_stopping"]
    assert (used["rule"], used["percentile"], used["min_trials"]) == ("percentile", 75, 2)
    alone = plain.create_study(pruner=optuna.TandemPruner())
    with pytest.raises(ValueError, match="works with TandemSampler"):
        alone.optimize(curve, n_trials=1)


def test_a_sampler_takes_what_the_study_is_given(real_client: tandem.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TANDEM_SERVER", "http://127.0.0.1:1")
    for _ in range(2):
        study = optuna.create_study(
            study_name="given", sampler=optuna.TandemSampler(), client=real_client, load_if_exists=True
        )
        study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=2)
    assert len(server_study(study).trials) == 4


@pytest.mark.parametrize(("name", "method"), [("GPSampler", "gp"), ("CmaEsSampler", "cma-es")])
def test_methods_of_one_objective_are_refused_for_two(real_client: tandem.Client, name: str, method: str) -> None:
    sampler_type = type(name, (plain.samplers.RandomSampler,), {})  # Optuna's own need libraries of theirs
    storage = plain.storages.InMemoryStorage()
    plain.create_study(study_name="two-of-them", storage=storage, directions=["minimize", "maximize"])
    with pytest.raises(ValueError, match=f"'{method}' takes one objective, and there are 2: leave sampler out"):
        optuna.create_study(directions=["minimize", "maximize"], sampler=sampler_type())
    with pytest.raises(ValueError, match=f"'{method}' takes one objective, and there are 2: leave sampler out"):
        optuna.load_study(study_name="two-of-them", storage=storage, sampler=sampler_type())


def test_the_rest_is_optunas() -> None:
    assert optuna.TrialPruned is plain.TrialPruned
    assert optuna.samplers is plain.samplers
    assert optuna.study.MaxTrialsCallback is plain.study.MaxTrialsCallback
    assert issubclass(optuna.study.Study, plain.study.Study)
    assert "visualization" in dir(optuna)
    with pytest.raises(AttributeError):
        optuna.nothing_of_the_kind  # noqa: B018


def test_a_database_becomes_a_study(real_client: tandem.Client, memory: Path) -> None:
    storage = f"sqlite:///{memory}/sweep.db"
    theirs = plain.create_study(study_name="from a database", storage=storage, direction="maximize")

    def objective(trial: plain.Trial) -> Any:
        rate = trial.suggest_float("rate", 1e-4, 1, log=True)
        if trial.suggest_categorical("kind", ["a", "b"]) == "a":
            rate *= trial.suggest_float("scale", 0.5, 1)
        trial.report(rate / 2, 0)
        trial.report(rate, 1)
        if trial.number == 5:
            raise plain.TrialPruned
        return rate

    theirs.optimize(objective, n_trials=10)
    ours = tandem.import_optuna(storage, "from a database")
    assert ours.name == "from-a-database"
    completed = [t for t in theirs.trials if t.state == TrialState.COMPLETE]
    assert [dict(r.params) for r in ours.trials] == [t.params for t in completed]
    assert [r.value for r in ours.trials] == [t.value for t in completed]
    assert ours.best_value == theirs.best_value
    assert sorted(r["epoch"] for r in ours.learning_curve(3)) == [1, 2]
    assert ours.status == "paused"  # it may go on
    with pytest.raises(tandem.ConflictError):
        tandem.import_optuna(storage, "from a database")
    theirs._storage.set_study_system_attr(theirs._study_id, "tandem:study", None)
    with pytest.raises(tandem.ConflictError, match="already"):  # by its name
        tandem.import_optuna(storage, "from a database")


def test_without_warnings(real_client: tandem.Client) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        study = optuna.create_study(study_name="quiet")
        study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=3)
    assert len(server_study(study).trials) == 3
