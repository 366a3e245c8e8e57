"""This process as a worker: registered, heard of, holding the leases of the trials it runs."""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import logging
import os
import shutil
import socket
import tempfile
import threading
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, Callable, Optional

from . import archive, attached
from . import metrics as values
from .assignment import CONTINUE, Assignment, Directive, Outcome
from .client import Client
from .errors import ConflictError, LeaseLost, NotFoundError, TandemError
from .precision import Variant
from .transport import Body, Request
from .trial import Trial
from .waiting import Asking, process_name

logger = logging.getLogger("tandem")

SENDINGS = 5
"""How often an artifact is sent for one checkpoint."""


class LeaseLink:
    """The way from a trial to the server, for as long as its lease is held."""

    def __init__(
        self,
        client: Client,
        lease: Mapping[str, Any],
        directory: Path,
        alone: Callable[[], bool] = lambda: False,
    ) -> None:
        self.trial_id = str(lease["trial_id"])
        self.lease_epoch = int(lease["lease_epoch"])
        self.directory = directory
        self.ended = ""
        """Why nothing can be written any more; empty while the lease is held."""
        self._client = client
        self._wanted = CONTINUE
        self._alone = alone

    def begin(self, epoch: int) -> None:
        """The profile of an epoch begins with it."""
        if self._alone():
            attached.lap()

    def report(self, outcome: Outcome) -> Directive:
        document: dict[str, Any] = {
            "epoch": outcome.epoch,
            "metrics": values.encode_all(outcome.metrics),
            "seconds": values.encode(outcome.seconds),
        }
        if outcome.energy is not None:
            document["energy"] = {"joules": values.encode(outcome.energy.joules), "method": outcome.energy.method}
        if outcome.system:
            document["system"] = dict(outcome.system)
        profile = attached.lap() if self._alone() else None
        if profile:
            document["profile"] = dict(profile)
        self._wanted = Directive.of(self._post(f"report epoch {outcome.epoch}", "reports", document))
        return self._wanted

    def save_model(self, content: bytes) -> None:
        raise TandemError(
            "only scripts that a worker starts can save their model: functions run by optimize, ask and tell have no "
            "worker that looks at it. Use 'tandem edge deploy' and 'tandem edge run' on the file, or give the study a "
            "command:"
        )

    def save_precision(self, variant: Variant, more: bool) -> None:
        pass  # functions have no worker that measures it

    def publish(self, epoch: int) -> None:
        self._require_held()
        packed = self.directory.parent / "packed.tar"
        with packed.open("wb") as file:
            archive.pack(self.directory, file)
        with packed.open("rb") as file:
            sha256 = archive.digest(file)
        body = Body("application/octet-stream", packed.stat().st_size, lambda: packed.open("rb"))
        self._deliver(f"keep checkpoint {epoch}", "checkpoint", sha256, body, {"epoch": epoch})
        packed.unlink()

    def log_artifact(self, name: str, content: bytes) -> None:
        self._require_held()
        sha256 = hashlib.sha256(content).hexdigest()
        body = Body("application/octet-stream", len(content), lambda: content)
        self._deliver(f"keep the artifact {name}", "artifacts", sha256, body, {"name": name})

    def _deliver(self, what: str, part: str, sha256: str, body: Body, document: Mapping[str, Any]) -> None:
        """Upload an artifact, and say of which part of the trial it is."""
        path = self._client.path("artifacts", sha256)
        document = {**document, "artifact": sha256, "bytes": body.size}
        for sent in range(1, SENDINGS + 1):
            self._client.transport.send(Request("PUT", path, what, body, timeout=300.0))
            try:
                self._post(what, part, document)
            except ConflictError:  # a server that was started meanwhile wants the bytes again
                if sent == SENDINGS:
                    raise
            else:
                break

    def directive(self) -> Directive:
        self._require_held()
        return self._wanted

    def want(self, directive: Directive) -> None:
        """Take what a heartbeat brought."""
        self._wanted = directive

    def finish(self, outcome: str, reason: str = "", *, unusable: str = "") -> str:
        """End the lease; returns the trial's state.

        With the outcome interrupted, ``unusable`` is the SHA-256 of the lease's checkpoint if nobody can go on
        from it: the next lease goes on from the one before it.
        """
        document: dict[str, Any] = {"outcome": outcome, "reason": reason[:4096]}
        if unusable:
            document["unusable_checkpoint"] = unusable
        return str(self._post("finish the trial", "finish", document)["state"])

    def log(self, text: str) -> None:
        """Keep text as this lease's log."""
        self._post("keep the log", "log", {"offset": 0, "text": text[-60_000:]})

    def _post(self, what: str, part: str, document: Mapping[str, Any]) -> Any:
        self._require_held()
        return self._client.post(what, {"lease_epoch": self.lease_epoch, **document}, "trials", self.trial_id, part)

    def _require_held(self) -> None:
        if self.ended:
            raise LeaseLost(f"trial {self.trial_id}: {self.ended}")


class Session:
    """A registration with a server, its heartbeat, and the leases held under it."""

    def __init__(self, client: Client, study: str, slots: int = 1) -> None:
        self.id = f"python-{uuid.uuid4().hex}"
        self.study_over = False
        """Whether the server said, at the last lease, that the study has ended."""
        self._client = client
        self._study = study
        self._slots = slots
        self._held: dict[str, LeaseLink] = {}
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._asking = Asking(client, study)
        self._folder = Path(tempfile.mkdtemp(prefix="tandem-"))
        try:
            self._beat_seconds, self._lease_seconds = self._register()
        except BaseException:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise
        self._thread = threading.Thread(target=self._beat, name="tandem-heartbeat", daemon=True)
        self._thread.start()

    def reserve(self, slots: int) -> None:
        """Say that up to so many trials are run at once."""
        if slots > self._slots:
            self._slots = slots
            self._register()

    def held(self) -> list[LeaseLink]:
        """The leases held now."""
        with self._lock:
            return list(self._held.values())

    def lease(self, wait_seconds: float) -> Optional[tuple[Trial, LeaseLink]]:
        """A trial of the study to run; None if there is none within the time.

        One whose checkpoint is damaged is given back, and goes on from the checkpoint before it.
        """
        request = {"worker": self.id, "study": self._study, "wait_seconds": wait_seconds}
        self._asking.begin()
        while True:
            answer = self._ask(request)
            self.study_over = bool(answer.get("study_finished"))
            lease = answer.get("lease")
            if not lease:
                if not self.study_over:
                    self._asking.nothing(self._lease_seconds)
                return None
            self._asking.end()
            try:
                return self._accept(lease)
            except archive.Damaged as damaged:
                logger.warning("trial %s: %s; it goes on from the checkpoint before", lease["trial_id"], damaged)

    def _ask(self, request: Mapping[str, Any]) -> Any:
        try:
            return self._client.post("ask for a trial", request, "leases")
        except NotFoundError:
            self._register()  # the server was restarted; a missing study is found by this second try
            return self._client.post("ask for a trial", request, "leases")

    def _runs_one(self) -> bool:
        """Whether what this process does is one trial's."""
        if self._slots > 1 or len(self.held()) > 1:
            attached.several()
            return False
        return True

    def release(self, link: LeaseLink, why: str = "the run has ended") -> None:
        """Forget a lease that has ended."""
        link.ended = link.ended or why
        with self._lock:
            if self._held.get(link.trial_id) is link:  # not the next run's, which may be here already
                del self._held[link.trial_id]
        shutil.rmtree(link.directory.parent, ignore_errors=True)

    def close(self, reason: str = "the process that ran it has ended") -> None:
        """Give back what is held, and leave."""
        if self._closed.is_set():
            return
        self._closed.set()
        for link in self.held():
            with contextlib.suppress(TandemError):
                link.finish("interrupted", reason)
            self.release(link, reason)
        path = self._client.path("workers", self.id)
        request = Request("DELETE", path, "leave the server", timeout=5.0, patience=2.0)
        with contextlib.suppress(TandemError):
            self._client.transport.send(request)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _accept(self, lease: Mapping[str, Any]) -> tuple[Trial, LeaseLink]:
        directory = self._folder / f"{lease['trial_id']}.{lease['lease_epoch']}" / "checkpoint"
        directory.mkdir(parents=True)
        link = LeaseLink(self._client, lease, directory, self._runs_one)
        with self._lock:
            self._held[link.trial_id] = link
        try:
            if self._closed.is_set():
                raise TandemError("the session was closed while the trial was on its way")
            if lease.get("checkpoint"):
                fetch(self._client, lease["checkpoint"], directory)
            trial = Trial(Assignment.of(lease, directory), link)
            trial.apply_threads = False  # this process is the user's, and may run several trials
            return trial, link
        except BaseException as error:
            unusable = str(lease["checkpoint"]["artifact"]) if isinstance(error, archive.Damaged) else ""
            with contextlib.suppress(TandemError):
                link.finish("interrupted", f"could not start it: {error}", unusable=unusable)
            self.release(link)
            raise

    def _register(self) -> tuple[float, float]:
        """Seconds between heartbeats, and those that a lease lives without one."""
        registration = {
            "id": self.id,
            "name": process_name(),
            "slots": self._slots,
            "machine": _machine(),
        }
        timing = self._client.post("register as a worker", registration, "workers")
        return float(timing["heartbeat_seconds"]), float(timing["lease_seconds"])

    def _beat(self) -> None:
        while not self._closed.wait(self._beat_seconds):
            try:
                self._heartbeat()
            except NotFoundError:
                with contextlib.suppress(TandemError):
                    self._register()
            except TandemError:
                continue  # the next one may come through; the lease outlives several

    def _heartbeat(self) -> None:
        leases = [{"trial_id": link.trial_id, "lease_epoch": link.lease_epoch} for link in self.held()]
        path = self._client.path("workers", self.id, "heartbeat")
        body = Body.json({"leases": leases})
        answer = self._client.transport.send(
            Request("POST", path, "send a heartbeat", body, timeout=max(self._beat_seconds, 1.0), patience=0.0)
        )
        lost = set(answer.get("lost") or ())
        directives = answer.get("directives") or {}
        for link in self.held():
            if {"trial_id": link.trial_id, "lease_epoch": link.lease_epoch} not in leases:
                continue  # it came meanwhile
            if link.trial_id in lost:
                self.release(link, "it was given to another worker")
            else:
                link.want(Directive.of(directives.get(link.trial_id) or {}))


_ENCRYPTED = b"age-encryption.org/v1\n"


def fetch(client: Client, checkpoint: Mapping[str, Any], directory: Path) -> None:
    """Download a checkpoint, verify its hash, and unpack it into the empty directory.

    One that arrives damaged is asked for once more. :class:`archive.Damaged` says that the server has no whole one.
    """
    wanted = str(checkpoint["artifact"])
    with tempfile.TemporaryFile() as packed:
        for _ in range(2):
            received = _download(client, wanted, packed)
            if received == wanted:
                break
        else:
            raise archive.Damaged(f"the checkpoint arrived damaged: its SHA-256 is {received}, not {wanted}")
        packed.seek(0)
        if packed.read(len(_ENCRYPTED)) == _ENCRYPTED:
            raise TandemError("the checkpoint is encrypted: 'tandem study checkpoint --identity FILE' downloads it")
        packed.seek(0)
        archive.unpack(packed, directory)


def _download(client: Client, sha256: str, packed: BinaryIO) -> str:
    """Put the artifact into the file; returns the SHA-256 of what came."""

    def receive(response: http.client.HTTPResponse) -> str:
        packed.seek(0)
        packed.truncate()
        found = hashlib.sha256()
        for block in iter(lambda: response.read(1 << 20), b""):
            found.update(block)
            packed.write(block)
        return found.hexdigest()

    path = client.path("artifacts", sha256)
    try:
        return str(client.transport.send(Request("GET", path, "download the checkpoint", timeout=300.0, read=receive)))
    except NotFoundError as error:
        raise archive.Damaged(str(error)) from error


def _machine() -> dict[str, Any]:
    machine: dict[str, Any] = {"host": socket.gethostname()[:255], "cores": os.cpu_count() or 0}
    if hasattr(os, "sched_getaffinity"):
        machine["cores"] = len(os.sched_getaffinity(0))
    with contextlib.suppress(ValueError, OSError, AttributeError):  # Windows has no sysconf
        machine["memory_bytes"] = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return machine
