package show

import (
	"math"
	"slices"
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
