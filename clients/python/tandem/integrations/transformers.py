"""A trial in Hugging Face's Trainer::

trial = tandem.current_trial()
tuning = TandemCallback(trial)
arguments = TrainingArguments(output, num_train_epochs=trial.epochs_total, eval_strategy="epoch",
                              save_strategy="epoch", lr_scheduler_type="constant",
                              learning_rate=trial.params["learning_rate"])
trainer = Trainer(model, arguments, train_dataset=data, eval_dataset=validation, callbacks=[tuning])
trainer.train(resume_from_checkpoint=tuning.checkpoint)

The schedule is constant, or one that does not depend on num_train_epochs: the default decays to zero at the end of
every rung, and a promoted trial goes on with another schedule.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Optional

try:
    from transformers import TrainerCallback
except ImportError as error:
    raise ImportError("tandem.integrations.transformers needs its library: pip install transformers") from error

from ..trial import Trial
from ._metrics import Chosen, chosen, done_early

_PREFIX = "eval_"


class TandemCallback(TrainerCallback):
    """Reports each epoch's evaluation, keeps what the Trainer saves, and ends the training where the server does.

    Metrics lose the ``eval_`` of their names: ``eval_loss`` is reported as ``loss``. ``metrics`` chooses which, by
    these names, or ``{"accuracy": "acc"}``; None for all. It needs ``eval_strategy="epoch"``, and for promotions
    that go on ``save_strategy="epoch"``: what is saved, random states included, becomes the trial's checkpoint.
    """

    def __init__(self, trial: Trial, metrics: Chosen = None) -> None:
        self.checkpoint: Optional[str] = None
        """For ``train(resume_from_checkpoint=...)``: where the trial's earlier run ended; None in its first run."""
        self._trial = trial
        self._metrics = metrics
        self._epochs: Iterator[int] = iter(())
        self._last: dict[str, float] = {}
        trial.restore(self._restore)

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if _strategy(args) != "epoch":
            raise ValueError(
                'a trial is reported at the end of each epoch: give TrainingArguments eval_strategy="epoch"'
            )
        done = round(state.epoch or 0)
        if done + 1 != self._trial.first_epoch:
            raise ValueError(
                f"training begins with epoch {done + 1}, and this run of the trial with epoch "
                f"{self._trial.first_epoch}: give train(resume_from_checkpoint=callback.checkpoint)"
            )
        self._epochs, self._last = self._trial.epochs(), {}

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        next(self._epochs, None)  # the first one says that the training begins; each sets the threads

    def on_evaluate(self, args: Any, state: Any, control: Any, metrics: Any = None, **kwargs: Any) -> Any:
        epoch = round(state.epoch or 0)
        if not self._trial.last_reported < epoch <= self._trial.epochs_total:
            return control  # an evaluation outside of training
        logged = {name[len(_PREFIX) :] if name.startswith(_PREFIX) else name: v for name, v in (metrics or {}).items()}
        logged.pop("epoch", None)
        self._last = chosen(logged, self._metrics)
        self._trial.report(epoch, **self._last)
        if self._trial.directive.action != "continue":
            control.should_training_stop = True
        return control

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        folder = Path(args.output_dir) / f"checkpoint-{state.global_step}"
        if folder.is_dir() and self._trial.directive.action != "stop":
            self._trial.checkpoint(lambda path: shutil.copytree(folder, path))

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        done_early(self._trial, self._last)

    def _restore(self, path: str) -> None:
        self.checkpoint = path


def _strategy(arguments: Any) -> str:
    """When the Trainer evaluates; the setting had another name before transformers 4.41."""
    found = getattr(arguments, "eval_strategy", None) or getattr(arguments, "evaluation_strategy", "")
    return str(getattr(found, "value", found))
