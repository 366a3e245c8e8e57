package ladder

import (
	"slices"
	"sort"

	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/trial"
)

// Observation is an intermediate value of a trial: what it had after an epoch
// of a rung that it has not completed yet.
type Observation struct {
	Rung  int `json:"rung"`
	Epoch int `json:"epoch"`
	// Values has one entry for each objective.
	Values []trial.Float `json:"values"`
}

// Moment is where trials compare: the same epoch, on the same share of the data.
type Moment struct{ Rung, Epoch int }

// Known reports whether the trial has a value there already.
func (t *Record) Known(at Moment) bool {
	return slices.ContainsFunc(t.Reports, func(o Observation) bool { return o.Rung == at.Rung && o.Epoch == at.Epoch })
}

// Report takes an intermediate value in that was not known.
func (h *History) Report(number int, o Observation) {
	t := &h.Trials[number]
	t.Reports = append(t.Reports, o)
	score := ScoreOf(o.Values, h.Maximize)
	if h.halving {
		if i := h.RungAt(o.Epoch); i >= 0 {
			// It has what a trial has that was measured there, and goes on or
			// is stopped at once: nobody is left to promote.
			h.Rungs[i].Add(Entry{Trial: number, Score: score, Promoted: true}, nil)
			h.arrived(number)
		}
		return
	}
	at := Moment{Rung: o.Rung, Epoch: o.Epoch}
	h.Scores[at] = slices.Insert(h.Scores[at], Ahead(h.Scores[at], score), score)
}

// Ahead counts the scores that are better; they are sorted, the best first.
func Ahead(scores []float64, score float64) int {
	return sort.Search(len(scores), func(i int) bool { return scores[i] <= score })
}

// RungAt is the rung below the top that ends with the epoch, or -1.
func (h *History) RungAt(epoch int) int {
	return slices.IndexFunc(h.Ladder[:len(h.Ladder)-1], func(r budget.Rung) bool { return r.Budget.Epochs == epoch })
}

// Stop takes a trial off its worker for good: it was beaten. At its rung it
// counts like a failure, since it has no value of that budget. Under halving it
// has its value at the rung where it was stopped, and no place at the top.
func (h *History) Stop(number int) {
	t := &h.Trials[number]
	t.Status = stopped
	h.arrived(number)
	if !h.halving {
		h.rank(t, Entry{Trial: number, Failed: true})
	}
	h.Out--
}
