"""Tune a support vector machine in this process, the way Optuna's users know it.

Needs scikit-learn, and a server: TANDEM_SERVER=local starts one. Started twice,
the two share the study's trials.
"""

from __future__ import annotations

import tandem
from sklearn.datasets import load_digits
from sklearn.model_selection import cross_val_score
from sklearn.svm import SVC

DEFINITION = {
    "name": "svm-in-process",
    "description": "A support vector machine on handwritten digits, trained where the study is driven from",
    "objective": [{"metric": "accuracy", "direction": "maximize"}],
    "space": {
        "C": {"kind": "training", "type": "float", "low": 0.01, "high": 1000.0, "log": True},
        "gamma": {"kind": "training", "type": "float", "low": 1e-5, "high": 1.0, "log": True},
    },
    # The objective has no epochs to stop between, so the ladder has one rung.
    "budget": {"policy": "dataset", "epochs": {"min": 1, "max": 1}, "data_fraction": {"min": 1.0, "max": 1.0}},
    "search": {"method": "bohb", "seed": 7},
    "stop": {"trials": 30},
}

IMAGES, LABELS = load_digits(return_X_y=True)


def objective(trial: tandem.Trial) -> float:
    model = SVC(
        C=trial.suggest_float("C", 0.01, 1000, log=True),
        gamma=trial.suggest_float("gamma", 1e-5, 1, log=True),
    )
    return float(cross_val_score(model, IMAGES / 16.0, LABELS, cv=3).mean())


def show(study: tandem.Study, trial: tandem.TrialRecord) -> None:
    print(f"trial {trial.number:2}: accuracy {trial.value:.4f}  {dict(trial.params)}", flush=True)


def main() -> None:
    study = tandem.create_study(DEFINITION, load_if_exists=True)
    study.optimize(objective, n_jobs=2, callbacks=[show])
    print(f"\nbest accuracy {study.best_value:.4f} with {dict(study.best_params)}")
    for note in study.recommendation().notes:
        print(f"  {note}")


if __name__ == "__main__":
    main()
