"""What can go wrong, as exceptions that carry the server's problem document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Optional

from .names import did_you_mean


class TandemError(Exception):
    """Anything the server, the worker or the way to them refuses.

    ``problem`` is the problem document as it came (RFC 9457), empty when the
    fault was found on this side.
    """

    def __init__(self, message: str, problem: Optional[Mapping[str, Any]] = None) -> None:
        super().__init__(message)
        self.problem: dict[str, Any] = dict(problem or {})

    @property
    def code(self) -> str:
        """The class of the failure, such as "invalid" or "lease_lost"; empty when it was found on this side."""
        return str(self.problem.get("code", ""))

    @property
    def status(self) -> int:
        """The HTTP status, 0 when there was no answer."""
        status = self.problem.get("status", 0)
        return status if isinstance(status, int) else 0


@dataclass(frozen=True)
class Fault:
    """One fault in what was sent."""

    path: str
    message: str
    value: Any = None
    line: Optional[int] = None

    def __str__(self) -> str:
        where = f"{self.path} (line {self.line})" if self.line else self.path
        given = "" if self.value is None else f" (got {self.value!r})"
        return f"{where}: {self.message}{given}" if where else f"{self.message}{given}"


class InvalidError(TandemError):
    """The request is wrong: fix it, a retry will not help. ``errors`` names every fault."""

    @property
    def errors(self) -> list[Fault]:
        """Each thing that is wrong, with its path and value; empty where the server names none."""
        found = self.problem.get("errors")
        return [_fault(f) for f in found if isinstance(f, Mapping)] if isinstance(found, list) else []


class NotFoundError(TandemError):
    """The study, trial or worker named does not exist."""


class ConflictError(TandemError):
    """The thing is in a state that does not allow this, or the name is taken."""


class LeaseLost(TandemError):
    """The trial was given to another worker: stop working on it, nothing of it counts any more."""


class ExhaustedError(TandemError):
    """A bound was reached: size, count or rate."""


class UnavailableError(TandemError):
    """The server cannot be reached or asks to come back later, and patience ran out."""


class AuthError(TandemError):
    """No valid token was shown, or the token does not allow this."""


class ServerError(TandemError):
    """A defect of the server."""


class NotInTrial(TandemError):
    """current_trial() was called in a process that no worker started, without params= to run alone."""


class StudyOver(TandemError):
    """The study has ended: there is no trial to ask for."""


class TrialStopped(SystemExit):
    """This run of the trial is no longer wanted: end now.

    It is a SystemExit with code 0 and not an Exception, so that a training
    script which does not catch it ends cleanly, its ``finally`` blocks run, and
    an ``except Exception`` around a batch does not keep a stopped trial going.
    """

    def __init__(self, reason: str = "") -> None:
        super().__init__(0)
        self.reason = reason

    def __str__(self) -> str:
        return self.reason or "the trial was stopped"


class UnknownName(KeyError):
    """A parameter, system setting or metric that is not there, with the nearest name that is."""

    def __init__(self, kind: str, name: object, known: list[str], hint: str = "") -> None:
        super().__init__(name)
        self.message = f"there is no {kind} {name!r}{did_you_mean(str(name), known)}"
        if hint:
            self.message += f"; {hint}"

    def __str__(self) -> str:
        return self.message


_CLASSES: dict[str, type[TandemError]] = {
    "invalid": InvalidError,
    "key_reused": InvalidError,
    "not_found": NotFoundError,
    "conflict": ConflictError,
    "lease_lost": LeaseLost,
    "exhausted": ExhaustedError,
    "unavailable": UnavailableError,
    "unauthorized": AuthError,
    "forbidden": AuthError,
    "internal": ServerError,
}

_BY_STATUS: dict[int, type[TandemError]] = {
    400: InvalidError,
    401: AuthError,
    403: AuthError,
    404: NotFoundError,
    409: ConflictError,
    413: ExhaustedError,
    422: InvalidError,
    429: ExhaustedError,
    502: UnavailableError,
    503: UnavailableError,
    504: UnavailableError,
    507: UnavailableError,
}


def from_problem(status: int, problem: Mapping[str, Any], what: str) -> TandemError:
    """The exception for an answer that is not a success; ``what`` was being done."""
    document = {"status": status, **problem}
    fallback = _BY_STATUS.get(status, ServerError if status >= 500 else TandemError)
    kind = _CLASSES.get(str(problem.get("code")), fallback)
    detail = problem.get("detail") or problem.get("title") or f"HTTP status {status}"
    lines = [f"{what}: {detail}"]
    error = kind("", document)
    if isinstance(error, InvalidError):
        lines += [f"  {fault}" for fault in error.errors]
    if status == 401:
        lines.append("  give the server's token: set TANDEM_TOKEN, or pass token= to tandem.Client")
    return kind("\n".join(lines), document)


def _fault(document: Mapping[str, Any]) -> Fault:
    line = document.get("line")
    return Fault(
        path=str(document.get("path", "")),
        message=str(document.get("message", "")),
        value=document.get("value"),
        line=line if isinstance(line, int) and line > 0 else None,
    )
