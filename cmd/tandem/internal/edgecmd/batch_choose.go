package edgecmd

import (
	"fmt"

	"github.com/tandem-tune/tandem/inference_emu/batching"
	"github.com/tandem-tune/tandem/internal/format"
)

func newBatchAnswer(server batching.Server, goal batching.Goal, load string) batchAnswer {
	return batchAnswer{Estimate: true, Objective: string(goal.Objective), Bound: goal.LatencyBound, Load: load, Capacity: server.Capacity()}
}

// putTogether chooses max_batch and wait_seconds for single samples, and
// compares them with single samples, greedy batches and fixed ones.
func putTogether(server batching.Server, goal batching.Goal, run batching.Run) (batchAnswer, error) {
	choice, err := batching.Choose(server, goal, run)
	if err != nil {
		return batchAnswer{}, err
	}
	process := "Poisson"
	if _, recorded := run.Arrivals.(batching.Recorded); recorded {
		process = "recorded"
	}
	answer := newBatchAnswer(server, goal, fmt.Sprintf("%s arrivals, %.6g requests/s on average", process, run.Arrivals.PerSecond()))
	answer.Choice = &choice
	policies := []batching.Policy{choice.Result.Policy, batching.Single()}
	names := []string{"chosen: " + choice.Result.Policy.String(), "single"}
	if largest := server.Curve.Largest(); largest > 1 {
		policies, names = append(policies, batching.Greedy(largest)), append(names, batching.Greedy(largest).String())
	}
	for _, point := range server.Curve.Points()[1:] {
		fixed := batching.Fixed(point.Batch)
		policies, names = append(policies, fixed), append(names, fixed.String())
	}
	results, err := batching.Compare(server, policies, run)
	if err != nil {
		return batchAnswer{}, err
	}
	for i, result := range results {
		answer.Compared = append(answer.Compared, comparedPolicy{names[i], result})
	}
	return answer, nil
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
