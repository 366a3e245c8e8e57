"""The jobs and the oracle of ``go run ./bench/search``, over HTTP."""

import argparse
import http.client
import json
import math
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit


class Spent(Exception):
    """The job's budget is spent."""


class Job:
    """One run: a space, the epochs of a full training, and somebody who trains."""

    def __init__(self, connection: http.client.HTTPConnection, told: dict[str, Any]) -> None:
        self._connection = connection
        self.parameters: list[dict[str, Any]] = told["parameters"]
        self.min_epochs: int = told["min_epochs"]
        self.max_epochs: int = told["max_epochs"]
        self.eta: int = told["eta"]
        self.seed: int = told["seed"]
        self.done = False

    def train(self, params: dict[str, Any], first: int, last: int) -> list[float]:
        """Trains epochs first to last (from 1) and returns the loss after each, or raises Spent."""
        request = {"params": params, "from": first, "to": last, "fraction": 1}
        answer = post(self._connection, "/train", request)
        self.done = answer["done"]
        losses = [math.nan if loss is None else loss for loss in answer["losses"]]
        if self.done:
            raise Spent
        return losses

    def value(self, parameter: dict[str, Any], drawn: Any) -> Any:
        """The value for what a tool drew: ordinals are drawn as the place of their value."""
        if parameter["type"] == "ordinal":
            return parameter["values"][int(drawn)]
        return int(drawn) if parameter["type"] == "int" else float(drawn)

    def values(self, drawn: Any) -> dict[str, Any]:
        """The configuration for the drawn values, by name."""
        return {p["name"]: self.value(p, drawn[p["name"]]) for p in self.parameters}


def post(connection: http.client.HTTPConnection, path: str, body: Any) -> Any:
    connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
    response = connection.getresponse()
    text = response.read().decode()
    if response.status != 200:
        raise RuntimeError(text.strip())
    return json.loads(text)


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser()
    parser.add_argument("--oracle", required=True)
    return parser


def jobs(oracle: str) -> Iterator[Job]:
    """The jobs, until there are no more."""
    address = urlsplit(oracle)
    connection = http.client.HTTPConnection(address.hostname or "", address.port)
    while (told := post(connection, "/next", {})) is not None:
        yield Job(connection, told)


def config_space(job: Job) -> Any:
    """The space for ConfigSpace, on which three of the tools build."""
    import ConfigSpace

    space = ConfigSpace.ConfigurationSpace(seed=job.seed)
    for p in job.parameters:
        if p["type"] == "ordinal":
            space.add(ConfigSpace.UniformIntegerHyperparameter(p["name"], 0, len(p["values"]) - 1))
        elif p["type"] == "int":
            space.add(
                ConfigSpace.UniformIntegerHyperparameter(
                    p["name"], int(p["low"]), int(p["high"]), log=p.get("log", False)
                )
            )
        else:
            space.add(ConfigSpace.UniformFloatHyperparameter(p["name"], p["low"], p["high"], log=p.get("log", False)))
    return space
