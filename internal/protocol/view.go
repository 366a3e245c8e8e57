package protocol

import (
	"fmt"
	"time"

	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/search"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/trial"
)

// StudyView is a study as clients see it.
type StudyView struct {
	ID         string                `json:"id"`
	Name       string                `json:"name"`
	Owner      string                `json:"owner" doc:"its owner; admin: the administrators"`
	Status     StudyStatus           `json:"status"`
	Reason     string                `json:"reason,omitempty"`
	Created    time.Time             `json:"created"`
	Finished   *time.Time            `json:"finished,omitempty"`
	Definition definition.Definition `json:"definition"`
	// Groups are whom it is shared with. Role is the caller's by one of them; empty for its owner.
	Groups []string `json:"groups,omitempty" doc:"the groups that it is shared with"`
	Role   string   `json:"role,omitempty" enum:"editor,viewer" doc:"what you may do with it: viewer looks, editor steers it; absent for whoever owns it or sees all studies"`
	// Extended says that it was given other limits than those it was created with.
	Extended bool       `json:"extended,omitempty" doc:"its limits are others than it was created with"`
	Set      SetRequest `json:"set,omitzero" doc:"what a user has set since it was created"`
	// Rungs is the ladder of budgets, the cheapest first.
	Rungs    []budget.Rung `json:"rungs"`
	Progress Progress      `json:"progress"`
	// Waits says why its next trial does not start; absent where nothing is in its
	// way, and in lists of studies.
	Waits      []Wait         `json:"waits,omitempty" doc:"why the next trial does not start; only for a study that is asked for by itself"`
	Unmeasured string         `json:"unmeasured,omitempty" doc:"that the minutes of measuring inferences are spent; only when it is asked for by itself"`
	Useless    string         `json:"useless,omitempty" doc:"what of its definition has no effect, and why; only when it is created or asked for by itself"`
	Sources    []search.Trust `json:"sources,omitempty" doc:"what was known before it began, and how far its search trusts that"`
	// Annotation is what people wrote about it.
	trial.Annotation
}

// MoreTrials is the command line that gives the study as many trials as another stop.trials
// has; empty where that is no more, or is no bound.
func (v StudyView) MoreTrials(trials int) string {
	now := v.Definition.Stop.Trials
	if v.Status.Over() {
		now = v.Progress.Created - v.Progress.Repeats
	}
	if v.Definition.Stop.Trials == 0 || trials <= now || trials >= definition.MaxTrials {
		return ""
	}
	return fmt.Sprintf("tandem study extend %s --trials %d", v.Name, trials-now)
}

// TrialQuery selects and orders a study's trials.
type TrialQuery struct {
	// States, if any, keeps only trials in one of them.
	States []trial.State
	// Rung, if set, keeps only trials measured or training at the rung.
	Rung *int
	// Query chooses and orders, as package query describes. Sort goes before its order.
	Query string
	// Sort is a column: "rank" (default: the highest measured rung first, then the
	// best value), "number", "state", "value" (of the newest completed rung; "value.1"
	// is the second objective's), "violation", "rung", "budget", "latest" (the
	// objective's metric in the newest report), "epochs", "seconds", "joules",
	// "params.NAME" or any field of queries. Whatever the direction, NaN stands behind every value, and what
	// has nothing there last; equal trials go by rank.
	Sort string
	// Descending puts the largest value of the column first.
	Descending bool
	// Limit bounds the answer (0: 100, at most 10,000), Offset skips.
	Limit, Offset int
}

// RankedTrial is a trial with its place on the leaderboard.
type RankedTrial struct {
	trial.Trial
	// Rank is 1 for the best; 0 for a trial that was never measured, and for one
	// that repeats another.
	Rank int `json:"rank"`
	// Repeated is there for a trial that was repeated: it ranks by its mean.
	Repeated *Repeated `json:"repeated,omitempty" doc:"mean over all trainings of its configuration"`
}

// Repeated is what several trainings of one configuration with the full budget
// came to, each with another seed.
type Repeated struct {
	// Results is how many there are so far.
	Results int `json:"results" doc:"trainings with a result at the top rung"`
	// Mean has one entry for each objective. The first training is the one that
	// the configuration was chosen for, so that the mean is too good.
	Mean []trial.Float `json:"mean"`
	// StandardErrors are those of the means; absent before the second result.
	StandardErrors []trial.Float `json:"standard_errors,omitempty"`
	// Trials are the numbers of the trials that the results are of.
	Trials []int `json:"trials"`
}

// TrialPage is one page of a study's trials.
type TrialPage struct {
	Trials []RankedTrial `json:"trials"`
	// Total is how many match the query.
	Total int `json:"total"`
	// All is how many trials the study has.
	All int `json:"all" doc:"trials that the study has"`
	// Sequence is the last event these rows contain: follow the events after it.
	Sequence int64 `json:"sequence"`
}

// TrialDetail is one trial with its learning curve and its history.
type TrialDetail struct {
	Trial   RankedTrial    `json:"trial"`
	Reports []trial.Report `json:"reports"`
	Events  []Event        `json:"events"`
	// GPUExpected is what it should use of GPUs; absent where no worker has one.
	GPUExpected *GPUExpected `json:"gpu_expected,omitempty" doc:"what it should use of GPUs, an estimate; absent where no worker has one"`
}

// Disclosed is what a confidential study has told so far, and how often its key went out.
type Disclosed struct {
	Bits      float64 `json:"bits" doc:"the most that the metrics of its counted epochs can have told"`
	Attesting int     `json:"attesting" doc:"trials whose worker asks the broker for the key now"`
	Released  int     `json:"released" doc:"leases that got the key, as their workers say"`
	Refused   int     `json:"refused" doc:"leases that were given back as the broker refused it"`
}

// Best is the leading trial: the best value among the trials measured at the
// highest rung that has a measurement. Those that were repeated come first.
type Best struct {
	Trial  trial.ID    `json:"trial_id"`
	Number int         `json:"number"`
	Metric string      `json:"metric"`
	Value  trial.Float `json:"value"`
	// Values has all objectives' values, where there are several.
	Values []trial.Float `json:"values,omitempty"`
	// Violation is by how much it misses the study's constraints; absent for
	// a feasible trial.
	Violation trial.Float `json:"violation,omitempty"`
	// Estimated says that joules which are an estimate went into the value.
	Estimated bool                `json:"estimated,omitempty"`
	Rung      int                 `json:"rung"`
	Budget    budget.Budget       `json:"budget"`
	Params    space.Configuration `json:"params"`
	// Repeated is there for a trial that was repeated: Value and Values are its
	// means.
	Repeated *Repeated `json:"repeated,omitempty"`
}
