"""A script that trains for a moment, on a network that was written before."""

import os
import time
from pathlib import Path

import tandem


def main() -> None:
    for trial in tandem.trials():
        began = time.monotonic()
        trial.save_model(Path(os.environ["NETWORKS"]) / f"{trial.params['network']}.onnx")
        for epoch in trial.epochs():
            time.sleep(float(os.environ["EPOCH"]))
            trial.report(waited=time.monotonic() - began - epoch * float(os.environ["EPOCH"]))


if __name__ == "__main__":
    main()
