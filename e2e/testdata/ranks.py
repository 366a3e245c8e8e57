"""A training by several processes, each of which meets the others in every epoch.

Started alone, this one starts them as torchrun does.
"""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import tandem

SIZE = 3


def start() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    common = {
        "WORLD_SIZE": str(SIZE),
        "LOCAL_WORLD_SIZE": str(SIZE),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }
    ranks = [
        subprocess.Popen(
            [sys.executable, __file__], env={**os.environ, **common, "RANK": str(rank), "LOCAL_RANK": str(rank)}
        )
        for rank in range(SIZE)
    ]
    return max(process.wait() for process in ranks)


def meet(folder: Path, name: str, rank: int) -> None:
    """Wait for all, as a collective operation does, but not for ever."""
    (folder / f"{name}.{rank}").touch()
    for _ in range(6000):
        if all((folder / f"{name}.{other}").exists() for other in range(SIZE)):
            return
        time.sleep(0.01)
    raise SystemExit(f"rank {rank} waited in vain at {name}")


def train(rank: int) -> None:
    trial = tandem.current_trial()
    folder = trial.checkpoint_dir.parent
    (folder / "met").mkdir(exist_ok=True)
    trial.restore(lambda path: Path(path).read_text())

    def note(what: str, epoch: int) -> None:
        with Path(os.environ["LEDGER"]).open("a", encoding="utf-8") as ledger:
            ledger.write(f"{what} {trial.number} {trial.rung} {epoch} {os.getpid()}\n")

    def save(path: str) -> None:
        note(f"saved{rank}", trial.last_reported)
        Path(path).write_text("state")

    for epoch in trial.epochs():
        meet(folder / "met", str(epoch), rank)
        note(f"rank{rank}", epoch)
        time.sleep(float(os.environ["EPOCH_SECONDS"]))
        if rank == 0 or "ALL_REPORT" in os.environ:
            trial.report(accuracy=(1 - (trial.params["x"] - 0.7) ** 2) * (1 - 1 / (epoch + 1)))
            trial.checkpoint(save)
    meet(folder / "met", "end", rank)


if __name__ == "__main__":
    if "RANK" in os.environ:
        train(int(os.environ["RANK"]))
    else:
        sys.exit(start())
