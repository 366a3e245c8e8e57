"""A trial as its training code sees it, whoever gave it out."""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Optional, SupportsFloat, Union

from . import checkpoint as checkpoints
from . import metrics as values
from . import params as parameters
from .assignment import CONTINUE, Assignment, Budget, Directive, Energy, Link, Outcome
from .errors import TrialStopped
from .model import Model, to_onnx
from .names import absent
from .precision import Evaluate, variants
from .ranks import processes
from .system import SystemValues
from .threads import Threads


class Trial:
    """One configuration, to be trained up to a budget.

    A trial may be run several times: it is trained to a small budget, paused,
    and, if it is among the better ones, run again to a larger one from its
    checkpoint. :meth:`epochs` yields what is left to train in this run.
    """

    def __init__(self, assignment: Assignment, link: Link) -> None:
        self._assignment = assignment
        self._link = link
        self._directive = CONTINUE
        self._epoch = 0  # the one epochs() is on
        self._reported = 0  # the last one reported
        self._begun = False  # the worker knows that the training began
        self._energy: Optional[Energy] = None  # of the present epoch
        self._took: Optional[float] = None  # seconds, likewise, if they are given
        self._considered_checkpoint = assignment.first_epoch == 1
        self._mark = time.monotonic()
        self.params = parameters.parameters(assignment.params)
        """The values to train with, by name."""
        self.system = SystemValues(assignment.system)
        """How to use the machine, such as ``{"cpu_threads": 2}``; follows the server's changes after each report.

        Read what you follow at the start of each epoch: a report says what was read last.
        """
        self.apply_threads = True
        """Whether :meth:`epochs` sets the threads of the numeric libraries to ``cpu_threads`` of the system
        configuration. False in functions run by optimize, ask and tell."""
        self._threads = Threads(processes("LOCAL_WORLD_SIZE"))
        self._follows = getattr(link, "follows", False)  # another process of the trial talks to the worker
        self._goes_on = False  # the process may have other trials: a stop does not end it
        self._stopped = False  # a report was answered so
        self._looked = False  # whether the first report had the objectives

    def __repr__(self) -> str:
        return f"<tandem.Trial {self.number} of {self.study!r}, rung {self.rung}, {self.budget}>"

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            raise AttributeError(absent("a trial of Tandem", name))

    @property
    def id(self) -> str:
        """The trial's name within the server."""
        return self._assignment.id

    @property
    def number(self) -> int:
        """The trial's number within its study, from 0."""
        return self._assignment.number

    @property
    def study(self) -> str:
        """The study's name."""
        return self._assignment.study

    @property
    def budget(self) -> Budget:
        """What the trial may have spent when this run ends."""
        return self._assignment.budget

    @property
    def epochs_total(self) -> int:
        """The last epoch of this budget, counted from the trial's first.

        Of a budget in seconds or joules it is only the most there can be.
        """
        return self.budget.epochs

    @property
    def first_epoch(self) -> int:
        """The first epoch to train in this run: 1, or the one behind the checkpoint."""
        return self._assignment.first_epoch

    @property
    def data_fraction(self) -> float:
        """The share of the training data to use, in (0, 1]."""
        return self.budget.data_fraction

    @property
    def rung(self) -> int:
        """The step of the ladder of budgets this run belongs to, 0 for the cheapest."""
        return self._assignment.rung

    @property
    def seed(self) -> int:
        """The trial's seed, the same in each of its runs; from 0 to 2**64 - 1."""
        return self._assignment.seed

    @property
    def objectives(self) -> tuple[str, ...]:
        """The metrics that the last report of a budget must have."""
        return self._assignment.objectives

    @property
    def checkpoint_dir(self) -> Path:
        """Where the last checkpoint is; for scripts that write their files themselves."""
        self._considered_checkpoint = True
        return self._assignment.checkpoint_dir

    @property
    def last_reported(self) -> int:
        """The last epoch reported in this run, 0 before the first."""
        return self._reported

    @property
    def complete(self) -> bool:
        """Whether this run has spent its budget."""
        return self._reported == self.epochs_total or self._directive.action == "finish"

    @property
    def directive(self) -> Directive:
        """What the last report was answered."""
        return self._directive

    def loader_workers(self, default: int = 0) -> int:
        """How many processes prepare the data: ``DataLoader(data, num_workers=trial.loader_workers())``.

        Call it in each epoch, and make the loader anew: with ``system: auto``, the default of studies that run a
        command, the number of a script that calls it is tuned. ``default`` is what such a script has untuned.
        """
        if isinstance(default, bool) or not isinstance(default, int) or default < 0:
            raise ValueError(f"default must be a whole number from 0 on, not {default!r}")
        return int(self.system.ask("loader_workers", default))

    def epochs(self) -> Iterator[int]:
        """The epochs of this budget that are left to train, counted from 1.

        How many a budget in seconds or joules has turns out on the way.

        It ends when the budget is reached or the server wants a pause, and
        raises :class:`TrialStopped` when it wants the trial stopped; in a loop
        over :func:`tandem.trials` it ends then, too.
        """
        if not self._considered_checkpoint:
            warnings.warn(
                f"the trial continues at epoch {self.first_epoch}, but trial.restore() was not called before "
                "trial.epochs(): the model would start untrained",
                stacklevel=2,
            )
        self._mark = time.monotonic()
        for epoch in range(max(self.first_epoch, self._reported + 1), self.epochs_total + 1):
            if epoch > self.first_epoch and self._reported < epoch - 1:
                self._follow(self._link.directive())
            if self._directive.action != "continue":
                return
            self._epoch = epoch
            self._prepare(epoch)
            yield epoch

    def report(self, epoch: Optional[int] = None, *more: object, **metrics: SupportsFloat) -> None:
        """Tell the server an epoch's metrics, by name: ``trial.report(accuracy=0.91, loss=0.3)``.

        The epoch is the current one of :meth:`epochs`; without that loop it is
        the last of the budget, unless given. NaN and infinities are values.
        Raises :class:`TrialStopped` when the trial is no longer wanted; in a loop
        over :func:`tandem.trials` only if it was told so before.
        """
        if more:
            raise TypeError(
                "report takes metrics by name: trial.report(accuracy=0.91), in Optuna's trial.report(value, step) they "
                "have none; with an epoch of your own trial.report(epoch=3, accuracy=0.91)"
            )
        epoch = self._checked_epoch(epoch)
        if not metrics:
            raise ValueError("report needs at least one metric, by name: trial.report(accuracy=0.91)")
        numbers = {name: values.as_number(name, value) for name, value in metrics.items()}
        if self.budget.measured or epoch == self.epochs_total:
            values.require(self.objectives, numbers)
        elif not self._looked:
            self._say_what_lacks(epoch, numbers)
        now = time.monotonic()
        seconds = now - self._mark if self._took is None else self._took
        directive = self._link.report(Outcome(epoch, numbers, seconds, self._energy, self._in_force()))
        self._mark, self._reported, self._energy, self._took = now, epoch, None, None
        self._follow(directive)

    def used(self, joules: float, method: str) -> None:
        """Say what the present epoch consumed, before its report; for trials run by ask, tell and optimize.

        The method is how it was obtained, such as "rapl"; begin it with "estimate" if it is one. Needed
        only where the study's budget is in joules: a worker that starts scripts measures by itself.
        """
        self._energy = Energy(float(joules), method)

    def took(self, seconds: float) -> None:
        """Say how long the present epoch took, before its report; for trials of ask and tell that ran elsewhere.

        Without it, that is the time since the report before. A worker that starts scripts measures by itself.
        """
        if not 0 <= seconds < float("inf"):
            raise ValueError(f"seconds must be a number from 0 on, not {seconds!r}")
        self._took = float(seconds)

    def checkpoint(self, save: Callable[[str], object], epoch: Optional[int] = None) -> None:
        """Keep the training's state: ``save(path)`` writes it to the path it is given.

        Once this returns, the worker has a copy, which it sends beside the next
        epoch; another machine can continue from it when the next call returns, or
        this one if no epoch follows. A copy that the server refuses fails the next call.
        If save raises, the checkpoint before stays. It counts as the
        state after the last reported epoch, unless the epoch is given. Save
        everything the next epoch needs: model, optimizer, generators.
        """
        epoch = epoch if epoch is not None else self._reported or self._epoch
        if epoch < 1:
            raise ValueError("there is nothing to keep yet: report an epoch before the checkpoint, or give epoch=")
        if self._follows or (self._goes_on and self._directive.action == "stop"):
            return  # nobody wants it, or not any more
        checkpoints.write(self._assignment.checkpoint_dir, save)
        self._link.publish(epoch)

    def restore(self, load: Callable[[str], object]) -> bool:
        """Continue from the checkpoint, if this run has one: ``load(path)`` reads what save wrote.

        Returns whether there was one. Call it before :meth:`epochs`.
        """
        self._considered_checkpoint = True
        if self.first_epoch == 1:
            return False
        load(str(checkpoints.find(self._assignment.checkpoint_dir)))
        return True

    def save_model(self, model: Model, sample_input: Any = None) -> None:
        """Tell what the trial trains, before :meth:`epochs`, so that how it will run at the edge is known meanwhile.

        ``model`` is a torch.nn.Module, a Keras model or a fitted scikit-learn estimator, untrained or not, or ONNX as
        bytes or a path; ``sample_input`` is one batch as it takes it. Its weights are looked at by nobody: the worker
        reads the architecture in a sandbox, and the same one is never emulated twice. See docs/edge.md.
        """
        if not self._follows:
            self._link.save_model(to_onnx(model, sample_input))

    def log_artifact(self, name: str, content: Union[bytes, str, os.PathLike[str]]) -> None:
        """Keep a file with the trial, to be shown on its page and beside those of others: bytes, or the path of one.

        ``trial.log_artifact("confusion.png", "/tmp/plot.png")``: the end of the name says what it is. PNG, JPEG, GIF
        and WebP are shown as pictures, CSV as a table, txt, log, md, json and yaml as text; all others can be
        downloaded. A file replaces the one of the same name. A trial keeps 32 of up to 8 MiB, 32 MiB together.
        """
        if self._follows or (self._goes_on and self._directive.action == "stop"):
            return  # nobody wants it, or not any more
        if not isinstance(content, bytes):
            content = Path(content).read_bytes()
        self._link.log_artifact(name, content)

    def log_model(
        self, model: Model, sample_input: Any = None, *, calibration: Any = None, evaluate: Optional[Evaluate] = None
    ) -> None:
        """Keep the trained model with the trial as ``model.onnx``, for ``tandem study deployments --output``.

        The first arguments are those of :meth:`save_model`. Call it after the last epoch of a run; a later run of the
        trial replaces it. A model has up to 128 MiB, those of a study 8 GiB together.

        If the study's ``inference`` has ``precision``, a run of the largest budget makes the other ones here, with
        ONNX Runtime's quantizer. ``calibration`` are samples of the inputs, some hundred of the training data.
        ``evaluate(predict)`` says what a model is worth on validation data: ``predict(images)`` returns its output.
        """
        if self._follows:
            return
        content = to_onnx(model, sample_input)
        self.log_artifact("model.onnx", content)
        wanted = self._assignment.precisions
        if not wanted or (self._goes_on and self._directive.action == "stop"):
            return
        if evaluate is None:
            print(
                f"tandem: the study wants {', '.join(wanted)}, and nothing says what they are worth: give "
                "trial.log_model calibration= and evaluate=",
                file=sys.stderr,
                flush=True,
            )
            return
        made = list(variants(content, wanted, calibration, evaluate))
        for one in made[1:]:
            self.log_artifact(f"model-{one.precision}.onnx", one.content)
        for place, one in enumerate(made, 1):
            print(f"tandem: {one.precision}: {one.value:.6g} on {one.samples:,} samples", flush=True)
            self._link.save_precision(one, place < len(made))

    def should_stop(self) -> bool:
        """Whether no further epoch is wanted in this run: budget reached, pause or stop.

        It asks the server when the last answer was to continue, so that it can
        be called within a long epoch. Take a checkpoint, if it is due, and return.
        """
        if self._directive.action == "continue":
            self._take(self._link.directive())
        return self._directive.action != "continue"

    def should_prune(self) -> bool:
        """The same as :meth:`should_stop`, under the name Optuna's users look for."""
        return self.should_stop()

    def suggest_float(
        self, name: str, low: float, high: float, *, step: Optional[float] = None, log: bool = False
    ) -> float:
        """The parameter's value, checked against the range. The study's space is what decides."""
        return parameters.check_float(name, self.params[name], low, high, step, log)

    def suggest_int(self, name: str, low: int, high: int, *, step: int = 1, log: bool = False) -> int:
        """The parameter's value, checked against the range. The study's space is what decides."""
        return parameters.check_int(name, self.params[name], low, high, step, log)

    def suggest_categorical(self, name: str, choices: Sequence[parameters.Choice]) -> parameters.Choice:
        """The parameter's value, checked against the choices. The study's space is what decides."""
        return parameters.check_choice(name, self.params[name], choices)

    def _checked_epoch(self, epoch: Optional[int]) -> int:
        if epoch is None:
            epoch = self._epoch or self.epochs_total
        if isinstance(epoch, bool) or not isinstance(epoch, int):
            raise TypeError(f"epoch must be an int, not {epoch!r}; metrics go by name: trial.report(accuracy=0.91)")
        if not self.first_epoch <= epoch <= self.epochs_total:
            raise ValueError(f"epoch {epoch} is not in this run, which is {self.first_epoch} to {self.epochs_total}")
        if epoch <= self._reported:
            raise ValueError(
                f"epoch {self._reported} is reported already, epoch {epoch} cannot follow it: report once an epoch, "
                "inside 'for epoch in trial.epochs()' or with epoch="
            )
        return epoch

    def _say_what_lacks(self, epoch: int, metrics: Mapping[str, float]) -> None:
        """A misspelt metric is told at the first report, not when the whole budget has been trained."""
        self._looked = True
        lack = values.lacking(self.objectives, metrics)
        if lack:
            print(
                f"tandem: epoch {epoch} was reported, but {lack}. The last epoch of the budget, {self.epochs_total}, "
                "must have it, or the trial fails",
                file=sys.stderr,
                flush=True,
            )

    def _prepare(self, epoch: int) -> None:
        if self.apply_threads:
            self._threads.apply(self.system.peek("cpu_threads"))
        if not self._begun:
            self._begun = True
            self._link.begin(epoch)

    def _in_force(self) -> dict[str, Any]:
        in_force = dict(self.system.read)
        if self._threads.applied is not None:
            in_force["cpu_threads"] = self._threads.applied
        return in_force

    def _take(self, directive: Directive) -> None:
        self._directive = directive
        if directive.system:
            self.system.change(directive.system)

    def _follow(self, directive: Directive) -> None:
        self._take(directive)
        if directive.action == "stop":
            stopped = TrialStopped(directive.reason)
            print(f"tandem: trial {self.number} of {self.study}: {stopped}", file=sys.stderr)
            if self._stopped or not self._goes_on:
                raise stopped
            self._stopped = True
