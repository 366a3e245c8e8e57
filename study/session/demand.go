package session

import (
	"math"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/search"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/demand"
)

// Demand is what the study takes and could start now, whatever workers there are.
func (r *State) Demand() demand.Ask {
	one := demand.Ask{Owner: r.Owner, Study: r.ID, Priority: r.Study.Definition.Priority}
	if r.Study.Status.Over() && r.Held == 0 {
		return one
	}
	each, constant := r.places()
	one.Each = each
	if constant {
		one.Running = float64(r.Held) * each
	} else {
		for _, t := range r.Trials {
			if t.State.Held() {
				one.Running += placesOf(t)
			}
		}
	}
	if r.Study.Status != protocol.StudyRunning || len(r.Study.Definition.Command) == 0 || r.Broken != nil {
		return one
	}
	all := len(r.Queue) + r.fresh()
	if most := r.Study.Definition.Parallel; most > 0 {
		one.Ready = min(all, max(0, most-r.Held)) // more would not run at once
		return one
	}
	one.Ready = max(len(r.Queue), min(1, all))
	one.More = all - one.Ready
	return one
}

// fresh is how many trials the study could start beside its queue, if a worker came
// for each now: those that its search would begin or send up, as far as its budgets
// pay for them, by what those before came to.
func (r *State) fresh() int {
	supply, can := r.Method.(search.Supply)
	if r.waiting || !can {
		return 0
	}
	most := supply.Startable()
	if most == 0 || len(r.Trials) == 0 {
		return most
	}
	for _, bound := range r.spending.Limits(r.Study.Definition.Stop) {
		if each := bound.Used / float64(len(r.Trials)); each > 0 && bound.Limit/each < maxStartable {
			most = min(most, max(1, int(math.Ceil((bound.Limit-bound.Used)/each))-len(r.Queue)-r.Held))
		}
	}
	return most
}

// places is how many GPUs each trial of the study takes: at least one, which
// stands for a slot where there are none, or which part of one. It is no constant
// where they are tuned or shared.
func (r *State) places() (each float64, constant bool) {
	if r.Study.Definition.SharesGPUs() {
		return max(leastPlace, r.GPUStudy().Fraction()), false
	}
	least, most := r.Study.Definition.GPUsEach()
	return float64(max(1, least)), least == most
}

// leastPlace is the smallest part of a GPU that a trial counts as.
const leastPlace = 0.01

// placesOf is how many GPUs the trial runs with, at least one, or which part of
// one.
func placesOf(t trial.Trial) float64 {
	if t.GPUShare != nil {
		return max(leastPlace, t.GPUShare.Fraction)
	}
	return float64(max(1, len(t.GPUs)))
}
