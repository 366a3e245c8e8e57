"""Models that scripts hand over."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import tandem
from tandem.model import to_onnx


def test_bytes_and_paths_are_taken_as_they_are(tmp_path: Path) -> None:
    file = tmp_path / "model.onnx"
    file.write_bytes(b"a model")
    assert to_onnx(b"a model") == to_onnx(bytearray(b"a model")) == to_onnx(file) == to_onnx(str(file)) == b"a model"


def test_what_is_no_model_is_refused() -> None:
    with pytest.raises(tandem.ModelError, match=r"cannot write a builtins.int as ONNX: give a torch.nn.Module"):
        to_onnx(3)


@pytest.mark.parametrize(
    ("content", "kind"),
    [(b"\x1c\0\0\0TFL3", "LiteRT"), (b"PK\x03\x04", "PyTorch or Keras"), (b"\x89HDF\r\n", "PyTorch or Keras")],
)
def test_files_of_other_formats_are_refused(content: bytes, kind: str, tmp_path: Path) -> None:
    file = tmp_path / "model.onnx"
    file.write_bytes(content)
    for given in (content, file):
        with pytest.raises(tandem.ModelError, match=kind):
            to_onnx(given)
    named = b"\x08\x07\x12\x04TFL3"  # ONNX, by a producer of that name
    assert to_onnx(named) == named


def test_a_worker_gets_the_model(start_agent: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = start_agent()
    for name, value in agent.environment().items():
        monkeypatch.setenv(name, value)
    content = bytes(range(256)) * 5000  # more than one read
    tandem.current_trial().save_model(content)
    assert agent.models == [content]


def test_an_older_worker_is_said_to_be_one(
    start_agent: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    agent = start_agent()
    agent.old = True
    for name, value in agent.environment().items():
        monkeypatch.setenv(name, value)
    tandem.current_trial().save_model(b"a model")
    assert "too old to look at models" in capsys.readouterr().err


def test_by_hand_the_size_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    tandem.current_trial(params={}).save_model(b"12345")
    assert "model: 5 bytes of ONNX" in capsys.readouterr().out


class Module:
    """Stands in for torch.nn.Module where PyTorch is not installed."""

    def __init__(self) -> None:
        self.training = True

    def modules(self) -> list[Module]:
        return [self]

    def eval(self) -> None:
        self.training = False


def test_a_model_of_pytorch_needs_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    class Torch:
        class nn:
            Module = Module

    monkeypatch.setitem(sys.modules, "torch", Torch())
    with pytest.raises(tandem.ModelError, match=r"needs a sample of its input"):
        to_onnx(Module())
