"""Write the models that the tests run; needs PyTorch (Debian's python3-torch will do).

    python3 make.py    # in this folder
"""

import torch
from torch import nn

torch.manual_seed(0)
batch = {0: "batch"}


class Identity(nn.Module):
    def forward(self, number):
        return number + 0


cnn = nn.Sequential(
    nn.Conv2d(1, 8, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(8, 16, 3, padding=1),
    nn.ReLU(),
    nn.AdaptiveAvgPool2d(1),
    nn.Flatten(),
    nn.Linear(16, 10),
)
# Ten words, and sentences of any length: batch and length are open.
words = nn.Sequential(nn.Embedding(10, 8), nn.Linear(8, 4))

for name, model, example, inside, axes in [
    ("cnn", cnn, torch.zeros(1, 1, 28, 28), "image", batch),
    ("words", words, torch.zeros(1, 5, dtype=torch.int64), "tokens", {0: "batch", 1: "length"}),
    ("fixed", nn.Linear(4, 2), torch.zeros(1, 4), "row", {}),
    ("half", Identity(), torch.zeros(1, 4).half(), "row", batch),
]:
    torch.onnx.export(
        model.eval(),
        example,
        name + ".onnx",
        input_names=[inside],
        output_names=["answer"],
        dynamic_axes={inside: axes, "answer": axes},
        opset_version=13,
    )
