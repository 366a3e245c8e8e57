"""Pack the raw data as NumPy arrays: a training, a validation and a test part of each set.

data.sh calls it. Everything is deterministic: the same packages give the same bytes.
"""

from __future__ import annotations

import argparse
import gzip
import re
import struct
from collections import Counter
from pathlib import Path

import numpy as np

TRAINING_IMAGES, VALIDATION_IMAGES, TEST_IMAGES = 48_000, 2_000, 5_000

# Files of the package fortunes with at least 450 sayings and a subject or a
# voice of their own. The category of a saying is the file it is in.
CATEGORIES = (
    "art",
    "computers",
    "definitions",
    "knghtbrd",
    "men-women",
    "people",
    "platitudes",
    "politics",
    "science",
    "songs-poems",
    "work",
    "zippy",
)
# A graph for the searches: every node knows the next ones on a ring and, by
# shuffles that move nodes little or far, six others.
NODES, SHUFFLES = 80_000, (30, 300, 3_000)
PAIR_SOURCES, PAIR_TARGETS = 20, 200

WORDS, LENGTH = 4_000, 32  # size of the vocabulary, and words of a saying that are read


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("out", "fashion", "mnist", "fortunes"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    options = parser.parse_args()
    for name, folder in (("fmnist", options.fashion), ("mnist", options.mnist)):
        save(options.out, name, images(folder))
    save(options.out, "fortunes", sayings(options.fortunes))
    for name, array in graph().items():
        np.save(options.out / f"graph-{name}.npy", array)
    print(options.out)


def save(out: Path, name: str, parts: dict[str, tuple[np.ndarray, np.ndarray]]) -> None:
    for part, (inputs, labels) in parts.items():
        np.save(out / f"{name}-{part}-inputs.npy", inputs)
        np.save(out / f"{name}-{part}-labels.npy", labels)


def images(folder: Path) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Training and validation from the training file, the test from the test file."""
    pixels, labels = read_idx(folder, "train-images-idx3-ubyte"), read_idx(folder, "train-labels-idx1-ubyte")
    kept = TRAINING_IMAGES + VALIDATION_IMAGES
    training, validation = slice(0, TRAINING_IMAGES), slice(TRAINING_IMAGES, kept)
    test = read_idx(folder, "t10k-images-idx3-ubyte"), read_idx(folder, "t10k-labels-idx1-ubyte")
    return {
        "training": (pixels[training], labels[training].astype(np.int64)),
        "validation": (pixels[validation], labels[validation].astype(np.int64)),
        "test": (test[0][:TEST_IMAGES], test[1][:TEST_IMAGES].astype(np.int64)),
    }


def read_idx(folder: Path, name: str) -> np.ndarray:
    packed = folder / f"{name}.gz"
    content = gzip.decompress(packed.read_bytes()) if packed.exists() else (folder / name).read_bytes()
    _, kind, dimensions = struct.unpack(">HBB", content[:4])
    if kind != 0x08:
        raise SystemExit(f"{folder / name} is not an idx file of bytes")
    shape = struct.unpack(f">{dimensions}I", content[4 : 4 + 4 * dimensions])
    return np.frombuffer(content, np.uint8, offset=4 + 4 * dimensions).reshape(shape)


def sayings(folder: Path) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Each saying as the numbers of its first words, 0 behind its end, 1 for a rare word."""
    texts, labels = [], []
    for number, category in enumerate(CATEGORIES):
        content = (folder / category).read_bytes().decode("utf-8", "replace")
        unique = dict.fromkeys(re.split(r"\n%\n", content))
        found = [words for text in unique if len(words := re.findall(r"[a-z']+|[0-9]+|[!?.]", text.lower())) >= 4]
        texts += found
        labels += [number] * len(found)
    order = np.random.default_rng(20_000).permutation(len(texts))
    first, second = int(0.64 * len(order)), int(0.82 * len(order))
    parts = {"training": order[:first], "validation": order[first:second], "test": order[second:]}
    counts = Counter(word for at in parts["training"] for word in texts[at])
    numbers = {word: at + 2 for at, (word, _) in enumerate(counts.most_common(WORDS - 2))}
    rows = np.zeros((len(texts), LENGTH), np.int64)
    for at, words in enumerate(texts):
        line = [numbers.get(word, 1) for word in words[:LENGTH]]
        rows[at, : len(line)] = line
    every = np.array(labels, np.int64)
    return {part: (rows[at], every[at]) for part, at in parts.items()}


def graph() -> dict[str, np.ndarray]:
    """Lists of neighbours, and pairs of nodes with their distance."""
    generator = np.random.default_rng(1959)
    ring = np.arange(NODES)
    columns = [(ring + 1) % NODES, (ring - 1) % NODES]
    for reach in SHUFFLES:
        there = np.argsort(ring + reach * generator.random(NODES))
        columns += [there, np.argsort(there)]  # both ways, so that distances are the same both ways
    neighbours = np.stack(columns, 1).astype(np.int64)
    return {
        "neighbours": neighbours,
        "validation": pairs(neighbours, generator),
        "test": pairs(neighbours, generator),
    }


def pairs(neighbours: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    rows = []
    for source in generator.choice(NODES, PAIR_SOURCES, replace=False):
        distances = hops(neighbours, source)
        targets = generator.choice(np.flatnonzero(distances), PAIR_TARGETS, replace=False)
        rows += [(source, target, distances[target]) for target in targets]
    return np.array(rows, np.int64)


def hops(neighbours: np.ndarray, source: int) -> np.ndarray:
    distances = np.full(len(neighbours), -1)
    frontier, hop = np.array([source]), 0
    while len(frontier):
        distances[frontier] = hop
        reached = np.unique(neighbours[frontier])
        frontier, hop = reached[distances[reached] < 0], hop + 1
    return distances


if __name__ == "__main__":
    main()
