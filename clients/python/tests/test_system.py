"""The system configuration: the start of training, what is applied between epochs, what reports say of it."""

from __future__ import annotations

import json
import os
import sys
import types
from typing import Any

import pytest
from conftest import StartAgent, StartServer, study_on

import tandem
from tandem.system import SystemValues


class Library(types.ModuleType):
    """A numeric library that is told its threads."""

    def __init__(self, name: str, loaded: bool = True) -> None:
        super().__init__(name)
        self.told: list[int] = []
        self.loaded = loaded
        self.set_num_threads = self.told.append
        self.threadpool_limits = self.told.append

    def threadpool_info(self) -> list[dict[str, Any]]:
        return [{"internal_api": "openblas"}] if self.loaded else []


@pytest.fixture(autouse=True)
def no_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    monkeypatch.setitem(sys.modules, "threadpoolctl", None)  # cannot be imported


def run(trial: tandem.Trial, read: tuple[str, ...] = ()) -> None:
    for _ in trial.epochs():
        for name in read:
            trial.system[name]
        trial.report(accuracy=0.5)


def in_force(agent: Any) -> list[dict[str, Any]]:
    return [report.get("system", {}) for report in agent.reports]


def test_training_begins_once_at_the_first_step_of_the_loop(start_agent: StartAgent) -> None:
    agent = start_agent(first_epoch=2)
    trial = tandem.current_trial()
    assert trial.checkpoint_dir.is_dir()
    loop = trial.epochs()
    assert agent.begins == []
    assert next(loop) == 2
    assert agent.begins == [2]
    trial.report(accuracy=0.1)
    assert list(loop) == [3]
    assert list(trial.epochs()) == [3]
    assert agent.begins == [2]


def test_a_worker_that_knows_no_begin_gets_none_of_it(start_agent: StartAgent) -> None:
    agent = start_agent()
    agent.old = True
    run(tandem.current_trial(), read=("cpu_threads",))
    assert [report["epoch"] for report in agent.reports] == [1, 2, 3]
    assert in_force(agent) == [{}, {}, {}]


def test_what_a_script_has_read_is_in_force(start_agent: StartAgent) -> None:
    agent = start_agent(system={"loader_workers": 2, "precision": "fp32"})
    agent.directives[1] = {"action": "continue", "system": {"loader_workers": 4, "precision": "bf16"}}
    run(tandem.current_trial(), read=("loader_workers",))
    assert in_force(agent) == [{"loader_workers": 2}, {"loader_workers": 4}, {"loader_workers": 4}]


def test_what_a_script_read_before_a_change_is_still_in_force(start_agent: StartAgent) -> None:
    agent = start_agent(system={"loader_workers": 2})
    agent.directives[1] = {"action": "continue", "system": {"loader_workers": 4}}
    trial = tandem.current_trial()
    assert trial.system["loader_workers"] == 2
    run(trial)
    assert in_force(agent) == [{"loader_workers": 2}] * 3


def test_threads_are_applied_between_epochs(start_agent: StartAgent, monkeypatch: pytest.MonkeyPatch) -> None:
    torch, pools = Library("torch"), Library("threadpoolctl")
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setitem(sys.modules, "threadpoolctl", pools)
    agent = start_agent()
    agent.directives[1] = {"action": "continue", "system": {"cpu_threads": 3}}
    trial = tandem.current_trial()
    assert torch.told == []
    run(trial)
    assert torch.told == pools.told == [1, 3]
    assert os.environ["OMP_NUM_THREADS"] == os.environ["OPENBLAS_NUM_THREADS"] == "3"
    assert in_force(agent) == [{"cpu_threads": 1}, {"cpu_threads": 3}, {"cpu_threads": 3}]


@pytest.mark.parametrize("pools", [None, Library("threadpoolctl", loaded=False)])
def test_without_a_library_only_children_get_the_threads(
    start_agent: StartAgent, monkeypatch: pytest.MonkeyPatch, pools: Any
) -> None:
    monkeypatch.setitem(sys.modules, "threadpoolctl", pools)
    agent = start_agent()
    agent.directives[1] = {"action": "continue", "system": {"cpu_threads": 3}}
    run(tandem.current_trial())
    assert os.environ["MKL_NUM_THREADS"] == "3"
    assert in_force(agent) == [{}, {}, {}]


def test_a_library_that_is_loaded_late_is_told(start_agent: StartAgent, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = start_agent()
    torch = Library("torch")
    for _ in (trial := tandem.current_trial()).epochs():
        monkeypatch.setitem(sys.modules, "torch", torch)
        trial.report(accuracy=0.5)
    assert torch.told == [1]
    assert in_force(agent) == [{}, {"cpu_threads": 1}, {"cpu_threads": 1}]


@pytest.mark.parametrize("way", ["argument", "attribute"])
def test_threads_can_be_left_alone(start_agent: StartAgent, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    torch = Library("torch")
    monkeypatch.setitem(sys.modules, "torch", torch)
    agent = start_agent()
    trial = tandem.current_trial(apply_threads=False if way == "argument" else None)
    trial.apply_threads = False if way == "attribute" else trial.apply_threads
    assert tandem.current_trial() is trial
    run(trial)
    assert (torch.told, os.environ["OMP_NUM_THREADS"], in_force(agent)) == ([], "9", [{}, {}, {}])


@pytest.mark.parametrize("threads", [0, True, 1.5, "two", None])
def test_no_number_of_threads_is_left_alone(start_agent: StartAgent, threads: Any) -> None:
    start_agent(system={"cpu_threads": threads} if threads is not None else {})
    run(tandem.current_trial())
    assert os.environ["OMP_NUM_THREADS"] == "9"


@pytest.mark.parametrize(
    ("read", "seen"),
    [
        (lambda s: s["a"], {"a": 1}),
        (lambda s: s.get("b", 7), {"b": 2}),
        (lambda s: s.get("c", 7), {}),
        (lambda s: ("a" in s, len(s), list(s), repr(s)), {}),
        (lambda s: s.peek("a"), {}),
        (lambda s: dict(s), {"a": 1, "b": 2}),
        (lambda s: {**s}, {"a": 1, "b": 2}),
        (lambda s: list(s.items()), {"a": 1, "b": 2}),
        (lambda s: list(s.values()), {"a": 1, "b": 2}),
        (lambda s: s.copy(), {"a": 1, "b": 2}),
        (lambda s: json.dumps(s), {"a": 1, "b": 2}),
    ],
)
def test_what_counts_as_read(read: Any, seen: dict[str, int]) -> None:
    values = SystemValues({"a": 1, "b": 2})
    read(values)
    assert values.read == seen


def test_a_new_configuration_replaces_the_old_one() -> None:
    values = SystemValues({"a": 1, "b": 2})
    values.change({"b": 3})
    assert values == {"b": 3}
    with pytest.raises(KeyError, match="no system setting 'a'"):
        values["a"]


def test_a_process_of_its_own_keeps_its_threads(start_server: StartServer, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = Library("torch")
    monkeypatch.setitem(sys.modules, "torch", torch)
    server = start_server(trials=1)
    server.system = {"cpu_threads": 3, "loader_workers": 2}

    def objective(trial: tandem.Trial) -> None:
        run(trial, read=("loader_workers",))

    study_on(server).optimize(objective)
    assert (torch.told, os.environ["OMP_NUM_THREADS"]) == ([], "9")
    assert [report.get("system") for report in server.reports["s1-0"]] == [{"loader_workers": 2}]


def test_a_script_that_asks_for_its_loader_tells_so(start_agent: StartAgent) -> None:
    agent = start_agent()
    agent.directives[1] = {"action": "continue", "system": {"cpu_threads": 1, "loader_workers": 4}}
    trial = tandem.current_trial()
    asked = []
    for _ in trial.epochs():
        asked.append(trial.loader_workers(default=2))
        trial.report(accuracy=0.5)
    assert asked == [2, 4, 4]
    assert in_force(agent) == [{"loader_workers": 2}, {"loader_workers": 4}, {"loader_workers": 4}]


@pytest.mark.parametrize("default", [-1, 1.5, True, "two"])
def test_no_number_of_processes_is_refused(start_agent: StartAgent, default: Any) -> None:
    start_agent()
    with pytest.raises(ValueError, match="default must be a whole number"):
        tandem.current_trial().loader_workers(default)
