"""The server's side of REST v1, in memory, strict where a client could go wrong.

It fences by lease epoch, keeps a receipt for each Idempotency-Key, checks the
hash of an artifact and that a checkpoint names one that was uploaded. It does
not search: a trial's parameters are its number.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
import time
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Optional
from urllib.parse import parse_qs, urlsplit

TOKEN = "secret"


class Problem(Exception):
    def __init__(self, status: int, code: str, detail: str, **more: Any) -> None:
        super().__init__(detail)
        self.status = status
        self.document = {"title": code, "status": status, "code": code, "detail": detail, **more}


@dataclass(frozen=True)
class Call:
    method: str
    path: str
    key: Optional[str]
    body: bytes
    content_type: str

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class FakeServer:
    def __init__(self, ladder: tuple[tuple[int, float], ...] = ((1, 1.0),), trials: int = 3) -> None:
        self.ladder = ladder
        self.max_trials = trials
        self.heartbeat_seconds = 30.0
        self.samples: list[Any] = []  # of trial 0
        self.repeated: dict[str, Any] = {}  # of the best, in a recommendation
        self.calls: list[Call] = []
        self.faults: list[tuple[str, str]] = []
        """(part of a path, fault): "before" or "after" loses the answer, a number is a status."""
        self.directives: dict[str, dict[str, Any]] = {}
        """What heartbeats and reports of a trial are answered."""
        self.lost: set[str] = set()
        self.system: dict[str, Any] = {}  # of every lease
        self.studies: dict[str, dict[str, Any]] = {}
        self.trials: dict[str, dict[str, Any]] = {}
        self.reports: dict[str, list[dict[str, Any]]] = {}
        self.artifacts: dict[str, bytes] = {}
        self.forgets = 0
        self.workers: dict[str, dict[str, Any]] = {}
        self.logs: dict[str, str] = {}
        self.prior: list[dict[str, Any]] = []
        self.queue: list[dict[str, Any]] = []
        self.receipts: dict[str, tuple[bytes, tuple[int, Any]]] = {}
        self._lock = threading.RLock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def sent(self, part: str, method: str = "POST") -> list[Call]:
        """The calls to a path that has the part."""
        return [call for call in self.calls if part in call.path and call.method == method]

    def take_fault(self, path: str) -> str:
        with self._lock:
            for i, (part, fault) in enumerate(self.faults):
                if part in path:
                    del self.faults[i]
                    return fault
        return ""

    def handle(self, call: Call) -> tuple[int, Any]:
        """The answer to a call: a status and a document, or bytes."""
        path, _, query = call.path.partition("?")
        arguments = {name: values[-1] for name, values in parse_qs(query).items()}
        if call.method in ("POST", "DELETE", "PUT") and not call.key:
            raise Problem(400, "invalid", "Idempotency-Key is missing")
        with self._lock:
            if call.key in self.receipts:
                body, kept = self.receipts[call.key]
                if body != call.body:
                    raise Problem(422, "key_reused", "the key came with another body")
                return kept
        for pattern, method, name in _ROUTES:
            found = re.fullmatch(pattern, path)
            if found and method == call.method:
                answer: tuple[int, Any] = getattr(self, name)(
                    call, *found.groups(), **({"query": arguments} if query else {})
                )
                if call.key:
                    self.receipts[call.key] = (call.body, answer)
                return answer
        raise Problem(404, "not_found", f"no {call.method} {path}")

    # Studies

    def preview(self, call: Call) -> tuple[int, Any]:
        if call.content_type == "application/json" and "space" not in call.json:
            return 200, {"faults": [{"path": "space", "message": "is missing"}]}
        return 200, {"plan": {"rungs": [{"index": i} for i in range(len(self.ladder))]}, "faults": []}

    def create(self, call: Call) -> tuple[int, Any]:
        if call.content_type == "application/json":
            definition = call.json
            if "prior" in definition:
                self.prior = definition["prior"]
                definition = definition.get("study") or {"name": _named(definition["study_file"]), "space": {}}
        else:
            definition = {"name": _named(call.body.decode())}
        if "space" not in definition and call.content_type == "application/json":
            fault = {"path": "space", "message": "is missing"}
            low = {"path": "budget.eta", "message": "must be at least 2", "value": 1, "line": 7}
            raise Problem(422, "invalid", "the study has 2 faults", errors=[fault, low])
        if any(s["name"] == definition["name"] for s in self.studies.values()):
            raise Problem(409, "conflict", f"there is a study named {definition['name']}")
        study = {"id": f"s{len(self.studies) + 1}", "name": definition["name"], "owner": "alice", "status": "running"}
        self.studies[study["id"]] = study
        return 201, self.view(study)

    def view(self, study: dict[str, Any]) -> dict[str, Any]:
        measured = [t for t in self.trials.values() if t["results"]]
        best = max(measured, key=lambda t: (t["results"][-1]["rung"], _number(t)), default=None)
        progress: dict[str, Any] = {"trials": {"completed": len(measured)}}
        if best:
            value = best["results"][-1]["values"][0]
            named = {"number": best["number"], "metric": "accuracy", "value": value, "params": best["params"]}
            progress["best"] = {**named, "trial_id": best["id"], "rung": best["rung"], "budget": best["budget"]}
        objective = [{"metric": "accuracy", "direction": "maximize"}]
        return {**study, "definition": {"name": study["name"], "objective": objective}, "progress": progress}

    def study(self, call: Call, ref: str) -> tuple[int, Any]:
        return 200, self.view(self._study(ref))

    def list_studies(self, call: Call) -> tuple[int, Any]:
        return 200, {"studies": [self.view(s) for s in self.studies.values()]}

    def act(self, call: Call, ref: str, action: str) -> tuple[int, Any]:
        status = {"pause": "paused", "resume": "running", "stop": "stopped"}[action]
        self._study(ref)["status"] = status
        return 200, self.view(self._study(ref))

    def extend(self, call: Call, ref: str) -> tuple[int, Any]:
        if not call.json:
            raise Problem(422, "invalid", "the study is not extended")
        study = self._study(ref)
        study["status"], study["extended"] = "running", call.json
        return 200, self.view(study)

    def set(self, call: Call, ref: str) -> tuple[int, Any]:
        self._study(ref)["set"] = call.json
        return 200, self.view(self._study(ref))

    def enqueue(self, call: Call, ref: str) -> tuple[int, Any]:
        study = self._study(ref)
        if self._over(study):
            raise Problem(409, "conflict", f"study {study['name']} is {study['status']}")
        self.queue.extend(call.json["configurations"])
        return 200, {"study": study["name"], "enqueued": len(call.json["configurations"]), "waiting": len(self.queue)}

    def delete(self, call: Call, ref: str) -> tuple[int, Any]:
        del self.studies[self._study(ref)["id"]]
        return 204, None

    def list_trials(self, call: Call, ref: str, query: dict[str, str]) -> tuple[int, Any]:
        offset, limit = int(query["offset"]), int(query["limit"])
        rows = sorted(self.trials.values(), key=lambda t: int(t["number"]))
        return 200, {"trials": rows[offset : offset + limit], "total": len(rows), "sequence": 0}

    def trial(self, call: Call, ref: str, number: str) -> tuple[int, Any]:
        trial_id = f"{self._study(ref)['id']}-{number}"
        return 200, {"trial": self.trials[trial_id], "reports": self.reports[trial_id], "events": []}

    def sampled(self, call: Call, ref: str, number: str) -> tuple[int, Any]:
        return 200, {"leases": self.samples if int(number) == 0 else []}

    def pareto(self, call: Call, ref: str) -> tuple[int, Any]:
        front = [t for t in self.trials.values() if t["results"]][:1]
        rows = [{"number": t["number"], "rank": 1, "values": t["results"][-1]["values"]} for t in front]
        return 200, {"study": self._study(ref)["name"], "trials": rows, "hypervolume": 0.5, "notes": []}

    def recommendation(self, call: Call, ref: str) -> tuple[int, Any]:
        view = self.view(self._study(ref))
        best = view["progress"].get("best")
        if best and self.repeated:
            best = {**best, "repeated": self.repeated}
        return 200, {"study": view["name"], "best": best, "full_budget": True, "notes": ["one seed only"]}

    def analysis(self, call: Call, ref: str, part: str, query: dict[str, str]) -> tuple[int, Any]:
        return 200, {"study": self._study(ref)["name"], "method": part, "asked": query, "notes": []}

    # Workers

    def register(self, call: Call) -> tuple[int, Any]:
        self.workers[call.json["id"]] = call.json
        return 200, {"lease_seconds": 60, "heartbeat_seconds": self.heartbeat_seconds}

    def list_workers(self, call: Call) -> tuple[int, Any]:
        return 200, {"workers": list(self.workers.values())}

    def leave(self, call: Call, worker: str) -> tuple[int, Any]:
        self.workers.pop(worker, None)
        return 204, None

    def heartbeat(self, call: Call, worker: str) -> tuple[int, Any]:
        if worker not in self.workers:
            raise Problem(404, "not_found", "register first")
        held = [lease["trial_id"] for lease in call.json["leases"]]
        wanted = {t: d for t, d in self.directives.items() if t in held}
        return 200, {"lost": [t for t in held if t in self.lost], "directives": wanted}

    def lease(self, call: Call) -> tuple[int, Any]:
        request = call.json
        if request["worker"] not in self.workers:
            raise Problem(404, "not_found", "register first")
        study = self._study(request["study"])
        deadline = time.monotonic() + min(float(request["wait_seconds"]), 0.2)
        while True:
            with self._lock:
                trial = self._next(study) if study["status"] == "running" else None
                if trial is not None:
                    return 200, {"lease": self._lease(study, trial)}
                if self._over(study):
                    return 200, {"study_finished": True}
            if time.monotonic() >= deadline:
                return 200, {}
            time.sleep(0.01)

    def report(self, call: Call, trial_id: str) -> tuple[int, Any]:
        trial, document = self._fenced(call, trial_id), call.json
        trial["state"] = "running"
        assert set(document) - {"system"} == {"lease_epoch", "epoch", "metrics", "seconds"}
        self.reports[trial_id].append(document)
        trial["last"] = document["metrics"]
        if trial_id in self.directives:
            return 200, self.directives[trial_id]
        return 200, {"action": "finish" if document["epoch"] >= trial["budget"]["epochs"] else "continue"}

    def commit(self, call: Call, trial_id: str) -> tuple[int, Any]:
        trial, document = self._fenced(call, trial_id), call.json
        if self.forgets:
            self.forgets -= 1
            self.artifacts.pop(document["artifact"])
        if document["artifact"] not in self.artifacts:
            raise Problem(409, "conflict", "send its bytes first")
        if len(self.artifacts[document["artifact"]]) != document["bytes"]:
            raise Problem(422, "invalid", "bytes is not the artifact's size")
        named = {"epoch": document["epoch"], "artifact": document["artifact"], "bytes": document["bytes"]}
        trial["checkpoint"] = {**named, "rung": trial["rung"]}
        trial["checkpoints"].append(trial["checkpoint"])
        return 204, None

    def finish(self, call: Call, trial_id: str) -> tuple[int, Any]:
        trial, document = self._fenced(call, trial_id), call.json
        outcome = document["outcome"]
        trial["reason"] = document["reason"]
        trial["worker"] = None
        if document.get("unusable_checkpoint"):
            trial["checkpoints"] = [c for c in trial["checkpoints"] if c["artifact"] != document["unusable_checkpoint"]]
            trial["checkpoint"] = trial["checkpoints"][-1] if trial["checkpoints"] else None
        if outcome == "budget_reached":
            metrics = self.reports[trial_id][-1]["metrics"]
            result = {"rung": trial["rung"], "budget": trial["budget"], "values": [metrics["accuracy"]]}
            trial["results"].append(result)
            trial["state"] = "completed" if trial["rung"] == len(self.ladder) - 1 else "paused"
        else:
            trial["state"] = {"failed": "failed", "interrupted": "queued"}[outcome]
        return 200, {"state": trial["state"], "rung": trial["rung"]}

    def log(self, call: Call, trial_id: str) -> tuple[int, Any]:
        self._fenced(call, trial_id)
        self.logs[trial_id] = call.json["text"]
        return 204, None

    def put_artifact(self, call: Call, sha256: str) -> tuple[int, Any]:
        if hashlib.sha256(call.body).hexdigest() != sha256:
            raise Problem(422, "invalid", "the content has another hash")
        self.artifacts[sha256] = call.body
        return 204, None

    def get_artifact(self, call: Call, sha256: str) -> tuple[int, Any]:
        if sha256 not in self.artifacts:
            raise Problem(404, "not_found", "there is no such artifact")
        return 200, self.artifacts[sha256]

    def _study(self, ref: str) -> dict[str, Any]:
        for study in self.studies.values():
            if ref in (study["id"], study["name"]):
                return study
        raise Problem(404, "not_found", f"there is no study {ref}")

    def _over(self, study: dict[str, Any]) -> bool:
        ended = [t for t in self.trials.values() if t["state"] in ("completed", "failed")]
        if len(ended) == self.max_trials and study["status"] == "running":
            study["status"] = "completed"
        return study["status"] in ("completed", "stopped")

    def _next(self, study: dict[str, Any]) -> Optional[dict[str, Any]]:
        for trial in self.trials.values():
            if trial["state"] == "queued":
                return trial
            if trial["state"] == "paused":
                trial["rung"] += 1
                return trial
        number = len(self.trials)
        if number == self.max_trials:
            return None
        trial = {"id": f"{study['id']}-{number}", "study_id": study["id"], "number": number, "rung": 0}
        params = {"x": number, "rate": 0.5, **(self.queue.pop(0) if self.queue else {})}
        trial.update(params=params, results=[], lease_epoch=0, checkpoint=None, checkpoints=[], worker=None)
        self.trials[trial["id"]] = trial
        self.reports[trial["id"]] = []
        return trial

    def _lease(self, study: dict[str, Any], trial: dict[str, Any]) -> dict[str, Any]:
        epochs, fraction = self.ladder[trial["rung"]]
        trial["lease_epoch"] += 1
        trial["state"] = "leased"
        trial["budget"] = {"epochs": epochs, "data_fraction": fraction}
        lease = {name: trial[name] for name in ("number", "lease_epoch", "rung", "budget", "params")}
        lease.update(
            trial_id=trial["id"], study=study["name"], study_id=study["id"], system=self.system, seed=2**64 - 1
        )
        lease.update(objectives=["accuracy"], first_epoch=(trial["checkpoint"] or {"epoch": 0})["epoch"] + 1)
        if trial["checkpoint"]:
            lease["checkpoint"] = trial["checkpoint"]
        return lease

    def _fenced(self, call: Call, trial_id: str) -> dict[str, Any]:
        trial = self.trials[trial_id]
        if call.json["lease_epoch"] != trial["lease_epoch"] or trial["state"] not in ("leased", "running"):
            raise Problem(409, "lease_lost", "another lease has the trial")
        return trial


_STUDY = "/api/v1/studies/([^/]+)"
_ROUTES = [
    ("/api/v1/studies", "POST", "create"),
    ("/api/v1/preview", "POST", "preview"),
    ("/api/v1/studies", "GET", "list_studies"),
    (_STUDY, "GET", "study"),
    (_STUDY, "DELETE", "delete"),
    (_STUDY + "/(pause|resume|stop)", "POST", "act"),
    (_STUDY + "/extend", "POST", "extend"),
    (_STUDY + "/set", "POST", "set"),
    (_STUDY + "/enqueue", "POST", "enqueue"),
    (_STUDY + "/trials", "GET", "list_trials"),
    (_STUDY + "/trials/([0-9]+)", "GET", "trial"),
    (_STUDY + "/trials/([0-9]+)/samples", "GET", "sampled"),
    (_STUDY + "/recommendation", "GET", "recommendation"),
    (_STUDY + "/pareto", "GET", "pareto"),
    (_STUDY + "/(importance)", "GET", "analysis"),
    ("/api/v1/workers", "POST", "register"),
    ("/api/v1/workers", "GET", "list_workers"),
    ("/api/v1/workers/([^/]+)", "DELETE", "leave"),
    ("/api/v1/workers/([^/]+)/heartbeat", "POST", "heartbeat"),
    ("/api/v1/leases", "POST", "lease"),
    ("/api/v1/trials/([^/]+)/reports", "POST", "report"),
    ("/api/v1/trials/([^/]+)/checkpoint", "POST", "commit"),
    ("/api/v1/trials/([^/]+)/finish", "POST", "finish"),
    ("/api/v1/trials/([^/]+)/log", "POST", "log"),
    ("/api/v1/artifacts/([0-9a-f]{64})", "PUT", "put_artifact"),
    ("/api/v1/artifacts/([0-9a-f]{64})", "GET", "get_artifact"),
]


def _named(text: str) -> str:
    return str(re.findall(r"^name: (.*)$", text, re.M)[0])


def _number(trial: dict[str, Any]) -> float:
    value = trial["results"][-1]["values"][0]
    return float("-inf") if value == "NaN" else float(value)


def _handler(server: FakeServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # an answer goes out in two writes

        def _serve(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(length)
            kind = self.headers.get("Content-Type") or ""
            call = Call(self.command, self.path, self.headers.get("Idempotency-Key"), body, kind)
            server.calls.append(call)
            fault = server.take_fault(urlsplit(self.path).path)
            if fault == "before":
                self.close_connection = True
                return
            try:
                if fault.isdigit():
                    raise Problem(int(fault), "unavailable", "not now")
                if self.headers.get("Authorization") != f"Bearer {TOKEN}":
                    raise Problem(401, "unauthorized", "no valid token was shown")
                status, answer = server.handle(call)
            except Problem as problem:
                status, answer = problem.status, problem.document
            if fault == "after":
                self.close_connection = True
                return
            self._reply(status, answer)

        def _reply(self, status: int, answer: Any) -> None:
            content = answer if isinstance(answer, bytes) else b"" if answer is None else json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            if status != 204:
                self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if status != 204:
                self.wfile.write(content)

        do_GET = do_POST = do_PUT = do_DELETE = _serve

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler
