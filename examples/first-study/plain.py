import gzip
from pathlib import Path

import numpy as np
import torch
from torch import nn

torch.set_num_threads(1)


def load(name):
    images = gzip.decompress(Path(f"{name}-images-idx3-ubyte.gz").read_bytes())[16:]
    labels = gzip.decompress(Path(f"{name}-labels-idx1-ubyte.gz").read_bytes())[8:]
    images = np.frombuffer(images, np.uint8).reshape(-1, 28 * 28).astype(np.float32) / 255
    return torch.from_numpy(images), torch.from_numpy(np.frombuffer(labels, np.uint8).astype(np.int64))


def train(images, labels, model, optimizer, batch_size):
    model.train()
    for batch in torch.randperm(len(images)).split(batch_size):
        loss = nn.functional.cross_entropy(model(images[batch]), labels[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def accuracy(images, labels, model):
    model.eval()
    with torch.no_grad():
        return (model(images).argmax(1) == labels).float().mean().item()


def build(units, dropout, learning_rate):
    model = nn.Sequential(nn.Linear(28 * 28, units), nn.ReLU(), nn.Dropout(dropout), nn.Linear(units, 10))
    return model, torch.optim.Adam(model.parameters(), lr=learning_rate)


if __name__ == "__main__":
    training, validation = load("train"), load("validation")
    model, optimizer = build(units=64, dropout=0.2, learning_rate=0.001)
    for epoch in range(1, 10):
        train(*training, model, optimizer, batch_size=64)
        print(epoch, accuracy(*validation, model))
