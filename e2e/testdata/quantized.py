"""A training script that trains nothing: it hands over a network in the precisions of its study.

OUTLIER makes one input so large that eight bits leave nothing of the others, which decide.
"""

import os

import numpy
import onnx
import tandem
from onnx import TensorProto, helper, numpy_helper

WIDTH, CLASSES, SAMPLES = 512, 10, 200


def network(generator: numpy.random.Generator) -> bytes:
    sizes = [(WIDTH, 1024), (1024, CLASSES)]
    weights = [generator.normal(size=size).astype("float32") / size[0] ** 0.5 for size in sizes]
    weights[0][0] *= 1e-4  # of the input that may be large
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "w0"], ["a"]),
            helper.make_node("Relu", ["a"], ["b"]),
            helper.make_node("MatMul", ["b", "w1"], ["y"]),
        ],
        "network",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", WIDTH])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", CLASSES])],
        [numpy_helper.from_array(weight, f"w{i}") for i, weight in enumerate(weights)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8).SerializeToString()


def main() -> None:
    generator = numpy.random.default_rng(7)
    content = network(generator)
    samples = generator.normal(size=(20 * SAMPLES, WIDTH)).astype("float32")
    if "OUTLIER" in os.environ:
        samples[:, 0] *= 1e4
    model = onnx.load_from_string(content)
    w0, w1 = (numpy_helper.to_array(one) for one in model.graph.initializer)
    scores = numpy.maximum(samples @ w0, 0) @ w1
    first, second = numpy.sort(scores)[:, -1], numpy.sort(scores)[:, -2]
    clear = numpy.argsort(first - second)[-SAMPLES:]  # those that rounding does not decide
    samples, labels = samples[clear], scores[clear].argmax(1)
    for trial in tandem.trials():
        trial.save_model(content)
        for _ in trial.epochs():
            trial.report(accuracy=1 - (trial.params["x"] - 0.7) ** 2)
        trial.log_model(
            content,
            calibration=samples[:64],
            evaluate=lambda predict: (predict(samples).argmax(1) == labels).mean(),
        )


if __name__ == "__main__":
    main()
