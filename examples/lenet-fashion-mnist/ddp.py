"""Train one network in several processes (DistributedDataParallel): a trial of the study in ddp.yaml.

The worker starts this script once for each process. By hand: torchrun --nproc_per_node 2 ddp.py
"""

from __future__ import annotations

import inspect

import tandem
import torch
import torch.distributed as dist
from fashion_mnist import load
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

BY_HAND = {"learning_rate": 0.002, "batch_size": 64, "units": 64}
LOAD_SAFELY = {"weights_only": True} if "weights_only" in inspect.signature(torch.load).parameters else {}


def main() -> None:
    dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    trial = tandem.current_trial(params=BY_HAND, epochs=3)
    torch.manual_seed(trial.seed % 2**63)  # the same weights everywhere
    training, validation, _ = load()
    mine = training.images.flatten(1)[rank::size], training.labels[rank::size]
    network = nn.Sequential(nn.Linear(28 * 28, trial.params["units"]), nn.ReLU(), nn.Linear(trial.params["units"], 10))
    model = DistributedDataParallel(network)
    optimizer = torch.optim.Adam(model.parameters(), lr=trial.params["learning_rate"])

    def save(path: str) -> None:  # called in the process of rank 0 alone
        torch.save({"model": network.state_dict(), "moments": optimizer.state_dict()["state"]}, path)

    def restore(path: str) -> None:  # called in each
        state = torch.load(path, **LOAD_SAFELY)
        network.load_state_dict(state["model"])
        optimizer.load_state_dict({**optimizer.state_dict(), "state": state["moments"]})

    trial.restore(restore)
    for epoch in trial.epochs():  # ends everywhere after the same epoch
        torch.manual_seed(epoch)
        for batch in torch.randperm(len(mine[0])).split(max(1, trial.params["batch_size"] // size)):
            optimizer.zero_grad()
            cross_entropy(model(mine[0][batch]), mine[1][batch]).backward()
            optimizer.step()
        with torch.no_grad():
            right = network(validation.images.flatten(1)).argmax(1) == validation.labels
        trial.report(accuracy=right.float().mean().item())  # rank 0's counts
        trial.checkpoint(save)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
