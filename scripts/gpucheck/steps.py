"""The steps, in their order: what the others need comes first, and what is dear and can be done without comes last."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable

from . import inference, machine, shared, single
from .check import Check


@dataclass(frozen=True)
class Step:
    name: str
    run: Callable[[Check], None]
    seconds: float
    """Its own time limit."""
    quick: bool = True


STEPS = (
    Step("outside", machine.outside, 150),
    Step("doctor", machine.doctor, 90),
    Step("reach", machine.reach, 90),
    Step("single", single.single, 90),
    Step("energy", single.energy, 15),
    Step("share", shared.share, 75),
    Step("memory", shared.memory, 90),
    Step("auto", shared.auto, 150, quick=False),
    Step("ddp", single.ddp, 60),
    Step("resnet", single.resnet, 80),
    Step("transformer", single.transformer, 80),
    Step("known", single.known, 90),
    Step("inference", inference.inference, 40),
    Step("settings", single.settings, 60),
)
