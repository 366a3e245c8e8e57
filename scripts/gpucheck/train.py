"""The trainings of the check: small nets on made-up, learnable data, in PyTorch.

Each says in a file of its own when it did what, by which process and on which GPU (GPU_CHECK_NOTES). Without a GPU they
train on the CPU, and tell the double of NVIDIA's driver that the end-to-end tests use what they would hold there.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Callable, Optional

import tandem
import torch
from tandem.model import to_onnx
from torch import nn
from torch.nn import functional

CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda", 0) if CUDA else torch.device("cpu")
GIB = 1 << 30


class Notes:
    def __init__(self, study: str, number: int) -> None:
        self.folder, self.study, self.number = Path(os.environ["GPU_CHECK_NOTES"]), study, number
        self._path = self.folder / f"{study}.{number}.{os.getpid()}.jsonl"

    def write(self, kind: str, **fields: Any) -> None:
        line = json.dumps({"kind": kind, "at": time.time(), "number": self.number, "pid": os.getpid(), **fields})
        with self._path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")

    def others(self, kind: str) -> int:
        """How many other trials of the study have written such a note."""
        found = set()
        for path in self.folder.glob(f"{self.study}.*.jsonl"):
            number = path.name.split(".")[1]
            if number != str(self.number) and f'"kind": "{kind}"' in path.read_text(encoding="utf-8"):
                found.add(number)
        return len(found)


def pretend(percent: float, mebibytes: float) -> None:
    """Have the double of the driver tell that this process is on its GPU."""
    path = double()
    if path:
        new = path.with_suffix(".new")
        new.write_text(f"0 {percent:.0f} {mebibytes:.0f}", encoding="ascii")
        new.replace(path)


def double() -> Optional[Path]:
    """Where the double of the driver looks for what this process uses; None where it computes on a GPU."""
    folder = os.environ.get("GPU_CHECK_DOUBLE")
    return Path(folder) / str(os.getpid()) if folder and not CUDA else None


def synchronize() -> None:
    if CUDA:
        torch.cuda.synchronize()


def mixture(count: int, width: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Points around ten centers, which the seed does not move."""
    centers = torch.randn(10, width, generator=torch.Generator().manual_seed(7))
    random = torch.Generator().manual_seed(seed)
    labels = torch.randint(10, (count,), generator=random)
    return (centers[labels] + 3 * torch.randn(count, width, generator=random)), labels


class Small:
    """A network of two layers. An epoch takes the given seconds, with the GPU busy for a part of that."""

    def __init__(self, trial: tandem.Trial, notes: Notes) -> None:
        self._seconds, self._duty = float(trial.params["seconds"]), float(trial.params["duty"])
        width, batch = (4096, 8192) if CUDA else (128, 256)
        self._held = torch.empty(
            int(float(trial.params["hold_gib"]) * GIB), dtype=torch.uint8, device=DEVICE if CUDA else "meta"
        )
        self._inputs, self._labels = (one.to(DEVICE) for one in mixture(batch, width, 1))
        self._others, self._answers = (one.to(DEVICE) for one in mixture(1000, width, 2))
        self._net = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10)).to(DEVICE)
        self._optimizer = torch.optim.SGD(self._net.parameters(), lr=0.001, momentum=0.9)
        for _ in range(3):
            self._step()
        pretend(100 * self._duty, 1024 * float(trial.params["hold_gib"]) + 1000)

    def _step(self) -> float:
        began = time.perf_counter()
        self._optimizer.zero_grad()
        loss = functional.cross_entropy(self._net(self._inputs), self._labels)
        loss.backward()
        self._optimizer.step()
        synchronize()
        return time.perf_counter() - began

    def epoch(self, number: int) -> dict[str, float]:
        end = time.perf_counter() + self._seconds
        while time.perf_counter() < end:
            took = self._step()
            rest = end - time.perf_counter()
            time.sleep(max(0.0, min(rest, took * (1 / self._duty - 1))))
        with torch.no_grad():
            right = (self._net(self._others).argmax(1) == self._answers).float().mean().item()
        return {"accuracy": right}


class Hog(Small):
    """The first time it asks for more memory than is left beside the others; then it is a small one."""

    def __init__(self, trial: tandem.Trial, notes: Notes) -> None:
        mark = notes.folder / f"{notes.study}.asked"
        if not mark.exists():
            self._ask(notes, mark)
        super().__init__(trial, notes)

    def _ask(self, notes: Notes, mark: Path) -> None:
        deadline = time.monotonic() + 60
        while notes.others("begin") < 2 and time.monotonic() < deadline:
            time.sleep(0.1)
        mark.touch()
        if not CUDA:
            pretend(10, 2048)
            time.sleep(2.5)
            notes.write("asks", bytes=0, free=0)
            print("torch.OutOfMemoryError: CUDA out of memory. This is pretended.", file=sys.stderr)
            sys.exit(1)
        held = torch.empty(2 * GIB, dtype=torch.uint8, device=DEVICE)
        time.sleep(2.5)  # until the worker has seen that
        free, _ = torch.cuda.mem_get_info()
        notes.write("asks", bytes=free + GIB, free=free, held=held.numel())
        torch.empty(free + GIB, dtype=torch.uint8, device=DEVICE)


class Dataset(torch.utils.data.Dataset):
    """Items that take the processor some time each, so that loader workers matter."""

    def __init__(self, count: int, item: Callable[[int], tuple[torch.Tensor, int]]) -> None:
        self._count, self._item = count, item

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return self._item(index)


def single_thread(_: int) -> None:
    torch.set_num_threads(1)


class Tuned:
    """A training whose loader workers and precision follow trial.system."""

    net: nn.Module
    data: Dataset
    batch: int

    def __init__(self, trial: tandem.Trial) -> None:
        self._trial = trial
        self._optimizer: torch.optim.Optimizer = torch.optim.SGD(self.net.parameters(), lr=0.05, momentum=0.9)
        pretend(50, 3000)

    def epoch(self, number: int) -> dict[str, float]:
        workers, precision = int(self._trial.system["loader_workers"]), str(self._trial.system["precision"])
        loader = torch.utils.data.DataLoader(
            self.data,
            batch_size=self.batch,
            shuffle=True,
            drop_last=True,
            num_workers=workers,
            worker_init_fn=single_thread,
            pin_memory=CUDA,
        )
        right = seen = 0
        for inputs, labels in loader:
            inputs, labels = inputs.to(DEVICE, non_blocking=True), labels.to(DEVICE, non_blocking=True)
            with torch.autocast(DEVICE.type, dtype=torch.bfloat16, enabled=precision == "bf16"):
                scores = self.net(inputs)
            loss = functional.cross_entropy(scores.float(), labels)
            self._optimizer.zero_grad()
            loss.backward()
            self._optimizer.step()
            right += (scores.argmax(1) == labels).sum()
            seen += len(labels)
        return {"accuracy": float(right) / seen, "loss": loss.item()}


class Block(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.second = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList([nn.BatchNorm2d(outputs), nn.BatchNorm2d(outputs)])
        same = stride == 1 and inputs == outputs
        self.short = (
            nn.Identity()
            if same
            else nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = functional.relu(self.norms[0](self.first(x)))
        return functional.relu(self.norms[1](self.second(y)) + self.short(x))


def resnet18(width: int) -> nn.Module:
    """ResNet-18 for pictures of 32 by 32 (He et al., 2016)."""
    layers: list[nn.Module] = [nn.Conv2d(3, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
    inputs = width
    for outputs, stride in ((width, 1), (2 * width, 2), (4 * width, 2), (8 * width, 2)):
        layers += [Block(inputs, outputs, stride), Block(outputs, outputs, 1)]
        inputs = outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 10))


class ResNet(Tuned):
    def __init__(self, trial: tandem.Trial, notes: Notes) -> None:
        random = torch.Generator().manual_seed(3)
        patterns = torch.randn(10, 3, 40, 40, generator=random)

        def picture(index: int) -> tuple[torch.Tensor, int]:
            label = index % 10
            left, top = (int(v) for v in torch.randint(8, (2,)))
            cut = patterns[label, :, top : top + 32, left : left + 32] + torch.randn(3, 32, 32)
            if torch.rand(()) < 0.5:
                cut = cut.flip(2)
            return (cut - cut.mean()) / cut.std(), label

        self.data, self.batch = Dataset(8192 if CUDA else 64, picture), 128 if CUDA else 32
        self.net = resnet18(64 if CUDA else 4).to(DEVICE)
        super().__init__(trial)
        save(notes, self.net, torch.zeros(1, 3, 32, 32, device=DEVICE))


class Transformer(Tuned):
    """It tells which of ten vocabularies a sequence is of."""

    class Net(nn.Module):
        def __init__(self, width: int, layers: int, length: int) -> None:
            super().__init__()
            self.words = nn.Embedding(64, width)
            self.places = nn.Parameter(torch.randn(length, width) / math.sqrt(width))
            layer = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.0, batch_first=True)
            self.body, self.head = (
                nn.TransformerEncoder(layer, layers, enable_nested_tensor=False),
                nn.Linear(width, 10),
            )

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.head(self.body(self.words(x) + self.places).mean(1))

    def __init__(self, trial: tandem.Trial, notes: Notes) -> None:
        length = 128 if CUDA else 16
        random = torch.Generator().manual_seed(5)
        vocabularies = torch.randint(64, (10, 24), generator=random)

        def sequence(index: int) -> tuple[torch.Tensor, int]:
            label = index % 10
            words = [int(vocabularies[label, choice]) for choice in torch.randint(24, (length,)).tolist()]
            return torch.tensor(words), label

        self.data, self.batch = Dataset(4096 if CUDA else 64, sequence), 64 if CUDA else 32
        self.net = Transformer.Net(512 if CUDA else 32, 6 if CUDA else 1, length).to(DEVICE)
        super().__init__(trial)
        self._optimizer = torch.optim.AdamW(self.net.parameters(), lr=3e-4)


def save(notes: Notes, net: nn.Module, example: torch.Tensor) -> None:
    """Write the net as ONNX beside the notes, for the inference step. That it cannot be written is noted."""
    try:
        (notes.folder / "resnet.onnx").write_bytes(to_onnx(net, example))
        notes.write("onnx")
    except Exception as error:
        notes.write("onnx", error=f"{type(error).__name__}: {error}"[:300])


class Distributed:
    """Data-parallel training by two processes on one GPU. NCCL refuses that, Gloo does not."""

    def __init__(self, trial: tandem.Trial, notes: Notes) -> None:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
        self._meeting = f"file://{tempfile.gettempdir()}/meeting-{os.getpid()}"
        self._child = subprocess.Popen(
            [sys.executable, __file__, "--second", self._meeting, notes.study, str(notes.number)]
        )
        self._half = Half(0, self._meeting)
        notes.write("rank", rank=0, how=self._half.how)
        pretend(30, 2000)

    def epoch(self, number: int) -> dict[str, float]:
        self._half.tell(True)
        return {"accuracy": self._half.epoch()}

    def end(self) -> None:
        self._half.tell(False)
        self._half.close()
        self._child.wait(20)


class Half:
    """One of the two processes."""

    def __init__(self, rank: int, meeting: str) -> None:
        from datetime import timedelta

        from torch import distributed

        self._distributed, self._rank = distributed, rank
        distributed.init_process_group(
            "gloo", init_method=meeting, world_size=2, rank=rank, timeout=timedelta(seconds=40)
        )
        torch.manual_seed(0)
        self._width = 2048 if CUDA else 128
        net = nn.Sequential(nn.Linear(self._width, self._width), nn.ReLU(), nn.Linear(self._width, 10)).to(DEVICE)
        self._net = nn.parallel.DistributedDataParallel(net)
        self.how = f"DistributedDataParallel over gloo, {DEVICE}"
        self._optimizer = torch.optim.SGD(self._net.parameters(), lr=0.001, momentum=0.9)
        self._inputs, self._labels = (one.to(DEVICE) for one in mixture(4096 if CUDA else 256, self._width, 10 + rank))
        self._held = torch.empty((1 + rank) * GIB, dtype=torch.uint8, device=DEVICE) if CUDA else None

    def tell(self, more: bool) -> bool:
        """Rank 0 says whether there is another epoch; rank 1 hears it."""
        word = torch.tensor([int(more)])
        self._distributed.broadcast(word, 0)
        return bool(word.item())

    def epoch(self) -> float:
        for _ in range(40 if CUDA else 10):
            self._optimizer.zero_grad()
            loss = functional.cross_entropy(self._net(self._inputs), self._labels)
            loss.backward()
            self._optimizer.step()
        synchronize()
        with torch.no_grad():
            return (self._net.module(self._inputs).argmax(1) == self._labels).float().mean().item()

    def close(self) -> None:
        self._distributed.destroy_process_group()


def second(meeting: str, study: str, number: str) -> None:
    notes = Notes(study, int(number))
    half = Half(1, meeting)
    notes.write("rank", rank=1, how=half.how)
    pretend(30, 3000)
    while half.tell(False):
        half.epoch()
    half.close()


WORK = {"small": Small, "hog": Hog, "resnet": ResNet, "transformer": Transformer, "ddp": Distributed}


def main() -> None:
    trial = tandem.current_trial()
    notes = Notes(trial.study, trial.number)
    seen = {
        "visible": os.environ.get("CUDA_VISIBLE_DEVICES"),
        "order": os.environ.get("CUDA_DEVICE_ORDER"),
        "cuda": CUDA,
    }
    if CUDA:
        kind = torch.cuda.get_device_properties(0)
        seen.update(
            count=torch.cuda.device_count(),
            name=kind.name,
            uuid=str(getattr(kind, "uuid", "")),
            torch=torch.__version__,
        )
        seen.update(shm=os.statvfs("/dev/shm").f_bavail * os.statvfs("/dev/shm").f_frsize)
    notes.write("start", **seen)
    trial.restore(lambda path: None)
    work = WORK[trial.params["work"]](trial, notes)
    synchronize()
    notes.write("begin")
    for epoch in trial.epochs():
        began = time.time()
        metrics = work.epoch(epoch)
        synchronize()
        notes.write("epoch", epoch=epoch, began=began, system={name: trial.system[name] for name in trial.system})
        trial.report(**metrics)
    if isinstance(work, Distributed):
        work.end()
    notes.write("end")
    path = double()
    if path:
        path.unlink()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--second"]:
        second(*sys.argv[2:5])
    else:
        main()
