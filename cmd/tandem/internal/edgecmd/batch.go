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
	curve, rate, burst, arrivals string
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
  --period    queries of --samples samples arrive at a fixed period: how to split them
  neither     the choice for rates from 10% of the capacity up to 95%, and what
              MLPerf's four scenarios would come to

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
	set.StringVar(&flags.burst, "burst", "", "bursts on top of --rate, as RATE,SECONDS,CALM: the rate in a burst, and the mean lengths of bursts and of the calm between them, such as 800/s,0.5,4")
	set.StringVar(&flags.arrivals, "arrivals", "", "file with the seconds at which requests came, one a line, instead of --rate")
	set.Float64Var(&flags.period, "period", 0, "seconds between queries of --samples samples")
	set.IntVar(&flags.samples, "samples", 0, "samples of a query, with --period; without, those of MLPerf's MultiStream (8)")
	set.StringVar(&flags.objective, "objective", "mean", "what to choose by: mean, p99, joules or throughput")
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
	switch {
	case flags.period > 0:
		answer, err = splitQuery(server, goal, flags)
	case arrivals != nil:
		answer, err = putTogether(server, goal, run)
	default:
		answer, err = surveyRates(server, goal, run, flags.samples)
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

// process is the arrivals that the flags describe, nil if they describe none.
func (f batchFlags) process() (batching.Arrivals, error) {
	given := 0
	for _, one := range []bool{f.rate != "", f.arrivals != "", f.period != 0} {
		if one {
			given++
		}
	}
	switch {
	case given > 1:
		return nil, problem.New(problem.Invalid, "give one of --rate, --period and --arrivals: they are different loads")
	case f.period != 0:
		if f.samples < 1 || !(f.period > 0) {
			return nil, problem.New(problem.Invalid, "--period %g with --samples %d: both must be above 0, such as --period 0.1 --samples 32", f.period, f.samples)
		}
		return nil, nil
	case f.arrivals != "":
		return recordedArrivals(f.arrivals)
	case f.burst != "" && f.rate == "":
		return nil, problem.New(problem.Invalid, "--burst needs --rate, the rate between bursts")
	case f.rate == "":
		return nil, nil
	}
	rate, err := requestRate("--rate", f.rate)
	if err != nil || f.burst == "" {
		return batching.Poisson{Rate: rate}, err
	}
	parts := strings.Split(f.burst, ",")
	if len(parts) != 3 {
		return nil, problem.New(problem.Invalid, "--burst %q is not RATE,SECONDS,CALM, such as 800/s,0.5,4", f.burst)
	}
	bursty := batching.Bursty{CalmRate: rate}
	for i, into := range []*float64{&bursty.BurstRate, &bursty.BurstSeconds, &bursty.CalmSeconds} {
		if *into, err = requestRate("--burst", parts[i]); err != nil {
			return nil, err
		}
	}
	return bursty, nil
}

// requestRate reads a number that may end in /s.
func requestRate(flag, text string) (float64, error) {
	value, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(text), "/s"), 64)
	if err != nil || !(value > 0) || math.IsInf(value, 0) {
		return 0, problem.New(problem.Invalid, "%s %q is not a number above 0, such as 200/s", flag, text)
	}
	return value, nil
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
// for one load, or for a query, or by rate.
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
	Rates     []rateRow             `json:"rates,omitempty"`
	Scenarios []batching.Scenario   `json:"mlperf_scenarios,omitempty"`
}

// comparedPolicy is a policy under the load, and the rate up to which it holds.
type comparedPolicy struct {
	Name string `json:"name"`
	batching.Result
	// HoldsPerSecond is the rate up to which the 99th percentile is within the
	// bound; without a bound, what the policy sustains.
	HoldsPerSecond float64 `json:"holds_per_second"`
}

// rateRow is the choice for a rate, and the means of what it is compared with;
// 0 where that is overloaded.
type rateRow struct {
	Rate      float64         `json:"rate_per_second"`
	Choice    batching.Choice `json:"choice"`
	Single    float64         `json:"single_seconds"`
	Greedy    float64         `json:"greedy_seconds"`
	BestFixed float64         `json:"best_fixed_seconds"`
	FixedSize int             `json:"best_fixed_batch"`
}
