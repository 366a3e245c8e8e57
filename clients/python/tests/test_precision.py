"""Trained models in other precisions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import tandem
import tandem.precision
import tandem.trial
from tandem.precision import Variant, variants


@pytest.fixture
def agent(start_agent: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    agent = start_agent(precisions=["fp32", "int8"])
    for name, value in agent.environment().items():
        monkeypatch.setenv(name, value)
    return agent


def test_precisions_go_to_the_worker_and_are_kept(agent: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def made(content: bytes, precisions: Any, calibration: Any, evaluate: Any) -> Iterator[Variant]:
        assert (precisions, calibration) == (("fp32", "int8"), [3])
        for precision in precisions:
            yield Variant(precision, content + precision.encode(), evaluate(None), 7)

    monkeypatch.setattr(tandem.trial, "variants", made)
    tandem.current_trial().log_model(b"a model", calibration=[3], evaluate=lambda _: 0.5)
    assert agent.artifacts == {"model.onnx": b"a model", "model-int8.onnx": b"a modelint8"}
    assert agent.precisions == {
        "precision=fp32&value=0.5&samples=7&more=true": b"a modelfp32",
        "precision=int8&value=0.5&samples=7": b"a modelint8",
    }


def test_without_a_judge_nothing_is_made(agent: Any, capsys: pytest.CaptureFixture[str]) -> None:
    tandem.current_trial().log_model(b"a model")
    assert agent.artifacts == {"model.onnx": b"a model"} and not agent.precisions
    assert "the study wants fp32, int8" in capsys.readouterr().err


def test_a_study_without_precisions_evaluates_nothing(start_agent: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = start_agent()
    for name, value in agent.environment().items():
        monkeypatch.setenv(name, value)
    tandem.current_trial().log_model(b"a model", evaluate=lambda _: 1 / 0)
    assert agent.artifacts == {"model.onnx": b"a model"} and not agent.precisions


def test_what_cannot_be_made_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(variants(b"no model", ["fp32", "int8"], None, lambda _: 1.0)) == []
    assert "no precision is compared: " in capsys.readouterr().err


def test_a_judge_that_fails_is_told_where(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tandem.precision, "_Predict", lambda path: path)

    def judge(predict: Any) -> float:
        return bool(predict).mean()  # type: ignore[attr-defined, no-any-return]

    assert list(variants(b"a model", ["fp32", "int8"], None, judge)) == []
    said = capsys.readouterr().err
    assert "tandem: no precision is compared: ValueError: evaluate failed in test_precision.py, line " in said
    assert "AttributeError: 'bool' object has no attribute 'mean'; predict returns NumPy arrays" in said


def test_a_package_that_is_missing_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def lacking(name: str) -> Any:
        raise ImportError(f"No module named {name!r}")

    monkeypatch.setattr(tandem.precision, "_package", lacking)
    assert list(variants(b"a model", ["fp32", "int8"], None, lambda _: 1.0)) == []
    assert "it needs more packages beside the script: pip install onnxruntime onnx" in capsys.readouterr().err


def test_a_network_is_quantized(capsys: pytest.CaptureFixture[str]) -> None:
    numpy = pytest.importorskip("numpy")
    onnx = pytest.importorskip("onnx", reason="quantizing needs the packages onnx and onnxruntime")
    pytest.importorskip("onnxruntime", reason="quantizing needs the packages onnx and onnxruntime")
    weight = numpy.random.default_rng(1).normal(size=(64, 10)).astype("float32")
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("MatMul", ["x", "w"], ["y"])],
        "network",
        [onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["batch", 64])],
        [onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["batch", 10])],
        [onnx.numpy_helper.from_array(weight, "w")],
    )
    opset = [onnx.helper.make_opsetid("", 13)]
    content = onnx.helper.make_model(graph, opset_imports=opset, ir_version=8).SerializeToString()
    samples = numpy.random.default_rng(2).normal(size=(150, 64)).astype("float32")
    labels = (samples @ weight).argmax(1)

    def judge(predict: Any) -> Any:
        return (predict(samples).argmax(1) == labels).mean()

    made = list(variants(content, ["fp32", "fp16", "int8", "int8-dynamic"], samples[:70], judge))
    assert [one.precision for one in made] == ["fp32", "fp16", "int8", "int8-dynamic"], capsys.readouterr().err
    assert made[0].value == 1 and all(0.9 < one.value <= 1 and one.samples == 150 for one in made)
    for one in made:  # the worker refuses nodes out of order
        graph, written = onnx.load_from_string(one.content).graph, set[str]()
        later = {name for node in graph.node for name in node.output}
        for node in graph.node:
            assert not (set(node.input) & later) - written
            written.update(node.output)
    kinds = [{node.op_type for node in onnx.load_from_string(one.content).graph.node} for one in made]
    assert "DequantizeLinear" in kinds[2] and "MatMulInteger" in kinds[3]

    left = [one.precision for one in variants(content, ["fp32", "int8", "int4"], None, judge)]
    said = capsys.readouterr().err
    assert left == ["fp32"] and "int8 needs samples of the inputs" in said
    assert "int4 is left out: ValueError: this version" in said
    assert not list(variants(content, ["fp32"], None, lambda _: float("nan"))) and "nan" in capsys.readouterr().err
