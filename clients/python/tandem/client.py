"""A server, by its REST interface."""

from __future__ import annotations

import http.client
import json
import logging
import os
import re
import ssl
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional, Union
from urllib.parse import quote, urlsplit

from .errors import ConflictError, from_problem
from .local import is_local, session
from .transport import AUTHORITY, Body, Request, Transport, of_numpy
from .version import VERSION
from .warm import WarmStart, objectives_of, observations, read

if TYPE_CHECKING:
    from .study import Study

logger = logging.getLogger("tandem")

DEFAULT_URL = "http://127.0.0.1:7171"

Definition = Union[Mapping[str, Any], str, "os.PathLike[str]"]
"""A study file: its content as a dictionary, or the path of a YAML or JSON file."""


class Client:
    """The studies of one server.

    ``url`` is TANDEM_SERVER or http://127.0.0.1:7171 when not given, ``token``
    is TANDEM_TOKEN. The url ``local``, or ``local:FOLDER`` for another data
    folder than that of ``tandem serve``, needs neither a server nor a token:
    the client starts one on this machine, or uses the one that has the folder.
    A server that was started so ends with the last process that uses it.

    ``ca`` (or TANDEM_CA) is a PEM file with the authority that signed the
    server's certificate, such as the ``authority.pem`` of a server that was
    started with ``--tls``: nobody else is trusted then. For ``patience`` seconds
    a call is tried again when the server cannot be reached or asks to come back
    later.
    """

    def __init__(
        self,
        url: Optional[str] = None,
        token: Optional[str] = None,
        *,
        ca: Union[str, os.PathLike[str], None] = None,
        patience: float = 60.0,
    ) -> None:
        named = url or os.environ.get("TANDEM_SERVER")
        self._again = partial(Client, named, ca=ca, patience=patience)
        self.url = (named or DEFAULT_URL).rstrip("/")
        if is_local(self.url):
            if token:
                raise ValueError(f"token: a server named {self.url!r} gives this process one: leave the token out")
            here = session(self.url)
            self.url, token, ca = here.url, here.token, here.ca
        token = token or os.environ.get("TANDEM_TOKEN", "")
        place = self.url if named else f"{self.url} (or name a server: TANDEM_SERVER=local starts one)"
        self.transport = _transport(self.url, place, token, ca or os.environ.get("TANDEM_CA"), patience)

    def __repr__(self) -> str:
        return f"<tandem.Client {self.url}>"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled without the token, which a file should not keep: TANDEM_TOKEN has it where it is read."""
        return self._again, ()

    def create_study(
        self, definition: Definition, *, load_if_exists: bool = False, warm_start: Optional[WarmStart] = None
    ) -> Study:
        """Create a study. A definition with faults raises :class:`InvalidError`, which names every one.

        With ``load_if_exists`` a study of that name that exists already is
        returned as it is. Another space or objective, and fewer trials
        (``stop.trials``), are logged as a warning.

        ``warm_start`` is what was measured elsewhere, to begin with: a list of
        ``{"params": {...}, "value": 0.93}`` (``epochs``, ``data_fraction`` and
        ``source`` if known), the path of a CSV file with a column for each
        parameter and the objective, or an Optuna study. What does not fit the
        space is left out and counted: ``study.view["definition"]["search"]["warm_start"]``.
        """
        body, name = _body(definition)
        if warm_start is not None:
            body = _warm_body(definition, warm_start)
        try:
            view = self.transport.send(Request("POST", self.path("studies"), "create the study", body))
        except ConflictError:
            if load_if_exists and name:
                return _with_its_own(self.study(name), _content(definition))
            raise
        return self._study(view)

    def import_results(self, definition: Definition, results: WarmStart) -> Study:
        """Create a study whose first trials are results that were measured elsewhere; it may go on from there.

        ``results`` is what ``warm_start`` of :meth:`create_study` may be: a list, a CSV file, an Optuna study. There
        they are advice; here they are the study's own trials, on its leaderboard and in its charts. The study trains
        each trial in one go (``budget: {epochs: 10}``, or ``promotion: none``). What does not fit its space is left
        out and logged under the name tandem.
        """
        from .history import import_results

        found = read(results, objectives_of(_content(definition)))
        study = self.create_study(definition)
        try:
            import_results(study, found)
        except ValueError:
            study.delete()  # nothing was measured in it
            raise
        return study

    def preview(self, definition: Definition) -> Mapping[str, Any]:
        """The plan of a study: its rungs and what it may spend. Nothing is stored."""
        body, _ = _body(definition)
        what = "preview the study"
        found = self.transport.send(Request("POST", self.path("preview"), what, body))
        faults = found["faults"]
        if faults:
            told = f"the study has {len(faults)} fault{'s' if len(faults) > 1 else ''}"
            raise from_problem(422, {"code": "invalid", "detail": told, "errors": faults}, what)
        plan: Mapping[str, Any] = found["plan"]
        return plan

    def study(self, name: str) -> Study:
        """The study with the name or the id."""
        return self._study(self.get("find the study", "studies", name))

    def studies(self) -> list[Study]:
        """All studies, the newest first."""
        return [self._study(view) for view in self.get("list the studies", "studies")["studies"]]

    def workers(self) -> list[Mapping[str, Any]]:
        """The workers the server knows, as it describes them."""
        found: list[Mapping[str, Any]] = self.get("list the workers", "workers")["workers"]
        return found

    def get(self, what: str, *parts: Union[str, int]) -> Any:
        """The document at /api/v1/<parts>; ``what`` starts an error's message."""
        return self.transport.send(Request("GET", self.path(*parts), what))

    def post(self, what: str, document: Any, *parts: Union[str, int]) -> Any:
        """The answer to the document posted to /api/v1/<parts>; no document sends no body."""
        body = None if document is None else Body.json(document)
        return self.transport.send(Request("POST", self.path(*parts), what, body))

    @staticmethod
    def path(*parts: Union[str, int]) -> str:
        """The path of a resource: /api/v1/<parts>, each part escaped."""
        return "/api/v1/" + "/".join(quote(str(part), safe="") for part in parts)

    def _study(self, view: Mapping[str, Any]) -> Study:
        from .study import Study

        return Study(self, view)


def _transport(url: str, place: str, token: str, ca: Union[str, os.PathLike[str], None], patience: float) -> Transport:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.path or parts.query:
        raise ValueError(f"the server's address is http://HOST:PORT, https://HOST:PORT or local, not {url!r}")
    host, port = parts.hostname, parts.port
    headers = {"Accept": "application/json", "User-Agent": f"tandem-python/{VERSION}"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    if parts.scheme == "https":
        context, file = _trusting(ca), os.fspath(ca) if ca else ""
        return Transport(
            place, lambda: http.client.HTTPSConnection(host, port, context=context), headers, patience, file
        )
    return Transport(place, lambda: http.client.HTTPConnection(host, port), headers, patience)


def _trusting(ca: Union[str, os.PathLike[str], None]) -> ssl.SSLContext:
    """Trusts the authorities in the file; without one, those of the machine."""
    if ca is None:
        return ssl.create_default_context()
    try:
        return ssl.create_default_context(cafile=os.fspath(ca))
    except OSError as error:
        unread = f"cannot be read ({error.strerror})"
        fault = "holds no certificate in PEM" if isinstance(error, ssl.SSLError) else unread
        raise ValueError(f"ca (or TANDEM_CA): {os.fspath(ca)!r} {fault}: {AUTHORITY} to this machine") from error


def _content(definition: Definition) -> Any:
    """The definition as a dictionary, or as text in YAML."""
    if isinstance(definition, Mapping):
        return definition
    text = Path(definition).read_text(encoding="utf-8")
    return json.loads(text) if Path(definition).suffix == ".json" else text


def _with_its_own(study: Study, content: Any) -> Study:
    """The study that exists, of which is said where it searches otherwise than content, or ends after fewer trials."""
    stop = content.get("stop") if isinstance(content, Mapping) else None
    wanted = stop.get("trials") if isinstance(stop, Mapping) else None
    definition = study.view["definition"]
    has = definition.get("stop", {}).get("trials", 0)
    others = _differences(content, definition)
    if others:
        text = "study %s exists and goes on with its own definition: %s. A study under another name has yours"
        logger.warning(text, study.name, "; ".join(others))
    if isinstance(wanted, int) and 0 < has < wanted:
        text = "study %s exists and ends after %d trials, not %d: study.extend(trials=%d) gives it more"
        logger.warning(text, study.name, has, wanted, wanted - has)
    return study


def _differences(content: Any, definition: Mapping[str, Any]) -> list[str]:
    """Where a study has other objectives than the content of a definition, or another space; text is not compared."""
    if not isinstance(content, Mapping):
        return []
    wanted, has = objectives_of(content), objectives_of(definition)
    found = [f"its objective is {has}, not {wanted}"] if wanted != has else []
    given = content.get("space")
    if not isinstance(given, Mapping) or "parameters" in given:
        return found
    space = {str(one["name"]): one for one in definition.get("space", {}).get("parameters") or ()}
    found += [f"it has no parameter {name}" for name in given if name not in space]
    for name, own in space.items():
        if name not in given:
            found.append(f"it has the parameter {name}")
            continue
        wished = json.loads(json.dumps(given[name], default=of_numpy))  # as the server has it: no tuples
        for key in ("type", "low", "high", "log", "step", "values"):
            if key in wished and (wished[key] or 0) != (own.get(key) or 0):
                found.append(f"its {name} has {key} {own.get(key)}, not {wished[key]}")
    return found


def _warm_body(definition: Definition, warm_start: WarmStart) -> Body:
    """The definition together with what was measured elsewhere."""
    if isinstance(definition, Mapping):
        return Body.json({"study": definition, "prior": observations(warm_start, objectives_of(definition))})
    path = Path(definition)
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".json":
        content = json.loads(text)
        return Body.json({"study": content, "prior": observations(warm_start, objectives_of(content))})
    return Body.json({"study_file": text, "prior": observations(warm_start, objectives_of(text))})


def _body(definition: Definition) -> tuple[Body, str]:
    """The definition as a request's body, and the study's name as far as it can be told without a YAML parser."""
    if isinstance(definition, Mapping):
        return Body.json(definition), str(definition.get("name", ""))
    path = Path(definition)
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".json":
        content = json.loads(text)
        return Body.text(text, "application/json"), str(content.get("name", "")) if isinstance(content, dict) else ""
    named = re.search(r"""^name:[ \t]*["']?([A-Za-z0-9._-]+)""", text, re.MULTILINE)
    return Body.text(text, "application/yaml"), named.group(1) if named else ""
