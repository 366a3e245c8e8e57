"""A study driven from this process: optimize, ask and tell, and reading what came of it."""

from __future__ import annotations

import hashlib
import io
import math
import os
import socket
import sys
import tarfile
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from conftest import StartServer, study_on, wait_for

import tandem
from tandem.worker import LeaseLink

LADDER = ((1, 0.25), (3, 0.5), (9, 1.0))


def test_an_objective_that_returns_a_value(start_server: StartServer) -> None:
    server = start_server(trials=4)
    study = study_on(server)
    study.optimize(lambda trial: trial.params["x"] / 10)
    assert [(t.number, t.state, t.value) for t in study.trials] == [
        (0, "completed", 0.0),
        (1, "completed", 0.1),
        (2, "completed", 0.2),
        (3, "completed", 0.3),
    ]
    assert (study.best_trial.number, study.best_value, study.best_params) == (3, 0.3, {"x": 3, "rate": 0.5})
    assert (study.status, study.owner) == ("completed", "alice")
    assert server.workers == {}


def test_windows_is_enough(start_server: StartServer, monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in ((os, "sysconf"), (os, "sched_getaffinity"), (os, "O_DIRECTORY"), (socket, "AF_UNIX")):
        monkeypatch.delattr(module, name)
    server = start_server(trials=2)
    study = study_on(server)
    study.optimize(lambda trial: trial.params["x"] / 10)
    assert [(t.number, t.state, t.value) for t in study.trials] == [(0, "completed", 0.0), (1, "completed", 0.1)]


def test_enqueued_configurations_go_first(start_server: StartServer) -> None:
    server = start_server(trials=3)
    study = study_on(server)
    assert study.enqueue({"x": 7}, {"x": 5, "rate": 0.25}) == 2
    study.enqueue_trial({"rate": 1})
    assert [call.json for call in server.sent("/enqueue")] == [
        {"configurations": [{"x": 7}, {"x": 5, "rate": 0.25}]},
        {"configurations": [{"rate": 1}]},
    ]
    with pytest.raises(ValueError, match="at least one"):
        study.enqueue()
    study.optimize(lambda trial: trial.params["x"] / 10)
    assert [t.params for t in study.trials] == [{"x": 7, "rate": 0.5}, {"x": 5, "rate": 0.25}, {"x": 2, "rate": 1}]
    with pytest.raises(tandem.ConflictError):
        study.enqueue({"x": 1})


def test_a_value_counts_for_the_whole_budget(start_server: StartServer) -> None:
    server = start_server(LADDER, trials=1)
    study_on(server).optimize(lambda trial: trial.budget.epochs)
    assert [(r["epoch"], r["metrics"]) for r in server.reports["s1-0"]] == [
        (1, {"accuracy": 1.0}),
        (3, {"accuracy": 3.0}),
        (9, {"accuracy": 9.0}),
    ]


def test_a_promoted_trial_goes_on_from_its_checkpoint(start_server: StartServer) -> None:
    server = start_server(LADDER, trials=2)
    trained: list[tuple[int, int, int]] = []

    def objective(trial: tandem.Trial) -> None:
        state = [0]
        trial.restore(lambda path: state.__setitem__(0, int(Path(path).read_text())))
        for epoch in trial.epochs():
            state[0] += 1
            trained.append((trial.number, epoch, state[0]))
            trial.report(accuracy=state[0] / 10, loss=math.nan)
            trial.checkpoint(lambda path: Path(path).write_text(str(state[0])))

    # Two processes, as it were: the second finds the trials paused by the first.
    study_on(server).optimize(objective, n_trials=3)
    tandem.Client(server.url, "secret").study("toy").optimize(objective)
    for number in (0, 1):
        assert [(epoch, state) for n, epoch, state in trained if n == number] == [(e, e) for e in range(1, 10)]
    assert server.trials["s1-0"]["checkpoint"]["epoch"] == 9
    assert server.reports["s1-0"][0]["metrics"] == {"accuracy": 0.1, "loss": "NaN"}
    assert len({c.json["worker"] for c in server.sent("/leases")}) == 2


def test_a_dictionary_and_a_tuple(start_server: StartServer) -> None:
    server = start_server(trials=2)
    study_on(server).optimize(lambda t: {"accuracy": 0.5, "loss": 2} if t.number == 0 else (0.25,))
    assert server.reports["s1-0"][0]["metrics"] == {"accuracy": 0.5, "loss": 2.0}
    assert server.reports["s1-1"][0]["metrics"] == {"accuracy": 0.25}


def test_nan_is_a_value(start_server: StartServer) -> None:
    server = start_server(trials=1)
    study = study_on(server)
    study.optimize(lambda trial: math.nan)
    value = study.trials[0].value
    assert value is not None
    assert math.isnan(value)


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (None, "returned nothing, and epoch 1"),
        ({"loss": 0.1}, "must report every objective: the objective 'accuracy'"),
        ((0.1, 0.2), "2 values for 1 objectives: return one each for accuracy"),
        ("0.9", "must be a number"),
    ],
)
def test_an_outcome_that_is_none(start_server: StartServer, outcome: Any, words: str) -> None:
    server = start_server(trials=1)
    with pytest.raises((ValueError, TypeError), match=words):
        study_on(server).optimize(lambda trial: outcome)
    assert server.trials["s1-0"]["state"] == "failed"


def test_an_exception_fails_the_trial_and_ends_the_call(start_server: StartServer) -> None:
    server = start_server(trials=3)

    def objective(trial: tandem.Trial) -> float:
        raise ZeroDivisionError("no")

    with pytest.raises(ZeroDivisionError):
        study_on(server).optimize(objective)
    assert (server.trials["s1-0"]["state"], server.trials["s1-0"]["reason"]) == ("failed", "ZeroDivisionError: no")
    assert "line" in server.logs["s1-0"]
    assert "ZeroDivisionError" in server.logs["s1-0"]
    assert len(server.trials) == 1
    assert server.workers == {}


def test_a_caught_exception_fails_the_trial_only(start_server: StartServer) -> None:
    server = start_server(trials=3)

    def objective(trial: tandem.Trial) -> float:
        return 1 / (trial.number - 1)

    study = study_on(server)
    study.optimize(objective, catch=ZeroDivisionError)
    assert [t.state for t in study.trials] == ["completed", "failed", "completed"]
    assert study.trials[1].reason == "ZeroDivisionError: division by zero"


def test_bounds(start_server: StartServer) -> None:
    server = start_server(trials=100)
    study = study_on(server)
    study.optimize(lambda trial: 0.5, n_trials=3)
    assert len(study.trials) == 3
    study.optimize(lambda trial: 0.5, timeout=0)
    assert len(study.trials) == 3
    with pytest.raises(ValueError, match="n_jobs"):
        study.optimize(lambda trial: 0.5, n_jobs=0)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"n_trials": -1}, "n_trials must be a whole number of at least 0, not -1"),
        ({"n_trials": 2.5}, "n_trials must be a whole number of at least 0, not 2.5"),
        ({"n_jobs": -1}, "n_jobs must be a whole number of at least 1, not -1"),
        ({"timeout": "60"}, "timeout must be a number of seconds, not '60'"),
        ({"catch": "ValueError"}, "catch must be exceptions, such as ValueError, not 'ValueError'"),
        ({"callbacks": print}, "callbacks must be a list of functions"),
        ({"objective": 0.5}, "objective must be a function of a trial, not 0.5"),
    ],
)
def test_arguments_that_are_wrong_run_nothing(start_server: StartServer, arguments: dict[str, Any], words: str) -> None:
    server = start_server(trials=4)
    with pytest.raises((ValueError, TypeError), match=words):
        study_on(server).optimize(**{"objective": lambda trial: 0.5, **arguments})
    assert not server.sent("/leases")


def test_a_trial_that_was_never_told_is_named(
    start_server: StartServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("tandem.optimize._WAIT_SECONDS", 0.05)
    server = start_server(trials=2)
    study = study_on(server)
    held = study.ask()
    study.optimize(lambda trial: 0.5, n_trials=1)
    study.client.study(study.name).optimize(lambda trial: 0.5, timeout=0.3)  # asked for elsewhere
    assert "tell" not in caplog.text
    study.optimize(lambda trial: 0.5, timeout=1.0)  # there are no more, and the study is not over
    assert caplog.text.count(f"ask() gave [{held.number}] in this process: tell() how they ended") == 1
    study.tell(held, 0.5)


def test_jobs_run_at_once(start_server: StartServer) -> None:
    server = start_server(trials=4)
    together = threading.Barrier(2)

    def objective(trial: tandem.Trial) -> float:
        together.wait(timeout=10)  # passes only when two runs are on
        return 0.5

    study_on(server).optimize(objective, n_jobs=2)
    assert [t["state"] for t in server.trials.values()] == ["completed"] * 4
    assert server.sent("/workers")[0].json["slots"] == 2


def test_an_exception_in_a_job_ends_the_others_after_their_trial(start_server: StartServer) -> None:
    server = start_server(trials=1000)

    def objective(trial: tandem.Trial) -> float:
        if trial.number == 5:
            raise RuntimeError("five")
        return 0.5

    with pytest.raises(RuntimeError, match="five"):
        study_on(server).optimize(objective, n_jobs=3)
    assert len(server.trials) < 20
    assert {t["state"] for t in server.trials.values()} <= {"completed", "failed"}


def test_callbacks_get_the_record_and_may_stop_the_study(start_server: StartServer) -> None:
    server = start_server(trials=10)
    seen: list[tuple[int, str, object]] = []

    def callback(study: tandem.Study, trial: tandem.TrialRecord) -> None:
        seen.append((trial.number, trial.state, trial.value))
        if trial.number == 1:
            study.stop()

    study_on(server).optimize(lambda trial: 0.5, callbacks=[callback])
    assert seen == [(0, "completed", 0.5), (1, "completed", 0.5)]


def test_stop_ends_a_run(start_server: StartServer) -> None:
    server = start_server(((5, 1.0),), trials=1)
    server.directives["s1-0"] = {"action": "stop", "reason": "enough"}
    epochs: list[int] = []

    def objective(trial: tandem.Trial) -> None:
        for epoch in trial.epochs():
            epochs.append(epoch)
            trial.report(accuracy=0.1)

    study_on(server).optimize(objective, n_trials=1)
    assert epochs == [1]
    assert (server.sent("/finish")[0].json["outcome"], server.trials["s1-0"]["reason"]) == ("interrupted", "enough")


def test_pause_gives_the_trial_back_with_its_checkpoint(start_server: StartServer) -> None:
    server = start_server(((5, 1.0),), trials=1)
    server.directives["s1-0"] = {"action": "pause"}

    def objective(trial: tandem.Trial) -> float:
        for _ in trial.epochs():
            trial.report(accuracy=0.1)
            trial.checkpoint(lambda path: Path(path).write_text("x"))
        return 0.9  # not to be taken for the end of the budget

    study_on(server).optimize(objective, n_trials=1)
    assert [r["epoch"] for r in server.reports["s1-0"]] == [1]
    assert server.sent("/finish")[0].json["outcome"] == "interrupted"
    assert (server.trials["s1-0"]["state"], server.trials["s1-0"]["checkpoint"]["epoch"]) == ("queued", 1)


def test_an_objective_that_gives_up_by_itself_has_failed(start_server: StartServer) -> None:
    server = start_server(((5, 1.0),), trials=1)

    def objective(trial: tandem.Trial) -> float:
        raise tandem.TrialStopped("loss is NaN")

    study_on(server).optimize(objective)
    assert server.trials["s1-0"]["reason"] == "the objective gave up: loss is NaN"
    assert server.trials["s1-0"]["state"] == "failed"


def test_a_heartbeat_brings_a_pause_into_a_long_epoch(start_server: StartServer) -> None:
    server = start_server(((5, 1.0),), trials=1)
    server.heartbeat_seconds = 0.02

    def objective(trial: tandem.Trial) -> None:
        for _ in trial.epochs():
            trial.report(accuracy=0.1)
            server.directives["s1-0"] = {"action": "pause"}
            wait_for(trial.should_stop)

    study_on(server).optimize(objective, n_trials=1)
    assert server.sent("/finish")[0].json["outcome"] == "interrupted"
    # The last heartbeat may come behind the end of the trial.
    beats = [beat.json["leases"] for beat in server.sent("/heartbeat")]
    assert [{"trial_id": "s1-0", "lease_epoch": 1}] in beats


def test_a_lost_lease_writes_nothing_more_and_goes_on(start_server: StartServer) -> None:
    server = start_server(trials=2)
    server.heartbeat_seconds = 0.02
    server.lost = {"s1-0"}

    def objective(trial: tandem.Trial) -> float:
        if trial.number == 0:
            wait_for(lambda: lost(trial))
        return 0.5

    def lost(trial: tandem.Trial) -> bool:
        try:
            trial.should_stop()
        except tandem.LeaseLost:
            return True
        return False

    study_on(server).optimize(objective, n_trials=2)
    assert server.reports["s1-0"] == []
    assert [c.path for c in server.sent("/finish")] == ["/api/v1/trials/s1-1/finish"]


def test_a_late_write_is_refused_and_the_next_trial_runs(start_server: StartServer) -> None:
    server = start_server(trials=2)

    def objective(trial: tandem.Trial) -> float:
        if trial.number == 0:
            server.trials["s1-0"]["lease_epoch"] += 1
        return 0.5

    study = study_on(server)
    study.optimize(objective, n_trials=2)
    assert server.reports["s1-0"] == []
    assert server.trials["s1-1"]["state"] == "completed"


def test_a_server_that_forgot_the_worker_is_told_again(start_server: StartServer) -> None:
    server = start_server(trials=2)

    def objective(trial: tandem.Trial) -> float:
        server.workers.clear()  # as after a restart
        return 0.5

    study_on(server).optimize(objective)
    assert [t["state"] for t in server.trials.values()] == ["completed"] * 2


def test_ctrl_c_gives_the_trial_back(start_server: StartServer) -> None:
    server = start_server(trials=2)

    def objective(trial: tandem.Trial) -> float:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        study_on(server).optimize(objective)
    assert server.sent("/finish")[0].json["outcome"] == "interrupted"
    assert server.trials["s1-0"]["state"] == "queued"
    assert server.workers == {}


@pytest.mark.parametrize("path", ["/reports", "/finish", "/leases", "/artifacts", "/checkpoint"])
@pytest.mark.parametrize("fault", ["before", "after", "503"])
def test_lost_answers_change_nothing(start_server: StartServer, path: str, fault: str) -> None:
    server = start_server(((2, 1.0),), trials=2)
    server.faults = [(path, fault)]

    def objective(trial: tandem.Trial) -> None:
        for _ in trial.epochs():
            trial.report(accuracy=0.5)
            trial.checkpoint(lambda p: Path(p).write_text("x"))

    study_on(server).optimize(objective)
    assert server.faults == []
    assert [t["state"] for t in server.trials.values()] == ["completed"] * 2
    assert [t["lease_epoch"] for t in server.trials.values()] == [1, 1]
    assert [r["epoch"] for r in server.reports["s1-0"]] == [1, 2]


@pytest.mark.parametrize("damage", ["changed", "missing", "no archive", "twice"])
def test_a_damaged_checkpoint_is_given_back_for_the_one_before(
    start_server: StartServer, tmp_path: Path, damage: str
) -> None:
    server = start_server(LADDER, trials=1)
    runs: list[list[int]] = []

    def objective(trial: tandem.Trial) -> None:
        restored: list[str] = []
        trial.restore(lambda path: restored.append(Path(path).read_text()))
        assert restored == ([str(trial.first_epoch - 1)] if trial.first_epoch > 1 else [])
        runs.append([])
        for epoch in trial.epochs():
            runs[-1].append(epoch)
            trial.report(accuracy=0.5)
            trial.checkpoint(lambda path: Path(path).write_text(str(trial.last_reported)))

    study = study_on(server)
    study.optimize(objective, n_trials=2)
    newest = server.trials["s1-0"]["checkpoint"]["artifact"]
    if damage == "changed":
        server.artifacts[newest] = server.artifacts[newest].replace(b"3", b"4", 1)
    elif damage == "missing":
        del server.artifacts[newest]
    else:
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as file:
            for _ in range(2):
                file.addfile(tarfile.TarInfo("checkpoint"))
        content = packed.getvalue() if damage == "twice" else b"PK not a tar file"
        renamed = hashlib.sha256(content).hexdigest()
        server.artifacts[renamed] = content
        server.trials["s1-0"]["checkpoint"]["artifact"] = renamed
        newest = renamed
    study.optimize(objective, n_trials=1)
    assert runs == [[1], [2, 3], [3, 4, 5, 6, 7, 8, 9]]
    (given_back,) = [call.json for call in server.sent("/finish") if "unusable_checkpoint" in call.json]
    assert (given_back["outcome"], given_back["unusable_checkpoint"]) == ("interrupted", newest)
    if damage in ("no archive", "twice"):
        with pytest.raises(tandem.TandemError, match=r"archive|twice"):
            server.trials["s1-0"]["checkpoint"] = {"artifact": newest, "epoch": 3, "bytes": 1, "rung": 1}
            study.download_checkpoint(tmp_path / "it", 0)


@pytest.mark.parametrize("forgets", [1, 4, 5])
def test_a_checkpoint_is_sent_again_to_a_server_that_was_started_anew(start_server: StartServer, forgets: int) -> None:
    server = start_server(((1, 1.0),), trials=1)
    server.forgets = forgets

    def objective(trial: tandem.Trial) -> None:
        for _ in trial.epochs():
            trial.report(accuracy=0.5)
            if forgets < 5:
                trial.checkpoint(lambda p: Path(p).write_text("x"))
            else:
                with pytest.raises(tandem.ConflictError):
                    trial.checkpoint(lambda p: Path(p).write_text("x"))

    study_on(server).optimize(objective)
    assert len(server.sent("/artifacts", "PUT")) == min(forgets + 1, 5)
    assert ("checkpoint" in server.trials["s1-0"]) and (server.trials["s1-0"]["checkpoint"] is None) == (forgets == 5)


def test_without_any_whole_checkpoint_a_trial_starts_again(start_server: StartServer) -> None:
    server = start_server(LADDER, trials=1)
    firsts: list[int] = []

    def objective(trial: tandem.Trial) -> None:
        firsts.append(trial.first_epoch)
        for _ in trial.epochs():
            trial.report(accuracy=0.5)
        trial.checkpoint(lambda path: Path(path).write_text("x"))

    study = study_on(server)
    study.optimize(objective, n_trials=1)
    server.artifacts.clear()
    study.optimize(objective, n_trials=1)
    assert firsts == [1, 1]


def test_ask_and_tell(start_server: StartServer) -> None:
    server = start_server(trials=4)
    with study_on(server) as study:
        first, second = study.ask(), study.ask()
        assert (first.number, second.number) == (0, 1)
        assert study.tell(second, 0.5) == "completed"
        assert study.tell(first, state="failed", reason="out of memory") == "failed"
        third = study.ask()
        third.report(accuracy=0.75)
        assert study.tell(third) == "completed"
        with pytest.raises(ValueError, match="told already"):
            study.tell(third, 0.5)
        with pytest.raises(ValueError, match="state must be"):
            study.tell(study.ask(), state="pruned")
    assert server.trials["s1-0"]["reason"] == "out of memory"
    assert server.trials["s1-3"]["state"] == "queued"  # given back at the end of the block
    assert max(c.json["slots"] for c in server.sent("/workers") if "slots" in c.json) == 2
    assert server.workers == {}


def test_a_run_that_comes_before_the_end_of_the_one_before_is_answered(
    start_server: StartServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = start_server(LADDER, trials=1)
    runs: list[tandem.Trial] = []
    finish = LeaseLink.finish

    def finished_and_asked(link: LeaseLink, *arguments: Any, **named: Any) -> str:
        state = finish(link, *arguments, **named)
        if len(runs) == 1:  # another thread asks while the answer is on its way
            runs.append(study.ask())
        return state

    monkeypatch.setattr(LeaseLink, "finish", finished_and_asked)
    with study_on(start) as study:
        runs.append(study.ask())
        study.tell(runs[0], 0.5)
        assert [(run.number, run.budget.epochs) for run in runs] == [(0, 1), (0, 3)]
        assert study._session is not None
        assert [link.lease_epoch for link in study._session.held()] == [2]
        with pytest.raises(ValueError, match="told already"):
            study.tell(runs[0], 0.5)
        study.tell(runs[1], 0.6)


def test_ask_waits_for_so_long(start_server: StartServer) -> None:
    server = start_server(trials=1)
    with study_on(server) as study:
        trial = study.ask()
        with pytest.raises(TimeoutError, match="no trial to give"):
            study.ask(timeout=0)
        study.tell(trial, 0.5)
        with pytest.raises(tandem.StudyOver):
            study.ask()


def test_ask_and_tell_name_what_they_take(start_server: StartServer) -> None:
    study = study_on(start_server(trials=1))
    with pytest.raises(TypeError, match=r"ask takes a timeout in seconds, not \{'x': 1\}"):
        study.ask({"x": 1})  # type: ignore[arg-type]
    trial = study.ask(1)
    with pytest.raises(TypeError, match="tell takes the trial that ask gave, not 0"):
        study.tell(trial.number, 0.5)  # type: ignore[arg-type]
    assert study.tell(trial, 0.5) == "completed"


def test_an_unfinished_ask_is_given_back_when_the_study_is_dropped(start_server: StartServer) -> None:
    server = start_server(trials=1)
    study = study_on(server)
    study.ask()
    del study
    wait_for(lambda: server.trials["s1-0"]["state"] == "queued")


def test_reading_a_study(start_server: StartServer, tmp_path: Path) -> None:
    server = start_server(((2, 1.0),), trials=2)
    study = study_on(server)
    with pytest.raises(ValueError, match="no trial of toy has been measured"):
        study.best_trial  # noqa: B018

    def objective(trial: tandem.Trial) -> None:
        for epoch in trial.epochs():
            trial.report(accuracy=trial.number + epoch / 10)
            trial.checkpoint(lambda path: Path(path).write_text(f"weights {trial.number}"))

    study.optimize(objective)
    answer = study.recommendation()
    assert (answer.number, answer.value, answer.metric, answer.full_budget) == (1, 1.2, "accuracy", True)
    assert answer.notes == ("one seed only",)
    assert (answer.results, answer.standard_error) == (1, None)
    server.repeated = {"results": 3, "mean": [1.2], "standard_errors": [0.25], "trials": [1, 2, 3]}
    again = study.recommendation()
    assert (again.results, again.standard_error) == (3, 0.25)
    assert study.trial(0).repeat_of is None
    server.trials["s1-0"]["repeat_of"] = 1
    assert study.trial(0).repeat_of == 1
    assert answer.params["x"] == 1
    assert [r["epoch"] for r in study.learning_curve(0)] == [1, 2]
    server.samples = [{"lease_epoch": 1, "seconds": [1.0], "epochs": [1], "metrics": {"tree.cpu_user": [0.5]}}]
    assert study.samples(0)[0]["metrics"]["tree.cpu_user"] == [0.5]
    folder = study.download_checkpoint(tmp_path / "winner")
    assert (folder / "checkpoint").read_text() == "weights 1"
    assert study.trial(0).results[0].budget == tandem.Budget(2, 1.0)


def test_what_mattered_is_asked_for_as_wished(start_server: StartServer) -> None:
    study = study_on(start_server())
    assert study.importance()["asked"] == {"objective": "0"}
    answer = study.importance(objective=1, rung=2)
    assert (answer["method"], answer["asked"]) == ("importance", {"objective": "1", "rung": "2"})


def test_all_pages_of_trials(start_server: StartServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tandem.study._PAGE", 2)
    study = study_on(start_server(trials=5))
    study.optimize(lambda trial: 0.5)
    assert [t.number for t in study.trials] == [0, 1, 2, 3, 4]


def test_a_dataframe_needs_pandas(start_server: StartServer, monkeypatch: pytest.MonkeyPatch) -> None:
    study = study_on(start_server(trials=1))
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        study.trials_dataframe()


def test_a_dataframe(start_server: StartServer) -> None:
    pytest.importorskip("pandas", reason="pandas is not installed")
    study = study_on(start_server(trials=2))
    study.optimize(lambda trial: trial.number / 2)
    frame = study.trials_dataframe()
    assert list(frame["value"]) == [0.0, 0.5]
    assert list(frame["params_x"]) == [0, 1]
    assert list(frame["joules"].isna()) == [True, True]  # nobody measured any: that is not none
    assert list(study.trials_dataframe(attrs=("value", "params", "number"))) == [
        "value",
        "params_x",
        "params_rate",
        "number",
    ]


def test_a_row_of_the_dataframe_has_every_objective(
    monkeypatch: pytest.MonkeyPatch, real_client: tandem.Client
) -> None:
    monkeypatch.setitem(sys.modules, "pandas", SimpleNamespace(DataFrame=list))  # what is asked of it here
    study = real_client.create_study(
        {
            "name": "dataframe",
            "objective": [
                {"metric": "accuracy", "direction": "maximize"},
                {"expression": "seconds * 1000", "name": "milliseconds", "direction": "minimize"},
            ],
            "space": {"x": {"type": "int", "low": 0, "high": 9}},
            "budget": {"epochs": 1},
            "search": {"method": "tpe"},
            "stop": {"trials": 2},
        }
    )
    study.optimize(lambda trial: {"accuracy": 0.5, "seconds": 0.25}, n_trials=1)
    with study:
        study.tell(study.ask(), state="failed", reason="no memory")
    study.annotate(trial=0, tags=["odd", "paper"], note="look")
    first, second = study.trials_dataframe()
    assert (first["value"], first["value_accuracy"], first["value_milliseconds"]) == (0.5, 0.5, 250.0)
    assert (first["tags"], first["note"], first["joules"]) == ("odd paper", "look", None)
    assert second["value_accuracy"] is None
    assert "no memory" in second["reason"]


def test_steering(start_server: StartServer) -> None:
    server = start_server(trials=1)
    study = study_on(server)
    study.pause()
    assert study.status == "paused"
    study.resume()
    assert study.status == "running"
    study.stop()
    assert study.status == "stopped"
    study.set(priority=-2)
    study.set(priority=0, parallel=4)
    assert study.view["set"] == {"priority": 0, "parallel": 4}
    study.extend(trials=5, joules=2.5)
    assert (study.status, study.view["extended"]) == ("running", {"trials": 5, "joules": 2.5})
    with pytest.raises(tandem.TandemError, match="not extended"):
        study.extend()
    study.retry_failed()
    assert study.view["extended"] == {"retry_failed": True}
    study.delete()
    assert server.studies == {}


def test_wait_shows_progress_and_returns_the_answer(
    start_server: StartServer, capsys: pytest.CaptureFixture[str]
) -> None:
    server = start_server(trials=1)
    study = study_on(server)
    thread = threading.Thread(target=study.optimize, args=(lambda trial: 0.5,))
    thread.start()
    assert study.wait(interval=0.01).value == 0.5
    thread.join()
    assert capsys.readouterr().err.splitlines()[-1] == ("toy is completed: 1 completed; best accuracy 0.5 (trial 0)")


def test_the_front_and_its_trials(start_server: StartServer) -> None:
    server = start_server(trials=2)
    study = study_on(server)
    assert study.best_trials == []
    study.optimize(lambda trial: math.nan if trial.number == 0 else 0.5)
    answer = study.pareto()
    assert (answer["hypervolume"], len(answer["trials"])) == (0.5, 1)
    assert math.isnan(answer["trials"][0]["values"][0])  # NaN travels as a word
    server.trials["s1-0"]["results"][-1].update(violation=0.25, estimated=True)
    (best,) = study.best_trials
    assert (best.number, best.feasible, best.results[-1].violation, best.results[-1].estimated) == (
        0,
        False,
        0.25,
        True,
    )
    other = study.trial(1)
    assert (other.feasible, other.values, other.results[-1].estimated) == (True, (0.5,), False)
