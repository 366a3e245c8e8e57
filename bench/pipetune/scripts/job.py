"""What every workload of the benchmark is: something trained epoch by epoch, whoever drives it."""

from __future__ import annotations

import ctypes
import os
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

import numpy as np
import torch

Params = dict[str, Any]


class Job(ABC):
    """One configuration in training. Equal parameters, seed and data give equal results."""

    def configure(self, system: Params) -> None:
        """Follow the system parameters that the script applies itself, before an epoch."""
        if "cpu_threads" in system:
            use_threads(int(system["cpu_threads"]))

    @abstractmethod
    def epoch(self) -> None:
        """Train one epoch; the n-th call trains the n-th epoch, however many follow."""

    @abstractmethod
    def accuracy(self) -> float:
        """How good it is on the validation part, from 0 to 1, more is better."""

    @abstractmethod
    def test_accuracy(self) -> float:
        """The same on the test part, which no search ever sees."""

    @abstractmethod
    def state(self) -> dict[str, torch.Tensor]:
        """Everything the next epoch needs, as tensors."""

    @abstractmethod
    def load(self, state: dict[str, torch.Tensor]) -> None:
        """Continue from a state."""


def create(workload: str, params: Params, seed: int) -> Job:
    """The workload's job. Its module is imported here, so that nobody pays for the others."""
    torch.manual_seed(seed % 2**63)
    if workload.startswith("lenet-"):
        from lenet import LeNet

        return LeNet(workload.removeprefix("lenet-"), params)
    if workload.startswith("text-"):
        from text import Text

        return Text(workload, params)
    if workload == "jacobi":
        from jacobi import Jacobi

        return Jacobi(params)
    if workload == "kmeans":
        from kmeans import KMeans

        return KMeans(params)
    if workload == "boosting":
        from boosting import Boosting

        return Boosting(params)
    if workload == "bfs":
        from bfs import Landmarks

        return Landmarks(params)
    if workload == "resnet":
        from resnet import ResNet

        return ResNet(params)
    raise SystemExit(f"there is no workload {workload}")


def data_folder() -> Path:
    """Where data.sh has put the arrays."""
    default = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tandem" / "pipetune"
    return Path(os.environ.get("PIPETUNE_DATA") or default)


def part(name: str, which: str) -> tuple[np.ndarray, np.ndarray]:
    """The inputs and labels of one part of a data set, mapped from their files: copy what is used."""
    folder = data_folder()
    try:
        return (
            np.load(folder / f"{name}-{which}-inputs.npy", mmap_mode="r"),
            np.load(folder / f"{name}-{which}-labels.npy", mmap_mode="r"),
        )
    except FileNotFoundError as missing:
        raise SystemExit(f"{missing.filename} is missing: run bench/pipetune/data.sh {folder}") from missing


def scale() -> float:
    """How long an epoch is: more images, or more passes or steps. 1 is half a second of a slow core, or less."""
    return float(os.environ.get("PIPETUNE_SCALE") or 1)


def use_threads(count: int) -> None:
    """Let PyTorch and the BLAS behind it compute with so many threads from now on."""
    torch.set_num_threads(count)
    for path in loaded_blas():
        setter = getattr(ctypes.CDLL(path), "openblas_set_num_threads", None)
        if setter:
            setter(count)


def loaded_blas() -> set[str]:
    """The OpenBLAS libraries in this process: torch.set_num_threads does not reach them."""
    try:
        lines = Path("/proc/self/maps").read_text().splitlines()
    except OSError:
        return set()
    return {line.split(maxsplit=5)[5] for line in lines if "openblas" in line}
