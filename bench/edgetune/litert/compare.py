"""Compares LiteRT with ONNX Runtime on this machine, in fp32 and int8, on ONNX files of one input.

    python3 bench/edgetune/litert/compare.py convert FOLDER    # by onnx2tf 2.6.9, which needs Python 3.12
    python3 bench/edgetune/litert/compare.py quantize FOLDER   # by ai-edge-quantizer
    python3 bench/edgetune/litert/compare.py measure FOLDER    # with onnxruntime and ai-edge-litert

The files are those of `go run ./bench/edgetune networks FOLDER`; the first two steps want packages that do not go
together. Each runtime has a process of its own, which sleeps while the other one runs.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Callable

import numpy

Run = Callable[[], Any]
RUNTIMES = (".onnx", ".tflite")


def convert(source: Path) -> None:
    """Write the network with one sample: NAME/fp32.onnx, fp32.tflite, int8.onnx and int8.tflite."""
    import onnx
    from onnxruntime import quantization
    from onnxruntime.quantization import shape_inference
    from onnxruntime.tools.onnx_model_utils import make_input_shape_fixed

    folder = source.with_suffix("")
    folder.mkdir(exist_ok=True)
    model = onnx.load(source)
    (entry,) = model.graph.input
    shape = [max(1, axis.dim_value) for axis in entry.type.tensor_type.shape.dim]
    make_input_shape_fixed(model.graph, entry.name, shape)
    fp32 = folder / "fp32.onnx"
    onnx.save(model, fp32)
    shape_inference.quant_pre_process(fp32, fp32, skip_symbolic_shape=True)
    samples = numpy.random.default_rng(2).random((32, *shape), dtype=numpy.float32)
    numpy.save(folder / "samples.npy", samples)

    class Samples(quantization.CalibrationDataReader):
        def __init__(self) -> None:
            self.left = iter(samples)

        def get_next(self) -> Any:
            one = next(self.left, None)
            return None if one is None else {entry.name: one}

    # as the client does (clients/python/tandem/precision.py)
    quantization.quantize_static(
        fp32,
        folder / "int8.onnx",
        Samples(),
        quant_format=quantization.QuantFormat.QDQ,
        activation_type=quantization.QuantType.QUInt8,
        weight_type=quantization.QuantType.QInt8,
        per_channel=True,
    )
    to_litert(fp32)


def to_litert(fp32: Path) -> None:
    """Convert with onnx2tf, which puts the channels last."""
    program = [str(Path(sys.executable).with_name("onnx2tf")), "-i", str(fp32), "-o", str(fp32.parent), "-v", "error"]
    subprocess.run(program, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    fp32.with_name("fp32_float32.tflite").rename(fp32.with_suffix(".tflite"))


def quantize(folder: Path) -> None:
    """Write int8.tflite, weights and activations in int8, as Google's quantizer makes it."""
    from ai_edge_litert.interpreter import Interpreter
    from ai_edge_quantizer import quantizer, recipe

    fp32 = folder / "fp32.tflite"
    ((signature, tensors),) = Interpreter(str(fp32)).get_signature_list().items()
    (name,) = tensors["inputs"]
    samples = [{name: last(one)} for one in numpy.load(folder / "samples.npy")]
    made = quantizer.Quantizer(str(fp32), recipe.static_wi8_ai8())
    made.quantize(made.calibrate({signature: samples})).export_model(str(folder / "int8.tflite"), overwrite=True)


def last(sample: Any) -> Any:
    """The sample with its channels last."""
    return numpy.ascontiguousarray(numpy.moveaxis(sample, 1, -1))


def onnx_runtime(path: Path, threads: int) -> Run:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    inputs = {session.get_inputs()[0].name: numpy.load(path.with_name("samples.npy"))[0]}
    return lambda: session.run(None, inputs)[0]


def litert(path: Path, threads: int) -> Run:
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(model_path=str(path), num_threads=threads)  # with XNNPACK
    interpreter.allocate_tensors()
    (entry,) = interpreter.get_input_details()
    (out,) = interpreter.get_output_details()
    data = last(numpy.load(path.with_name("samples.npy"))[0])
    if entry["dtype"] is numpy.int8:
        scale, zero = entry["quantization"]
        data = numpy.clip(numpy.round(data / scale) + zero, -128, 127).astype(numpy.int8)

    def run() -> Any:
        interpreter.set_tensor(entry["index"], data)
        interpreter.invoke()
        return interpreter.get_tensor(out["index"])

    return run


def child(path: Path, threads: int) -> None:
    """Run the model for so many seconds whenever a line asks for it, and say what a run took, also of CPU time."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    run = (onnx_runtime if path.suffix == ".onnx" else litert)(path, threads)
    output = run()
    print(json.dumps([float(one) for one in output.ravel()]), flush=True)
    for line in sys.stdin:
        seconds, runs, computed = float(line), [], []
        warm = time.perf_counter() + seconds / 3
        while time.perf_counter() < warm:
            run()
        while len(runs) < 10 or sum(runs) < seconds:
            began, before = time.perf_counter(), time.process_time()
            run()
            computed.append(time.process_time() - before)
            runs.append(time.perf_counter() - began)
        print(statistics.median(runs), statistics.median(computed), flush=True)


class Child:
    """A runtime with a model, in a process of its own."""

    def __init__(self, path: Path, threads: int) -> None:
        self.process = subprocess.Popen(
            [sys.executable, __file__, "child", str(path), "--threads", str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.output = numpy.array(json.loads(self.answer()))

    def answer(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def measure(self, seconds: float) -> tuple[float, float]:
        assert self.process.stdin is not None
        print(seconds, file=self.process.stdin, flush=True)
        latency, computed = self.answer().split()
        return 1e3 * float(latency), 1e3 * float(computed)

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def measure(folder: Path, threads: int, arguments: argparse.Namespace) -> None:
    for precision in ("fp32", "int8"):
        both = [Child(folder / (precision + kind), threads) for kind in RUNTIMES]
        latency: list[list[float]] = [[], []]
        computed: list[list[float]] = [[], []]
        for turn in range(arguments.rounds):
            for place in (0, 1) if turn % 2 == 0 else (1, 0):
                for one, took in zip((latency, computed), both[place].measure(arguments.seconds)):
                    one[place].append(took)
        for one in both:
            one.close()
        ratios = [shown([b / a for a, b in zip(*one)]) for one in (latency, computed)]
        row = [folder.name, precision, threads, *map(shown, computed), ratios[1], *map(shown, latency), ratios[0]]
        same = both[0].output.argmax() == both[1].output.argmax()
        print("|", " | ".join(map(str, row)), "| yes |" if same else "| no |", flush=True)


def shown(numbers: list[float]) -> str:
    return f"{statistics.median(numbers):.3g} ({min(numbers):.3g} to {max(numbers):.3g})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["convert", "quantize", "measure", "child"])
    parser.add_argument("path", type=Path)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.3)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    if arguments.what == "child":
        return child(arguments.path, arguments.threads)
    if arguments.what == "convert":
        for source in sorted(arguments.path.glob("*.onnx")):
            convert(source)
        return None
    folders = sorted(one for one in arguments.path.iterdir() if one.is_dir())
    if arguments.what == "quantize":
        for folder in folders:
            quantize(folder)
        return None
    both = "ONNX Runtime | LiteRT | ratio"
    print(f"| network | precision | threads | ms of CPU time: {both} | latency, ms: {both} | same class |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for folder in folders:
        for threads in (1, 2):
            measure(folder, threads, arguments)
    return None


main()
