from pathlib import Path

import numpy as np
import optuna
import tandem
from sweep import accuracy, train, training, validation


def objective(trial):
    weights, velocity = np.zeros((28 * 28, 10), np.float32), np.zeros((28 * 28, 10), np.float32)

    def save(path):
        with Path(path).open("wb") as file:
            np.savez(file, weights=weights, velocity=velocity)

    def restore(path):
        kept = np.load(path)
        weights[:], velocity[:] = kept["weights"], kept["velocity"]

    trial.restore(restore)
    for _ in trial.epochs():
        train(*training, weights, velocity, **trial.params)
        trial.report(accuracy=accuracy(*validation, weights))
        trial.checkpoint(save)


advice = optuna.load_study(study_name="clothes", storage="sqlite:///sweeps.db")
study = tandem.create_study("study.yaml", warm_start=advice)
study.optimize(objective)
print(len(study.trials), "trials, the best:", study.best_value, dict(study.best_params))
