"""A small ResNet on a GPU, on Fashion-MNIST or CIFAR-10: threads, loader workers, precision and power to tune.

CIFAR-10 is used if PIPETUNE_CIFAR names the folder with data_batch_1 and so on; it is in no package.
"""

from __future__ import annotations

import os
import pickle
from functools import cache
from pathlib import Path

import numpy as np
import torch
from job import Job, Params, part, scale
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

IMAGES = 24_000  # for training, at scale 1
HELD_OUT = 5_000  # CIFAR-10's last training images, for validation


class Block(nn.Module):
    """Two convolutions and a shortcut (He et al. 2016)."""

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(before, after, 3, stride, 1, bias=False),
            nn.BatchNorm2d(after),
            nn.ReLU(),
            nn.Conv2d(after, after, 3, 1, 1, bias=False),
            nn.BatchNorm2d(after),
        )
        same = stride == 1 and before == after
        self.shortcut = nn.Identity() if same else nn.Conv2d(before, after, 1, stride, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (self.body(x) + self.shortcut(x)).relu()


class Images(Dataset):
    """Images that are cropped and flipped at random by whoever loads them."""

    def __init__(self, pixels: np.ndarray, labels: np.ndarray, augment: bool) -> None:
        self.pixels, self.labels, self.augment = pixels, labels, augment

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, at: int) -> tuple[torch.Tensor, int]:
        image = torch.from_numpy(np.array(self.pixels[at])).float().sub_(110.0).div_(70.0)
        if self.augment:
            height, width = image.shape[1:]
            image = functional.pad(image, (3, 3, 3, 3))
            top, left = torch.randint(7, (2,)).tolist()
            image = image[:, top : top + height, left : left + width]
            image = image.flip(2) if torch.rand(()) < 0.5 else image
        return image, int(self.labels[at])


class ResNet(Job):
    """ResNet with 3 stages of 2 blocks, trained by SGD."""

    def __init__(self, params: Params) -> None:
        self.device = device()
        self.parts = parts()
        channels = self.parts["training"].pixels.shape[1]
        stages = [Block(64, 64, 1), Block(64, 64, 1), Block(64, 128, 2)]
        stages += [Block(128, 128, 1), Block(128, 256, 2), Block(256, 256, 1)]
        head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, 10)]
        self.model = nn.Sequential(nn.Conv2d(channels, 64, 3, 1, 1), *stages, *head).to(self.device)
        self.optimizer = torch.optim.SGD(
            self.model.parameters(), lr=params["learning_rate"], momentum=0.9, weight_decay=params["weight_decay"]
        )
        self.batch_size = int(params["batch_size"])
        self.workers, self.precision = 0, "fp32"

    def configure(self, system: Params) -> None:
        super().configure(system)
        self.workers = int(system.get("loader_workers", self.workers))
        self.precision = str(system.get("precision", self.precision))

    def passes(self, which: str, training: bool) -> DataLoader:
        return DataLoader(
            self.parts[which],
            self.batch_size,
            shuffle=training,
            num_workers=self.workers,
            pin_memory=self.device.type == "cuda",
        )

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.precision == "bf16"):
            return self.model(images.to(self.device, non_blocking=True))

    def epoch(self) -> None:
        self.model.train()
        for images, labels in self.passes("training", True):
            loss = functional.cross_entropy(self.forward(images).float(), labels.to(self.device, non_blocking=True))
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()

    def accuracy(self) -> float:
        return self.right("validation")

    def test_accuracy(self) -> float:
        return self.right("test")

    @torch.no_grad()
    def right(self, which: str) -> float:
        self.model.eval()
        found = [(self.forward(images).argmax(1).cpu() == labels).sum() for images, labels in self.passes(which, False)]
        return torch.stack(found).sum().item() / len(self.parts[which])

    def state(self) -> dict[str, torch.Tensor]:
        state = {f"model/{name}": value.cpu() for name, value in self.model.state_dict().items()}
        for place, moments in self.optimizer.state_dict()["state"].items():
            state[f"momentum/{place}"] = moments["momentum_buffer"].cpu()
        state["generator"] = torch.get_rng_state()
        return state

    def load(self, state: dict[str, torch.Tensor]) -> None:
        named = {name.removeprefix("model/"): value for name, value in state.items() if name.startswith("model/")}
        self.model.load_state_dict(named)
        moments = {
            int(name.removeprefix("momentum/")): {"momentum_buffer": value.to(self.device)}
            for name, value in state.items()
            if name.startswith("momentum/")
        }
        self.optimizer.load_state_dict({**self.optimizer.state_dict(), "state": moments})
        torch.set_rng_state(state["generator"])


def device() -> torch.device:
    """The GPU; the CPU only for those who ask for it with PIPETUNE_DEVICE=cpu, to try the script."""
    wanted = os.environ.get("PIPETUNE_DEVICE", "cuda")
    if wanted == "cuda" and not torch.cuda.is_available():
        raise SystemExit("resnet needs a GPU, and this PyTorch sees none (torch.cuda.is_available() is False)")
    return torch.device(wanted)


@cache  # loaded once by a process, whose trials only read it
def parts() -> dict[str, Images]:
    folder = os.environ.get("PIPETUNE_CIFAR")
    loaded = cifar(Path(folder)) if folder else {which: grey(which) for which in ("training", "validation", "test")}
    pixels, labels = loaded["training"]
    count = round(IMAGES * scale())
    loaded["training"] = pixels[:count], labels[:count]
    return {which: Images(*arrays, augment=which == "training") for which, arrays in loaded.items()}


def grey(which: str) -> tuple[np.ndarray, np.ndarray]:
    pixels, labels = part("fmnist", which)
    return np.array(pixels)[:, None], np.array(labels)


def cifar(folder: Path) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """CIFAR-10's own pickles are read: take them from a place you trust."""

    def batch(name: str) -> tuple[np.ndarray, np.ndarray]:
        with (folder / name).open("rb") as file:
            content = pickle.load(file, encoding="bytes")
        return content[b"data"].reshape(-1, 3, 32, 32), np.array(content[b"labels"])

    batches = [batch(f"data_batch_{number}") for number in range(1, 6)]
    pixels, labels = (np.concatenate(arrays) for arrays in zip(*batches))
    return {
        "training": (pixels[:-HELD_OUT], labels[:-HELD_OUT]),
        "validation": (pixels[-HELD_OUT:], labels[-HELD_OUT:]),
        "test": batch("test_batch"),
    }
