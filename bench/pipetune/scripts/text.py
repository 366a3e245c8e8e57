"""A convolutional network, an LSTM and a transformer that tell which collection a saying is from (Type II)."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch
from job import Params, part, scale
from network import Network
from torch import nn

WORDS, CATEGORIES = 4_000, 12
HEADS, LENGTH = 4, 24  # of the transformer; the first words of a text that it reads


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


class Attention(nn.Module):
    """Embeddings of words and places, one layer of a transformer's encoder, and the mean of the words' states."""

    def __init__(self, embedding: int, dropout: float) -> None:
        super().__init__()
        wide = HEADS * round(embedding / HEADS)  # each head takes an equal part
        self.embedding = nn.Embedding(WORDS, wide, padding_idx=0)
        self.places = nn.Parameter(torch.zeros(LENGTH, wide))
        self.encoder = nn.TransformerEncoderLayer(wide, HEADS, 2 * wide, dropout, batch_first=True, norm_first=True)
        self.output = nn.Linear(wide, CATEGORIES)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        words = words[:, :LENGTH]
        there = words != 0
        there[:, 0] = True  # a text of no known word has its first place
        states = self.encoder(self.embedding(words) + self.places, src_key_padding_mask=~there)
        shown = there.unsqueeze(2)
        return self.output((states * shown).sum(1) / shown.sum(1))


KINDS = {"text-cnn": Convolutions, "text-lstm": Recurrent, "text-transformer": Attention}


class Text(Network):
    """One of them, trained by Adam."""

    def __init__(self, workload: str, params: Params) -> None:
        model = KINDS[workload](int(params["embedding"]), params["dropout"])
        optimizer = torch.optim.Adam(model.parameters(), lr=params["learning_rate"])
        parts = {which: texts(which) for which in ("training", "validation", "test")}
        share = 0.5 if workload == "text-transformer" else 1  # of the passes, as it is the slowest
        super().__init__(model, optimizer, parts, params, passes=max(1, round(scale() * share)))


@cache  # loaded once by a process, whose trials only read it
def texts(which: str) -> tuple[torch.Tensor, torch.Tensor]:
    words, labels = part("fortunes", which)
    return torch.from_numpy(np.array(words)), torch.from_numpy(np.array(labels))
