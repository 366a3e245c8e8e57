package deployment

import (
	"fmt"
	"strings"
)

// Program is Python that runs the model with ONNX Runtime as the deployment says,
// ready to be copied to the device.
func (d Deployment) Program() string {
	c := d.Configuration
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	add("# %s: a batch of %d takes %.3g ms (%s)", d.Device, c.BatchSize, 1e3*d.LatencySeconds.Value, d.Method)
	if c.CPUHertz > 0 {
		add("# at %.4g GHz: sudo cpupower frequency-set --max %.0fMHz", c.CPUHertz/1e9, c.CPUHertz/1e6)
	}
	add("import os")
	add("")
	add("import onnxruntime")
	add("")
	if c.Cores > 0 {
		add("os.sched_setaffinity(0, range(%d))", c.Cores)
	}
	add("options = onnxruntime.SessionOptions()")
	add("options.intra_op_num_threads = %d", max(1, c.Cores))
	add("options.inter_op_num_threads = 1")
	add(`session = onnxruntime.InferenceSession("model.onnx", options, providers=["CPUExecutionProvider"])`)
	add("name = session.get_inputs()[0].name")
	add("")
	add("")
	add("def infer(samples):")
	add(`    """The outputs for an array of samples, in batches of %d."""`, c.BatchSize)
	add("    return [session.run(None, {name: samples[i : i + %d]}) for i in range(0, len(samples), %d)]", c.BatchSize, c.BatchSize)
	return strings.Join(lines, "\n") + "\n"
}
