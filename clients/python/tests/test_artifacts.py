"""Files that trials log."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from real_server import binary

import tandem


def test_a_worker_gets_the_file(start_agent: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    agent = start_agent()
    for name, value in agent.environment().items():
        monkeypatch.setenv(name, value)
    plot = tmp_path / "plot.png"
    plot.write_bytes(b"a picture")
    trial = tandem.current_trial()
    trial.log_artifact("confusion.png", plot)
    trial.log_artifact("a b", str(plot))
    trial.log_artifact("notes.txt", b"plain")
    trial.log_model(b"trained")
    assert agent.artifacts == {
        "confusion.png": b"a picture",
        "a%20b": b"a picture",
        "notes.txt": b"plain",
        "model.onnx": b"trained",
    }


def test_an_older_worker_is_said_to_be_one(
    start_agent: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    agent = start_agent()
    agent.old = True
    for name, value in agent.environment().items():
        monkeypatch.setenv(name, value)
    tandem.current_trial().log_artifact("a.txt", b"text")
    assert "too old to keep artifacts" in capsys.readouterr().err


def test_by_hand_the_size_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    tandem.current_trial(params={}).log_artifact("a.txt", b"12345")
    assert "artifact a.txt: 5 bytes" in capsys.readouterr().out


DEFINITION = {
    "objective": {"metric": "accuracy", "direction": "maximize"},
    "space": {"x": {"type": "int", "low": 0, "high": 9}},
    "budget": {"epochs": 2},
    "search": {"method": "random", "seed": 1},
}


def test_functions_of_this_process_log_too(real_client: tandem.Client) -> None:
    study = real_client.create_study({**DEFINITION, "name": "with-artifacts", "stop": {"trials": 2}})

    def objective(trial: tandem.Trial) -> None:
        for epoch in trial.epochs():
            if trial.number == 0:
                trial.log_artifact("matrix.csv", f"label,{epoch}\n".encode())
            trial.report(accuracy=0.5)
        if trial.number == 0:
            with pytest.raises(tandem.InvalidError, match="must have 1 to 100 letters"):
                trial.log_artifact("../x", b"x")

    study.optimize(objective)
    assert [(one["name"], one["kind"], one["epoch"]) for one in study.trial(0).artifacts] == [
        ("matrix.csv", "table", 1)
    ]
    assert study.artifact(0, "matrix.csv") == b"label,2\n"
    assert study.trial(1).artifacts == ()
    with pytest.raises(tandem.NotFoundError, match="no artifact"):
        study.artifact(1, "matrix.csv")


def test_a_script_of_a_worker_logs(real_client: tandem.Client, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "import os, tandem\n"
        "trial = tandem.current_trial()\n"
        "for epoch in trial.epochs():\n"
        "    trial.report(accuracy=0.5)\n"
        "    trial.log_artifact('epoch.txt', str(epoch).encode())\n"
        "open(os.path.join(os.environ['TANDEM_ARTIFACT_DIR'], 'left.png'), 'w').write('a picture')\n"
        "os.symlink('/etc/passwd', os.path.join(os.environ['TANDEM_ARTIFACT_DIR'], 'link.txt'))\n"
    )
    command = [sys.executable, str(script)]
    name = "script-with-artifacts"
    more = {"command": command, "environment": {"PYTHONPATH": str(Path(tandem.__file__).parent.parent)}}
    study = real_client.create_study({**DEFINITION, "name": name, "stop": {"trials": 1}, **more})
    tool = binary()
    assert tool is not None
    worker = subprocess.Popen([tool, "worker", "--study", study.id, "--sandbox", "off", "--scratch", str(tmp_path)])
    try:
        study.wait(progress=False)
    finally:
        worker.terminate()
        worker.wait()
    assert [(one["name"], one["kind"]) for one in study.trial(0).artifacts] == [
        ("epoch.txt", "text"),
        ("left.png", "image"),
    ]
    assert (study.artifact(0, "epoch.txt"), study.artifact(0, "left.png")) == (b"2", b"a picture")
