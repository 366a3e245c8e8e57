package reuse_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/similarity"
	"github.com/tandem-tune/tandem/similarity/reuse"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/study/system"
	"github.com/tandem-tune/tandem/trial"
)

var precisions = system.Settings{Objective: system.Seconds, Tuned: []system.Tuned{{Name: system.Precision, Values: []space.Value{space.String("fp32"), space.String("bf16")}}}}

// loader is a training whose process loads code for each precision when it is new: that
// epoch takes longer, and the process keeps the memory.
type loader struct {
	memory  *similarity.Memory
	random  *rand.Rand
	seconds map[string]float64
	// delay is what loading takes, code its memory in bytes.
	delay, code float64
	noise       float64 // of an epoch: the standard deviation of its logarithm
	clock       int64
	epochs      map[trial.Phase]int
	saved       *trial.Saving
}

func newLoader() *loader {
	return &loader{memory: similarity.NewMemory(similarity.Options{}), random: rand.New(rand.NewPCG(1, 2)),
		seconds: map[string]float64{"fp32": 2, "bf16": 1}, delay: 5, code: 1 << 30, noise: 0.02, epochs: map[trial.Phase]int{}}
}

// run plays a trial of a study of one script.
func (l *loader) run(study string, number, epochs int) similarity.Record {
	record := similarity.Record{ID: fmt.Sprintf("%s-run-%03d", study, number), Machine: "m", Study: study, Script: "one"}
	at := reuse.Situation{Machine: 4, Cores: 4}
	input := reuse.Input{Settings: precisions, Situation: at, Record: record}
	input.Planned = reuse.Guess(l.memory, input)
	setting := reuse.Start(l.memory, input)
	loaded := map[string]bool{}
	for epoch := range epochs {
		precision, _ := setting.Configuration[system.Precision].Text()
		seconds := l.seconds[precision] * math.Exp(l.noise*l.random.NormFloat64())
		if !loaded[precision] {
			seconds += l.delay
		}
		loaded[precision] = true
		resident := trial.Float(2<<30 + l.code*float64(len(loaded)))
		l.clock++
		result := reuse.Decide(l.memory, reuse.Input{
			Settings: precisions, Situation: at, Record: record, NewRecord: fmt.Sprintf("%s-again-%d", record.ID, epoch),
			Left: epochs - epoch - 1, Planned: setting,
			Epoch: reuse.Epoch{At: time.Unix(l.clock, 0), Configuration: setting.Configuration, First: epoch == 0, Timed: true, Seconds: seconds, Joules: seconds,
				Features: similarity.Features(trial.Profile{Host: map[string]trial.Float{
					"tree.cpu_user": 1, "tree.cpu_system": 0.1, "tree.threads": 7, "tree.largest_resident_bytes": resident, "tree.largest_resident_file_bytes": resident / 2,
				}})},
		})
		l.epochs[setting.Phase]++
		l.saved = l.saved.Plus(result.Saved)
		setting, record = result.Setting, result.Record
		l.memory.Put(record)
	}
	return record
}

// An epoch in which a process loads code is slow whatever its configuration is: it is
// neither timed nor profiled, and what the process keeps in memory is no part of later
// profiles.
func TestAnEpochThatLoadsCodeIsNoEvidence(t *testing.T) {
	record := newLoader().run("only", 0, 12)
	if len(record.Cells) != 2 {
		t.Fatalf("it ran with %d configurations, want both", len(record.Cells))
	}
	own := map[string]float64{}
	for _, cell := range record.Cells {
		precision, _ := cell.Configuration[system.Precision].Text()
		if took := math.Exp(cell.LogSeconds); cell.Epochs == 0 || cell.Firsts > 0 || math.Abs(took-map[string]float64{"fp32": 2, "bf16": 1}[precision]) > 0.15 {
			t.Errorf("%s was timed in %d epochs and %d first ones, as %.2f s", precision, cell.Epochs, cell.Firsts, took)
		}
		own[precision] = cell.Features["resident bytes of its own"]
	}
	if apart := math.Abs(own["bf16"] - own["fp32"]); apart > 0.01 {
		t.Errorf("the logarithms of memory are %v: what the process has kept of the other precision counts", own)
	}
	if record.Process == nil || len(record.Process.Loaded) != 2 {
		t.Errorf("the process is %+v, want two precisions loaded", record.Process)
	}
}

// In the second study of a script that loads code for each precision nothing is probed
// again, whatever order its processes ran the precisions in. What is saved is
// measured with few epochs, those counted that only loaded the default's code.
func TestAKnownScriptThatLoadsCodeIsReused(t *testing.T) {
	l := newLoader()
	for number := range 12 {
		l.run("first", number, 20)
	}
	if control := l.epochs[trial.Control]; control == 0 || control > 12 {
		t.Errorf("%d of 240 epochs run the default for comparison, want some and at most 12", control)
	}
	clear(l.epochs)
	l.saved = nil
	for number := range 12 {
		l.run("second", number, 20)
	}
	t.Logf("%v, saved %+v", l.epochs, l.saved)
	if l.epochs[trial.Probing] > 24 || l.epochs[trial.Script]+l.epochs[trial.Study] < 200 {
		t.Errorf("of 240 epochs of a known script the phases are %v", l.epochs)
	}
	// Each epoch after the one that loads its code takes a second less.
	if gained := trial.Float(240 - 12); l.saved == nil || *l.saved.SecondsLow > gained || *l.saved.SecondsHigh < gained {
		t.Errorf("%+v was saved, in truth %g s", l.saved, gained)
	}
}

// An epoch that only loads the default's code is one of the few that are spent on
// comparisons, though nothing is compared with it.
func TestLoadingTheDefaultIsPartOfTheControl(t *testing.T) {
	for seed := range uint64(4) {
		l := newLoader()
		l.random, l.noise = rand.New(rand.NewPCG(seed, 7)), 0.3 // the interval stays wide
		for number := range 24 {
			l.run("noisy", number, 20)
		}
		t.Logf("%v", l.epochs)
		if control := l.epochs[trial.Control]; control == 0 || control > 24 {
			t.Errorf("seed %d: %d of 480 epochs run the default for comparison, want some and at most 24: %v", seed, control, l.epochs)
		}
	}
}

// A process whose other code would take the last epoch to load trains on as it is.
func TestTheLastEpochLoadsNothing(t *testing.T) {
	l := newLoader()
	record := l.run("short", 0, 3)
	if len(record.Cells) != 1 {
		t.Errorf("a run of three epochs has %d configurations: the third one could measure nothing", len(record.Cells))
	}
}
