"""A trial in PyTorch Lightning::

trial = tandem.current_trial()
tuning = TandemCallback(trial)
trainer = Trainer(max_epochs=trial.epochs_total, callbacks=[tuning])
trainer.fit(model, data, ckpt_path=tuning.checkpoint)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Optional

try:
    import lightning.pytorch as pl
except ImportError:
    try:
        import pytorch_lightning as pl
    except ImportError as error:
        raise ImportError("tandem.integrations.lightning needs PyTorch Lightning: pip install lightning") from error

from ..trial import Trial
from ._metrics import Chosen, chosen, done_early, require_first


class TandemCallback(pl.Callback):
    """Reports each epoch with what was logged, keeps a checkpoint of it, and ends the training where the server does.

    ``metrics`` chooses what is reported: names that the module logs, or ``{"accuracy": "val/accuracy"}``; None for all.
    With ``keep=False`` nothing is kept: a promoted trial then starts again. ``trial.report`` raises
    :class:`TrialStopped` in the middle of ``fit`` when the trial is not wanted any more, which ends the script.
    Training with several processes is refused: report from the first of them in a callback of your own.
    """

    def __init__(self, trial: Trial, metrics: Chosen = None, *, keep: bool = True) -> None:
        self.checkpoint: Optional[str] = None
        """For ``fit(..., ckpt_path=...)``: where the trial's earlier run ended; None in its first run."""
        self._trial = trial
        self._metrics = metrics
        self._keep = keep
        self._epochs: Iterator[int] = iter(())
        self._last: dict[str, float] = {}
        trial.restore(self._restore)

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        if trainer.world_size > 1:
            raise ValueError(
                f"the trainer has {trainer.world_size} processes, and one of them has the trial: report from the first "
                "in a callback of your own (trainer.is_global_zero), or use devices=1"
            )
        advice = "give fit(..., ckpt_path=callback.checkpoint) and Trainer(max_epochs=trial.epochs_total)"
        require_first(trainer.current_epoch + 1, self._trial.first_epoch, advice)
        self._epochs, self._last = self._trial.epochs(), {}

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        next(self._epochs, None)  # the first one says that the training begins; each sets the threads

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        self._last = chosen(trainer.callback_metrics, self._metrics)
        self._trial.report(trainer.current_epoch + 1, **self._last)
        if self._trial.directive.action != "continue":
            trainer.should_stop = True
        if self._keep and self._trial.directive.action != "stop":
            self._trial.checkpoint(trainer.save_checkpoint)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        done_early(self._trial, self._last)

    def _restore(self, path: str) -> None:
        self.checkpoint = path
