"""As much of torchvision as Optuna's example for PyTorch asks for, on this repository's sample of Fashion-MNIST.

On the path before any other (``PYTHONPATH=bench/optuna/stand_in``) it lets that example run unchanged where torchvision
and its download cannot be had: 6,000 images to train on and 1,200 to validate with, where the original has 60,000 and
10,000, of which the example uses 3,840 an epoch and 1,280.
"""
