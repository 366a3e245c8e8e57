"""Train some epochs of a workload without any server, and print their seconds and what came out.

The benchmark times single epochs with it, and trains winners again. One line of JSON.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

import torch
from job import create, use_threads


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workload", required=True)
    parser.add_argument("--params", type=json.loads, required=True, help="JSON object")
    parser.add_argument("--epochs", type=int, default=9)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=0, help="0: as the process finds it")
    parser.add_argument("--save", action="store_true", help="save the state after each epoch, in seconds of its own")
    options = parser.parse_args()
    if options.threads:
        use_threads(options.threads)
    job = create(options.workload, options.params, options.seed)
    seconds, values, saves = [], [], []
    folder = tempfile.TemporaryDirectory()
    for _ in range(options.epochs):
        start = time.monotonic()
        job.epoch()
        values.append(job.accuracy())
        seconds.append(time.monotonic() - start)
        if options.save:
            start = time.monotonic()
            torch.save(job.state(), Path(folder.name) / "state")
            saves.append(time.monotonic() - start)
    outcome = {
        "threads": torch.get_num_threads(),
        "epoch_seconds": seconds,
        "save_seconds": saves,
        "accuracies": values,
        "test_accuracy": job.test_accuracy(),
    }
    print(json.dumps(outcome), flush=True)


if __name__ == "__main__":
    main()
