"""A script with all its values in the code."""

import torch

learning_rate = 0.1
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), learning_rate)
