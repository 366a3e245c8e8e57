package deployment

import (
	_ "embed" // the program's text
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
	providers, check := d.session()
	return strings.NewReplacer(
		"SIZES", "["+strings.Join(sizes, ", ")+"]",
		"DEVICE", d.Device, "BATCH", fmt.Sprint(c.BatchSize), "LATENCY", fmt.Sprintf("%.3g ms", 1e3*d.LatencySeconds.Value), "METHOD", d.Method,
		"CHECK\n", check, "PROVIDERS", providers, "CLOCK\n", clock, "AFFINITY\n", cores, "THREADS", fmt.Sprint(max(1, c.Cores)),
	).Replace(d.serving().Replace(programText))
}

// programText is what [Deployment.program] fills in, and servingText what is in it under
// a load. A file that fixes its batch takes that many samples at a time.
//
//go:embed infer.tmpl
var programText string

//go:embed serve.tmpl
var servingText string

// serving is what the program has to put samples together.
func (d Deployment) serving() *strings.Replacer {
	if d.Batching == nil || !(d.Batching.RatePerSecond > 0) {
		return strings.NewReplacer("IMPORTS\n", "", "SERVING\n", "", "LISTENING\n", "")
	}
	b := *d.Batching
	return strings.NewReplacer(
		"IMPORTS\n", "import collections\nimport concurrent.futures\nimport http.server\nimport io\n",
		"import statistics\n", "import queue\nimport random\nimport statistics\n", "import sys\nimport time\n", "import sys\nimport threading\nimport time\n",
		"SERVING\n", strings.NewReplacer("MAXBATCH", fmt.Sprint(b.MaxBatch), "WAIT", fmt.Sprintf("%.6g", b.WaitSeconds), "RATE", fmt.Sprintf("%.6g", b.RatePerSecond), "POLICY", b.String()).Replace(servingText),
		"LISTENING\n", fmt.Sprintf(listening, b.RatePerSecond, 1e3*b.P99Seconds),
	)
}

// listening is what the program does if it is asked to serve, or to try the load.
const listening = `    if sys.argv[2:3] == ["--serve"]:  # python3 infer.py model.onnx --serve 8000
        server = Server(("127.0.0.1", int(sys.argv[3])), Handler)
        print(f"serves on http://127.0.0.1:{server.server_port}", flush=True)
        server.serve_forever()
    if sys.argv[2:3] == ["--load"]:  # python3 infer.py model.onnx --load 10
        times = load([array[0] for array in samples], float(sys.argv[3]))
        print(f"p99 {1e3 * times[int(0.99 * len(times))]:.4g} ms, mean {1e3 * statistics.mean(times):.4g} ms here at %.6g requests/s; predicted p99 %.4g ms")
        raise SystemExit
`
