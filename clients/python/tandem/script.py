"""A trial inside a script: started by a worker, or run by hand."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import urllib.parse
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Optional

from . import metrics as values
from . import ranks
from .assignment import CONTINUE, Assignment, Budget, Directive, Outcome
from .errors import ConflictError, LeaseLost, NotFoundError, NotInTrial, UnavailableError, UnknownName
from .precision import Variant
from .transport import Body, Request, Transport, UnixConnection
from .trial import Trial

_started: dict[str, Trial] = {}

_ONLY_OF_SOME = ("TANDEM_SECONDS", "TANDEM_JOULES")
"""The variables that not every run has."""


def current_trial(
    params: Optional[Mapping[str, Any]] = None,
    *,
    epochs: int = 1,
    data_fraction: float = 1.0,
    system: Optional[Mapping[str, Any]] = None,
    seed: int = 0,
    apply_threads: Optional[bool] = None,
) -> Trial:
    """The trial this process was started for.

    A worker says so by TANDEM_SOCKET; the arguments are then ignored. Without
    it, and with ``params``, the script runs alone with these values: reports
    are printed, checkpoints are tried and dropped. So the same script can be
    run by hand: ``tandem.current_trial(params={"learning_rate": 0.01}, epochs=3)``.

    Calling it again returns the same trial. ``apply_threads``, if given, sets
    :attr:`Trial.apply_threads`, with a worker and without.
    """
    path = os.environ.get("TANDEM_SOCKET")
    if path:
        if path not in _started:
            _started[path] = _from_worker(path)
        return _set_up(_started[path], apply_threads)
    if params is None:
        raise NotInTrial(
            "no worker started this process (TANDEM_SOCKET is not set): start it through a study, or give it "
            "values to run alone, as in tandem.current_trial(params={'learning_rate': 0.01}, epochs=3)"
        )
    alone = _alone(
        Assignment(
            id="standalone-0",
            study="standalone",
            number=0,
            params=dict(params),
            system=dict(system or {}),
            budget=Budget(epochs, data_fraction),
            first_epoch=1,
            rung=0,
            seed=seed,
            checkpoint_dir=Path(),
            objectives=(),
        )
    )
    return _set_up(alone, apply_threads)


def dataset(name: str) -> Path:
    """The folder of an encrypted data set that the study file names in ``encryption.datasets``. It can
    only be read.
    """
    begin = "TANDEM_DATA_"
    folders = {key[len(begin) :].lower(): path for key, path in os.environ.items() if key.startswith(begin)}
    if name not in folders:
        raise UnknownName("data set", name, sorted(folders), "name it in encryption.datasets of the study file")
    return Path(folders[name])


def trials(
    params: Optional[Mapping[str, Any]] = None,
    *,
    epochs: int = 1,
    data_fraction: float = 1.0,
    system: Optional[Mapping[str, Any]] = None,
    seed: int = 0,
    apply_threads: Optional[bool] = None,
) -> Iterator[Trial]:
    """The trials this process is given, one after the other: what the script loads, it loads once.

    The first is :func:`current_trial`, with these arguments. When the loop's body has ended, that run
    of the trial has ended, as if the script had; the worker may then give the process another trial of
    the study, or the same one with a larger budget. Otherwise the loop ends: let the script end, too.

    Processes that train a trial together, as torchrun starts them, get this one.

    In the loop a trial that is to be stopped raises nothing: :meth:`Trial.epochs` ends. What a trial
    changes in the process, such as random generators, stays for the next: set it in the loop.
    """
    trial = current_trial(
        params, epochs=epochs, data_fraction=data_fraction, system=system, seed=seed, apply_threads=apply_threads
    )
    while True:
        trial._goes_on = True
        yield trial
        if not isinstance(trial._link, SocketLink) or ranks.processes() > 1:
            return
        for stream in (sys.stdout, sys.stderr):
            stream.flush()  # what comes later would be in the next trial's log
        following = trial._link.next()
        if following is None:
            return
        for name in _ONLY_OF_SOME:
            os.environ.pop(name, None)
        os.environ.update(following)
        _started.clear()
        trial = current_trial(apply_threads=apply_threads)


def _set_up(trial: Trial, apply_threads: Optional[bool]) -> Trial:
    if apply_threads is not None:
        trial.apply_threads = apply_threads
    return trial


def _from_worker(path: str) -> Trial:
    transport = Transport(f"the worker's socket {path}", lambda: UnixConnection(path))
    document = transport.send(Request("GET", "/v1/trial", "ask the worker for the trial"))
    checkpoint = Path(document["checkpoint_dir"])
    return Trial(Assignment.of(document, checkpoint), ranks.link(SocketLink(transport), checkpoint.parent))


class SocketLink:
    """The way to the worker that started this process. It measures an epoch's seconds and joules itself.

    Calls without a timeout last as long as the server is away: the worker ends the script where that makes no sense.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._knows_begin = False  # a worker that does not takes no "system" in a report either

    def begin(self, epoch: int) -> None:
        body = Body.json({"epoch": epoch})
        with contextlib.suppress(NotFoundError):
            self._transport.send(Request("POST", "/v1/begin", "say that the training begins", body))
            self._knows_begin = True

    def report(self, outcome: Outcome) -> Directive:
        document: dict[str, Any] = {"epoch": outcome.epoch, "metrics": values.encode_all(outcome.metrics)}
        if outcome.system and self._knows_begin:
            document["system"] = dict(outcome.system)
        request = Request("POST", "/v1/report", f"report epoch {outcome.epoch}", Body.json(document), timeout=None)
        return Directive.of(self._transport.send(request))

    def publish(self, epoch: int) -> None:
        # The worker answers when it has a copy, or, if no other epoch follows, when the upload is committed.
        body, what = Body.json({"epoch": epoch}), f"keep checkpoint {epoch}"
        self._transport.send(Request("POST", "/v1/checkpoint?wait=false", what, body, timeout=None))

    def save_model(self, content: bytes) -> None:
        body = Body("application/octet-stream", len(content), lambda: content)
        try:
            self._transport.send(Request("PUT", "/v1/model", "hand over the model", body, timeout=None))
        except NotFoundError:
            print("tandem: this worker is too old to look at models: nothing is emulated", file=sys.stderr)

    def save_precision(self, variant: Variant, more: bool) -> None:
        body = Body("application/octet-stream", len(variant.content), lambda: variant.content)
        said = {"precision": variant.precision, "value": repr(variant.value), "samples": variant.samples}
        if more:
            said["more"] = "true"
        path = "/v1/model?" + urllib.parse.urlencode(said)
        self._transport.send(Request("PUT", path, f"hand over the model in {variant.precision}", body, timeout=None))

    def log_artifact(self, name: str, content: bytes) -> None:
        body = Body("application/octet-stream", len(content), lambda: content)
        path = "/v1/artifacts/" + urllib.parse.quote(name, safe="")
        try:
            self._transport.send(Request("PUT", path, f"keep the artifact {name}", body, timeout=None))
        except NotFoundError:
            print("tandem: this worker is too old to keep artifacts", file=sys.stderr)

    def directive(self) -> Directive:
        return Directive.of(self._transport.send(Request("GET", "/v1/directive", "ask whether to go on")))

    def next(self) -> Optional[dict[str, str]]:
        """End this run, and wait for the variables of another one; None if there is none for this process."""
        request = Request("POST", "/v1/next", "ask for the next trial", Body.json({}), timeout=None, patience=0.0)
        try:
            document = self._transport.send(request)
        except (NotFoundError, ConflictError, LeaseLost, UnavailableError):
            return None  # a worker that does not know the call, or has other plans
        finally:
            self._transport.close()
        return dict(document["environment"]) if document.get("next") else None


def _alone(assignment: Assignment) -> Trial:
    folder = tempfile.TemporaryDirectory(prefix="tandem-")
    directory = Path(folder.name) / "checkpoint"
    directory.mkdir()
    placed = Assignment(**{**vars(assignment), "checkpoint_dir": directory})
    return Trial(placed, AloneLink(placed.budget.epochs, folder))


class AloneLink:
    """No server: reports are printed, and the budget is all that ends the run."""

    def __init__(self, epochs: int, folder: tempfile.TemporaryDirectory[str]) -> None:
        self._epochs = epochs
        self._folder = folder  # removed when the trial is

    def begin(self, epoch: int) -> None:
        pass

    def report(self, outcome: Outcome) -> Directive:
        if ranks.rank() > 0:
            return self._answer(outcome)
        shown = "  ".join(f"{name}={value:.6g}" for name, value in outcome.metrics.items())
        print(f"epoch {outcome.epoch}/{self._epochs}  {shown}  ({outcome.seconds:.1f} s)", flush=True)
        return self._answer(outcome)

    def _answer(self, outcome: Outcome) -> Directive:
        return Directive("finish", "budget reached") if outcome.epoch >= self._epochs else CONTINUE

    def publish(self, epoch: int) -> None:
        pass

    def save_model(self, content: bytes) -> None:
        print(f"model: {len(content):,} bytes of ONNX", flush=True)

    def save_precision(self, variant: Variant, more: bool) -> None:
        pass

    def log_artifact(self, name: str, content: bytes) -> None:
        print(f"artifact {name}: {len(content):,} bytes", flush=True)

    def directive(self) -> Directive:
        return CONTINUE
