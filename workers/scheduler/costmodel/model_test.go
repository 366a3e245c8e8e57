package costmodel_test

import (
	"errors"
	"math"
	"testing"

	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/study/studyfile"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/placement"
	"github.com/tandem-tune/tandem/workers/scheduler/costmodel"
)

// taught is a model of a study whose epochs took two seconds on one type of machine.
func taught(t *testing.T) (*costmodel.Model, []trial.Trial) {
	t.Helper()
	def, err := studyfile.Parse([]byte("name: example\ncommand: [train]\nobjective: {metric: accuracy, direction: maximize}\nspace: {x: {type: float, low: 0, high: 1}}\n"), studyfile.YAML)
	if err != nil {
		t.Fatal(err)
	}
	trials := make([]trial.Trial, 8)
	for number := range trials {
		trials[number] = trial.Trial{Number: number, Epochs: 1, Budget: def.Budget.Ladder()[0].Budget, Configuration: space.Configuration{"x": space.Float(float64(number) / 8)}}
	}
	read := func(trial.ID) ([]trial.Report, error) {
		return []trial.Report{{Epoch: 1, LeaseEpoch: 1, Seconds: 2, Machine: "known"}}, nil
	}
	m, err := costmodel.Recall(def.Space, trials, read)
	if err != nil {
		t.Fatal(err)
	}
	if none, err := costmodel.Recall(def.Space, trials, func(trial.ID) ([]trial.Report, error) { return nil, errors.New("no") }); err == nil || none == nil {
		t.Error("reports that cannot be read are no error, or leave no model")
	}
	return m, trials
}

// TestAnEstimateStandsOnOwnEpochsThenOnProbes, and says so.
func TestAnEstimateStandsOnOwnEpochsThenOnProbes(t *testing.T) {
	m, trials := taught(t)
	probe := func(seconds float64) []placement.Probe {
		return []placement.Probe{{Workload: "w", Took: placement.Prediction{Seconds: seconds}}}
	}
	types := costmodel.TypesOf([]string{"known", "probed", "unknown"}, map[string][]placement.Probe{"known": probe(1), "probed": probe(3)}, 1)
	m.Reuse(types, 1)
	epochs, scores := m.OfTrial(&trials[3], 0, types)
	for machine, want := range map[string]struct {
		seconds float64
		basis   trial.Basis
	}{"known": {2, trial.OwnEpochs}, "probed": {6, trial.ProbesOnly}, "unknown": {0, trial.Unknown}} {
		one := epochs[machine]
		if math.Abs(one.Seconds-want.seconds) > 0.1 || one.Basis != want.basis || one.Known() != (want.seconds > 0) {
			t.Errorf("an epoch on %s is estimated as %+v, want %+v", machine, one, want)
		}
	}
	if len(scores) != 2 || scores["known"] != 1 || math.Abs(scores["probed"]-1.0/3) > 0.01 {
		t.Errorf("the scores are %v", scores)
	}
}

// TestEstimatesAreMadeAnewAfterAnEpoch was learned from, and not before.
func TestEstimatesAreMadeAnewAfterAnEpoch(t *testing.T) {
	m, trials := taught(t)
	types := costmodel.TypesOf([]string{"new"}, nil, 0)
	known := func() bool {
		m.Reuse(types, 1)
		epochs, _ := m.OfTrial(&trials[0], 0, types)
		return epochs["new"].Known()
	}
	if known() {
		t.Error("something is known of a machine that nobody has seen")
	}
	m.Learn(trials[0], trial.Report{Epoch: 2, LeaseEpoch: 1, Seconds: 1, Machine: "new"})
	if !known() {
		t.Error("what was learned does not count")
	}
	trials[0].Checkpoint = &trial.Checkpoint{Bytes: 200e6}
	if cost := m.Moving(trials[0], costmodel.Estimate{}); cost.Seconds < 10 || cost.Joules != 0 {
		t.Errorf("to carry 200 MB over costs %+v", cost)
	}
}
