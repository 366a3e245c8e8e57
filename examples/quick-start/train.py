"""Train a tiny network on two spirals in plain Python: one trial of the study in study.yaml.

A worker starts it. By hand it runs alone: python train.py
"""

from __future__ import annotations

import json
import math
import random
from pathlib import Path

import tandem

BY_HAND = {"hidden_units": 8, "learning_rate": 0.1, "momentum": 0.5, "batch_size": 8}


def spirals(count: int, seed: int) -> list[tuple[float, float, float]]:
    """Points with noise on two arms, and the arm that each is on: 0 or 1."""
    draw = random.Random(seed)
    points = []
    for i in range(count):
        way = 0.5 + 4.5 * draw.random()
        angle = way + math.pi * (i % 2)
        points.append((way * math.cos(angle) / 3, way * math.sin(angle) / 3 + draw.gauss(0, 0.2), float(i % 2)))
    return points


def output(weights: list[list[float]], x: float, y: float) -> tuple[float, list[float]]:
    """How likely the point is on arm 1, and the hidden units on the way."""
    hidden = [math.tanh(u[0] * x + u[1] * y + u[2]) for u in weights]
    total = sum(u[3] * h for u, h in zip(weights, hidden))
    return 1 / (1 + math.exp(-max(-30.0, min(30.0, total)))), hidden


def main() -> None:
    trial = tandem.current_trial(params=BY_HAND, epochs=9)
    rate, momentum, batch = (trial.params[name] for name in ("learning_rate", "momentum", "batch_size"))
    training, validation = spirals(240, 1), spirals(120, 2)
    draw = random.Random(trial.seed)
    weights = [[draw.gauss(0, 1) for _ in range(4)] for _ in range(trial.params["hidden_units"])]
    speed = [[0.0] * 4 for _ in weights]

    def restore(path: str) -> None:
        weights[:], speed[:] = json.loads(Path(path).read_text())

    trial.restore(restore)
    for epoch in trial.epochs():
        data = training[: round(len(training) * trial.data_fraction)]
        random.Random(f"{trial.seed} {epoch}").shuffle(data)
        for start in range(0, len(data), batch):
            slope = [[0.0] * 4 for _ in weights]
            for x, y, arm in data[start : start + batch]:
                likely, hidden = output(weights, x, y)
                for unit, h, s in zip(weights, hidden, slope):
                    back = (likely - arm) * unit[3] * (1 - h * h)
                    for i, step in enumerate((back * x, back * y, back, (likely - arm) * h)):
                        s[i] += step / batch
            for unit, v, s in zip(weights, speed, slope):
                for i in range(4):
                    v[i] = momentum * v[i] - rate * s[i]
                    unit[i] += v[i]
        right = sum((output(weights, x, y)[0] > 0.5) == (arm > 0.5) for x, y, arm in validation)
        trial.report(accuracy=right / len(validation))
        trial.checkpoint(lambda path: Path(path).write_text(json.dumps([weights, speed])))


if __name__ == "__main__":
    main()
