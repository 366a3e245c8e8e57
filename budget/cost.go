package budget

// Pace is what training takes: of one epoch over the whole training data.
type Pace struct {
	// Seconds and Joules are for one pass; 0 if not known.
	Seconds, Joules float64
	// Source says where the numbers are from.
	Source string
}

// Costs is what a plan takes in seconds and joules: an estimate in all of it.
// It takes an epoch's cost for proportional to its share of the data, and all
// configurations for alike. What is not known is 0.
type Costs struct {
	// TrialSeconds is the training time summed over all trials.
	TrialSeconds float64 `json:"trial_seconds,omitempty" doc:"an estimate"`
	// ElapsedSeconds is how long that takes the workers together: at least their
	// share of it, and one training of the top rung's budget.
	ElapsedSeconds float64 `json:"elapsed_seconds,omitempty" doc:"an estimate"`
	Joules         float64 `json:"joules,omitempty" doc:"an estimate"`
	Workers        int     `json:"workers"`
	// Method says where the estimate is from; it begins with "estimate".
	Method string `json:"method"`
}

// Cost returns what the plan takes at the pace with as many workers; nil when
// nothing is known of it, or nothing bounds the number of trials.
func (p Plan) Cost(pace Pace, workers int) *Costs {
	workers = max(workers, 1)
	costs := Costs{TrialSeconds: p.Seconds, Joules: p.Joules, Workers: workers, Method: "estimate: the sum of the rungs' budgets"}
	top := p.Stages[len(p.Stages)-1].Budget
	longest := top.Seconds
	if !top.Measured() {
		costs.TrialSeconds, costs.Joules = p.DataPasses*pace.Seconds, p.DataPasses*pace.Joules
		longest = float64(top.Epochs) * top.DataFraction * pace.Seconds
		costs.Method = "estimate: every pass over the data takes what " + pace.Source
	} else if rate := pace.Joules / pace.Seconds; pace.Seconds > 0 && pace.Joules > 0 {
		// What the budget is not counted in follows from the power.
		if top.Joules > 0 {
			costs.TrialSeconds, longest = p.Joules/rate, top.Joules/rate
		} else {
			costs.Joules = p.Seconds * rate
		}
		costs.Method += "; the power follows from what " + pace.Source
	}
	if p.Trials == 0 || costs.TrialSeconds == 0 && costs.Joules == 0 {
		return nil
	}
	if costs.TrialSeconds > 0 {
		costs.ElapsedSeconds = max(costs.TrialSeconds/float64(workers), longest)
	}
	return &costs
}
