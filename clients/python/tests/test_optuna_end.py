"""How scripts that are written for Optuna end, how their studies are named, and what trials must keep to."""

from __future__ import annotations

import copy
import os
import runpy
import subprocess
import sys
import threading
import warnings
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("optuna", reason="Optuna is not installed")

import optuna as plain
from optuna.trial import TrialState
from test_optuna import server_study

import tandem
import tandem.optuna as optuna

AT_REST = "no process asks for its trials; it goes on when one does"


@pytest.fixture(autouse=True)
def quiet() -> None:
    plain.logging.set_verbosity(plain.logging.ERROR)


def line(trial: plain.Trial) -> Any:
    return trial.suggest_float("x", 0, 1)


def rests(study: tandem.Study) -> None:
    """That nobody works on the study, and its clock stands."""
    assert (study.view["status"], study.view["reason"]) == ("paused", AT_REST)
    assert study.progress["elapsed_seconds"] == study.progress["elapsed_seconds"]


def test_a_study_rests_when_optimize_ends_and_goes_on_with_the_next(real_client: tandem.Client) -> None:
    study = optuna.create_study(study_name="twice")
    study.optimize(line, n_trials=3)
    rests(server_study(study))
    assert server_study(study).progress["max_trials"] == 0  # it has no bound, and says none
    study.optimize(line, n_trials=2)
    rests(server_study(study))
    assert len(server_study(study).trials) == len(study.trials) == 5


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_a_study_rests_after_an_exception(real_client: tandem.Client, error: type[BaseException]) -> None:
    study = optuna.create_study(study_name=f"ended-by-{error.__name__}")

    def objective(trial: plain.Trial) -> Any:
        if trial.number == 2:
            raise error("enough")
        return line(trial)

    with pytest.raises(error, match="enough"):
        study.optimize(objective, n_trials=9)
    rests(server_study(study))


def test_a_study_goes_on_while_another_process_works_on_it(real_client: tandem.Client) -> None:
    first, second = (optuna.create_study(study_name="together", load_if_exists=True) for _ in range(2))
    first.optimize(line, n_trials=1)
    held, goes_on = threading.Event(), threading.Event()

    def slow(trial: plain.Trial) -> Any:
        x = line(trial)
        held.set()
        assert goes_on.wait(60)
        return x

    other = threading.Thread(target=second.optimize, args=(slow,), kwargs={"n_trials": 1})
    other.start()
    assert held.wait(60)
    first.optimize(line, n_trials=2)
    assert server_study(first).status == "running"
    goes_on.set()
    other.join(60)
    rests(server_study(first))


def test_a_study_can_be_copied_and_kept(real_client: tandem.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    token = os.environ["TANDEM_TOKEN"]
    study = optuna.create_study(study_name="kept", client=tandem.Client(real_client.url, token))
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=4)
    monkeypatch.delenv("TANDEM_TOKEN")
    stranger = copy.deepcopy(study)  # as scripts keep it in a file: without the token
    with pytest.raises(tandem.AuthError):
        stranger.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=4)
    monkeypatch.setenv("TANDEM_TOKEN", token)
    copied = copy.deepcopy(study)
    copied.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=4)
    assert len(copied.trials) == len(tandem.load_study("kept").trials) == 8


def test_two_loops_of_one_study(real_client: tandem.Client) -> None:
    """The one that ends first does not take the trials of the other."""
    study = optuna.create_study(study_name="two-loops")
    study.optimize(line, n_trials=2)
    loops = [threading.Thread(target=study.optimize, args=(line,), kwargs={"n_trials": n}) for n in (1, 6)]
    for loop in loops:
        loop.start()
    for loop in loops:
        loop.join(60)
    rests(server_study(study))
    assert [t.state for t in study.trials] == [TrialState.COMPLETE] * 9


def test_a_trial_that_was_asked_for_outlives_a_loop(real_client: tandem.Client) -> None:
    study = optuna.create_study(study_name="asked-before")
    study.optimize(line, n_trials=2)
    trial = study.ask()
    x = trial.suggest_float("x", 0, 1)
    study.optimize(line, n_trials=1)
    study.tell(trial, x)
    assert [r.value for r in server_study(study).trials if r.state == "completed"].count(x) == 1


SCRIPT = """
import os, sys
import tandem.optuna as optuna
study = optuna.create_study()
def objective(trial):
    return trial.suggest_float("x", 0, 1)
study.optimize(objective, n_trials=2)
if "ask" in sys.argv:
    trial = study.ask()
    trial.suggest_float("x", 0, 1)
"""


@pytest.mark.parametrize("how", ["optimize", "ask"])
def test_a_script_gives_its_name_and_leaves_nothing_running(
    real_client: tandem.Client, tmp_path: Path, how: str
) -> None:
    script = tmp_path / f"sweep of {how}.py"
    script.write_text(SCRIPT)
    environment = {**os.environ, "PYTHONPATH": str(Path(tandem.__file__).parent.parent)}
    for _ in range(2):
        subprocess.run([sys.executable, str(script), how], env=environment, check=True, timeout=120)
    made = [study for study in real_client.studies() if study.name.startswith(f"sweep-of-{how}-")]
    assert len(made) == 2
    for study in made:
        rests(study)


def test_a_study_that_is_over_says_so_and_runs_nothing(real_client: tandem.Client) -> None:
    study = optuna.create_study(study_name="over")
    study.optimize(line, n_trials=3)
    server_study(study).stop()
    with pytest.warns(UserWarning, match=r"study over is stopped: stopped by a user\. No trial was run"):
        study.optimize(line, n_trials=3)
    assert len(study.trials) == 3


def test_a_trial_that_nobody_tried_is_not_pruned(real_client: tandem.Client) -> None:
    """It had begun here when the study was ended elsewhere."""
    study = optuna.create_study(study_name="ended-elsewhere")
    study.optimize(line, n_trials=3)

    def objective(trial: plain.Trial) -> Any:
        server_study(study).stop()
        return line(trial)

    study.optimize(objective, n_trials=9)
    assert [t.state for t in study.trials] == [TrialState.COMPLETE] * 3 + [TrialState.FAIL]


# Optuna's example of constrained optimization (its FAQ, "How can I optimize a model with some constraints?"), with
# one line changed.
CONSTRAINED = """
import optuna

def objective(trial):
    # Binh and Korn function with constraints.
    x = trial.suggest_float("x", -15, 30)
    y = trial.suggest_float("y", -15, 30)

    # Constraints which are considered feasible if less than or equal to zero.
    # The feasible region is basically the intersection of a circle centered at (x=5, y=0)
    # and the complement to a circle centered at (x=8, y=-3).
    c0 = (x - 5) ** 2 + y**2 - 25
    c1 = -((x - 8) ** 2) - (y + 3) ** 2 + 7.7

    # Store the constraints as user attributes so that they can be restored after optimization.
    trial.set_user_attr("constraint", (c0, c1))

    v0 = 4 * x**2 + 4 * y**2
    v1 = (x - 5) ** 2 + (y - 5) ** 2

    return v0, v1


def constraints(trial):
    return trial.user_attrs["constraint"]


sampler = optuna.samplers.TPESampler(constraints_func=constraints)
study = optuna.create_study(directions=["minimize", "minimize"], sampler=sampler)
study.optimize(objective, n_trials=32, timeout=600)

print("Number of finished trials: ", len(study.trials))
print("Pareto front:")
trials = sorted(study.best_trials, key=lambda t: t.values)
for trial in trials:
    print("  Trial#{}".format(trial.number))
    print("    Values: Values={}, Constraint={}".format(trial.values, trial.system_attrs["constraints"]))
"""


@pytest.mark.filterwarnings("ignore")
def test_the_constrained_example(real_client: tandem.Client, tmp_path: Path) -> None:
    script = tmp_path / "constrained.py"
    script.write_text(CONSTRAINED.replace("import optuna", "import tandem.optuna as optuna"))
    study = runpy.run_path(str(script))["study"]
    ours = server_study(study)
    assert [(one["metric"], one["max"]) for one in ours.view["definition"]["constraints"]] == [
        ("constraint_0", 0),
        ("constraint_1", 0),
    ]
    for record, trial in zip(ours.trials, study.trials):
        assert list(trial.system_attrs["constraints"]) == list(trial.user_attrs["constraint"])
        assert [record.metrics["constraint_0"], record.metrics["constraint_1"]] == list(trial.user_attrs["constraint"])
    feasible = [t for t in study.trials if all(c <= 0 for c in t.user_attrs["constraint"])]
    assert {t.number for t in study.best_trials} <= {t.number for t in feasible}
    if feasible:
        assert {one["number"] for one in ours.pareto()["trials"]} == {t.number for t in study.best_trials}


def constrained(trial: plain.Trial) -> Any:
    x = trial.suggest_float("x", 0, 1)
    trial.set_user_attr("c", 0.5 - x)
    return x


def test_the_best_trial_keeps_to_the_constraints(real_client: tandem.Client) -> None:
    sampler = optuna.TandemSampler(constraints_func=lambda trial: (trial.user_attrs["c"],), seed=1)
    study = optuna.create_study(study_name="feasible", sampler=sampler)
    study.enqueue_trial({"x": 0.75})
    study.enqueue_trial({"x": 0.25})  # lower, and not feasible
    study.optimize(constrained, n_trials=8)
    assert study.best_value >= 0.5
    assert server_study(study).best_value == study.best_value
    again = optuna.create_study(
        study_name="feasible", load_if_exists=True, sampler=optuna.TandemSampler(constraints_func=lambda trial: (1.0,))
    )
    again.optimize(constrained, n_trials=1)  # another process, with the same name of a constraint
    assert server_study(again).trials[-1].metrics["constraint_0"] == 1.0


@pytest.mark.skipif(not hasattr(plain.Trial, "set_constraint"), reason="Optuna 5 has set_constraint")
def test_constraints_that_the_objective_sets(real_client: tandem.Client) -> None:
    def objective(trial: plain.Trial) -> Any:
        x = trial.suggest_float("x", 0, 1)
        trial.set_constraint("at least a half", 0.5 - x)
        return x

    study = optuna.create_study(study_name="set-constraint")
    study.enqueue_trial({"x": 0.75})
    study.enqueue_trial({"x": 0.25})
    study.optimize(objective, n_trials=8)
    assert [one["metric"] for one in server_study(study).view["definition"]["constraints"]] == [
        "constraint_at_least_a_half"
    ]
    assert server_study(study).best_value == study.best_value >= 0.5


def test_a_constraints_function_that_fails_is_heard_of(real_client: tandem.Client) -> None:
    def broken(trial: plain.trial.FrozenTrial) -> Any:
        return (float("nan"),) if trial.number == 2 else (trial.params["x"] - 2,)

    study = optuna.create_study(study_name="nan-constraint", sampler=optuna.TandemSampler(constraints_func=broken))
    with pytest.raises(ValueError, match="Constraint values cannot be NaN"):
        study.optimize(line, n_trials=5)
    assert server_study(study).trials[2].state == "failed"
    rests(server_study(study))


def test_what_a_sampler_is_given_is_not_dropped(real_client: tandem.Client) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sampler = plain.samplers.TPESampler(constraints_func=lambda trial: (trial.user_attrs["c"],))
        study = optuna.create_study(study_name="from-tpe", sampler=sampler)
    study.optimize(constrained, n_trials=4)
    assert all(t.system_attrs["constraints"] for t in study.trials)
    assert server_study(study).view["definition"]["constraints"]
