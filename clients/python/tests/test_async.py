"""The client for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from pathlib import Path
from typing import Any, Callable, TypeVar

import pytest
from conftest import StartServer
from fake_server import TOKEN, FakeServer

import tandem

Answer = TypeVar("Answer")
LADDER = ((1, 0.25), (3, 0.5), (9, 1.0))


def play(server: FakeServer, scene: Callable[[tandem.AsyncStudy], Awaitable[Answer]]) -> Answer:
    """Run the scene with a study of the server."""

    async def main() -> Answer:
        async with tandem.AsyncClient(server.url, TOKEN) as client:  # noqa: SIM117
            async with await client.create_study({"name": "toy", "space": {}}) as study:
                return await scene(study)

    return asyncio.run(main())


def test_trials_one_after_the_other(start_server: StartServer) -> None:
    server = start_server(LADDER, trials=2)
    trained: list[tuple[int, int]] = []

    async def scene(study: tandem.AsyncStudy) -> tandem.Recommendation:
        async for trial in study.trials():
            state: list[str] = []
            await trial.restore(lambda path, state=state: state.append(Path(path).read_text()))  # type: ignore[misc]
            assert state == ([] if trial.trial.first_epoch == 1 else [str(trial.trial.first_epoch - 1)])
            for epoch in trial.epochs():
                trained.append((trial.number, epoch))
                await trial.report(accuracy=trial.params["x"] + epoch / 10)
                await trial.checkpoint(lambda path, epoch=epoch: Path(path).write_text(str(epoch)))  # type: ignore[misc]
        return await study.wait()

    answer = play(server, scene)
    assert answer.value == 1.9
    for number in (0, 1):
        assert [epoch for n, epoch in trained if n == number] == list(range(1, 10))
    assert server.workers == {}


def test_tasks_side_by_side(start_server: StartServer) -> None:
    server = start_server(trials=4)
    together = 0
    most = 0

    async def objective(trial: tandem.AsyncTrial) -> float:
        nonlocal together, most
        together += 1
        while together < 2 and most < 2:
            await asyncio.sleep(0.01)
        most = max(most, together)
        together -= 1
        return 0.5

    async def scene(study: tandem.AsyncStudy) -> list[tandem.TrialRecord]:
        await study.optimize(objective, n_jobs=2)
        return await study.records()

    assert [record.state for record in play(server, scene)] == ["completed"] * 4
    assert most == 2


def test_an_exception_fails_the_trial_and_ends_the_call(start_server: StartServer) -> None:
    server = start_server(trials=3)

    async def objective(trial: tandem.AsyncTrial) -> float:
        return 1 / (trial.number - 1)

    async def caught(study: tandem.AsyncStudy) -> list[str]:
        await study.optimize(objective, catch=ZeroDivisionError)
        return [record.state for record in await study.records()]

    async def raised(study: tandem.AsyncStudy) -> None:
        await study.optimize(objective)

    assert play(server, caught) == ["completed", "failed", "completed"]
    other = start_server(trials=3)
    with pytest.raises(ZeroDivisionError):
        play(other, raised)
    assert other.trials["s1-1"]["reason"] == "ZeroDivisionError: division by zero"


def test_n_trials(start_server: StartServer) -> None:
    server = start_server(trials=100)

    async def objective(trial: tandem.AsyncTrial) -> float:
        return 0.5

    async def scene(study: tandem.AsyncStudy) -> None:
        await study.optimize(objective, 5, n_jobs=3)

    play(server, scene)
    assert len(server.trials) == 5


def test_a_cancelled_task_gives_its_trial_back(start_server: StartServer) -> None:
    server = start_server(trials=1)

    async def scene(study: tandem.AsyncStudy) -> None:
        begun = asyncio.Event()

        async def objective(trial: tandem.AsyncTrial) -> float:
            begun.set()
            await asyncio.sleep(3600)
            return 0.5

        task = asyncio.ensure_future(study.optimize(objective))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    play(server, scene)
    assert server.trials["s1-0"]["state"] == "queued"
    assert server.workers == {}


def test_a_loop_that_is_left_gives_its_trial_back(start_server: StartServer) -> None:
    server = start_server(trials=2)

    async def scene(study: tandem.AsyncStudy) -> None:
        async for trial in study.trials():
            if trial.number == 1:
                break
            await trial.report(accuracy=0.5)

    play(server, scene)
    assert [trial["state"] for trial in server.trials.values()] == ["completed", "queued"]


def test_a_trial_that_comes_for_a_cancelled_task_is_given_back(start_server: StartServer) -> None:
    server = start_server(trials=1)

    async def scene(study: tandem.AsyncStudy) -> None:
        server.studies["s1"]["status"] = "paused"
        asking = asyncio.ensure_future(study.ask())
        while not server.sent("/leases"):
            await asyncio.sleep(0.01)
        asking.cancel()
        server.studies["s1"]["status"] = "running"
        with pytest.raises(asyncio.CancelledError):
            await asking
        while not server.trials or server.trials["s1-0"]["state"] != "queued":
            await asyncio.sleep(0.01)

    play(server, scene)


def test_a_stop_ends_the_epochs_without_an_exception(start_server: StartServer) -> None:
    server = start_server(((5, 1.0),), trials=1)
    server.directives["s1-0"] = {"action": "stop", "reason": "enough"}
    epochs: list[int] = []

    async def objective(trial: tandem.AsyncTrial) -> None:
        for epoch in trial.epochs():
            epochs.append(epoch)
            await trial.report(accuracy=0.1)
        with pytest.raises(tandem.LeaseLost, match="enough"):
            await trial.report(2, accuracy=0.1)

    async def scene(study: tandem.AsyncStudy) -> None:
        await study.optimize(objective, 1)

    play(server, scene)
    assert epochs == [1]
    assert server.sent("/finish")[0].json["outcome"] == "interrupted"


def test_reading_and_steering(start_server: StartServer) -> None:
    server = start_server(trials=1)

    async def scene(study: tandem.AsyncStudy) -> Any:
        assert await study.enqueue({"x": 7}) == 1
        await study.pause()
        paused = await study.status()
        await study.resume()
        trial = await study.ask()
        assert trial.params["x"] == 7
        assert await study.tell(trial, 0.25) == "completed"
        with pytest.raises(tandem.StudyOver):
            await study.ask()
        return paused, (await study.recommendation()).value, [s.name for s in await study._client.studies()]

    assert play(server, scene) == ("paused", 0.25, ["toy"])
