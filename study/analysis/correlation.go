package analysis

import (
	"context"
	"fmt"
	"slices"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/correlation"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/trial"
)

const correlationMethod = "Spearman's rank correlation with the interval of Bonett and Wright (2000), corrected for restriction of range after Thorndike (1949)"

// Correlations says how far each rung's ranking holds further up.
func (q *Queries) Correlations(ctx context.Context, ref string) (protocol.Correlations, error) {
	now, err := q.look(ctx, ref)
	if err != nil {
		return protocol.Correlations{}, err
	}
	def, top, trials := now.Study.Definition, len(now.Ladder)-1, now.Trials
	answer := protocol.Correlations{Study: def.Name, Method: correlationMethod, Rungs: []protocol.RungCorrelation{}, Notes: []string{}}
	for from := range top {
		for _, to := range slices.Compact([]int{from + 1, top}) {
			if found, ok := compared(trials, from, to, def.Objectives[0].Direction); ok {
				answer.Rungs = append(answer.Rungs, found)
			}
		}
	}
	if len(answer.Rungs) == 0 {
		answer.Notes = append(answer.Notes, fmt.Sprintf("no two rungs have the %d trials in common this needs", correlation.Least))
	} else {
		answer.Notes = append(answer.Notes, "mostly trials that were good at the lower rung were measured at the higher one, and among the good ranks agree less: "+
			"the corrected values estimate the agreement among all, if both measurements are about normal")
	}
	return answer, nil
}

// compared is how the trials rank at two rungs.
func compared(trials []trial.Trial, from, to int, direction definition.Direction) (protocol.RungCorrelation, bool) {
	var all []float64
	var pairs []correlation.Pair
	for i := range trials {
		lower, measured := scoreAt(&trials[i], from, direction)
		if !measured {
			continue
		}
		all = append(all, lower)
		if upper, both := scoreAt(&trials[i], to, direction); both {
			pairs = append(pairs, correlation.Pair{Lower: lower, Upper: upper})
		}
	}
	e, ok := correlation.Between(all, pairs)
	return protocol.RungCorrelation{
		From: from, To: to, Trials: e.Pairs, Below: e.All, Spearman: e.Rho, Low: e.Low, High: e.High,
		Corrected: e.Corrected, CorrectedLow: e.CorrectedLow, CorrectedHigh: e.CorrectedHigh,
	}, ok
}

// scoreAt is the first objective at the rung, the sign turned so that larger is
// better.
func scoreAt(t *trial.Trial, rung int, direction definition.Direction) (score float64, measured bool) {
	for _, result := range t.Results {
		if result.Rung == rung {
			score = float64(result.Values[0])
			if direction == definition.Minimize {
				score = -score
			}
			return score, true
		}
	}
	return 0, false
}
