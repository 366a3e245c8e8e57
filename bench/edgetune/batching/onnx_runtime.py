"""Infers batches with ONNX Runtime: a number of samples comes in a line, "done" goes out.

Arguments: the model ("" for a network of dense layers with random weights), the width of
that network, the number of threads.
"""

import sys

import numpy
import onnxruntime


def varint(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def field(number, value):
    """A field of a protocol buffer: an integer, or bytes."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def tensor(name, values):
    shape = b"".join(field(1, size) for size in values.shape)
    return shape + field(2, 1) + field(8, name) + field(9, values.astype("<f4").tobytes())


def port(name, width):
    shape = field(1, field(2, "batch")) + field(1, field(1, width))
    return field(1, name) + field(2, field(1, field(1, 1) + field(2, shape)))


def node(kind, inputs, output):
    return b"".join(field(1, name) for name in inputs) + field(2, output) + field(4, kind)


def network(width, layers=3):
    """An ONNX model of dense layers with ReLU between them."""
    random = numpy.random.default_rng(1)
    graph, value = b"", "x"
    weights = b""
    for layer in range(layers):
        weights += field(5, tensor(f"w{layer}", random.normal(size=(width, width)) / width))
        graph += field(1, node("MatMul", [value, f"w{layer}"], f"m{layer}"))
        graph += field(1, node("Relu", [f"m{layer}"], f"y{layer}"))
        value = f"y{layer}"
    graph += field(2, "dense") + weights + field(11, port("x", width)) + field(12, port(value, width))
    return field(1, 8) + field(7, graph) + field(8, field(1, "") + field(2, 13))


def main():
    model, width, threads = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = onnxruntime.InferenceSession(model or network(width), options, providers=["CPUExecutionProvider"])
    (wanted,) = session.get_inputs()
    shape = [size if isinstance(size, int) else 1 for size in wanted.shape[1:]]
    inputs = {}
    name = model or f"3 dense layers of {width}"
    print(f"ONNX Runtime {onnxruntime.__version__}, {threads} thread(s), {name}", flush=True)
    for line in sys.stdin:
        batch = int(line)
        if batch not in inputs:
            inputs[batch] = numpy.random.default_rng(batch).random((batch, *shape), dtype=numpy.float32)
        session.run(None, {wanted.name: inputs[batch]})
        print("done", flush=True)


main()
