"""A trained model in other precisions: made by ONNX Runtime's quantizer, and judged by the script's own function.

Nothing here is imported before it is needed. It needs the packages onnxruntime and onnx.
"""

from __future__ import annotations

import importlib
import math
import sys
import tempfile
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable

Predict = Callable[..., Any]
"""Takes an array of samples for each input of the model, and returns the output's array, or a list of several."""

Evaluate = Callable[[Predict], Any]
"""Says what a model is worth, given a function that predicts with it."""

_ROWS = 64  # at a time
_DYNAMIC = ["MatMul", "Gemm", "Attention", "LSTM", "Gather", "EmbedLayerNormalization"]  # convolutions are slower so


@dataclass(frozen=True)
class Variant:
    """The model in one precision, and what it is worth there."""

    precision: str
    content: bytes
    value: float
    samples: int


def variants(content: bytes, precisions: Sequence[str], calibration: Any, evaluate: Evaluate) -> Iterator[Variant]:
    """The model in each precision that can be made of it, fp32 first. What fails is said, and left out."""
    with tempfile.TemporaryDirectory(prefix="tandem-") as folder:
        source = Path(folder) / "fp32.onnx"
        source.write_bytes(content)
        for precision in precisions:
            try:
                path = _made(source, precision, calibration)
                judged = _Predict(path)
                value = _value(evaluate, judged)
                yield Variant(precision, path.read_bytes(), value, judged.samples)
            except Exception as error:
                first = precision == "fp32"  # without it there is nothing to compare with
                left = "no precision is compared" if first else f"{precision} is left out"
                print(f"tandem: {left}: {_reason(error)}", file=sys.stderr, flush=True)
                if first:
                    return


def _value(evaluate: Evaluate, predict: _Predict) -> float:
    """What the script's function says, or where in the script it failed."""
    try:
        value = float(evaluate(predict))
    except Exception as error:
        at = traceback.extract_tb(error.__traceback__)[1:] or traceback.extract_tb(error.__traceback__)
        raise ValueError(
            f"evaluate failed in {Path(at[0].filename).name}, line {at[0].lineno}: {type(error).__name__}: {error}; "
            "predict returns NumPy arrays: compare them with NumPy arrays"
        ) from error
    if not math.isfinite(value):
        raise ValueError(f"evaluate returned {value}")
    return value


def _package(name: str) -> Any:
    return importlib.import_module(name)


def _reason(error: Exception) -> str:
    if isinstance(error, ImportError):
        return f"it needs more packages beside the script: pip install onnxruntime onnx ({error})"
    return f"{type(error).__name__}: {error}"


def _made(source: Path, precision: str, calibration: Any) -> Path:
    """The file in the precision, beside its source."""
    made = source.with_name(f"{precision}.onnx")
    if precision == "fp16":
        _to_fp16(source, made)
    elif precision == "int8":
        if calibration is None:
            raise ValueError("int8 needs samples of the inputs: trial.log_model(model, sample, calibration=samples)")
        _to_int8(source, made, calibration)
    elif precision == "int8-dynamic":
        ort = _package("onnxruntime.quantization")
        ort.quantize_dynamic(_prepared(source), made, weight_type=ort.QuantType.QInt8, op_types_to_quantize=_DYNAMIC)
    elif precision != "fp32":
        raise ValueError("this version of the package cannot make it: update tandem-tune")
    return made


def _to_fp16(source: Path, made: Path) -> None:
    onnx, float16 = _package("onnx"), _package("onnxruntime.transformers.float16")
    model = float16.convert_float_to_float16(onnx.load(source), keep_io_types=True)
    nodes = _ordered(model.graph)
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    onnx.save(model, made)


def _ordered(graph: Any) -> list[Any]:
    """The nodes, each behind those that it takes from: the converter puts casts at the end."""
    made = {name for node in graph.node for name in node.output}
    ordered: list[Any] = []
    left = list(graph.node)
    while left:
        ready = [node for node in left if not made.intersection(node.input)] or left
        made.difference_update(name for node in ready for name in node.output)
        ordered += ready
        left = [node for node in left if made.intersection(node.output)]
    return ordered


def _to_int8(source: Path, made: Path, calibration: Any) -> None:
    ort, prepared = _package("onnxruntime.quantization"), _prepared(source)
    ort.quantize_static(
        prepared,
        made,
        _reader(prepared, calibration),
        quant_format=ort.QuantFormat.QDQ,
        activation_type=ort.QuantType.QUInt8,  # which processors multiply with signed weights
        weight_type=ort.QuantType.QInt8,
        per_channel=True,
    )


def _prepared(source: Path) -> Path:
    """The model with its shapes and without what can be folded, as the quantizer wants it; or as it is."""
    prepared = source.with_name("prepared.onnx")
    try:
        _package("onnxruntime.quantization.shape_inference").quant_pre_process(
            source, prepared, skip_symbolic_shape=True
        )
    except Exception:
        return source
    return prepared


def _reader(path: Path, calibration: Any) -> Any:
    base: Any = _package("onnxruntime.quantization").CalibrationDataReader

    class Reader(base):  # type: ignore[misc]
        def __init__(self) -> None:
            self._parts = _Predict(path).parts(*_arrays(calibration))

        def get_next(self) -> Any:
            return next(self._parts, None)

    return Reader()


def _arrays(samples: Any) -> list[Any]:
    return list(samples) if isinstance(samples, (tuple, list)) else [samples]


class _Predict:
    """Runs a model on arrays of samples, some at a time, and counts them."""

    def __init__(self, path: Path) -> None:
        ort = _package("onnxruntime")
        options = ort.SessionOptions()
        options.log_severity_level = 3  # errors
        self._session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self.samples = 0

    def parts(self, *arrays: Any) -> Iterator[Mapping[str, Any]]:
        numpy = _package("numpy")
        inputs = self._session.get_inputs()
        if len(arrays) != len(inputs):
            raise ValueError(f"the model has {len(inputs)} inputs, and samples of {len(arrays)} were given")
        fixed = inputs[0].shape[0] if inputs[0].shape else None
        rows = fixed if isinstance(fixed, int) else _ROWS
        plain = [numpy.asarray(one.detach().cpu() if hasattr(one, "detach") else one) for one in arrays]
        for at in range(0, len(plain[0]), rows):
            yield {one.name: array[at : at + rows] for one, array in zip(inputs, plain)}

    def __call__(self, *arrays: Any) -> Any:
        numpy = _package("numpy")
        outputs = [self._session.run(None, part) for part in self.parts(*arrays)]
        self.samples += len(arrays[0])
        joined = [numpy.concatenate(one) for one in zip(*outputs)]
        return joined[0] if len(joined) == 1 else joined
