"""HTTP with JSON: one logical call, however many attempts it takes.

A call that changes something carries one Idempotency-Key through all its
attempts, so that an answer lost on the way never makes it happen twice.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import random
import socket
import ssl
import threading
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Callable, Optional, Union

from .errors import TandemError, UnavailableError, from_problem

_PASSING = frozenset({429, 502, 503, 504, 507})
_FIRST_WAIT, _LONGEST_WAIT = 0.1, 5.0
_LONGEST_PROBLEM = 1 << 20
_NO_TLS = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST")
"""How the versions of OpenSSL say that the other side answered in plain text."""
AUTHORITY = "copy authority.pem from the folder tls of the server's data folder"
"""Where the file that ca names is from."""


@dataclass(frozen=True)
class Body:
    """What is sent: open() gives it anew for each attempt."""

    content_type: str
    size: int
    open: Callable[[], Union[bytes, BinaryIO]]

    @staticmethod
    def json(document: Any) -> Body:
        # allow_nan=False: NaN would not be JSON; metrics are encoded before.
        try:
            return Body.text(json.dumps(document, allow_nan=False, default=of_numpy), "application/json")
        except (TypeError, ValueError) as error:
            raise type(error)(_misfit(document) or str(error)) from None

    @staticmethod
    def text(text: str, content_type: str) -> Body:
        content = text.encode()
        return Body(content_type, len(content), lambda: content)


def read_json(response: http.client.HTTPResponse) -> Any:
    """The answer's document; None if it has none."""
    content = response.read()
    return json.loads(content) if content else None


@dataclass(frozen=True)
class Request:
    """One logical call."""

    method: str
    path: str
    what: str
    """What is being done, to start an error message with."""
    body: Optional[Body] = None
    timeout: Optional[float] = 30.0
    """Seconds without an answer after which an attempt has failed; None: it waits as long as the other side lives."""
    patience: Optional[float] = None
    """Seconds to keep trying; the transport's own when None."""
    read: Callable[[http.client.HTTPResponse], Any] = field(default=read_json)
    """Reads the answer of a success."""


class UnixConnection(http.client.HTTPConnection):
    """HTTP over a unix socket."""

    def __init__(self, path: str, timeout: float = 30.0) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class _Kept:
    """A thread's connection, which is closed when the thread or the transport has gone."""

    def __init__(self, connection: http.client.HTTPConnection) -> None:
        self.connection = connection
        self.process = os.getpid()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):  # the interpreter may be half gone
            self.connection.close()


class Transport:
    """Sends requests to one place, each thread over its own connection."""

    def __init__(
        self,
        place: str,
        connect: Callable[[], http.client.HTTPConnection],
        headers: Optional[Mapping[str, str]] = None,
        patience: float = 60.0,
        authority: str = "",
    ) -> None:
        """authority is the file with whom alone is trusted; empty: whom the machine trusts."""
        self.place = place
        self._authority = authority
        self.patience = patience
        self._connect = connect
        self._headers = dict(headers or {})
        self._local = threading.local()

    def send(self, request: Request) -> Any:
        """What request.read makes of the answer, or the error the answer is."""
        headers = dict(self._headers)
        if request.method not in ("GET", "HEAD"):
            headers["Idempotency-Key"] = str(uuid.uuid4())
        patience = self.patience if request.patience is None else request.patience
        deadline = time.monotonic() + patience
        longest = _FIRST_WAIT
        while True:
            try:
                return self._attempt(request, headers)
            except _Passing as passing:
                wait = max(random.uniform(longest / 2, longest), passing.wait)
                if time.monotonic() + wait > deadline:
                    raise passing.error from passing.__cause__
                time.sleep(wait)
                longest = min(longest * 2, _LONGEST_WAIT)

    def close(self) -> None:
        """Close this thread's connection."""
        kept: Optional[_Kept] = getattr(self._local, "kept", None)
        self._local.kept = None
        if kept is not None:
            kept.connection.close()

    def _attempt(self, request: Request, headers: Mapping[str, str]) -> Any:
        connection, reused = self._connection()
        try:
            try:
                response = self._exchange(connection, request, headers)
            except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError):
                if not reused:
                    raise
                # The server had closed the idle connection: no fault of anyone.
                self.close()
                connection, _ = self._connection()
                response = self._exchange(connection, request, headers)
            return self._result(request, response)
        except ssl.SSLCertVerificationError as error:
            self.close()
            raise TandemError(f"{request.what}: {_distrust(self.place, self._authority, error)}") from error
        except ssl.SSLError as error:
            self.close()
            if not any(sign in str(error) for sign in _NO_TLS):
                raise _Passing(UnavailableError(f"{request.what}: {self.place} cannot be reached: {error}")) from error
            advice = "use http:// if it is on this machine, or start the server with --tls"
            raise TandemError(f"{request.what}: {self.place} does not speak TLS: {advice}") from error
        except (OSError, http.client.HTTPException) as error:
            self.close()
            said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            raise _Passing(UnavailableError(f"{request.what}: {self.place} cannot be reached: {said}")) from error
        except TandemError:
            raise  # the answer was read to its end: the connection can be used again
        except BaseException:
            self.close()  # interrupted half-way: the connection is of no use
            raise

    def _connection(self) -> tuple[http.client.HTTPConnection, bool]:
        # A forked child must not write into its parent's connection.
        kept: Optional[_Kept] = getattr(self._local, "kept", None)
        if kept is not None and kept.process == os.getpid():
            return kept.connection, True
        self._local.kept = _Kept(self._connect())
        return self._local.kept.connection, False

    def _exchange(
        self, connection: http.client.HTTPConnection, request: Request, headers: Mapping[str, str]
    ) -> http.client.HTTPResponse:
        connection.timeout = request.timeout
        if connection.sock is not None:
            connection.sock.settimeout(request.timeout)
        sent = dict(headers)
        content: Union[bytes, BinaryIO, None] = None
        if request.body is not None:
            sent["Content-Type"] = request.body.content_type
            sent["Content-Length"] = str(request.body.size)
            content = request.body.open()
        try:
            connection.request(request.method, request.path, body=content, headers=sent)
        except (BrokenPipeError, ConnectionResetError) as error:
            # A server that refuses a large body may answer and hang up before it has read it.
            try:
                return connection.getresponse()
            except (OSError, http.client.HTTPException):
                raise error from None
        finally:
            if content is not None and not isinstance(content, bytes):
                content.close()
        return connection.getresponse()

    def _result(self, request: Request, response: http.client.HTTPResponse) -> Any:
        if 200 <= response.status < 300:
            return request.read(response)
        told = _problem(response)
        if str(told.get("detail", "")).startswith("Client sent an HTTP request to an HTTPS server"):
            told = {"detail": "it speaks TLS: use https:// and its authority.pem (ca=FILE or TANDEM_CA)"}
        error = from_problem(response.status, told, request.what)
        if response.will_close:
            self.close()
        if response.status in _PASSING:
            raise _Passing(error, _retry_after(response))
        raise error


def _distrust(place: str, authority: str, error: ssl.SSLCertVerificationError) -> str:
    """What to do about a certificate that was refused."""
    said = error.verify_message
    if "not valid for" in said.lower():
        return f"the certificate of {place} is for another name: use an address that it names ({said})"
    if "expired" in said.lower() or "not yet valid" in said.lower():
        return f"the certificate of {place} is not valid at this time: compare the clocks of both machines ({said})"
    who, advice = "nobody whom this machine trusts", f"{AUTHORITY}, and name it with ca=FILE or TANDEM_CA"
    if authority:
        who, advice = f"ca (or TANDEM_CA): nobody in {authority!r}", f"{AUTHORITY} again"
    return f"{who} has signed the certificate of {place}: {advice} ({said})"


def of_numpy(value: Any) -> Any:
    """A scalar or an array of numpy as JSON has it."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(type(value).__name__)


def _misfit(value: Any, path: str = "") -> str:
    """Where a document has a value that JSON has not, and which; empty if nowhere."""
    if isinstance(value, Mapping):
        return next(filter(None, (_misfit(one, f"{path}.{name}") for name, one in value.items())), "")
    if isinstance(value, (list, tuple)):
        return next(filter(None, (_misfit(one, f"{path}[{i}]") for i, one in enumerate(value))), "")
    try:
        json.dumps(value, allow_nan=False, default=of_numpy)
    except (TypeError, ValueError):
        return f"{path.lstrip('.')}: must be text, true, false or a finite number, not {value!r}"
    return ""


class _Passing(Exception):
    """A fault that may be gone at the next attempt."""

    def __init__(self, error: TandemError, wait: float = 0.0) -> None:
        super().__init__(str(error))
        self.error = error
        self.wait = wait


def _problem(response: http.client.HTTPResponse) -> dict[str, Any]:
    content = response.read(_LONGEST_PROBLEM)
    response.read()
    try:
        document = json.loads(content)
    except ValueError:
        text = content.decode("utf-8", "replace").strip()
        return {"detail": text[:500]} if text else {}
    return document if isinstance(document, dict) else {}


def _retry_after(response: http.client.HTTPResponse) -> float:
    value = response.headers.get("Retry-After", "")
    return float(value) if value.isdigit() else 0.0
