"""Trains small networks for some seconds each, alone and in pairs, and says what they used.

    python3 collect.py FOLDER [--minutes 13] [--seconds 2.5] [--seed 1]

It needs PyTorch; Debian's python3-torch will do.

Each line of the output is one JSON document: first the machine, then a "profile" for each network and batch, then
for the pairs an "alone" for each workload and a "pair" for each two. The networks are written to FOLDER as ONNX.

There need be no GPU: what is shared is the machine's cores. The utilization of a training is the share of them that
it keeps busy, with as many threads as there are cores. It stands in for that of a GPU: both say how much of a
machine one training leaves to another.

Every training is a process of its own, forked from one that has loaded PyTorch, so that its memory is its own too.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import multiprocessing
import multiprocessing.connection
import os
import platform
import random
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # a thread that only waits is not busy

import numpy as np
import torch
from torch import nn
from zoo import ARCHITECTURES, CLASSES, SENTENCE, VOCABULARY, Architecture

CORES = len(os.sched_getaffinity(0))
BATCHES = (8, 32, 96)
PERIOD = 0.25  # seconds between samples of a series
LIMIT = 60.0  # seconds after which a process is given up
FORK = multiprocessing.get_context("fork")


class Workload(NamedTuple):
    """A training as one writes it: pictures are prepared on one core, trained on, and now and then evaluated."""

    name: str
    architecture: str
    batch: int
    threads: int
    shares: tuple[float, float, float]  # of the time of a round: preparing, training, evaluating


ROUNDS = 3
WORKLOADS = [
    Workload("lenet-32", "lenet", 32, CORES, (0.5, 0.4, 0.1)),
    Workload("perceptron-1024-96", "perceptron-1024", 96, CORES, (0.1, 0.7, 0.2)),
    Workload("resnet-14-wide-32", "resnet-14-wide", 32, CORES, (0.1, 0.7, 0.2)),
    Workload("mobilenet-1.0-32", "mobilenet-1.0", 32, CORES, (0.2, 0.5, 0.3)),
    Workload("vgg-32-96-one", "vgg-32", 96, 1, (0.1, 0.7, 0.2)),
    Workload("densenet-12-8", "densenet-12", 8, CORES, (0.3, 0.5, 0.2)),
    Workload("transformer-128-32", "transformer-128", 32, CORES, (0.05, 0.75, 0.2)),
    Workload("lstm-64-8-one", "lstm-64", 8, 1, (0.2, 0.6, 0.2)),
]
KEPT = 32  # prepared batches


class Data:
    """Pictures and sentences that are made up; each batch is prepared as one prepares real ones."""

    def __init__(self, text: bool, seed: int) -> None:
        self.text = text
        self.random = np.random.default_rng(seed)
        if text:
            self.stored = self.random.integers(0, VOCABULARY, (1024, SENTENCE + 1))
        else:
            self.stored = self.random.integers(0, 256, (1024, 3, 32, 32), dtype=np.uint8)
            self.labels = self.random.integers(0, CLASSES, 1024)

    def batch(self, size: int) -> tuple[torch.Tensor, torch.Tensor]:
        chosen = self.random.integers(0, len(self.stored), size)
        if self.text:
            tokens = torch.from_numpy(self.stored[chosen])
            return tokens[:, :-1], tokens[:, 1:]
        pictures = np.pad(self.stored[chosen], ((0, 0), (0, 0), (4, 4), (4, 4)))
        out = np.empty((size, 3, 32, 32), np.float32)
        for i in range(size):
            top, left = self.random.integers(0, 9, 2)
            cut = pictures[i, :, top : top + 32, left : left + 32]
            out[i] = cut[:, :, ::-1] if self.random.random() < 0.5 else cut
        out = (out / 255 - 0.5) / 0.25
        return torch.from_numpy(out), torch.from_numpy(self.labels[chosen])


class Training:
    """A network with its data and its optimizer."""

    def __init__(self, architecture: Architecture, threads: int, seed: int) -> None:
        torch.set_num_threads(threads)
        torch.manual_seed(seed)
        self.model = architecture.build()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01, momentum=0.9)
        self.data = Data(architecture.text, seed)

    def step(self, pictures: torch.Tensor, labels: torch.Tensor) -> None:
        self.optimizer.zero_grad(set_to_none=True)
        said = self.model(pictures)
        loss = nn.functional.cross_entropy(said.flatten(0, -2), labels.flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()

    def evaluate(self, pictures: torch.Tensor) -> None:
        self.model.eval()
        with torch.no_grad():
            self.model(pictures)
        self.model.train()


def named(name: str) -> Architecture:
    return next(one for one in ARCHITECTURES if one.name == name)


def resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()


def busy(pid: int) -> float:
    """The seconds that all cores worked for a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def profile(architecture: Architecture, batch: int, seconds: float, out: Any) -> None:
    """Trains for some seconds, in a process of its own."""
    before = resident(os.getpid())
    training = Training(architecture, CORES, 1)
    for _ in range(2):
        training.step(*training.data.batch(batch))
    begin, worked, steps = time.perf_counter(), time.process_time(), 0
    while steps < 3 or time.perf_counter() - begin < seconds:
        training.step(*training.data.batch(batch))
        steps += 1
    took, worked = time.perf_counter() - begin, time.process_time() - worked
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    out.send({
        "utilization": round(worked / took / CORES, 4), "memory_bytes": max(0, most - before),
        "step_seconds": float(f"{took / steps:.4g}"), "steps": steps,
    })  # fmt: skip


def export(architecture: Architecture, path: Path, out: Any) -> None:
    """Writes the network as ONNX, in a process of its own."""
    os.dup2(2, 1)  # some versions tell how they get on
    size = (2, SENTENCE) if architecture.text else (2, 3, 32, 32)
    example = torch.zeros(size, dtype=torch.long) if architecture.text else torch.zeros(size)
    torch.onnx.export(
        architecture.build().eval(), example, str(path), input_names=["x"], dynamic_axes={"x": {0: "batch"}},
        opset_version=16, do_constant_folding=False,
    )  # fmt: skip
    out.send({"onnx": path.name})


def child(work: Callable[..., None], *arguments: Any) -> dict[str, Any]:
    """What the work says, which runs in a process of its own."""
    ours, theirs = FORK.Pipe(duplex=False)
    process = FORK.Process(target=work, args=(*arguments, theirs))
    process.start()
    theirs.close()
    said = None
    try:
        if ours.poll(LIMIT):
            said = ours.recv()
    except EOFError:
        pass
    if said is None:
        process.kill()
    process.join()
    if said is None:
        raise RuntimeError(f"{work.__name__} of {arguments[0]} said nothing within {LIMIT:g} s")
    return said


def rounds(workload: Workload, shared: Any, go: Any, seconds: float, counts: list[int]) -> None:
    """Trains for some rounds and counts the steps, of which a round has so many of each phase; without counts, so many
    as take the seconds alone. Shared are the steps done, the bytes resident at the start, and the counts."""
    shared[1] = resident(os.getpid())
    training = Training(named(workload.architecture), workload.threads, 1)
    batches = [training.data.batch(workload.batch)]
    phases: list[Callable[[int], Any]] = [
        lambda i: batches.__setitem__(slice(KEPT), [training.data.batch(workload.batch), *batches[: KEPT - 1]]),
        lambda i: training.step(*batches[i % len(batches)]),
        lambda i: training.evaluate(batches[i % len(batches)][0]),
    ]
    for phase in phases:  # the first of each takes longer
        phase(0)
    if not counts:
        for phase, share in zip(phases, workload.shares):
            begin, done = time.perf_counter(), 0
            while done < 2 or time.perf_counter() - begin < 0.2:
                phase(done)
                done += 1
            counts.append(max(1, round(share * seconds * done / (time.perf_counter() - begin))))
    shared[2:5] = counts
    shared[0] = 0
    go.wait()
    for _ in range(ROUNDS):
        for phase, count in zip(phases, counts):
            for i in range(count):
                phase(i)
                shared[0] += 1
    os._exit(0)


def together(workloads: list[Workload], seconds: float, counts: list[list[int]]) -> tuple[list[Any], list[list[int]]]:
    """Runs them side by side, and returns a series for each, and the counts. A series has a row for each quarter of a
    second and one for the end: seconds since the start, steps done, share of the cores that was busy since the last
    row, megabytes resident beyond the start."""
    ready = FORK.Barrier(len(workloads) + 1)
    shared = [FORK.Array(ctypes.c_long, 5, lock=False) for _ in workloads]
    processes = [
        FORK.Process(target=rounds, args=(one, own, ready, seconds, list(count)))
        for one, own, count in zip(workloads, shared, counts)
    ]
    for process in processes:
        process.start()
    try:
        ready.wait(LIMIT)
        series = watched(processes, shared)
    finally:
        for process in processes:
            process.kill()
            process.join()
    if any(process.exitcode for process in processes):
        raise RuntimeError(f"{[one.name for one in workloads]}: a process failed, or took more than {LIMIT:g} s")
    return series, [list(own[2:5]) for own in shared]


def watched(pids: list[Any], shared: list[Any]) -> list[list[list[float]]]:
    """The series of processes that begin now, until all have ended."""
    begin = last = time.perf_counter()
    series: list[list[list[float]]] = [[] for _ in pids]
    done = [busy(process.pid or 0) for process in pids]
    running = set(range(len(pids)))
    while running and last - begin < LIMIT:
        next_look = begin + PERIOD * (int((time.perf_counter() - begin) / PERIOD) + 1)
        multiprocessing.connection.wait(
            [pids[i].sentinel for i in running], timeout=max(0.0, next_look - time.perf_counter())
        )
        now = time.perf_counter()
        for i in sorted(running):
            ended = not pids[i].is_alive()
            row = series[i]
            if ended:
                pids[i].join()
                row.append(
                    [round(now - begin, 3), shared[i][0], row[-1][2] if row else 0.0, row[-1][3] if row else 0.0]
                )
                running.discard(i)
            elif now >= next_look:
                worked, pid = busy(pids[i].pid or 0), pids[i].pid or 0
                used = (worked - done[i]) / (now - (row[-1][0] + begin if row else begin)) / CORES
                done[i] = worked
                row.append(
                    [
                        round(now - begin, 3),
                        shared[i][0],
                        round(used, 3),
                        round((resident(pid) - shared[i][1]) / 1e6, 1),
                    ]
                )
        last = now
    return series


def say(kind: str, **values: Any) -> None:
    print(json.dumps({"kind": kind, **values}), flush=True)


def attempt(what: Callable[..., Any], *arguments: Any) -> Any:
    """What one of many says; one that fails is told and left out."""
    try:
        return what(*arguments)
    except (RuntimeError, OSError) as error:
        say("failed", what=str(error))
        return None


def profiles(folder: Path, seconds: float, deadline: float, order: random.Random) -> None:
    ahead = [(one, batch) for one in ARCHITECTURES for batch in BATCHES]
    order.shuffle(ahead)
    for architecture, batch in ahead:
        if time.perf_counter() > deadline:
            return
        path = folder / f"{architecture.name}.onnx"
        if not path.exists() and not attempt(child, export, architecture, path):
            continue
        said = attempt(child, profile, architecture, batch, seconds)
        if said:
            say(
                "profile",
                family=architecture.family,
                architecture=architecture.name,
                batch=batch,
                onnx=path.name,
                **said,
            )


def pairs(seconds: float, deadline: float, order: random.Random) -> None:
    counts: dict[str, list[int]] = {}
    for one in WORKLOADS:
        known: list[list[int]] = [[]]
        if time.perf_counter() > deadline:
            return
        for _ in range(2):  # the second time with the counts of the first
            said = attempt(together, [one], seconds / ROUNDS, known)
            if said:
                known = said[1]
                counts[one.name] = known[0]
                say("alone", workload=one.name, **setting(one), counts=known[0], series=said[0][0])
    ahead = [(a, b) for i, a in enumerate(WORKLOADS) for b in WORKLOADS[i:] if a.name in counts and b.name in counts]
    order.shuffle(ahead)
    for a, b in ahead:
        if time.perf_counter() > deadline:
            return
        said = attempt(together, [a, b], seconds / ROUNDS, [counts[a.name], counts[b.name]])
        if said:
            say("pair", first=a.name, second=b.name, first_series=said[0][0], second_series=said[0][1])


def setting(workload: Workload) -> dict[str, Any]:
    return {"architecture": workload.architecture, "batch": workload.batch, "threads": workload.threads}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where the networks are written as ONNX")
    parser.add_argument("--minutes", type=float, default=13, help="how long all of it may take")
    parser.add_argument("--seconds", type=float, default=2.5, help="how long a network trains for its profile")
    parser.add_argument("--alone", type=float, default=6.5, help="how long a workload of the pairs takes alone")
    parser.add_argument("--only", choices=["profiles", "pairs"], help="record the others not")
    parser.add_argument("--seed", type=int, default=1, help="of the order")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    begin, order = time.perf_counter(), random.Random(options.seed)
    say("machine", cores=CORES, processor=platform.processor() or platform.machine(), torch=torch.__version__,
        load=os.getloadavg()[0], seconds=options.seconds, period=PERIOD)  # fmt: skip
    # Two fifths of the time are for the profiles': the pairs are many.
    if options.only != "pairs":
        profiles(options.folder, options.seconds, begin + 60 * options.minutes * 0.42, order)
    if options.only != "profiles":
        pairs(options.alone, begin + 60 * options.minutes, order)
    say("end", minutes=round((time.perf_counter() - begin) / 60, 2), load=os.getloadavg()[0])


if __name__ == "__main__":
    main()
