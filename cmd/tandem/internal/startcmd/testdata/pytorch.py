"""Train a ResNet on CIFAR-10, as many do."""

import argparse

import torch
from torch import nn


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", help="the folder of the images")
    parser.add_argument("-a", "--arch", default="resnet18", choices=["resnet18", "resnet50"])
    parser.add_argument("--epochs", default=90, type=int)
    parser.add_argument("-b", "--batch-size", default=256, type=int, choices=[64, 256, 1024])
    parser.add_argument("--lr", "--learning-rate", default=0.1, type=float, dest="lr")
    parser.add_argument("--momentum", default=0.9, type=float)
    parser.add_argument("--wd", "--weight-decay", default=1e-4, type=float, dest="weight_decay")
    parser.add_argument("--dropout", default=0.1, type=float)
    parser.add_argument("--optimizer", choices=["sgd", "adamw"], default="sgd")
    parser.add_argument("--nesterov", action="store_true")
    parser.add_argument("--label-smoothing", type=float, default=0)
    parser.add_argument("--lr-scheduler", default="cosine", choices=("cosine", "step"))
    parser.add_argument("--image-size", default=224, type=int)
    parser.add_argument("-j", "--workers", default=4, type=int)
    parser.add_argument("-p", "--print-freq", default=10, type=int)
    parser.add_argument("--resume", default="", type=str)
    parser.add_argument("--seed", default=None, type=int)
    parser.add_argument("--no-cuda", action="store_true")
    args = parser.parse_args()
    model = nn.Linear(args.image_size, 10)
    optimizer = torch.optim.SGD(model.parameters(), args.lr, momentum=args.momentum)
    print({"val_acc": 0.5, "val_loss": 1.0}, optimizer)


raise SystemExit("tandem init must not run this")
