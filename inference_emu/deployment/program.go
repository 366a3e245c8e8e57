package deployment

import (
	"fmt"
	"strings"

	"github.com/tandem-tune/tandem/inference_emu/graph"
)

// program is Python that runs the model with ONNX Runtime as the deployment says,
// ready to be copied to the device: to be imported for its function infer, or to be
// run with the model's path, and then it says what a batch takes there, with inputs of
// the sizes that it was estimated for. Empty where nothing runs.
func (d Deployment) program(inputs []graph.Tensor) string {
	if !d.Runs() {
		return ""
	}
	c := d.Configuration
	clock := ""
	if c.CPUHertz > 0 {
		clock = fmt.Sprintf("# at %.4g GHz: sudo cpupower frequency-set --max %.0fMHz\n", c.CPUHertz/1e9, c.CPUHertz/1e6)
	}
	cores := ""
	if c.Cores > 0 {
		cores = fmt.Sprintf("os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:%d])\n", c.Cores)
	}
	var sizes []string
	for _, one := range inputs {
		sizes = append(sizes, strings.ReplaceAll(fmt.Sprint(one.Shape), " ", ", "))
	}
	return strings.NewReplacer(
		"SIZES", "["+strings.Join(sizes, ", ")+"]",
		"DEVICE", d.Device, "BATCH", fmt.Sprint(c.BatchSize), "LATENCY", fmt.Sprintf("%.3g ms", 1e3*d.LatencySeconds.Value), "METHOD", d.Method,
		"CLOCK\n", clock, "AFFINITY\n", cores, "THREADS", fmt.Sprint(max(1, c.Cores)),
	).Replace(programText)
}

// programText is what [Deployment.program] fills in. A file that fixes its batch takes
// that many samples at a time.
const programText = `# DEVICE: a batch of BATCH takes LATENCY (METHOD)
CLOCK
import itertools
import os
import statistics
import sys
import time

import numpy
import onnxruntime

AFFINITY
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = THREADS
options.inter_op_num_threads = 1
model = sys.argv[1] if __name__ == "__main__" and len(sys.argv) > 1 else "model.onnx"
session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
inputs = session.get_inputs()
batch = BATCH
if isinstance(inputs[0].shape[0], int) and inputs[0].shape[0] != batch:  # the file fixes its batch
    if batch > 1:
        raise SystemExit(f"{model} takes {inputs[0].shape[0]} at a time: export it with an open first dimension for batches of {batch}")
    batch = inputs[0].shape[0]


def infer(*samples):
    """The outputs, batch by batch, for an array of samples for each input of the model."""
    names = [one.name for one in inputs]
    return [session.run(None, {name: array[i : i + batch] for name, array in zip(names, samples)}) for i in range(0, len(samples[0]), batch)]


if __name__ == "__main__":  # what a batch takes here: python3 infer.py model.onnx
    sizes = SIZES  # of each input, where the model leaves them open
    types = {"float": "float32", "double": "float64"}
    samples = []
    for one, known in itertools.zip_longest(inputs, sizes[: len(inputs)], fillvalue=[]):
        shape = [batch] + [size if isinstance(size, int) else (known[at : at + 1] or [1])[0] for at, size in enumerate(one.shape[1:], 1)]
        name = one.type[len("tensor(") : -1]
        samples.append(numpy.zeros(shape, types.get(name, name)))
    seconds = []
    for _ in range(110):
        begin = time.perf_counter()
        infer(*samples)
        seconds.append(time.perf_counter() - begin)
    print(f"a batch of {batch} takes {1e3 * statistics.median(seconds[10:]):.3g} ms here (median of 100)")
`
