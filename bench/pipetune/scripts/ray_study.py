"""Ray Tune on a workload: its BOHB search with its Hyperband for BOHB, everything else at its default.

Ray starts a process for each run of a trial and gives it one core and one thread; as many run at once
as there are cores. A line for each epoch goes to --out, and the study stops when there are as many as
the budget has.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any


def main() -> None:
    options = arguments()
    import ray
    from ray import tune
    from ray.tune.schedulers.hb_bohb import HyperBandForBOHB
    from ray.tune.search.bohb import TuneBOHB

    kept = {name: value for name, value in os.environ.items() if name.startswith("PIPETUNE_")}
    scripts = str(Path(__file__).resolve().parent)
    ray.init(
        include_dashboard=False,
        log_to_driver=False,
        logging_level="ERROR",
        runtime_env={"env_vars": {"PYTHONPATH": scripts, **kept}},
    )

    class Spent(tune.Stopper):
        def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
            return False

        def stop_all(self) -> bool:
            return spent(options.out, options.budget)

    job = {"workload": options.workload, "epochs": options.epochs, "out": str(options.out), "seed": options.seed}
    tuner = tune.Tuner(
        tune.with_parameters(train, job=job),
        param_space={parameter["name"]: domain(parameter) for parameter in options.space},
        tune_config=tune.TuneConfig(
            metric="accuracy",
            mode="max",
            search_alg=TuneBOHB(seed=options.seed),
            scheduler=HyperBandForBOHB(
                time_attr="training_iteration", max_t=options.epochs, reduction_factor=options.eta
            ),
            num_samples=options.budget,
        ),
        run_config=tune.RunConfig(verbose=0, storage_path=tempfile.mkdtemp(prefix="ray-"), stop=Spent()),
    )
    try:
        tuner.fit()
    except RuntimeError:
        # Ray cannot list its results when a trial was still to start at the end.
        if not spent(options.out, options.budget):
            raise
    ray.shutdown()


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workload", required=True)
    parser.add_argument("--space", type=json.loads, required=True, help="JSON list of parameters")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--budget", type=int, required=True, help="epochs in all")
    parser.add_argument("--epochs", type=int, required=True, help="of a full training")
    parser.add_argument("--eta", type=int, required=True)
    parser.add_argument("--out", type=Path, required=True)
    return parser.parse_args()


def domain(parameter: dict[str, Any]) -> Any:
    from ray import tune

    if parameter["type"] == "ordinal":
        return tune.choice(parameter["values"])
    low, high = parameter["low"], parameter["high"]
    if parameter["type"] == "int":
        return (tune.lograndint if parameter.get("log") else tune.randint)(int(low), int(high) + 1)
    return (tune.loguniform if parameter.get("log") else tune.uniform)(low, high)


def train(config: dict[str, Any], job: dict[str, Any]) -> None:
    import torch
    from job import create
    from ray import tune

    number = int(tune.get_context().get_trial_id().split("_")[0], 16)
    config = {key: value.item() if hasattr(value, "item") else value for key, value in config.items()}
    training = create(job["workload"], config, job["seed"] * 1_000_003 + number)
    first = 1
    checkpoint = tune.get_checkpoint()
    if checkpoint:
        with checkpoint.as_directory() as folder:
            state = torch.load(Path(folder) / "state", weights_only=True)
        first = int(state.pop("epoch")) + 1
        training.load(state)
    for epoch in range(first, job["epochs"] + 1):
        start = time.monotonic()
        training.epoch()
        accuracy = training.accuracy()
        line = {
            "at": time.time(),
            "trial": number,
            "epoch": epoch,
            "accuracy": accuracy,
            "seconds": time.monotonic() - start,
            "params": config,
            "threads": torch.get_num_threads(),
        }
        with Path(job["out"]).open("ab", buffering=0) as file:
            file.write(json.dumps(line).encode() + b"\n")
        with tempfile.TemporaryDirectory() as folder:
            torch.save({**training.state(), "epoch": torch.tensor(epoch)}, Path(folder) / "state")
            tune.report({"accuracy": accuracy}, checkpoint=tune.Checkpoint.from_directory(folder))


def spent(path: Path, budget: int) -> bool:
    return path.exists() and path.read_bytes().count(b"\n") >= budget


if __name__ == "__main__":
    sys.exit(main())
