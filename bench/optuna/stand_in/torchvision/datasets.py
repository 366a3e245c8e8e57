"""torchvision.datasets.FashionMNIST, from examples/lenet-fashion-mnist/data."""

from __future__ import annotations

import functools
import gzip
from pathlib import Path
from typing import Any, Callable, Optional

import numpy as np

SAMPLE = Path(__file__).resolve().parents[4] / "examples" / "lenet-fashion-mnist" / "data"


class FashionMNIST:
    """The images, as bytes of 28 by 28, and their labels; those of the sample, whatever the root.

    A transform is applied once to each image and not at every access, as ToTensor always answers the same.
    """

    def __init__(
        self, root: object, train: bool = True, download: bool = False, transform: Optional[Callable[[Any], Any]] = None
    ) -> None:
        images, self._labels = _read("train" if train else "validation")
        self._images = images if transform is None else _transformed(type(transform), train)

    def __len__(self) -> int:
        return len(self._labels)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        return self._images[index], self._labels[index]


@functools.cache
def _read(name: str) -> tuple[np.ndarray, list[int]]:
    images = gzip.decompress((SAMPLE / f"{name}-images-idx3-ubyte.gz").read_bytes())[16:]
    labels = gzip.decompress((SAMPLE / f"{name}-labels-idx1-ubyte.gz").read_bytes())[8:]
    return np.frombuffer(images, np.uint8).reshape(-1, 28, 28), np.frombuffer(labels, np.uint8).tolist()


@functools.cache
def _transformed(transform: type, train: bool) -> list[Any]:
    apply = transform()
    return [apply(image) for image in _read("train" if train else "validation")[0]]
