"""The callbacks, in the libraries they are for. What is not installed is skipped, and said."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Callable

import pytest
from conftest import StartAgent
from fake_agent import FakeAgent

import tandem
from tandem.errors import UnknownName
from tandem.integrations._metrics import chosen, done_early, require_first

Train = Callable[[tandem.Trial], None]


def climbed(start_agent: StartAgent, train: Train) -> tuple[list[Any], list[Any]]:
    """The reports of four epochs in two runs, the second from the first one's checkpoint, and of four in one."""
    first = start_agent(budget={"epochs": 2, "data_fraction": 1.0})
    train(tandem.current_trial())
    assert first.checkpoints[-1] == 2
    second = start_agent(
        budget={"epochs": 4, "data_fraction": 1.0}, first_epoch=3, checkpoint_dir=str(first.checkpoint_dir)
    )
    train(tandem.current_trial())
    straight = start_agent(budget={"epochs": 4, "data_fraction": 1.0})
    train(tandem.current_trial())
    assert first.begins == [1]
    assert second.begins == [3]
    assert [r["epoch"] for r in first.reports + second.reports] == [1, 2, 3, 4]
    return [r["metrics"] for r in first.reports + second.reports], [r["metrics"] for r in straight.reports]


def stopped(start_agent: StartAgent, train: Train) -> FakeAgent:
    """A run that the server pauses after its second epoch."""
    agent: FakeAgent = start_agent(budget={"epochs": 5, "data_fraction": 1.0})
    agent.directives = {2: {"action": "pause"}}
    train(tandem.current_trial())
    assert [r["epoch"] for r in agent.reports] == [1, 2]
    assert agent.checkpoints[-1] == 2
    return agent


def done(start_agent: StartAgent, train: Train) -> None:
    """A training that ends by its own judgement after its second epoch: what it has then counts for the budget."""
    agent = start_agent(budget={"epochs": 5, "data_fraction": 1.0})
    train(tandem.current_trial())
    assert [r["epoch"] for r in agent.reports] == [1, 2, 5]
    assert agent.reports[1]["metrics"] == agent.reports[2]["metrics"]


def test_what_is_done_early_is_measured(start_agent: StartAgent) -> None:
    for directive, measured, reported in (("continue", False, [2, 5]), ("pause", False, [2]), ("continue", True, [2])):
        budget = {"epochs": 5, "data_fraction": 1.0, **({"seconds": 9.0} if measured else {})}
        agent = start_agent(budget=budget)
        agent.directives = {2: {"action": directive}}
        trial = tandem.current_trial()
        done_early(trial, {})
        trial.report(2, accuracy=0.5)
        done_early(trial, {"accuracy": 0.5})
        done_early(trial, {"accuracy": 0.5})
        assert [r["epoch"] for r in agent.reports] == reported


def test_choosing_metrics() -> None:
    logged = {"loss": 0.5, "val/accuracy": 0.75, "note": "text"}
    assert chosen(logged, None) == {"loss": 0.5, "val/accuracy": 0.75}
    assert chosen(logged, ["loss"]) == {"loss": 0.5}
    assert chosen(logged, {"accuracy": "val/accuracy"}) == {"accuracy": 0.75}
    with pytest.raises(UnknownName, match="did you mean 'val/accuracy'"):
        chosen(logged, {"accuracy": "val_accuracy"})
    with pytest.raises(ValueError, match="begins with epoch 1, and this run of the trial with epoch 3: fix"):
        require_first(1, 3, "fix")


@pytest.mark.parametrize("name", ["lightning", "keras", "transformers", "sklearn"])
def test_a_library_that_is_missing(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    for library in (name, f"{name}.pytorch", f"{name}.base", "pytorch_lightning"):
        monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.delitem(sys.modules, f"tandem.integrations.{name}", raising=False)
    with pytest.raises(ImportError, match="pip install"):
        __import__(f"tandem.integrations.{name}")


def lightning_training(limit: int = -1, **more: Any) -> Train:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    pl = pytest.importorskip("lightning.pytorch", reason="PyTorch Lightning is not installed")
    from tandem.integrations.lightning import TandemCallback

    class Line(pl.LightningModule):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(1, 1)
            torch.nn.init.constant_(self.layer.weight, 0.0)
            torch.nn.init.constant_(self.layer.bias, 0.0)

        def training_step(self, batch: Any, index: int) -> Any:
            return self._loss(batch)

        def validation_step(self, batch: Any, index: int) -> None:
            self.log("val_loss", self._loss(batch))

        def _loss(self, batch: Any) -> Any:
            x, y = batch
            return torch.nn.functional.mse_loss(self.layer(x), y)

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=0.1, momentum=0.9)

    x = torch.linspace(-1, 1, 16).reshape(-1, 1)
    data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, 2 * x + 1), batch_size=4)

    def train(trial: tandem.Trial) -> None:
        tuning = TandemCallback(trial, {"accuracy": "val_loss"}, **more)
        trainer = pl.Trainer(
            max_epochs=trial.epochs_total,
            max_steps=limit,
            callbacks=[tuning],
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            accelerator="cpu",
        )
        trainer.fit(Line(), data, data, ckpt_path=tuning.checkpoint)

    return train


@pytest.mark.filterwarnings("ignore")
def test_lightning(start_agent: StartAgent) -> None:
    train = lightning_training()
    pieces, straight = climbed(start_agent, train)
    assert pieces == straight
    assert straight[-1]["accuracy"] < straight[0]["accuracy"]
    stopped(start_agent, train)
    done(start_agent, lightning_training(limit=8))


@pytest.mark.filterwarnings("ignore")
def test_lightning_without_its_checkpoint(start_agent: StartAgent, tmp_path: Path) -> None:
    train = lightning_training(keep=False)
    agent = start_agent(budget={"epochs": 2, "data_fraction": 1.0})
    train(tandem.current_trial())
    assert agent.checkpoints == []


@pytest.mark.filterwarnings("ignore")
def test_keras(start_agent: StartAgent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("jax", reason="JAX, on which Keras is tried, is not installed")
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    keras = pytest.importorskip("keras", reason="Keras is not installed")
    np = pytest.importorskip("numpy")
    from tandem.integrations.keras import TandemCallback

    x = np.linspace(-1, 1, 16, dtype="float32").reshape(-1, 1)

    def train(trial: tandem.Trial, epochs: bool = True, more: Any = ()) -> None:
        model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1, kernel_initializer="zeros")])
        model.compile(optimizer=keras.optimizers.SGD(0.1, momentum=0.9), loss="mse")
        model.fit(
            x,
            2 * x + 1,
            validation_data=(x, 2 * x + 1),
            initial_epoch=trial.first_epoch - 1 if epochs else 0,
            epochs=trial.epochs_total,
            shuffle=False,
            batch_size=4,
            verbose=0,
            callbacks=[TandemCallback(trial, {"accuracy": "val_loss"}), *more],
        )

    pieces, straight = climbed(start_agent, train)
    assert [m["accuracy"] for m in pieces] == pytest.approx([m["accuracy"] for m in straight], rel=1e-5)
    assert straight[-1]["accuracy"] < straight[0]["accuracy"]
    never = keras.callbacks.EarlyStopping("val_loss", min_delta=1e9, patience=1)
    done(start_agent, lambda trial: train(trial, more=[never]))
    agent = stopped(start_agent, train)
    start_agent(budget={"epochs": 5, "data_fraction": 1.0}, first_epoch=3, checkpoint_dir=str(agent.checkpoint_dir))
    with pytest.raises(ValueError, match="give fit"):
        train(tandem.current_trial(), epochs=False)


@pytest.mark.filterwarnings("ignore")
def test_transformers(start_agent: StartAgent, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    pytest.importorskip("accelerate", reason="accelerate is not installed")
    from tandem.integrations.transformers import TandemCallback

    class Line(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(1, 1)
            torch.nn.init.constant_(self.layer.weight, 0.0)
            torch.nn.init.constant_(self.layer.bias, 0.0)

        def forward(self, x: Any, labels: Any) -> Any:
            logits = self.layer(x)
            return {"loss": torch.nn.functional.mse_loss(logits, labels), "logits": logits}

    points = torch.linspace(-1, 1, 16).reshape(-1, 1)
    data = [{"x": point, "labels": 2 * point + 1} for point in points]
    runs = iter(range(100))
    evaluated = {"eval_strategy": "epoch"}
    if "eval_strategy" not in transformers.TrainingArguments.__dataclass_fields__:
        evaluated = {"evaluation_strategy": "epoch"}

    def train(trial: tandem.Trial, steps: int = -1) -> None:
        tuning = TandemCallback(trial, {"accuracy": "loss"})
        arguments = transformers.TrainingArguments(
            str(tmp_path / f"run{next(runs)}"),
            num_train_epochs=trial.epochs_total,
            max_steps=steps,
            learning_rate=0.1,
            lr_scheduler_type="constant",
            save_strategy="epoch",
            per_device_train_batch_size=4,
            report_to=[],
            disable_tqdm=True,
            use_cpu=True,
            **evaluated,
        )
        trainer = transformers.Trainer(Line(), arguments, train_dataset=data, eval_dataset=data, callbacks=[tuning])
        trainer.train(resume_from_checkpoint=tuning.checkpoint)

    pieces, straight = climbed(start_agent, train)
    assert [m["accuracy"] for m in pieces] == pytest.approx([m["accuracy"] for m in straight], rel=1e-4)
    assert straight[-1]["accuracy"] < straight[0]["accuracy"]
    stopped(start_agent, train)
    done(start_agent, lambda trial: train(trial, 8))


@pytest.mark.filterwarnings("ignore")
def test_sklearn(real_client: tandem.Client) -> None:
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    from sklearn.datasets import load_iris
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    from tandem.integrations.sklearn import TandemSearchCV

    X, y = load_iris(return_X_y=True)
    space = {
        "svc__C": {"type": "float", "low": 1e-3, "high": 1e3, "log": True},
        "svc__kernel": {"values": ["rbf", "linear"]},
    }
    search = TandemSearchCV(make_pipeline(StandardScaler(), SVC()), space, n_trials=12, client=real_client)
    with pytest.raises(ValueError, match="call fit first"):
        search.predict(X)
    search.fit(X, y)
    assert search.best_score_ > 0.9
    assert search.score(X, y) > 0.9
    assert set(search.best_params_) == {"svc__C", "svc__kernel"}
    assert search.predict(X[:3]).shape == (3,)
    assert not hasattr(search, "transform")
    results = search.cv_results_
    assert len(results["params"]) == 12
    assert max(results["folds"]) == 5
    assert sum(results["folds"]) < 12 * 5
    assert results["mean_test_score"][results["rank_test_score"].index(1)] == search.best_score_
    best = search.study_.learning_curve(search.study_.best_trial.number)
    scores = [float(report["metrics"]["fold_score"]) for report in best]
    assert search.best_score_ == pytest.approx(sum(scores) / 5)


def test_a_sklearn_search_outlives_what_cannot_be_fitted(real_client: tandem.Client) -> None:
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    from sklearn.datasets import load_iris
    from sklearn.svm import SVC

    from tandem.integrations.sklearn import TandemSearchCV

    X, y = load_iris(return_X_y=True)
    space = {"kernel": {"values": ["rbf", "nonsense"]}}
    search = TandemSearchCV(SVC(), space, n_trials=6, cv=2, client=real_client, search={"method": "random", "seed": 1})
    search.fit(X, y)
    assert search.best_params_ == {"kernel": "rbf"}
    failed = [record for record in search.study_.trials if record.state == "failed"]
    assert failed
    assert "nonsense" in failed[0].reason
    with pytest.raises(ValueError, match=r"no configuration got a score: 2 failed, the last with .*nonsense"):
        TandemSearchCV(SVC(), {"kernel": {"values": ["nonsense"]}}, n_trials=2, cv=2, client=real_client).fit(X, y)
