"""A trial in Keras 3::

trial = tandem.current_trial()
model.compile(...)
model.fit(data, initial_epoch=trial.first_epoch - 1, epochs=trial.epochs_total,
          validation_data=validation, callbacks=[TandemCallback(trial)])
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Optional

try:
    import keras
except ImportError as error:
    raise ImportError("tandem.integrations.keras needs Keras 3: pip install keras") from error

from ..trial import Trial
from ._metrics import Chosen, chosen, done_early, require_first

_FILE = "model.weights.h5"


class TandemCallback(keras.callbacks.Callback):
    """Reports each epoch's logs, keeps and restores weights and optimizer, and ends the training where the server does.

    ``metrics`` chooses what is reported: names of the logs, or ``{"accuracy": "val_accuracy"}``; None for all. With
    ``keep=False`` nothing is kept: a promoted trial then starts again, and ``initial_epoch`` is left out. The model
    must be compiled, and built before ``fit`` (give it an Input). The state of random layers (dropout) and the order
    of the data are not kept: a resumed run is as good as one in a go, and not the same to the last bit.
    """

    def __init__(self, trial: Trial, metrics: Chosen = None, *, keep: bool = True) -> None:
        super().__init__()
        self._trial = trial
        self._metrics = metrics
        self._keep = keep
        self._epochs: Optional[Iterator[int]] = None
        self._last: dict[str, float] = {}

    def on_train_begin(self, logs: Optional[dict[str, Any]] = None) -> None:
        if self._trial.first_epoch > 1 and not self.model.built:
            raise ValueError("the model is not built, so its checkpoint cannot be restored: give it an Input")
        self._trial.restore(self._load)
        self._epochs, self._last = None, {}

    def on_epoch_begin(self, epoch: int, logs: Optional[dict[str, Any]] = None) -> None:
        if self._epochs is None:
            advice = "give fit(..., initial_epoch=trial.first_epoch - 1, epochs=trial.epochs_total)"
            require_first(epoch + 1, self._trial.first_epoch, advice)
            self._epochs = self._trial.epochs()
        next(self._epochs, None)  # the first one says that the training begins; each sets the threads

    def on_epoch_end(self, epoch: int, logs: Optional[dict[str, Any]] = None) -> None:
        self._last = chosen(logs or {}, self._metrics)
        self._trial.report(epoch + 1, **self._last)
        if self._trial.directive.action != "continue":
            self.model.stop_training = True
        if self._keep and self._trial.directive.action != "stop":
            self._trial.checkpoint(self._save)

    def on_train_end(self, logs: Optional[dict[str, Any]] = None) -> None:
        done_early(self._trial, self._last)

    def _save(self, path: str) -> None:
        folder = Path(path)
        folder.mkdir()
        self.model.save_weights(str(folder / _FILE))

    def _load(self, path: str) -> None:
        if not self.model.optimizer.built:
            self.model.optimizer.build(self.model.trainable_variables)
        self.model.load_weights(str(Path(path) / _FILE))
