"""Fashion-MNIST images from idx files: the full set where it is found, else the sample beside this file."""

from __future__ import annotations

import gzip
import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

import numpy as np
import torch

SAMPLE = Path(__file__).resolve().parent / "data"
FULL_SETS = (Path("/usr/share/datasets/fashion-mnist"),)  # Debian and Ubuntu: dataset-fashion-mnist
VALIDATION_OF_FULL_SET = 5_000
IMAGES_OF_FULL_SET = 20_000  # keeps the whole study to minutes on two cores; ask for more with --images

MEAN, DEVIATION = 0.2860, 0.3530  # of the training pixels, scaled to [0, 1]


@dataclass(frozen=True)
class Split:
    """Images as (N, 1, 28, 28) floats of mean 0 and deviation 1, and their labels."""

    images: torch.Tensor
    labels: torch.Tensor

    def __len__(self) -> int:
        return len(self.labels)

    def first(self, fraction: float) -> Split:
        """The first share of the split, so that a smaller share is part of every larger one."""
        count = max(1, round(len(self) * fraction))
        return Split(self.images[:count], self.labels[:count])


def load(images: Optional[int] = None) -> tuple[Split, Split, str]:
    """Training and validation split, and a sentence on where they come from.

    Both come from the training file: the test file stays untouched, since a
    search that picks the best of many trials would otherwise fit it.
    """
    full = find_full_set()
    if full is None:
        training = read_split(SAMPLE / "train-images-idx3-ubyte.gz", SAMPLE / "train-labels-idx1-ubyte.gz", 0, images)
        validation = read_split(SAMPLE / "validation-images-idx3-ubyte.gz", SAMPLE / "validation-labels-idx1-ubyte.gz")
        return training, validation, f"the sample in {SAMPLE.name}/"
    names = (full / "train-images-idx3-ubyte.gz", full / "train-labels-idx1-ubyte.gz")
    validation = read_split(*names, 0, VALIDATION_OF_FULL_SET)
    training = read_split(*names, VALIDATION_OF_FULL_SET, images or IMAGES_OF_FULL_SET)
    return training, validation, f"the full set in {full}"


def find_full_set() -> Optional[Path]:
    """The folder of the original files: FASHION_MNIST_DIR, or a known place.

    FASHION_MNIST_DIR=sample keeps to the sample.
    """
    named = os.environ.get("FASHION_MNIST_DIR")
    if named == "sample":
        return None
    if named:
        folder = Path(named)
        if not (folder / "train-images-idx3-ubyte.gz").exists():
            raise SystemExit(f"FASHION_MNIST_DIR is {named}, but there is no train-images-idx3-ubyte.gz in it")
        return folder
    return next((folder for folder in FULL_SETS if (folder / "train-images-idx3-ubyte.gz").exists()), None)


def read_split(images: Path, labels: Path, start: int = 0, count: Optional[int] = None) -> Split:
    pixels = torch.from_numpy(read_idx(images, start, count).astype(np.float32) / 255)
    return Split(
        images=((pixels - MEAN) / DEVIATION).unsqueeze(1),
        labels=torch.from_numpy(read_idx(labels, start, count).astype(np.int64)),
    )


def read_idx(path: Path, start: int = 0, count: Optional[int] = None) -> np.ndarray:
    """Items start to start + count of an idx file; what lies behind them is not even unpacked."""
    with gzip.open(path, "rb") as file:
        zero, kind, dimensions = struct.unpack(">HBB", file.read(4))
        if zero != 0 or kind != 0x08:
            raise ValueError(f"{path} is not an idx file of bytes")
        total, *shape = struct.unpack(f">{dimensions}I", file.read(4 * dimensions))
        size = int(np.prod(shape, dtype=np.int64))
        count = total - start if count is None else min(count, total - start)
        file.seek(start * size, os.SEEK_CUR)
        content = file.read(count * size)
    if len(content) != count * size:
        raise ValueError(f"{path} ends too early: {len(content)} bytes instead of {count * size}")
    return np.frombuffer(content, np.uint8).reshape(count, *shape)
