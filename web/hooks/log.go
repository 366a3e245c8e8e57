package hooks

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/hook"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/study/starts"
	"github.com/tandem-tune/tandem/trial"
)

// cursor is how far a hook was told of a study, with what is needed to read the study's
// log on from there. The same log brings about the same messages, with the same ids: so
// what was read and not stored is read again.
type cursor struct {
	Hook     string `json:"hook"`
	Study    string `json:"study"`
	Sequence int64  `json:"sequence"`
	// Pending are to be told before more is read.
	Pending []hook.Message `json:"pending,omitempty"`
	hook.Delivered

	Best []trial.Result `json:"best,omitempty"` // no other beats them
	Row  int            `json:"row,omitempty"`  // of failures
	// Trials and what follows are used up; Spent are the limits of which it was told, Held
	// is what it was told last of a worker.
	Trials  int     `json:"trials,omitempty"`
	Passes  float64 `json:"passes,omitempty"`
	Seconds float64 `json:"seconds,omitempty"`
	Joules  float64 `json:"joules,omitempty"`
	Cost    float64 `json:"cost,omitempty"`
	CO2     float64 `json:"co2_g,omitempty"`
	Spent   string  `json:"spent,omitempty"`
	Held    string  `json:"held,omitempty"`
	// seen is the newest event that the study had when all was read.
	seen int64
}

// reader reads a study's log for a hook.
type reader struct {
	*cursor
	hook  entry
	when  definition.Hook
	study journal.Study
}

// tell adds a message. Nothing is told of the time before the hook was there.
func (r reader) tell(what definition.Occasion, at time.Time, key string, data hook.Data) {
	if !slices.Contains(r.when.Tell, what) || at.Before(r.hook.Created) {
		return
	}
	hash := sha256.Sum256(fmt.Appendf(nil, "%s %s %s %s", r.hook.ID, r.study.ID, what, key))
	data.Study, data.ID, data.Owner = r.study.Definition.Name, r.study.ID, r.study.Owner
	data.Text = "Study " + data.Study + ": " + data.Text
	r.Pending = append(r.Pending, hook.Message{ID: "msg_" + hex.EncodeToString(hash[:16]), Type: what, At: at.UTC(), Data: data})
}

// read takes one event. What cannot be decoded was written by another version, and is left out.
func (r reader) read(event journal.Event) {
	r.Sequence = event.Sequence
	switch event.Kind {
	case journal.StatusChange:
		if protocol.StudyStatus(event.State).Over() {
			r.tell(definition.Done, event.At, fmt.Sprint(event.Sequence), hook.Data{Text: event.State + ": " + event.Reason})
		}
	case journal.Reported:
		var report trial.Report
		if json.Unmarshal(event.Data, &report) == nil {
			r.Seconds, r.Joules = r.Seconds+float64(report.Seconds), r.Joules+float64(report.Energy.Joules)
			if report.Cost != nil {
				r.Cost, r.CO2 = r.Cost+float64(report.Cost.Amount), r.CO2+float64(report.Cost.Grams())
			}
			if ladder := r.study.Definition.Ladder(); report.Rung >= 0 && report.Rung < len(ladder) {
				r.Passes += ladder[report.Rung].Budget.DataFraction
			}
		}
	case journal.TrialState:
		r.readTrial(event)
	}
	r.readSpent(event.At, 0)
}

func (r reader) readTrial(event journal.Event) {
	var t struct {
		Results  []trial.Result `json:"results"`
		RepeatOf *int           `json:"repeat_of"`
		Stalled  bool           `json:"stalled"`
	}
	number, ok := event.Trial.Number()
	if !ok || json.Unmarshal(event.Data, &t) != nil {
		return
	}
	r.Trials = max(r.Trials, number+1)
	key, state := fmt.Sprint(event.Sequence), trial.State(event.State)
	if len(t.Results) > 0 && (state == trial.Paused || state == trial.Completed) {
		newest := t.Results[len(t.Results)-1]
		if newest.Violation > 0 {
			r.tell(definition.Limit, event.At, key, hook.Data{Text: fmt.Sprintf("trial %d breaks a constraint", number), Trial: &number, Values: newest.Values})
		} else if t.RepeatOf == nil && r.leads(newest) {
			r.tell(definition.NewBest, event.At, key, hook.Data{Text: fmt.Sprintf("trial %d leads%s (rung %d)", number, r.values(newest), newest.Rung), Trial: &number, Values: newest.Values})
		}
	}
	if t.Stalled {
		r.tell(definition.Limit, event.At, key, hook.Data{Text: fmt.Sprintf("trial %d %s", number, event.Reason), Trial: &number})
	}
	switch state {
	case trial.Failed:
		if r.Row++; r.Row == r.when.Failures {
			r.Row = 0
			r.tell(definition.Failures, event.At, key, hook.Data{Text: fmt.Sprintf("%d trials failed in a row, the last one is trial %d: %s", r.when.Failures, number, trial.FirstLine(event.Reason)), Trial: &number})
		}
	case trial.Paused, trial.Completed, trial.Pruned:
		r.Row = 0
	}
	if held := starts.Held(event.Reason); held != "" && held != r.Held {
		r.Held = held
		r.tell(definition.Held, event.At, key, hook.Data{Text: held})
	}
}

// leads reports whether a feasible result is a new best: on a higher rung than the best so
// far, or on the same rung and not matched there in all objectives by another.
func (r reader) leads(result trial.Result) bool {
	objectives := r.study.Definition.Objectives
	if len(result.Values) < len(objectives) || slices.ContainsFunc(result.Values, trial.Float.IsNaN) {
		return false
	}
	matches := func(a, b trial.Result) bool {
		for i, objective := range objectives {
			if objective.Direction.Score(a.Values[i]) < objective.Direction.Score(b.Values[i]) {
				return false
			}
		}
		return true
	}
	if len(r.Best) > 0 && r.Best[0].Rung != result.Rung {
		if r.Best[0].Rung > result.Rung {
			return false
		}
		r.Best = nil
	}
	if slices.ContainsFunc(r.Best, func(one trial.Result) bool { return matches(one, result) }) {
		return false
	}
	rest := slices.DeleteFunc(slices.Clone(r.Best), func(one trial.Result) bool { return matches(result, one) })
	r.Best = append(rest, trial.Result{Rung: result.Rung, Values: result.Values})
	return true
}

func (r reader) values(result trial.Result) (text string) {
	for i, objective := range r.study.Definition.Objectives {
		text += fmt.Sprintf(", %s %.6g", objective.Label(), float64(result.Values[i]))
	}
	return text
}

// readSpent looks whether the share of a limit is used; elapsed is how long the study ran,
// where that is known.
func (r reader) readSpent(at time.Time, elapsed time.Duration) {
	stop := r.study.Definition.Stop
	limits := fmt.Sprint(stop.Trials, stop.Seconds, stop.DataPasses, stop.TrainingSeconds, stop.Joules)
	if stop.Cost+stop.CO2 > 0 { // a hook that an earlier version told is not told again
		limits += fmt.Sprint(" ", stop.Cost, stop.CO2)
	}
	if r.Spent == limits {
		return
	}
	for _, one := range []struct {
		used, limit float64
		what        string
	}{
		{float64(r.Trials), float64(stop.Trials % definition.MaxTrials), "trials"}, {elapsed.Seconds(), stop.Seconds, "seconds"},
		{r.Passes, stop.DataPasses, "passes over the data"}, {r.Seconds, stop.TrainingSeconds, "seconds of training"}, {r.Joules, stop.Joules, "joules"},
		{r.Cost, stop.Cost, "of money"}, {r.CO2, stop.CO2, "g of CO2"},
	} {
		if one.limit > 0 && one.used >= one.limit*r.when.Spent*(1-1e-9) {
			r.Spent = limits
			r.tell(definition.Spent, at, limits, hook.Data{Text: fmt.Sprintf("%.0f %% of its %g %s are used", 100*one.used/one.limit, one.limit, one.what)})
			return
		}
	}
}
