"""A model as an ONNX file: what the emulator reads to tell how it will run at the edge.

Nothing here is imported before it is needed, and nothing is a dependency: a
model of PyTorch is written by PyTorch, one of Keras by Keras or tf2onnx, one of
scikit-learn by skl2onnx. Whoever has ONNX already hands over bytes or a path.
"""

from __future__ import annotations

import inspect
import io
import os
import sys
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .errors import TandemError

Model = Any
"""A torch.nn.Module, a Keras model, a fitted scikit-learn estimator, ONNX bytes, or the path of an ONNX file."""

OPSET = 13
"""The version of ONNX's operators that models of PyTorch are written with."""


class ModelError(TandemError):
    """The model cannot be written as ONNX."""


def to_onnx(model: Model, sample_input: Any = None) -> bytes:
    """The model as the bytes of an ONNX file, with the first dimension of its inputs left open for the batch.

    ``sample_input`` is one batch as the model takes it (a tensor, an array, or a tuple or list of several). ONNX
    bytes and paths need none. The model is left as it was: its mode, its gradients and random generators.
    """
    if isinstance(model, (bytes, bytearray, memoryview)):
        return _of_onnx(bytes(model))
    if isinstance(model, (str, os.PathLike)):
        return _of_onnx(Path(os.fspath(model)).read_bytes())
    if _is_a(model, "torch", "nn.Module"):
        return _from_torch(model, _needed(sample_input, "torch.nn.Module"))
    if _module(model, "keras") or _module(model, "tensorflow"):
        return _from_keras(model)
    if _module(model, "sklearn"):
        return _from_sklearn(model, _needed(sample_input, "scikit-learn estimator"))
    raise ModelError(
        f"cannot write a {type(model).__module__}.{type(model).__name__} as ONNX: give a torch.nn.Module, a Keras "
        "model, a fitted scikit-learn estimator, ONNX bytes, or the path of an ONNX file"
    )


def _of_onnx(content: bytes) -> bytes:
    """The content, unless it begins as another format does in which models are saved."""
    litert = content[4:8] == b"TFL3" and content[:1] != b"\x08"  # where ONNX has its version
    if litert or content.startswith((b"PK\x03\x04", b"\x89HDF")):
        kind = "a LiteRT (TensorFlow Lite) file" if litert else "a file as PyTorch or Keras save models"
        raise ModelError(f"this is {kind}, and only ONNX files are taken: give the model itself, to be written as ONNX")
    return content


def _needed(sample_input: Any, kind: str) -> Any:
    if sample_input is None:
        raise ModelError(f"a {kind} needs a sample of its input: trial.save_model(model, sample_input)")
    return sample_input


def _module(model: Model, name: str) -> bool:
    return any(base.__module__.split(".")[0] == name for base in type(model).__mro__)


def _is_a(model: Model, library: str, name: str) -> bool:
    kind: Any = sys.modules.get(library)
    for part in name.split("."):
        kind = getattr(kind, part, None)
    return kind is not None and isinstance(model, kind)


def _from_torch(model: Any, sample_input: Any) -> bytes:
    import torch  # type: ignore[import-not-found,unused-ignore]

    samples: Sequence[Any] = sample_input if isinstance(sample_input, (tuple, list)) else (sample_input,)
    names = [f"input_{i}" for i in range(len(samples))]
    options: dict[str, Any] = {
        "input_names": names,
        "dynamic_axes": {name: {0: "batch"} for name in names},
        "opset_version": OPSET,
        "do_constant_folding": False,
    }
    if "dynamo" in inspect.signature(torch.onnx.export).parameters:
        options["dynamo"] = False  # the newer exporter needs a package of its own
    training = [part for part in model.modules() if part.training]
    out = io.BytesIO()
    try:
        model.eval()
        with torch.random.fork_rng(devices=[]), torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the exporter warns of each shape it takes as fixed
            torch.onnx.export(model, tuple(samples), out, **options)
    except Exception as error:
        raise ModelError(f"PyTorch cannot write the model as ONNX: {error}") from error
    finally:
        for part in training:
            part.training = True
    return out.getvalue()


def _from_keras(model: Any) -> bytes:
    with tempfile.TemporaryDirectory(prefix="tandem-") as folder:
        path = str(Path(folder) / "model.onnx")
        try:
            if "format" in inspect.signature(model.export).parameters:  # Keras 3.9 and newer
                model.export(path, format="onnx", verbose=False)
            else:
                import tf2onnx  # type: ignore[import-not-found,unused-ignore]

                tf2onnx.convert.from_keras(model, output_path=path)
        except ImportError as error:
            raise ModelError(
                f"writing a Keras model as ONNX needs a package more: pip install tf2onnx ({error})"
            ) from error
        except Exception as error:
            raise ModelError(f"Keras cannot write the model as ONNX: {error}") from error
        return Path(path).read_bytes()


def _from_sklearn(model: Any, sample_input: Any) -> bytes:
    try:
        from skl2onnx import to_onnx as convert  # type: ignore[import-not-found,unused-ignore]
    except ImportError as error:
        raise ModelError(
            "writing a scikit-learn estimator as ONNX needs a package more: pip install skl2onnx"
        ) from error
    try:
        written: Any = convert(model, sample_input[:1])
        return bytes(written.SerializeToString())
    except Exception as error:
        raise ModelError(f"skl2onnx cannot write the estimator as ONNX (fit it first): {error}") from error
