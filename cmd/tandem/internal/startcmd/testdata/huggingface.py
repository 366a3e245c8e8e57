from dataclasses import dataclass, field

from transformers import HfArgumentParser, Trainer, TrainingArguments


@dataclass
class Tuning:
    learning_rate: float = field(default=5e-5, metadata={"help": "the initial learning rate"})
    per_device_train_batch_size: int = 16
    weight_decay: float = 0.0
    warmup_ratio: float = 0.06
    lr_scheduler: str = "linear"
    num_train_epochs: int = 3
    max_seq_length: int = 128
    output_dir: str = "out"
    fp16: bool = False
    model_name: str = "distilbert-base-uncased"


def main():
    (args,) = HfArgumentParser(Tuning).parse_args_into_dataclasses()
    trainer = Trainer(args=TrainingArguments(args.output_dir), compute_metrics=lambda found: {"f1": 0.0})
    trainer.train()
