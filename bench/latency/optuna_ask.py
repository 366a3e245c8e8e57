"""How long Optuna's default sampler takes to suggest a whole configuration, in memory.

python bench/latency/optuna_ask.py --trials 10000 --parameters 10
"""

import argparse
import random
import time

import optuna


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=10_000)
    parser.add_argument("--parameters", type=int, default=10)
    parser.add_argument("--samples", type=int, default=30)
    args = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    drawn = random.Random(1)
    space = {f"x{i:02d}": optuna.distributions.FloatDistribution(-5, 5) for i in range(args.parameters)}
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=1))
    for _ in range(args.trials):
        params = {name: drawn.uniform(-5, 5) for name in space}
        value = sum((x - 1) ** 2 for x in params.values())
        study.add_trial(optuna.trial.create_trial(params=params, distributions=space, value=value))
    times = []
    for _ in range(args.samples):
        started = time.perf_counter()
        trial = study.ask(space)
        times.append(time.perf_counter() - started)
        study.tell(trial, sum((x - 1) ** 2 for x in trial.params.values()))
    times.sort()
    p50, p99 = (
        times[len(times) // 2],
        times[min(int(0.99 * len(times)), len(times) - 1)],
    )
    print(
        f"| Optuna {optuna.__version__} TPE, {args.parameters} parameters, in memory | {args.trials} "
        f"| {1000 * p50:.1f} ms | {1000 * p99:.1f} ms | {1000 * times[-1]:.1f} ms | |"
    )


if __name__ == "__main__":
    main()
