"""Gradient-boosted trees of LightGBM on Fashion-MNIST at half its width and height (Type III)."""

from __future__ import annotations

from functools import cache

import lightgbm
import numpy as np
import torch
from job import Job, Params, part, scale

ROUNDS = 3  # of boosting in an epoch, each with a tree for each class
IMAGES, CLASSES = 6_000, 10  # images for training, at scale 1


class Boosting(Job):
    """Epochs add rounds to the forest. A checkpoint is the forest as LightGBM writes it."""

    def __init__(self, params: Params) -> None:
        self.settings = {
            "objective": "multiclass",
            "num_class": CLASSES,
            "learning_rate": params["learning_rate"],
            "num_leaves": int(params["leaves"]),
            "feature_fraction": params["features"],
            "min_data_in_leaf": int(params["least_in_leaf"]),
            "seed": torch.initial_seed() % 2**31,
            "deterministic": True,
            "force_col_wise": True,
            "verbosity": -1,
        }
        self.forest: lightgbm.Booster | None = None

    def configure(self, system: Params) -> None:
        super().configure(system)
        if "cpu_threads" in system:
            self.settings["num_threads"] = int(system["cpu_threads"])

    def epoch(self) -> None:
        # LightGBM takes its threads when a booster is made, so each epoch makes one from the trees so far.
        pixels, labels = images("training")
        data = lightgbm.Dataset(pixels, labels, params={"verbosity": -1}, free_raw_data=False)
        grown = self.forest.current_iteration() if self.forest else 0
        settings = {**self.settings, "seed": (self.settings["seed"] + grown) % 2**31}
        self.forest = lightgbm.train(settings, data, ROUNDS, init_model=self.forest)

    def accuracy(self) -> float:
        return self.right("validation")

    def test_accuracy(self) -> float:
        return self.right("test")

    def right(self, which: str) -> float:
        pixels, labels = images(which)
        threads = {key: value for key, value in self.settings.items() if key == "num_threads"}
        return float((self.forest.predict(pixels, **threads).argmax(1) == labels).mean())

    def state(self) -> dict[str, torch.Tensor]:
        return {"forest": torch.frombuffer(bytearray(self.forest.model_to_string().encode()), dtype=torch.uint8)}

    def load(self, state: dict[str, torch.Tensor]) -> None:
        self.forest = lightgbm.Booster(model_str=bytes(state["forest"].tolist()).decode())


@cache  # loaded once by a process, whose trials only read it
def images(which: str) -> tuple[np.ndarray, np.ndarray]:
    """Means of squares of four pixels, as rows."""
    pixels, labels = part("fmnist", which)
    count = round(IMAGES * scale()) if which == "training" else len(labels)
    squares = np.asarray(pixels[:count], dtype=np.float32).reshape(count, 14, 2, 14, 2)
    return squares.mean((2, 4)).reshape(count, -1), np.array(labels[:count])
