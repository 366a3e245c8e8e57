package edgecmd

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func batchFile(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const fixedCostCurve = "batch,seconds,joules\n1,0.006,0.05\n8,0.0112,0.1\n32,0.029,0.26\n"

func edgeBatch(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errors bytes.Buffer
	code = execute(t, append([]string{"edge", "batch", "--requests", "20000"}, args...), &out, &errors)
	return out.String(), errors.String(), code
}

func TestEdgeBatchChoosesForARate(t *testing.T) {
	curve := batchFile(t, "curve.csv", fixedCostCurve)
	out, errors, code := edgeBatch(t, "--curve", curve, "--rate", "200/s", "--latency-bound", "50ms")
	if code != 0 {
		t.Fatal(errors)
	}
	for _, want := range []string{
		"Load: Poisson arrivals, 200 requests/s on average; objective: mean, 99th percentile within 50 ms",
		"Chosen: max_batch=32 wait_seconds=0 (greedy, at most 32;", "SUSTAINS UP TO", "JOULES/SAMPLE",
		"fixed batches of 8", "All times are estimates",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "single") && !strings.Contains(line, "overloaded") {
			t.Errorf("200/s with 6 ms for each is too much for single samples: %s", line)
		}
	}
}

func TestEdgeBatchSaysNotToBatch(t *testing.T) {
	curve := batchFile(t, "curve.json", `[{"batch":1,"seconds":0.001},{"batch":64,"seconds":0.064}]`)
	out, errors, code := edgeBatch(t, "--curve", curve, "--rate", "900", "--json")
	if code != 0 {
		t.Fatal(errors)
	}
	var answer batchAnswer
	if err := json.Unmarshal([]byte(out), &answer); err != nil {
		t.Fatal(err)
	}
	if !answer.Estimate || answer.Choice.Result.Policy.MaxBatch != 1 || !strings.HasPrefix(answer.Choice.Why, "do not batch") {
		t.Errorf("a curve without a fixed cost: %+v", answer.Choice)
	}
	if len(answer.Compared) != 4 || answer.Compared[1].Name != "single" || answer.Compared[1].SustainsPerSecond != 1000 {
		t.Errorf("compared with %+v", answer.Compared)
	}
}

func TestEdgeBatchSplitsQueries(t *testing.T) {
	curve := batchFile(t, "curve.csv", fixedCostCurve)
	out, errors, code := edgeBatch(t, "--curve", curve, "--period", "0.1", "--samples", "32")
	if code != 0 {
		t.Fatal(errors)
	}
	for _, want := range []string{"Chosen: split each query into", "queries of 32 samples every 0.1 s", "one by one: 32 × 1", "The shortest period for such queries is 29 ms."} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
	out, _, _ = edgeBatch(t, "--curve", curve, "--period", "0.02", "--samples", "32")
	if !strings.Contains(out, "No split keeps up: such a query takes at least 29 ms.") {
		t.Errorf("32 samples in 20 ms:\n%s", out)
	}
}

func TestEdgeBatchTakesRecordedArrivals(t *testing.T) {
	curve := batchFile(t, "curve.csv", fixedCostCurve)
	arrivals := batchFile(t, "arrivals.txt", "# seconds\n0\n0.001\n0.002\n\n0.5\n")
	out, errors, code := edgeBatch(t, "--curve", curve, "--arrivals", arrivals)
	if code != 0 || !strings.Contains(out, "recorded arrivals, 6 requests/s on average") {
		t.Errorf("%s%s", out, errors)
	}
}

func TestEdgeBatchFaults(t *testing.T) {
	curve := batchFile(t, "curve.csv", "batch,seconds\n1,0.006\n8,0.0112\n")
	wrong := batchFile(t, "wrong.csv", "batch,seconds\n1,0.006\n8,-1\n")
	times := batchFile(t, "times.txt", "0\nsoon\n")
	for name, one := range map[string]struct {
		args []string
		want string
	}{
		"curve":     {[]string{"--curve", wrong}, "curve[1].seconds: batch 8: must be a finite number above 0 (got -1)"},
		"rate":      {[]string{"--curve", curve, "--rate", "fast"}, `--rate "fast" is not a number above 0, such as 200/s`},
		"two loads": {[]string{"--curve", curve, "--rate", "1", "--period", "1", "--samples", "2"}, "give one of --rate, --period and --arrivals"},
		"no load":   {[]string{"--curve", curve}, "give one of --rate, --period and --arrivals"},
		"samples":   {[]string{"--curve", curve, "--period", "1"}, "--samples 0: both must be above 0"},
		"joules":    {[]string{"--curve", curve, "--rate", "1", "--objective", "joules"}, "the curve has no joules"},
		"objective": {[]string{"--curve", curve, "--rate", "1", "--objective", "speed"}, "goal.objective: must be one of [mean p99 joules]"},
		"arrivals":  {[]string{"--curve", curve, "--arrivals", times}, `line 2: "soon" is not a number of seconds`},
	} {
		t.Run(name, func(t *testing.T) {
			if _, errors, code := edgeBatch(t, one.args...); code == 0 || !strings.Contains(errors, one.want) {
				t.Errorf("exit code %d, said %q; want %q", code, errors, one.want)
			}
		})
	}
}
