package show

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/studyfile"
	"github.com/tandem-tune/tandem/trial"
)

// The leaderboard says of each objective by itself whether it is an estimate.
func TestTheLeaderboardLabelsEstimates(t *testing.T) {
	def, err := studyfile.Parse([]byte(`
name: edge
objective: [{metric: accuracy, direction: maximize}, {metric: edge.latency_ms, direction: minimize}]
space: {rate: {type: float, low: 0, high: 1}}
inference: {devices: [raspberry-pi-4]}
budget: {epochs: 3}
`), studyfile.YAML)
	if err != nil {
		t.Fatal(err)
	}
	one := protocol.RankedTrial{Rank: 1, Trial: trial.Trial{
		Results: []trial.Result{{Values: []trial.Float{0.75, 12}}}, Last: map[string]trial.Float{"accuracy": 0.75},
		Inference: &trial.InferenceCost{Device: "raspberry-pi-4", LatencySeconds: 0.013, Method: "estimate: from what the device is made of"},
	}}
	if row := leaderboardRow(one, def, nil); !slices.Contains(row, "0.75") || !slices.Contains(row, "12 (estimate)") || !slices.Contains(row, "13 ms (estimate)") {
		t.Errorf("%q", row)
	}
	one.Inference.Method = trial.Measured
	if row := leaderboardRow(one, def, nil); !slices.Contains(row, "12") || !slices.Contains(row, "13 ms") {
		t.Errorf("measured: %q", row)
	}
}

// By how much a result that is no number misses the constraints is not known.
func TestTheViolationOfNoNumberIsUnknown(t *testing.T) {
	def, err := studyfile.Parse([]byte(`
name: bounded
objective: {metric: accuracy, direction: maximize}
constraints: [{metric: loss, max: 1}]
space: {rate: {type: float, low: 0, high: 1}}
`), studyfile.YAML)
	if err != nil {
		t.Fatal(err)
	}
	for want, violation := range map[string]float64{"unknown": math.Inf(1), "none": 0, "0.5": 0.5} {
		one := protocol.RankedTrial{Trial: trial.Trial{Results: []trial.Result{{Values: []trial.Float{1}, Violation: trial.Float(violation)}}}}
		if row := leaderboardRow(one, def, nil); row[3] != want {
			t.Errorf("%g is shown as %q", violation, row)
		}
	}
}

// Each reason of failures and losses is said once, and nothing of trials that ended well.
func TestTheLeaderboardSaysWhyTrialsFailedOrWereLost(t *testing.T) {
	def, err := studyfile.Parse([]byte("name: one\nobjective: {metric: accuracy, direction: maximize}\nspace: {rate: {type: float, low: 0, high: 1}}\n"), studyfile.YAML)
	if err != nil {
		t.Fatal(err)
	}
	var page protocol.TrialPage
	for number, one := range []struct {
		state  trial.State
		reason string
	}{
		{trial.Failed, "exit code 1: KeyError\nTraceback"}, {trial.Completed, "measured at the top rung"}, {trial.Failed, "exit code 1: KeyError\nanother"},
		{trial.Lost, "node rack-1 was silent for 60 s; given up, as it was lost 20 times"}, {trial.Failed, "exit code 2"},
	} {
		page.Trials = append(page.Trials, protocol.RankedTrial{Trial: trial.Trial{Number: number, State: one.state, Reason: one.reason}})
	}
	var out strings.Builder
	if err := Leaderboard(&out, def, page); err != nil {
		t.Fatal(err)
	}
	const want = `trial 0 failed: exit code 1: KeyError (and 1 further trial)
trial 3 was lost: node rack-1 was silent for 60 s; given up, as it was lost 20 times
trial 4 failed: exit code 2
`
	page.Total = 105
	if more := new(strings.Builder); Leaderboard(more, def, page) != nil || !strings.Contains(more.String(), "and 100 more: 'tandem study trials' with --limit 105 lists all\n") {
		t.Errorf("of 105 trials it says:\n%s", more)
	}
	if !strings.HasSuffix(out.String(), want) || strings.Contains(out.String(), "measured at") {
		t.Errorf("said:\n%s\nwant at the end:\n%s", out.String(), want)
	}
}
