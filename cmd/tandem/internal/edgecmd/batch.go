package edgecmd

import (
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/inference_emu/batching"
	"github.com/tandem-tune/tandem/internal/problem"
)

// batchFlags are the flags of `tandem edge batch`.
type batchFlags struct {
	curve, rate, arrivals        string
	period                       float64
	samples, instances, requests int
	objective                    string
	bound                        time.Duration
	idleWatts                    float64
	seed                         uint64
	json                         bool
}

func batchCommand() *cobra.Command {
	var flags batchFlags
	command := &cobra.Command{
		Use:   "batch --curve FILE",
		Short: "How many samples to put together, and how long to wait for them",
		Long: `Choose how requests for inference are put together, from the time of one
inference by batch size, by simulation. The curve is a CSV file with the columns
batch,seconds (and joules, deviation), or JSON.

  --rate      single samples arrive at random (Poisson): max_batch and wait_seconds
  --arrivals  single samples that were recorded: the same
  --period    queries of --samples samples arrive at a fixed period: how to split them

What is printed are estimates: they are as good as the curve.`,
		Example: `  tandem edge batch --curve curve.csv --rate 200/s
  tandem edge batch --curve curve.csv --rate 200/s --objective joules --latency-bound 50ms
  tandem edge batch --curve curve.csv --period 0.1 --samples 32 --json`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return chooseBatching(flags, command.OutOrStdout())
		},
	}
	set := command.Flags()
	set.StringVar(&flags.curve, "curve", "", "file with the latency curve, CSV or JSON")
	set.StringVar(&flags.rate, "rate", "", "requests a second, such as 200/s")
	set.StringVar(&flags.arrivals, "arrivals", "", "file with the seconds at which requests came, one a line, instead of --rate")
	set.Float64Var(&flags.period, "period", 0, "seconds between queries of --samples samples")
	set.IntVar(&flags.samples, "samples", 0, "samples of a query, with --period")
	set.StringVar(&flags.objective, "objective", "mean", "what to choose by: mean, p99 or joules")
	set.DurationVar(&flags.bound, "latency-bound", 0, "most the 99th percentile of response times may be, such as 50ms")
	set.IntVar(&flags.instances, "instances", 1, "batches inferred at the same time; the curve must be measured with as many")
	set.Float64Var(&flags.idleWatts, "idle-watts", 0, "power of an idle instance, for joules")
	set.IntVar(&flags.requests, "requests", 200_000, "requests to simulate")
	set.Uint64Var(&flags.seed, "seed", 1, "seed of everything random")
	set.BoolVar(&flags.json, "json", false, "print JSON")
	_ = command.MarkFlagRequired("curve")
	return command
}

func chooseBatching(flags batchFlags, out io.Writer) error {
	content, err := os.ReadFile(flags.curve)
	if err != nil {
		return err
	}
	curve, err := batching.ParseCurve(content)
	if err != nil {
		return err
	}
	server := batching.Server{Curve: curve, Instances: flags.instances, IdleWatts: flags.idleWatts}
	goal := batching.Goal{Objective: batching.Objective(flags.objective), LatencyBound: flags.bound.Seconds()}
	arrivals, err := flags.process()
	if err != nil {
		return err
	}
	run := batching.Run{Arrivals: arrivals, Requests: flags.requests, Seed: flags.seed}
	var answer batchAnswer
	if arrivals == nil {
		answer, err = splitQuery(server, goal, flags)
	} else {
		answer, err = putTogether(server, goal, run)
	}
	if err != nil {
		return err
	}
	answer.Pooled = curve.Pooled()
	if flags.json {
		return term.WriteJSON(out, answer)
	}
	return answer.print(out)
}

// process is the arrivals that the flags describe, nil for queries at a period.
func (f batchFlags) process() (batching.Arrivals, error) {
	given := 0
	for _, one := range []bool{f.rate != "", f.arrivals != "", f.period != 0} {
		if one {
			given++
		}
	}
	switch {
	case given != 1:
		return nil, problem.New(problem.Invalid, "give one of --rate, --period and --arrivals: they are different loads")
	case f.period != 0:
		if f.samples < 1 || !(f.period > 0) {
			return nil, problem.New(problem.Invalid, "--period %g with --samples %d: both must be above 0, such as --period 0.1 --samples 32", f.period, f.samples)
		}
		return nil, nil
	case f.arrivals != "":
		return recordedArrivals(f.arrivals)
	}
	rate, err := ratePerSecond(f.rate)
	return batching.Poisson{Rate: rate}, err
}

// ratePerSecond reads requests a second, such as 200/s.
func ratePerSecond(text string) (float64, error) {
	rate, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(text), "/s"), 64)
	if err != nil || !(rate > 0) || math.IsInf(rate, 0) {
		return 0, problem.New(problem.Invalid, "--rate %q is not a number above 0, such as 200/s", text)
	}
	return rate, nil
}

func recordedArrivals(path string) (batching.Arrivals, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var recorded batching.Recorded
	for i, line := range strings.Split(string(content), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		at, err := strconv.ParseFloat(line, 64)
		if err != nil {
			return nil, problem.New(problem.Invalid, "%s, line %d: %q is not a number of seconds", path, i+1, line)
		}
		recorded.Seconds = append(recorded.Seconds, at)
	}
	return recorded, nil
}

// batchAnswer is the document of `tandem edge batch --json`: what was chosen
// for one load, or for a query.
type batchAnswer struct {
	Estimate  bool                  `json:"estimate"` // always true
	Objective string                `json:"objective"`
	Bound     float64               `json:"latency_bound_seconds,omitempty"`
	Load      string                `json:"load"`
	Capacity  float64               `json:"capacity_per_second"`
	Pooled    []int                 `json:"pooled_batch_sizes,omitempty"`
	Choice    *batching.Choice      `json:"choice,omitempty"`
	Compared  []comparedPolicy      `json:"compared,omitempty"`
	Query     *batching.SplitChoice `json:"query,omitempty"`
}

// comparedPolicy is a policy under the load.
type comparedPolicy struct {
	Name string `json:"name"`
	batching.Result
}
