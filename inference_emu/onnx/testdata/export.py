"""Exports the models of this folder with PyTorch (1.13 or newer), and writes what they
cost, counted by hooks on PyTorch's modules and not by Tandem, to expected.json.

    python3 export.py

Weights are random; only the architecture matters.
"""

import json
import pathlib
import warnings

import torch
from torch import nn

FOLDER = pathlib.Path(__file__).parent
warnings.filterwarnings("ignore")


class Lenet5(nn.Sequential):
    def __init__(self):
        super().__init__(
            nn.Conv2d(1, 6, 5), nn.Tanh(), nn.AvgPool2d(2), nn.Conv2d(6, 16, 5), nn.Tanh(), nn.AvgPool2d(2), nn.Flatten(),
            nn.Linear(400, 40), nn.Tanh(), nn.Linear(40, 10),
        )


class ResidualBlock(nn.Module):
    def __init__(self, channels, out, stride):
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(channels, out, 3, stride, 1, bias=False), nn.BatchNorm2d(out), nn.ReLU())
        self.second = nn.Sequential(nn.Conv2d(out, out, 3, 1, 1, bias=False), nn.BatchNorm2d(out))
        self.short = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x):
        return torch.relu(self.second(self.first(x)) + self.short(x))


class SmallResnet(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
        self.blocks = nn.Sequential(ResidualBlock(width, width, 1), ResidualBlock(width, 2 * width, 2))
        self.head = nn.Linear(2 * width, 10)

    def forward(self, x):
        x = self.blocks(self.stem(x))
        return self.head(torch.flatten(nn.functional.adaptive_avg_pool2d(x, 1), 1))


class InvertedResidual(nn.Module):
    """A block of MobileNetV2 with squeeze and excitation, as in MobileNetV3."""

    def __init__(self, channels=8, expanded=24):
        super().__init__()
        self.expand = nn.Sequential(nn.Conv2d(channels, expanded, 1, bias=False), nn.BatchNorm2d(expanded), nn.ReLU6())
        self.depthwise = nn.Sequential(nn.Conv2d(expanded, expanded, 3, 1, 1, groups=expanded, bias=False), nn.BatchNorm2d(expanded), nn.Hardswish())
        self.squeeze = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(expanded, 6, 1), nn.ReLU(), nn.Conv2d(6, expanded, 1), nn.Hardsigmoid())
        self.project = nn.Sequential(nn.Conv2d(expanded, channels, 1, bias=False), nn.BatchNorm2d(channels))

    def forward(self, x):
        y = self.depthwise(self.expand(x))
        return x + self.project(y * self.squeeze(y))


class TextClassifier(nn.Module):
    def __init__(self, kind=nn.LSTM):
        super().__init__()
        self.embedding = nn.Embedding(100, 16)
        self.recurrent = kind(16, 20, batch_first=True, bidirectional=True)
        self.head = nn.Linear(40, 4)

    def forward(self, tokens):
        states, _ = self.recurrent(self.embedding(tokens))
        return self.head(states[:, -1])


class Attention(nn.Module):
    """A transformer layer whose shapes are computed from the input's."""

    def __init__(self, width=32, heads=4):
        super().__init__()
        self.heads, self.width = heads, width
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.inward, self.outward = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x):
        samples, steps, _ = x.shape
        q, k, v = self.inward(self.norm1(x)).chunk(3, dim=-1)
        q, k, v = (one.reshape(samples, steps, self.heads, self.width // self.heads).transpose(1, 2) for one in (q, k, v))
        weights = torch.softmax(q @ k.transpose(-2, -1) / (self.width // self.heads) ** 0.5, dim=-1)
        x = x + self.outward((weights @ v).transpose(1, 2).reshape(samples, steps, self.width))
        return x + self.mlp(self.norm2(x))


class Segmenter(nn.Module):
    """Down and up again: transposed convolution, resizing, padding, slices, concatenation."""

    def __init__(self):
        super().__init__()
        self.down = nn.Sequential(nn.ConstantPad2d(1, 0.0), nn.Conv2d(3, 8, 3, 2), nn.LeakyReLU(0.1))
        self.deep = nn.Sequential(nn.Conv2d(8, 16, 3, 2, 1, dilation=1), nn.Softplus())
        self.up = nn.ConvTranspose2d(16, 8, 4, 2, 1)
        self.head = nn.Conv2d(16, 2, 1)

    def forward(self, x):
        y = self.down(x)
        z = torch.cat([self.up(self.deep(y)), y], 1)
        z = nn.functional.interpolate(z, size=x.shape[2:], mode="nearest")
        return self.head(z)[:, :1].sigmoid().mean((2, 3))


def products(model, example):
    """Products of convolutions, linear layers and recurrent layers, by the shapes PyTorch computes."""
    count = 0

    def hook(module, inputs, output):
        nonlocal count
        if isinstance(module, nn.Conv2d):
            count += output.numel() * module.in_channels // module.groups * module.kernel_size[0] * module.kernel_size[1]
        elif isinstance(module, nn.ConvTranspose2d):
            count += inputs[0].numel() * module.out_channels * module.kernel_size[0] * module.kernel_size[1]
        elif isinstance(module, nn.Linear):
            count += output.numel() * module.in_features
        elif isinstance(module, nn.RNNBase):
            steps = inputs[0].shape[0] * inputs[0].shape[1]
            count += steps * sum(p.numel() for name, p in module.named_parameters() if name.startswith("weight"))
        elif isinstance(module, Attention):
            steps = inputs[0].shape[1]
            count += 2 * steps * steps * module.width

    handles = [module.register_forward_hook(hook) for module in model.modules()]
    output = model(example)
    for handle in handles:
        handle.remove()
    return count, list(output.shape)


def export(name, model, example, axes, fold=True):
    torch.manual_seed(0)
    for values in model.state_dict().values():  # equal ones would be stored once
        if values.is_floating_point():
            values.uniform_(0.1, 1)
    model.eval()
    count, shape = products(model, example)
    torch.onnx.export(model, example, str(FOLDER / f"{name}.onnx"), input_names=["x"], output_names=["y"], opset_version=16,
                      dynamic_axes={"x": axes} if axes else None, do_constant_folding=fold,
                      training=torch.onnx.TrainingMode.EVAL if fold else torch.onnx.TrainingMode.PRESERVE)
    return {"products": count, "parameters": sum(p.numel() for p in model.parameters()), "output": shape}


def main():
    image, text = {0: "batch"}, {0: "batch", 1: "steps"}
    expected = {
        "lenet5": export("lenet5", Lenet5(), torch.zeros(1, 1, 32, 32), image),
        "resnet": export("resnet", SmallResnet(), torch.zeros(1, 3, 64, 64), image, fold=False),
        "mobilenet": export("mobilenet", InvertedResidual(), torch.zeros(1, 8, 14, 14), image, fold=False),
        "lstm": export("lstm", TextClassifier(), torch.zeros(1, 12, dtype=torch.long), text),
        "gru": export("gru", TextClassifier(nn.GRU), torch.zeros(1, 12, dtype=torch.long), None),
        "attention": export("attention", Attention(), torch.zeros(1, 10, 32), text),
        "segmenter": export("segmenter", Segmenter(), torch.zeros(1, 3, 32, 32), {0: "batch", 2: "height", 3: "width"}),
    }
    (FOLDER / "expected.json").write_text(json.dumps(expected, indent=2) + "\n")


main()
