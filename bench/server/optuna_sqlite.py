"""The same work for Optuna: trials that cost nothing, its SQLite storage, its
default TPE sampler, several processes. Prints one line of JSON.

    python bench/server/optuna_sqlite.py --database /tmp/optuna.db --trials 200 --workers 2
"""

import argparse
import json
import multiprocessing
import time

import optuna


def objective(trial: "optuna.Trial") -> float:
    x = trial.suggest_float("x", -5, 5)
    trial.suggest_float("y", 1e-5, 1, log=True)
    trial.suggest_int("z", 1, 64)
    trial.suggest_categorical("c", ["a", "b", "c"])
    trial.report(x * x, 1)
    return x * x


def work(storage: str, trials: int, seed: int) -> None:
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    sampler = optuna.samplers.TPESampler(seed=seed)
    optuna.load_study(study_name="nothing-to-train", storage=storage, sampler=sampler).optimize(
        objective, n_trials=trials
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--database", required=True)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    storage = f"sqlite:///{args.database}"
    optuna.create_study(study_name="nothing-to-train", storage=storage)
    share = args.trials // args.workers
    processes = [multiprocessing.Process(target=work, args=(storage, share, i)) for i in range(args.workers)]
    start = time.monotonic()
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    seconds = time.monotonic() - start
    done = len(
        optuna.load_study(study_name="nothing-to-train", storage=storage).get_trials(
            states=[optuna.trial.TrialState.COMPLETE]
        )
    )
    if done != share * args.workers:
        raise SystemExit(f"{done} of {share * args.workers} trials were completed")
    print(
        json.dumps(
            {
                "tool": "optuna",
                "version": optuna.__version__,
                "trials": done,
                "workers": args.workers,
                "seconds": seconds,
                "trials_per_second": done / seconds,
            }
        )
    )


if __name__ == "__main__":
    main()
