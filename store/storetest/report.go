package storetest

import (
	"math"
	"testing"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/trial"
)

func reportChecks() []check {
	return []check{
		{"reports come in the order they were accepted", reportOrder},
		{"the first report of an epoch stays", reportOnce},
		{"a report needs its trial", reportOrphan},
		{"every float comes back to the last bit", reportFloats},
	}
}

func reportOrder(t *testing.T, f fixture) {
	f.seed(t, "s1")
	id := trialID("s1", 1)
	want := []trial.Report{sampleReport(id, 1, 9), sampleReport(id, 0, 10), sampleReport(id, 0, 2), sampleReport(id, 1, 3)}
	other := sampleReport(trialID("s1", 0), 1, 9)
	f.apply(t, journal.Change{Reports: []trial.Report{want[0], other, want[1]}})
	f.apply(t, journal.Change{Reports: want[2:]})
	got, err := f.store.Reports(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "the reports", got, want)
}

func reportOnce(t *testing.T, f fixture) {
	f.seed(t, "s1")
	id := trialID("s1", 1)
	first, repeated := sampleReport(id, 0, 1), sampleReport(id, 0, 1)
	repeated.Metrics, repeated.Worker, repeated.At = map[string]trial.Float{"accuracy": 0.9}, "other", moment(30)
	sameEpochHigher := sampleReport(id, 1, 1)
	f.apply(t, journal.Change{Reports: []trial.Report{first, repeated}})
	f.apply(t, journal.Change{Reports: []trial.Report{repeated, sameEpochHigher}, Events: []journal.Event{sampleEvent("s1", 1)}})
	got, err := f.store.Reports(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "the reports", got, []trial.Report{first, sameEpochHigher})
	if events, err := f.store.Events(t.Context(), "s1", 0, 10); err != nil || len(events) != 1 {
		t.Errorf("the rest of the repeating change was not made: %v, %v", events, err)
	}
}

func reportOrphan(t *testing.T, f fixture) {
	f.seed(t, "s1")
	f.refuse(t, journal.Change{Reports: []trial.Report{sampleReport(trialID("s1", 1), 0, 1), sampleReport("s1-9", 0, 1)}}, problem.NotFound)
}

func reportFloats(t *testing.T, f fixture) {
	f.seed(t, "s1")
	id := trialID("s1", 1)
	for epoch, value := range []float64{
		math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1), 0, 1, -1, 0.1, 1.0 / 3, math.Pi, 1e21, 1e-7, 123456789.125,
		math.MaxFloat64, -math.MaxFloat64, math.SmallestNonzeroFloat64, 2.2250738585072011e-308, 1 << 53, 1<<53 + 2,
		math.Nextafter(1, 2), math.Nextafter(1, 0),
	} {
		one := sampleReport(id, 0, epoch)
		v := trial.Float(value)
		one.Metrics, one.Seconds, one.Energy.Joules = map[string]trial.Float{"loss": v}, v, v
		kept := sampleTrial("s1", 10+epoch, trial.Running)
		kept.Last, kept.Results[0].Values = map[string]trial.Float{"loss": v}, []trial.Float{v, 1}
		f.apply(t, journal.Change{Reports: []trial.Report{one}, Trials: []journal.TrialWrite{{Trial: kept}}})

		reports, err := f.store.Reports(t.Context(), id)
		if err != nil || len(reports) != epoch+1 {
			t.Fatalf("%d reports of %d: %v", len(reports), epoch+1, err)
		}
		read, err := f.store.Trial(t.Context(), kept.ID)
		if err != nil {
			t.Fatal(err)
		}
		last := reports[epoch]
		for where, got := range map[string]trial.Float{
			"metric": last.Metrics["loss"], "seconds": last.Seconds, "joules": last.Energy.Joules,
			"last": read.Last["loss"], "result": read.Results[0].Values[0],
		} {
			if !sameFloat(float64(got), value) {
				t.Errorf("%s: %v (bits %x) became %v (bits %x)", where, value, math.Float64bits(value), got, math.Float64bits(float64(got)))
			}
		}
	}
}

// sameFloat reports whether the bits are equal; every NaN is as good as another.
func sameFloat(a, b float64) bool {
	return math.Float64bits(a) == math.Float64bits(b) || math.IsNaN(a) && math.IsNaN(b)
}
