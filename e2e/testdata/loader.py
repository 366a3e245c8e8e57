"""A training script without a model, whose time goes into preparing its data: each epoch has
batches that wait for a disk, say, and a process that only loads has several under way."""

import os
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import tandem

BATCHES = 12


def prepare(batches: int, seconds: float) -> None:
    with ThreadPoolExecutor(batches) as pool:
        list(pool.map(time.sleep, [seconds] * batches))


def load(processes: int, seconds: float) -> None:
    """Prepare an epoch's batches, one after the other if there is no other process."""
    if processes == 0:
        time.sleep(BATCHES * seconds)
        return
    with ProcessPoolExecutor(processes) as pool:
        list(pool.map(prepare, [BATCHES // processes] * processes, [seconds] * processes))


def main() -> None:
    trial = tandem.current_trial()
    trial.restore(lambda path: None)
    for epoch in trial.epochs():
        trial.system.get("cpu_threads")  # its libraries would follow them
        load(trial.loader_workers(), float(os.environ["EPOCH_SECONDS"]))
        trial.report(accuracy=(1 - (trial.params["x"] - 0.7) ** 2) * (1 - 1 / (epoch + 1)))
        trial.checkpoint(lambda path: Path(path).touch())


if __name__ == "__main__":
    main()
