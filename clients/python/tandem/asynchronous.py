"""The client for programs that run on asyncio::

    async with tandem.AsyncClient() as client:
        study = await client.create_study("study.yaml")
        async for trial in study.trials():
            for epoch in trial.epochs():
                await trial.report(accuracy=await train_one_epoch(trial.params))

Calls wait in threads of their own, so the event loop never does, and are repeated as those of the plain client are.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import os
import traceback
import warnings
from collections.abc import AsyncIterator, Awaitable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Callable, Optional, SupportsFloat, TypeVar, Union

from .client import Client, Definition
from .errors import LeaseLost, StudyOver, TandemError
from .optimize import Outcome, caught, check, count, ending
from .record import Recommendation, TrialRecord
from .study import OVER, Study
from .trial import Trial
from .waiting import Waiting
from .warm import WarmStart

Answer = TypeVar("Answer")
AsyncObjective = Callable[["AsyncTrial"], Awaitable[Outcome]]

_ASK_SECONDS = 2.0
"""How long one call waits for a trial: a task that is cancelled meanwhile leaves its thread so long at most."""

logger = logging.getLogger("tandem")


class AsyncClient:
    """The studies of one server, for asyncio. The arguments are those of :class:`Client`.

    ``connections`` is how many calls may be on their way at once: a task that waits for a trial takes one meanwhile.
    """

    def __init__(
        self,
        url: Optional[str] = None,
        token: Optional[str] = None,
        *,
        ca: Union[str, os.PathLike[str], None] = None,
        patience: float = 60.0,
        connections: int = 32,
    ) -> None:
        self.client = Client(url, token, ca=ca, patience=patience)
        self._threads = ThreadPoolExecutor(connections, thread_name_prefix="tandem-async")

    async def create_study(
        self, definition: Definition, *, load_if_exists: bool = False, warm_start: Optional[WarmStart] = None
    ) -> AsyncStudy:
        """See :meth:`Client.create_study`."""
        create = functools.partial(self.client.create_study, load_if_exists=load_if_exists, warm_start=warm_start)
        return AsyncStudy(self, await self.run(create, definition))

    async def study(self, name: str) -> AsyncStudy:
        """The study with the name or the id."""
        return AsyncStudy(self, await self.run(self.client.study, name))

    async def studies(self) -> list[AsyncStudy]:
        """All studies, the newest first."""
        return [AsyncStudy(self, study) for study in await self.run(self.client.studies)]

    async def preview(self, definition: Definition) -> Mapping[str, Any]:
        """The plan of a study. Nothing is stored."""
        return await self.run(self.client.preview, definition)

    async def run(self, call: Callable[..., Answer], *arguments: Any) -> Answer:
        """Await anything of the plain client: ``await client.run(study.study.importance)``."""
        return await asyncio.wrap_future(self._threads.submit(call, *arguments))

    def submit(self, call: Callable[..., Answer], *arguments: Any) -> Future[Answer]:
        """Start a call without waiting for it."""
        return self._threads.submit(call, *arguments)

    async def close(self) -> None:
        """Let the threads end. Trials that are out are given back by :meth:`AsyncStudy.close`."""
        await asyncio.get_running_loop().run_in_executor(None, self._threads.shutdown)

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()


class AsyncTrial:
    """A trial for asyncio: what talks to the server is awaited, the rest is :attr:`trial`'s.

    A stop raises nothing at first: :meth:`epochs` ends, as in a loop over :func:`tandem.trials`. What goes on
    reporting regardless gets :class:`LeaseLost`.
    """

    def __init__(self, client: AsyncClient, trial: Trial) -> None:
        self.trial = trial
        """The trial as other programs see it."""
        self._client = client
        trial._goes_on = True

    def __repr__(self) -> str:
        return repr(self.trial)

    @property
    def params(self) -> Mapping[str, Any]:
        """The values to train with, by name."""
        return self.trial.params

    @property
    def number(self) -> int:
        """The trial's number within its study, from 0."""
        return self.trial.number

    @property
    def data_fraction(self) -> float:
        """The share of the training data to use, in (0, 1]."""
        return self.trial.data_fraction

    def epochs(self) -> Iterator[int]:
        """The epochs of this budget that are left to train; it ends where the server wants it to.

        It asks nobody, so a plain ``for`` goes over it; report in its body.
        """
        return self.trial.epochs()

    async def report(self, epoch: Optional[int] = None, **metrics: SupportsFloat) -> None:
        """Tell the server an epoch's metrics; see :meth:`Trial.report`."""
        if self.trial.directive.action == "stop":
            raise LeaseLost(f"trial {self.trial.id} is not wanted any more: {self.trial.directive.reason}")
        await self._client.run(functools.partial(self.trial.report, epoch, **metrics))

    async def checkpoint(self, save: Callable[[str], object], epoch: Optional[int] = None) -> None:
        """Keep the training's state; ``save(path)`` runs in a thread. See :meth:`Trial.checkpoint`."""
        await self._client.run(self.trial.checkpoint, save, epoch)

    async def log_artifact(self, name: str, content: Union[bytes, str, os.PathLike[str]]) -> None:
        """Keep a file with the trial; see :meth:`Trial.log_artifact`."""
        await self._client.run(self.trial.log_artifact, name, content)

    async def restore(self, load: Callable[[str], object]) -> bool:
        """Continue from the checkpoint, if this run has one; ``load(path)`` runs in a thread."""
        return await self._client.run(self.trial.restore, load)


class AsyncStudy:
    """One study of a server, for asyncio.

    What is not here is in :attr:`study`: ``await client.run(study.study.pareto)``.
    """

    def __init__(self, client: AsyncClient, study: Study) -> None:
        self.study = study
        """The same study as the plain client has it."""
        self._client = client

    def __repr__(self) -> str:
        return repr(self.study).replace("tandem.Study", "tandem.AsyncStudy")

    @property
    def name(self) -> str:
        """The study's name."""
        return self.study.name

    async def status(self) -> str:
        """running, paused, completed, stopped or failed."""
        return str((await self.view())["status"])

    async def view(self) -> Mapping[str, Any]:
        """The whole study as the server describes it."""
        return await self._client.run(lambda: self.study.view)

    async def ask(self) -> AsyncTrial:
        """A trial to run here; answer it with :meth:`tell`. :class:`StudyOver` when there are no more.

        A task that is cancelled while it waits here gives back what comes for it afterwards.
        """
        while True:
            asked = self._client.submit(self.study.ask, _ASK_SECONDS)
            try:
                return AsyncTrial(self._client, await asyncio.shield(asyncio.wrap_future(asked)))
            except asyncio.CancelledError:
                asked.add_done_callback(self._unwanted)
                raise
            except TimeoutError:
                continue

    async def tell(
        self, trial: AsyncTrial, value: Outcome = None, *, state: Optional[str] = None, reason: str = ""
    ) -> str:
        """End a trial that :meth:`ask` gave; see :meth:`Study.tell`."""
        return await self._client.run(
            functools.partial(self.study.tell, trial.trial, value, state=state, reason=reason)
        )

    async def trials(self) -> AsyncIterator[AsyncTrial]:
        """Trials to run here, one after the other, until the study is over.

        When the loop's body has ended, so has that run of the trial: it must have reported the last epoch, unless
        ``epochs()`` ended it before. If the body raises, or the loop is left, the trial is given back.
        """
        while True:
            try:
                trial = await self.ask()
            except StudyOver:
                return
            told = False
            try:
                yield trial
                with contextlib.suppress(LeaseLost):
                    await self.tell(trial)
                told = True
            finally:
                if not told:
                    self._give_back(trial.trial)

    async def optimize(
        self,
        objective: AsyncObjective,
        n_trials: Optional[int] = None,
        *,
        n_jobs: int = 1,
        catch: Union[type[Exception], Sequence[type[Exception]]] = (),
    ) -> None:
        """Run ``await objective(trial)`` until the study is over, in ``n_jobs`` tasks at once.

        n_trials, catch and what an objective may return are as in :meth:`Study.optimize`.
        """
        check(objective, ())
        exceptions, jobs = caught(catch), count("n_jobs", n_jobs, 1)
        left = iter(range(count("n_trials", n_trials, 0))) if n_trials is not None else None
        tasks = [asyncio.ensure_future(self._work(objective, left, exceptions)) for _ in range(jobs)]
        try:
            runs = sum(await asyncio.gather(*tasks))
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            with contextlib.suppress(TandemError):
                await self._client.run(self.study.leave)
        view = await self.view()
        warning = ending(view, runs) if view["status"] in OVER else ""
        if warning:
            warnings.warn(warning, stacklevel=2)

    async def enqueue(self, *configurations: Mapping[str, Any]) -> int:
        """Try these configurations first; see :meth:`Study.enqueue`."""
        return await self._client.run(self.study.enqueue, *configurations)

    async def records(self) -> list[TrialRecord]:
        """All trials as the server has them, by number."""
        return await self._client.run(lambda: self.study.trials)

    async def best_trial(self) -> TrialRecord:
        """The best of the trials measured at the highest rung; ValueError, which says why, as long as there is none."""
        return await self._client.run(lambda: self.study.best_trial)

    async def best_params(self) -> Mapping[str, Any]:
        """The values of :meth:`best_trial`."""
        return await self._client.run(lambda: self.study.best_params)

    async def best_value(self) -> float:
        """The first objective of :meth:`best_trial`; where that was repeated, the mean of its trainings."""
        return await self._client.run(lambda: self.study.best_value)

    async def best_trials(self) -> list[TrialRecord]:
        """The trials of the Pareto front, the best compromise first; with one objective the best trial."""
        return await self._client.run(lambda: self.study.best_trials)

    async def recommendation(self) -> Recommendation:
        """The study's answer, with how far it can be trusted."""
        return await self._client.run(self.study.recommendation)

    async def wait(self, interval: float = 2.0) -> Recommendation:
        """Wait until the study is over; returns the recommendation. Warns as :meth:`Study.wait` does."""
        waiting = Waiting(self._client.client.url)
        while (view := await self.view())["status"] not in OVER:
            waiting.look(view)
            await asyncio.sleep(interval)
        return await self.recommendation()

    async def pause(self) -> None:
        """Start no further run."""
        await self._client.run(self.study.pause)

    async def resume(self) -> None:
        """Go on after a pause."""
        await self._client.run(self.study.resume)

    async def stop(self) -> None:
        """End the study for everyone."""
        await self._client.run(self.study.stop)

    async def set(self, *, priority: Optional[int] = None, parallel: Optional[int] = None) -> None:
        """Change the study's priority, and how many of its trials run at once, as :meth:`Study.set` does."""
        await self._client.run(functools.partial(self.study.set, priority=priority, parallel=parallel))

    async def extend(self, **more: Any) -> None:
        """Give the study more trials or time, as :meth:`Study.extend` does; one that is over goes on."""
        await self._client.run(functools.partial(self.study.extend, **more))

    async def close(self) -> None:
        """Give back the trials asked for and not told. The study itself goes on."""
        await self._client.run(self.study.close)

    async def __aenter__(self) -> AsyncStudy:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()

    async def _work(
        self, objective: AsyncObjective, left: Optional[Iterator[int]], caught: tuple[type[Exception], ...]
    ) -> int:
        """Run trial after trial; returns how many."""
        runs = 0
        while left is None or next(left, None) is not None:
            try:
                trial = await self.ask()
            except StudyOver:
                break
            runs += 1
            await self._attempt(objective, trial, caught)
        return runs

    async def _attempt(self, objective: AsyncObjective, trial: AsyncTrial, caught: tuple[type[Exception], ...]) -> None:
        try:
            value = await objective(trial)
            await self.tell(trial, value)
        except LeaseLost as lost:
            logger.warning("trial %d: %s; going on with the next", trial.number, lost)
            with contextlib.suppress(TandemError, ValueError):
                await self.tell(trial, state="interrupted", reason=str(lost))
        except Exception as error:
            logger.warning("trial %d failed: %s", trial.number, traceback.format_exc())
            with contextlib.suppress(TandemError):
                await self.tell(trial, state="failed", reason=f"{type(error).__name__}: {error}")
            if not isinstance(error, caught):
                raise
        except BaseException:
            self._give_back(trial.trial)
            raise

    def _unwanted(self, asked: Future[Trial]) -> None:
        """Give back a trial that came for a task which has gone."""
        if not asked.cancelled() and asked.exception() is None:
            self._give_back(asked.result())

    def _give_back(self, trial: Trial) -> None:
        def give_back() -> None:
            with contextlib.suppress(TandemError, ValueError):
                self.study.tell(trial, state="interrupted", reason="the task that ran it has ended")

        with contextlib.suppress(RuntimeError):  # the client is closed: the session gives it back
            self._client.submit(give_back)
