"""torchvision.transforms.ToTensor."""

from __future__ import annotations

import numpy as np
import torch


class ToTensor:
    """Bytes of height by width become a tensor of 1 by height by width, from 0 to 1."""

    def __call__(self, image: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(image.astype(np.float32)).unsqueeze(0) / 255
