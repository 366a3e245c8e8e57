"""Models where they are used: what of that runs on a GPU."""

from __future__ import annotations

import json

from .check import CHECK, SCRIPT, TANDEM, Check, run
from .report import NOTE, SKIPPED

PROVIDERS = """
import json, os, onnxruntime
folder = os.path.join(os.path.dirname(onnxruntime.__file__), "capi")
print(json.dumps([onnxruntime.__version__, onnxruntime.get_available_providers(), folder]))
"""

ON_CUDA = """
import sys, time, numpy, onnxruntime
session = onnxruntime.InferenceSession(sys.argv[1], providers=["CUDAExecutionProvider"])
inputs = {session.get_inputs()[0].name: numpy.zeros((8, 3, 32, 32), numpy.float32)}
for turn in range(120):
    began = time.time() if turn == 20 else began if turn else 0
    session.run(None, inputs)
print(session.get_providers()[0], f"batch 8: {10 * (time.time() - began):.2f} ms")
"""


def inference(check: Check) -> None:
    site = check.site
    seen = "no: tandem edge run and this-machine use ONNX Runtime on the CPU (docs/edge.md)"
    check.add("Tandem runs models on a GPU", seen, "the documentation", SKIPPED, "the product has no inference on GPUs")
    said = run([check.python, "-c", PROVIDERS], 60)
    _, providers, folder = ("", [], "") if said.startswith("failed") else json.loads(said.splitlines()[-1])
    check.add("providers of ONNX Runtime", said[-200:], CHECK, NOTE)
    notes = [one for one in site.told("resnet") if one["kind"] == "onnx"]
    path = site.notes / "resnet.onnx"
    if not notes or notes[0].get("error"):
        why = notes[0]["error"] if notes else "the step resnet did not run"
        check.add("a model becomes ONNX (tandem.model.to_onnx)", "no", SCRIPT, False if notes else SKIPPED, why)
        return
    check.add("a model becomes ONNX (tandem.model.to_onnx)", f"{path.stat().st_size} bytes", SCRIPT, True)
    if not providers:
        check.add("the model on the CPU (tandem edge run)", "no", TANDEM, SKIPPED, "onnxruntime is not installed")
        return
    wanted = ("edge", "run", str(path), "--batch", "1,8", "--seconds", "2", "--onnxruntime", folder)
    measured = site.json(*wanted, timeout=max(5, check.left()))
    check.keep("edge.json", measured)
    cells = measured.get("cells") or []
    seen = "; ".join(f"batch {one['batch']}: {1000 * one['latency']['mean_seconds']:.2f} ms" for one in cells)
    check.add("the model on the CPU (tandem edge run)", seen, TANDEM, bool(cells))
    if "CUDAExecutionProvider" not in providers:
        check.add("the model by CUDAExecutionProvider", "no", CHECK, SKIPPED, "this onnxruntime is built without CUDA")
        return
    said = run([check.python, "-c", ON_CUDA, str(path)], max(5, min(60, check.left())))
    check.add("the model by CUDAExecutionProvider", said, CHECK, "CUDAExecutionProvider" in said)
