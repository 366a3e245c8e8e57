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
	m, err := costmodel.Recall(def.Space, nil, trials, read)
	if err != nil {
		t.Fatal(err)
	}
	if none, err := costmodel.Recall(def.Space, nil, trials, func(trial.ID) ([]trial.Report, error) { return nil, errors.New("no") }); err == nil || none == nil {
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

// TestJoulesOfTheStartAreNotThoseOfAnEpoch is about reports whose seconds include the
// start of the script, and reports whose seconds do not.
func TestJoulesOfTheStartAreNotThoseOfAnEpoch(t *testing.T) {
	for name, report := range map[string]trial.Report{
		"with the start":    {Seconds: 20, SetupSeconds: 18, Energy: trial.Energy{Joules: 200, Method: "rapl"}},
		"without the start": {Seconds: 2, Energy: trial.Energy{Joules: 20, Method: "rapl"}},
	} {
		m, trials := taught(t)
		for number := range trials {
			for epoch := 2; epoch < 12; epoch++ {
				report.Machine, report.Epoch, report.LeaseEpoch, trials[number].Number = "new", epoch, trial.LeaseEpoch(epoch), number
				m.Learn(trials[number], report)
			}
		}
		types := costmodel.TypesOf([]string{"new"}, nil, 1)
		m.Reuse(types, 1)
		epochs, _ := m.OfTrial(&trials[3], 0, types)
		if one := epochs["new"]; math.Abs(one.Seconds-2) > 0.1 || math.Abs(one.Joules-20) > 1 {
			t.Errorf("%s: an epoch of 2 s and 20 J is estimated as %g s and %g J", name, one.Seconds, one.Joules)
		}
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

// TestAnEarlierStudyServesUntilOwnEpochsAreBetter, and where it stays better. What it says
// of a type on which the study has not run is corrected by how they differ elsewhere.
func TestAnEarlierStudyServesUntilOwnEpochsAreBetter(t *testing.T) {
	def, err := studyfile.Parse([]byte("name: example\ncommand: [train]\nobjective: {metric: accuracy, direction: maximize}\nspace: {x: {type: float, low: 0, high: 1}}\n"), studyfile.YAML)
	if err != nil {
		t.Fatal(err)
	}
	at := func(i int) trial.Trial {
		return trial.Trial{Number: i, Epochs: 1, Budget: def.Budget.Ladder()[0].Budget, Configuration: space.Configuration{"x": space.Float(float64(i%8) / 8)}}
	}
	law := func(i int) float64 { return math.Exp(float64(i % 8)) } // a configuration changes what an epoch takes
	earlier := costmodel.New(def.Space)
	for i := range 16 {
		for _, machine := range []string{"here", "there"} {
			earlier.Learn(at(i), trial.Report{Epoch: 1, LeaseEpoch: 1, Seconds: trial.Float(law(i)), Machine: machine})
		}
	}
	fresh := func(factor float64, epochs int) *costmodel.Model {
		m, err := costmodel.Recall(def.Space, earlier, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := range epochs {
			m.Learn(at(i), trial.Report{Epoch: 1, LeaseEpoch: 1, Seconds: trial.Float(factor * law(i)), Machine: "here"})
		}
		return m
	}
	for name, test := range map[string]struct {
		model       *costmodel.Model
		here, there trial.Basis
		ratio       float64 // of what is told of the other machine to what the earlier study took
	}{
		"nothing yet":           {fresh(1, 0), trial.EarlierEpochs, trial.EarlierEpochs, 1},
		"the same":              {fresh(1, 5), trial.EarlierEpochs, trial.EarlierEpochs, 1},
		"slower by a thousand":  {fresh(1000, 16), trial.OwnEpochs, trial.EarlierEpochs, 1000},
		"too few to be a judge": {fresh(1, 3), trial.OwnEpochs, trial.EarlierEpochs, 1},
	} {
		encoded, fraction := test.model.Encode(at(4).Configuration), at(4).Budget.DataFraction
		here, there := test.model.Estimate(encoded, fraction, "here", nil), test.model.Estimate(encoded, fraction, "there", nil)
		if here.Basis != test.here || there.Basis != test.there || !(there.Seconds > test.ratio*law(4)/4 && there.Seconds < test.ratio*law(4)*4) {
			t.Errorf("%s: %+v here, %+v there, which took %g before", name, here, there, law(4))
		}
	}
	if one := fresh(1, 0).Typical(1, costmodel.TypesOf([]string{"there", "unknown"}, nil, 0)); one["there"].Basis != trial.EarlierEpochs || one["unknown"].Known() {
		t.Errorf("%+v", one)
	}
}
