from enum import Enum
from typing import Annotated, Literal, Optional

import lightning as L
import typer

app = typer.Typer()


class Optimizer(str, Enum):
    adam = "adam"
    sgd = "sgd"


@app.command()
def train(
    folder: str,
    max_epochs: int = 20,
    lr: Annotated[float, typer.Option(help="the learning rate")] = 2e-4,
    dropout_p: float = typer.Option(0.2, min=0.0, max=1.0),
    optimizer: Optimizer = Optimizer.adam,
    activation: Literal["relu", "gelu"] = "gelu",
    num_layers: int = 4,
    d_model: int = 256,
    gradient_clip: Optional[float] = 1.0,
    num_workers: int = 8,
    precision: str = "16-mixed",
):
    trainer = L.Trainer(max_epochs=max_epochs, gradient_clip_val=gradient_clip, precision=precision)
    print(trainer, "val_loss", folder, lr, dropout_p, optimizer, activation, num_layers, d_model, num_workers)


if __name__ == "__main__":
    app()
