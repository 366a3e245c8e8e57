package edgecmd

import (
	"fmt"
	"slices"

	"github.com/tandem-tune/tandem/inference_emu/batching"
	"github.com/tandem-tune/tandem/internal/format"
)

// fixedSizes are the measured batch sizes above 1.
func fixedSizes(curve batching.Curve) []int {
	var sizes []int
	for _, point := range curve.Points() {
		if point.Batch > 1 {
			sizes = append(sizes, point.Batch)
		}
	}
	return sizes
}

func newBatchAnswer(server batching.Server, goal batching.Goal, load string) batchAnswer {
	return batchAnswer{Estimate: true, Objective: string(goal.Objective), Bound: goal.LatencyBound, Load: load, Capacity: server.Capacity()}
}

// putTogether chooses max_batch and wait_seconds for single samples, and
// compares them with single samples, greedy batches and fixed ones.
func putTogether(server batching.Server, goal batching.Goal, run batching.Run) (batchAnswer, error) {
	choice, err := batching.Optimize(server, goal, run)
	if err != nil {
		return batchAnswer{}, err
	}
	load := fmt.Sprintf("%s, %.6g requests/s on average", processName(run.Arrivals), run.Arrivals.PerSecond())
	if goal.Objective == batching.Throughput {
		load = processName(run.Arrivals) + ", as fast as the choice bears"
		run = run.At(choice.Result.ArrivalsPerSecond)
	}
	answer := newBatchAnswer(server, goal, load)
	answer.Choice = &choice
	policies := []batching.Policy{choice.Result.Policy, batching.Single()}
	names := []string{"chosen: " + choice.Result.Policy.String(), "single"}
	if largest := server.Curve.Largest(); largest > 1 {
		policies, names = append(policies, batching.Greedy(largest)), append(names, batching.Greedy(largest).String())
	}
	for _, size := range fixedSizes(server.Curve) {
		policies, names = append(policies, batching.Fixed(size)), append(names, batching.Fixed(size).String())
	}
	results, err := batching.Compare(server, policies, run)
	if err != nil {
		return batchAnswer{}, err
	}
	short := run
	short.Requests = min(run.Requests, 40_000)
	for i, result := range results {
		holds, err := batching.HighestRate(server, result.Policy, goal.LatencyBound, short)
		if err != nil {
			return batchAnswer{}, err
		}
		answer.Compared = append(answer.Compared, comparedPolicy{names[i], result, holds})
	}
	return answer, nil
}

func processName(arrivals batching.Arrivals) string {
	switch arrivals.(type) {
	case batching.Poisson:
		return "Poisson arrivals"
	case batching.Bursty:
		return "Poisson arrivals with bursts"
	}
	return "recorded arrivals"
}

// splitQuery divides the queries of the thesis' server scenario.
func splitQuery(server batching.Server, goal batching.Goal, flags batchFlags) (batchAnswer, error) {
	query := batching.Query{Samples: flags.samples, PeriodSeconds: flags.period}
	choice, err := batching.BestSplit(server, query, goal, flags.seed)
	if err != nil {
		return batchAnswer{}, err
	}
	answer := newBatchAnswer(server, goal, fmt.Sprintf("queries of %s every %.6g s", format.Count(flags.samples, "sample"), flags.period))
	answer.Query = &choice
	return answer, nil
}

// surveyRates chooses for rates up to nearly the capacity, and adds MLPerf's
// scenarios.
func surveyRates(server batching.Server, goal batching.Goal, run batching.Run, samples int) (batchAnswer, error) {
	answer := newBatchAnswer(server, goal, "Poisson arrivals by rate")
	for _, share := range []float64{0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95} {
		if goal.Objective == batching.Throughput {
			break // that is a rate itself; the Server scenario has it
		}
		run.Arrivals = batching.Poisson{Rate: share * server.Capacity()}
		row, err := rowOf(server, goal, run)
		if err != nil {
			return batchAnswer{}, err
		}
		answer.Rates = append(answer.Rates, row)
	}
	scenarios, err := batching.Scenarios(server, batching.ScenarioSettings{SamplesPerQuery: samples, LatencyBound: goal.LatencyBound, Requests: run.Requests, Seed: run.Seed})
	answer.Scenarios = scenarios
	return answer, err
}

func rowOf(server batching.Server, goal batching.Goal, run batching.Run) (rateRow, error) {
	row := rateRow{Rate: run.Arrivals.PerSecond()}
	var err error
	if row.Choice, err = batching.Optimize(server, goal, run); err != nil {
		return row, err
	}
	sizes := fixedSizes(server.Curve)
	policies := []batching.Policy{batching.Single(), batching.Greedy(server.Curve.Largest())}
	for _, size := range sizes {
		policies = append(policies, batching.Fixed(size))
	}
	results, err := batching.Compare(server, policies, run)
	if err != nil {
		return row, err
	}
	meanOf := func(result batching.Result) float64 {
		if result.Overloaded {
			return 0
		}
		return result.Mean.Value
	}
	row.Single, row.Greedy = meanOf(results[0]), meanOf(results[1])
	fixed := slices.DeleteFunc(results[2:], func(result batching.Result) bool { return result.Overloaded })
	for _, result := range fixed {
		if row.BestFixed == 0 || result.Mean.Value < row.BestFixed {
			row.BestFixed, row.FixedSize = result.Mean.Value, result.Policy.MaxBatch
		}
	}
	return row, nil
}
