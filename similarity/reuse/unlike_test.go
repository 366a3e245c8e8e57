package reuse_test

import (
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/similarity"
	"github.com/tandem-tune/tandem/study/system"
	"github.com/tandem-tune/tandem/trial"
)

// mostly is the share of the epochs of a study's runs with a number of threads.
func mostly(records []similarity.Record, study string, threads int64) float64 {
	some, all := 0, 0
	for _, record := range records {
		for _, cell := range record.Cells {
			if n, _ := cell.Configuration[system.CPUThreads].Integer(); record.Study == study {
				all += cell.Epochs
				if n == threads {
					some += cell.Epochs
				}
			}
		}
	}
	return float64(some) / float64(all)
}

// Another workload of a known script, which its profile does not tell from the first one,
// is not trained with the first one's best: a comparison of its own shows that it is unlike.
func TestAScriptThatTrainsAnotherWorkloadIsNotReused(t *testing.T) {
	for seed := range uint64(5) {
		p := newPlayer(seed)
		p.study(script{"one", 7, slower}, "first")
		other := script{"one", 7, map[int64]float64{1: 4, 2: 2, 4: 1}}
		for number := range 4 {
			o := outcome{started: map[trial.Phase]int{}, phases: map[trial.Phase]int{}}
			p.run(other, "second", number, 40, &o)
		}
		if share := mostly(p.memory.Records(), "second", 4); share < 0.95 {
			t.Errorf("seed %d: %.0f%% of the epochs have the other workload's own best", seed, 100*share)
		}
		records := p.memory.Records()
		setting := p.begin(similarity.Record{ID: "the next one", Machine: "m", Study: "second", Script: "one"})
		if n, _ := setting.Configuration[system.CPUThreads].Integer(); n != 4 || setting.Phase != trial.Study || !strings.Contains(setting.Why, "left out") {
			t.Errorf("seed %d: after %d runs the next one starts as %+v", seed, len(records), setting)
		}
	}
}

// The same workload is reused although a twentieth of the epochs takes twice as long.
func TestADisturbedEpochDoesNotMakeAWorkloadUnlike(t *testing.T) {
	for seed := range uint64(5) {
		p := newPlayer(seed)
		p.disturbed = 0.05
		known := script{"one", 7, slower}
		p.study(known, "first")
		second := p.study(known, "second")
		if probed, share := share(second, second.phases, trial.Probing), mostly(p.memory.Records(), "second", 1); probed > 0.1 || share < 0.9 {
			t.Errorf("seed %d: %.0f%% of a known script's epochs probe, %.0f%% have its best: %v", seed, 100*probed, 100*share, second.phases)
		}
	}
}

// A script whose files have changed is not the same script: what was known of it counts
// once its profile is similar. Where the files are not known it is the same.
func TestAChangedScriptIsSimilarAtMost(t *testing.T) {
	p := newPlayer(3)
	known := script{"one", 7, slower}
	p.code = "one version"
	p.study(known, "first")
	for code, want := range map[string]bool{"": true, "one version": true, "another version": false} {
		setting := p.begin(similarity.Record{ID: "the next one", Machine: "m", Study: "second", Script: "one", Code: code})
		if (setting.Phase == trial.Script) != want {
			t.Errorf("with the code %q it starts as %s: %s", code, setting.Phase, setting.Why)
		}
	}
	p.code = "another version"
	second := p.study(known, "second")
	if second.started[trial.Script]+second.phases[trial.Script] > 0 || second.phases[trial.Similar] == 0 {
		t.Errorf("the changed script starts %v and has %v", second.started, second.phases)
	}
}
