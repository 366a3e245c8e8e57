package comparecmd

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

// history is what an export has of a study.
type history struct {
	// label is what the study is called in the answer.
	label  string
	Study  protocol.StudyView     `json:"study"`
	Trials []protocol.RankedTrial `json:"trials"`
	Events []event                `json:"events"`
}

type event struct {
	At    time.Time       `json:"at"`
	Kind  string          `json:"kind"`
	Trial trial.ID        `json:"trial_id"`
	State string          `json:"state"`
	Data  json.RawMessage `json:"data"`
}

// read asks the server for the study's history.
func read(ctx context.Context, client *rest.Client, ref string) (one history, err error) {
	from, err := client.Export(ctx, ref, "json")
	if err != nil {
		return one, err
	}
	defer from.Close() //nolint:errcheck // it was only read
	if err := json.NewDecoder(from).Decode(&one); err != nil {
		return one, fmt.Errorf("the export of study %s is damaged: %w", ref, err)
	}
	if one.label = ref; ref == one.Study.ID {
		one.label = one.Study.Name
	}
	return one, nil
}

// compared is the study as the answer has it.
func (h history) compared(aim *target) compared {
	p := h.Study.Progress
	one := compared{Study: h.label, ID: h.Study.ID, Status: h.Study.Status, Best: p.Best, spent: spent{trial.Float(p.ElapsedSeconds), p.Energy}}
	for _, t := range h.Trials {
		value, measured := t.Value(0)
		if t.RepeatOf != nil {
			if measured && p.Best != nil && *t.RepeatOf == p.Best.Number {
				one.repeats = append(one.repeats, float64(value))
			}
			continue
		}
		if measured {
			one.Measured++
		}
		if t.State == trial.Failed || t.State == trial.Lost { // perhaps after a lower rung
			one.Failed++
		}
	}
	if aim != nil {
		one.Reached = h.reached(float64(aim.Value))
	}
	return one
}

// reached is the first feasible result with the target, at any rung, as stop.target_reached
// takes it; nil: there is none.
func (h history) reached(aim float64) (found *reached) {
	direction, first := h.Study.Definition.Objectives[0].Direction, time.Time{}
	for _, t := range h.Trials {
		for _, result := range t.Results {
			value := float64(result.Values[0])
			meets := value == aim || better(direction, value, aim)
			if !meets || result.Violation > 0 || t.RepeatOf != nil || found != nil && (result.At == nil || !result.At.Before(first)) {
				continue
			}
			if found = (&reached{Trial: t.Number, spent: spent{Seconds: trial.Float(math.NaN())}}); result.At != nil {
				first = *result.At
			}
		}
	}
	if found != nil && !first.IsZero() {
		found.spent = h.until(first)
		found.Seconds = min(found.Seconds, trial.Float(h.Study.Progress.ElapsedSeconds)) // which had no time without a server
	}
	return found
}

// counted is the time of the study's clock that its whole history tells.
func (h history) counted() trial.Float { return h.until(h.Events[len(h.Events)-1].At).Seconds }

// until is what the study had spent at the time, as its history tells: its clock runs while
// it does and a worker has a trial of it.
func (h history) until(end time.Time) (sum spent) {
	var since time.Time
	running, held := true, map[trial.ID]bool{}
	count := func(at time.Time) {
		if running && len(held) > 0 {
			sum.Seconds += trial.Float(at.Sub(since).Seconds())
		}
		since = at
	}
	for _, e := range h.Events {
		if e.At.After(end) {
			break
		}
		count(e.At)
		switch {
		case e.Trial == "" && e.State != "":
			running = e.State == string(protocol.StudyRunning)
		case e.Kind == "trial_state" && trial.State(e.State).Held():
			held[e.Trial] = true
		case e.Kind == "trial_state":
			delete(held, e.Trial)
		case e.Kind == "report":
			var report trial.Report
			if json.Unmarshal(e.Data, &report) == nil {
				sum.Energy = sum.Energy.Plus(report.Energy)
			}
		}
	}
	count(end)
	return sum
}
