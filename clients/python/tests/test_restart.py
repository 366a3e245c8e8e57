"""A real server that is killed and started again under running trials: nothing is lost, nothing comes twice."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

from real_server import RealServer

import tandem

DEFINITION: dict[str, Any] = {
    "objective": {"metric": "loss", "direction": "minimize"},
    "space": {"x": {"type": "float", "low": -5.0, "high": 5.0}},
    "budget": {"policy": "epochs", "epochs": {"min": 1, "max": 4}},
    "search": {"method": "random", "seed": 7},
    "stop": {"trials": 6},
}


class Outage:
    """Kills the server once, and starts it again while the call that meets this is retried."""

    def __init__(self, server: RealServer) -> None:
        self._server = server
        self._lock = threading.Lock()
        self._again = threading.Timer(0.3, server.start)
        self.had = False

    def begin(self) -> None:
        with self._lock:
            if self.had:
                return
            self.had = True
            self._server.kill()
            self._again.start()

    def end(self) -> None:
        self._again.join()


def check(study: tandem.Study) -> None:
    """That the study is what it would be without the outage."""
    assert study.status == "completed"
    assert len(study.trials) == 6
    for record in study.trials:
        assert record.state in ("completed", "pruned"), (record.number, record.state, record.reason)
        reports = [(report["rung"], report["epoch"]) for report in study.learning_curve(record.number)]
        assert reports == [(result.rung, 1 + i) for result in record.results for i in range(result.budget.epochs)]


def test_optimize(own_server: RealServer) -> None:
    outage = Outage(own_server)

    def objective(trial: tandem.Trial) -> None:
        for epoch in trial.epochs():
            if trial.number == 2:
                outage.begin()
            trial.report(loss=trial.params["x"] ** 2 + 1 / epoch)

    client = tandem.Client(own_server.url, own_server.token)
    study = client.create_study({**DEFINITION, "name": "restart"})
    study.optimize(objective, n_jobs=2)
    outage.end()
    assert outage.had
    check(study)


def test_async(own_server: RealServer) -> None:
    outage = Outage(own_server)

    async def objective(trial: tandem.AsyncTrial) -> None:
        for epoch in trial.epochs():
            if trial.number == 2:
                await asyncio.get_running_loop().run_in_executor(None, outage.begin)
            await trial.report(loss=trial.params["x"] ** 2 + 1 / epoch)

    async def main() -> tandem.Study:
        async with tandem.AsyncClient(own_server.url, own_server.token) as client:  # noqa: SIM117
            async with await client.create_study({**DEFINITION, "name": "restart"}) as study:
                await study.optimize(objective, n_jobs=3)
                return study.study

    study = asyncio.run(main())
    outage.end()
    assert outage.had
    check(study)
