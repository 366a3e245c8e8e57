"""Runs a model with the package onnxruntime as a deployment's program would, and prints the medians as JSON.

Arguments: the model, the seconds for each setting, and the settings as BATCHxTHREADS.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time

import numpy
import onnxruntime


def measure(model: str, seconds: float, batch: int, threads: int) -> float:
    """Return the median of the seconds of a run, as the emulator measures: warmed up, ten runs at least."""
    os.sched_setaffinity(0, sorted(ALLOWED)[:threads])
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    (wanted,) = session.get_inputs()
    shape = [batch] + [size if isinstance(size, int) else 1 for size in wanted.shape[1:]]
    inputs = {wanted.name: numpy.random.default_rng(1).random(shape, dtype=numpy.float32)}
    warm = time.perf_counter() + seconds / 2
    for _ in range(10):
        session.run(None, inputs)
        if time.perf_counter() > warm:
            break
    runs: list[float] = []
    spent = 0.0
    while spent < seconds / 2 or (len(runs) < 10 and spent < seconds):
        began = time.perf_counter()
        session.run(None, inputs)
        runs.append(time.perf_counter() - began)
        spent += runs[-1]
    return statistics.median(runs)


ALLOWED = os.sched_getaffinity(0)


def main() -> None:
    model, seconds = sys.argv[1], float(sys.argv[2])
    results = []
    for setting in sys.argv[3:]:
        batch, threads = (int(number) for number in setting.split("x"))
        results.append({"batch": batch, "threads": threads, "seconds": measure(model, seconds, batch, threads)})
    print(json.dumps(results))


main()
