"""A training script without a model: it sleeps, reports a curve, and writes
what it did, and what was acknowledged, to a ledger the tests compare with the
server's books."""

import os
import time
from pathlib import Path

import tandem


def note(what: str, trial: tandem.Trial, epoch: int) -> None:
    line = f"{what} {trial.number} {trial.rung} {epoch} {os.getpid()}\n"
    with Path(os.environ["LEDGER"]).open("a", encoding="utf-8") as ledger:
        ledger.write(line)


def main() -> None:
    trial = tandem.current_trial()
    pause = float(os.environ.get("EPOCH_SECONDS", "0.01"))
    trained = 0

    def restore(path: str) -> None:
        nonlocal trained
        trained = int(Path(path).read_text())

    def save(path: str) -> None:
        Path(path).write_text(str(trained).ljust(int(os.environ.get("CHECKPOINT_BYTES", "0"))))

    trial.restore(restore)
    x = trial.params["x"]
    held = os.environ.get("HELD", "")
    for epoch in trial.epochs():
        if epoch != trained + 1:
            raise SystemExit(f"asked for epoch {epoch} with {trained} epochs in the checkpoint")
        time.sleep(pause)
        while held and Path(held).exists():  # until the test lets it go on
            time.sleep(0.01)
        trained = epoch
        note("trained", trial, epoch)
        trial.report(accuracy=(1 - (x - 0.7) ** 2) * (1 - 1 / (epoch + 1)))
        note("acknowledged", trial, epoch)
        trial.checkpoint(save)
        with (trial.checkpoint_dir / "checkpoint").open("r+", encoding="utf-8") as kept:
            kept.write("spoilt")  # in place: what the worker sends beside the next epoch is its own copy


if __name__ == "__main__":
    main()
