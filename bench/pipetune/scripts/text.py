"""A convolutional network and an LSTM that tell which collection a saying is from (Type II of the thesis)."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch
from job import Params, part, scale
from network import Network
from torch import nn

WORDS, CATEGORIES = 4_000, 12


class Convolutions(nn.Module):
    """Word embeddings, convolutions over 3 and 5 words, the maximum over the text (Kim 2014)."""

    def __init__(self, embedding: int, dropout: float) -> None:
        super().__init__()
        self.embedding = nn.Embedding(WORDS, embedding, padding_idx=0)
        self.convolutions = nn.ModuleList([nn.Conv1d(embedding, 48, width, padding=width // 2) for width in (3, 5)])
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(96, CATEGORIES)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        embedded = self.embedding(words).transpose(1, 2)
        found = [convolution(embedded).relu().amax(2) for convolution in self.convolutions]
        return self.output(self.dropout(torch.cat(found, 1)))


class Recurrent(nn.Module):
    """Word embeddings, an LSTM, and the mean of what it has seen."""

    def __init__(self, embedding: int, dropout: float) -> None:
        super().__init__()
        self.embedding = nn.Embedding(WORDS, embedding, padding_idx=0)
        self.lstm = nn.LSTM(embedding, 40, batch_first=True)
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(40, CATEGORIES)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        states, _ = self.lstm(self.embedding(words))
        there = (words != 0).unsqueeze(2)
        mean = (states * there).sum(1) / there.sum(1).clamp(min=1)
        return self.output(self.dropout(mean))


class Text(Network):
    """Either of them, trained by Adam."""

    def __init__(self, workload: str, params: Params) -> None:
        kind = Convolutions if workload == "text-cnn" else Recurrent
        model = kind(int(params["embedding"]), params["dropout"])
        optimizer = torch.optim.Adam(model.parameters(), lr=params["learning_rate"])
        parts = {which: texts(which) for which in ("training", "validation", "test")}
        super().__init__(model, optimizer, parts, params, passes=max(1, round(scale())))


@cache  # loaded once by a process, whose trials only read it
def texts(which: str) -> tuple[torch.Tensor, torch.Tensor]:
    words, labels = part("fortunes", which)
    return torch.from_numpy(np.array(words)), torch.from_numpy(np.array(labels))
