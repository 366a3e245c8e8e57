"""The examples, run as a worker runs them. What the machine lacks is skipped, and said."""

from __future__ import annotations

import importlib.util
import json
import math
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from fake_agent import climb

import tandem

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
CLIENT = Path(tandem.__file__).resolve().parent.parent


def run(example: str, ladder: list[tuple[int, float]], params: dict[str, Any], monkeypatch: Any) -> list[Any]:
    monkeypatch.chdir(EXAMPLES / example)
    monkeypatch.setenv("PYTHONPATH", str(CLIENT))
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    trial = {"params": params, "system": {"cpu_threads": 1}, "seed": 11, "objectives": ["accuracy"]}
    return climb([sys.executable, "train.py"], ladder, trial)


@pytest.mark.skipif(importlib.util.find_spec("sklearn") is None, reason="scikit-learn is not installed")
def test_digits_resumes_as_if_it_had_never_paused(monkeypatch: pytest.MonkeyPatch) -> None:
    params = {"hidden_units": 32, "learning_rate": 0.1, "batch_size": 16, "l2": 1e-4}
    climbed = run("digits-sklearn", [(1, 1.0), (3, 1.0), (5, 1.0)], params, monkeypatch)
    straight = run("digits-sklearn", [(5, 1.0)], params, monkeypatch)
    assert [r["epoch"] for r in climbed] == [1, 2, 3, 4, 5]
    assert climbed == straight
    assert straight[-1]["metrics"]["accuracy"] > 0.85


def test_the_quick_start_resumes_as_if_it_had_never_paused(monkeypatch: pytest.MonkeyPatch) -> None:
    params = {"hidden_units": 8, "learning_rate": 0.3, "momentum": 0.5, "batch_size": 8}
    climbed = run("quick-start", [(1, 1.0), (3, 1.0), (9, 1.0)], params, monkeypatch)
    straight = run("quick-start", [(9, 1.0)], params, monkeypatch)
    assert climbed == straight
    assert straight[-1]["metrics"]["accuracy"] > 0.8


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed")
def test_lenet_resumes_as_if_it_had_never_paused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FASHION_MNIST_DIR", "sample")
    monkeypatch.setenv("FASHION_MNIST_IMAGES", "1000")
    params = {
        "learning_rate": 0.002,
        "learning_rate_decay": 0.9,
        "batch_size": 32,
        "conv_channels": 6,
        "dropout": 0.1,
    }
    climbed = run("lenet-fashion-mnist", [(1, 1.0), (2, 1.0), (4, 1.0)], params, monkeypatch)
    straight = run("lenet-fashion-mnist", [(4, 1.0)], params, monkeypatch)
    assert [r["epoch"] for r in climbed] == [1, 2, 3, 4]
    assert climbed == straight
    assert straight[-1]["metrics"]["accuracy"] > 0.6


def needs(*modules: str) -> None:
    for module in modules:
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed")


def test_xgboost_resumes_as_if_it_had_never_paused(monkeypatch: pytest.MonkeyPatch) -> None:
    needs("xgboost", "sklearn")
    params = {"learning_rate": 0.3, "max_depth": 3, "subsample": 0.7, "min_child_weight": 1.0}
    climbed = run("xgboost-digits", [(1, 1.0), (3, 1.0)], params, monkeypatch)
    straight = run("xgboost-digits", [(3, 1.0)], params, monkeypatch)
    assert [r["epoch"] for r in climbed] == [1, 2, 3]
    for one, other in zip(climbed, straight):
        assert one["metrics"] == pytest.approx(other["metrics"], abs=1e-5)
    assert straight[-1]["metrics"]["accuracy"] > 0.85


def test_keras_goes_on_from_its_checkpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    needs("keras", "jax", "sklearn")
    params = {"units": 48, "layers": 2, "dropout": 0.2, "learning_rate": 0.01, "batch_size": 32}
    first, second = (r["metrics"] for r in run("keras-digits", [(1, 1.0), (2, 1.0)], params, monkeypatch))
    assert second["loss"] < 0.8 * first["loss"]  # another first epoch would leave it as it was
    assert second["accuracy"] > 0.8


def test_a_c_plus_plus_program_resumes_from_its_file(tmp_path: Path) -> None:
    for command in ("make", "g++", "gzip"):
        if shutil.which(command) is None:
            pytest.skip(f"there is no {command}")
    # Built in a folder of its own: what is in the example's may be of another machine.
    folder = tmp_path / "examples" / "cplusplus"
    shutil.copytree(EXAMPLES / "cplusplus", folder, ignore=shutil.ignore_patterns("build"))
    shutil.copytree(EXAMPLES / "lenet-fashion-mnist" / "data", tmp_path / "examples" / "lenet-fashion-mnist" / "data")
    subprocess.run(["make", "--silent"], cwd=folder, check=True)

    def epochs(first: int, last: int, state: Path) -> list[dict[str, float]]:
        state.mkdir(exist_ok=True)
        values = {"hidden_units": 16, "learning_rate": 0.05, "momentum": 0.9, "batch_size": 32, "weight_decay": 1e-4}
        return reported(
            {
                **os.environ,
                "TANDEM_PARAMS": json.dumps(values),
                "TANDEM_FIRST_EPOCH": str(first),
                "TANDEM_EPOCHS": str(last),
                "TANDEM_DATA_FRACTION": "0.5",
                "TANDEM_SEED": str(2**64 - 1),
                "TANDEM_CHECKPOINT_DIR": str(state),
            },
            ["build/train"],
            folder,
        )

    one, other = tmp_path / "one", tmp_path / "other"
    climbed = epochs(1, 1, one) + epochs(2, 3, one)
    assert climbed == epochs(1, 3, other)
    assert [p.name for p in one.iterdir()] == ["state"]
    assert climbed[-1]["accuracy"] > 0.7


def test_any_language_resumes_from_its_file(tmp_path: Path) -> None:
    def epochs(first: int, last: int, folder: Path) -> list[dict[str, float]]:
        folder.mkdir(exist_ok=True)
        environment = {
            **os.environ,
            "TANDEM_PARAMS": '{"learning_rate": 1e-3, "momentum": 0.9}',
            "TANDEM_FIRST_EPOCH": str(first),
            "TANDEM_EPOCHS": str(last),
            "TANDEM_CHECKPOINT_DIR": str(folder),
        }
        return reported(environment)

    one, other = tmp_path / "one", tmp_path / "other"
    climbed = epochs(1, 1, one) + epochs(2, 3, one) + epochs(4, 9, one)
    assert climbed == epochs(1, 9, other)
    assert [r["epoch"] for r in climbed] == list(range(1, 10))
    assert [p.name for p in one.iterdir()] == ["state"]
    assert climbed[-1]["loss"] < climbed[0]["loss"]


def test_any_language_says_when_it_diverges() -> None:
    (report,) = reported(
        {**os.environ, "TANDEM_PARAMS": '{"momentum":0.99,"learning_rate":0.01}', "TANDEM_EPOCHS": "1"}
    )
    assert math.isnan(report["loss"])


def reported(
    environment: dict[str, str],
    command: Sequence[str] = ("sh", "train.sh"),
    folder: Path = EXAMPLES / "any-language",
) -> list[dict[str, float]]:
    """The lines a worker would take for reports."""
    out = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in out.stdout.splitlines() if line.startswith("{")]


def test_the_sample_is_what_the_readme_says() -> None:
    labels = read_labels("train"), read_labels("validation")
    assert [len(split) for split in labels] == [6000, 1200]
    for split in labels:
        assert {split.count(label) for label in range(10)} == {len(split) // 10}
        assert set(split[:200]) == set(range(10))  # any prefix holds every class


def read_labels(split: str) -> bytes:
    import gzip

    path = EXAMPLES / "lenet-fashion-mnist" / "data" / f"{split}-labels-idx1-ubyte.gz"
    return gzip.decompress(path.read_bytes())[8:]
