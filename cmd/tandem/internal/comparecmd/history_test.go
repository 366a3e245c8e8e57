package comparecmd

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/trial"
)

// TestTheClockOfAStudy counts neither pauses nor times without a leased trial, and bounds
// what it cannot tell: how long no server ran.
func TestTheClockOfAStudy(t *testing.T) {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(second int) time.Time { return begin.Add(time.Duration(second) * time.Second) }
	state := func(second int, id trial.ID, state trial.State) event {
		return event{At: at(second), Kind: "trial_state", Trial: id, State: string(state)}
	}
	report := func(second int, joules string) event {
		return event{At: at(second), Kind: "report", Trial: "s-0", Data: json.RawMessage(`{"energy":{"joules":` + joules + `,"method":"rapl"}}`)}
	}
	h := history{label: "s", Events: []event{
		{At: at(0), Kind: "study_created", State: "running"},
		state(10, "s-0", trial.Leased), state(11, "s-1", trial.Leased), state(11, "s-0", trial.Running),
		report(20, "5"), state(20, "s-0", trial.Paused), state(25, "s-1", trial.Failed), // 15 s
		state(40, "s-0", trial.Running),
		{At: at(45), Kind: "study_status", State: "paused"}, // 20 s
		report(50, "7"), state(50, "s-0", trial.Paused),
		{At: at(60), Kind: "study_status", State: "running"},
		state(61, "s-0", trial.Running), report(70, "9"), state(70, "s-0", trial.Completed), // 29 s
	}}
	for second, want := range map[int]spent{5: {}, 12: {Seconds: 2}, 24: {Seconds: 14, Energy: trial.Energy{Joules: 5, Method: "rapl"}}, 55: {Seconds: 20, Energy: trial.Energy{Joules: 12, Method: "rapl"}}, 90: {Seconds: 29, Energy: trial.Energy{Joules: 21, Method: "rapl"}}} {
		if got := h.until(at(second)); got != want {
			t.Errorf("after %d s it had spent %+v, not %+v", second, got, want)
		}
	}

	h.Study.Definition.Objectives = []definition.Objective{{Metric: "loss", Direction: definition.Minimize}}
	h.Study.Progress.ElapsedSeconds = 29
	result := func(second int, value, violation trial.Float) trial.Result {
		moment := at(second)
		return trial.Result{Values: []trial.Float{value}, Violation: violation, At: &moment}
	}
	repeated := 0
	h.Trials = make([]protocol.RankedTrial, 3)
	h.Trials[0].Results = []trial.Result{result(20, 0.5, 0), result(70, 0.1, 0)}
	h.Trials[1].Results = []trial.Result{result(24, 0.1, 1)}
	h.Trials[2].Results, h.Trials[2].RepeatOf = []trial.Result{result(24, 0.1, 0)}, &repeated
	for aim, want := range map[float64]trial.Float{0.6: 10, 0.5: 10, 0.2: 29} {
		if got := h.reached(aim); got == nil || got.Seconds != want || got.Trial != 0 {
			t.Errorf("a loss of %g was reached after %+v, not %g s", aim, got, float64(want))
		}
	}
	if got := h.reached(0.05); got != nil {
		t.Errorf("a loss of 0.05 was reached after %+v", got)
	}
	h.Study.Progress.ElapsedSeconds = 22 // no server ran for 7 s
	h.Trials[1].State = trial.Failed     // at the rung above its result
	answer := compare([]history{h, h}, 0.2)
	if got := answer.Studies[0]; got.Measured != 2 || got.Failed != 1 {
		t.Errorf("%d trials are measured and %d failed, not 2 and 1", got.Measured, got.Failed)
	}
	if got := answer.Studies[0].Reached; got.Seconds != 22 || !strings.Contains(strings.Join(answer.Notes, "; "), "may be up to 7.0s shorter") {
		t.Errorf("reached after %+v, with the notes %q", got, answer.Notes)
	}
}
