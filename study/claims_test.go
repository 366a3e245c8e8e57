package study_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/tandem-tune/tandem/internal/effort"
	"github.com/tandem-tune/tandem/trial"
)

// scattered is the workload with epochs that scatter, as on a machine with other load.
func (w workload) scattered(seed uint64) workload {
	seconds, random := w.seconds, rand.New(rand.NewPCG(seed, 7))
	w.seconds = func(threads, neighbours int) float64 {
		return seconds(threads, neighbours) * math.Exp(0.05*random.NormFloat64())
	}
	return w
}

// claimed trains a study of the workload on an elastic worker, whose trials run beside each
// other. It returns what it claims to have saved, and of how many seconds.
func claimed(t *testing.T, work workload) (saved *trial.Saving, of float64) {
	in(func(t *testing.T, w *world) {
		b, control, epochs := w.box(true), 0, 0
		w.create("name: example", "name: example\nsystem: {cpu_threads: {values: [1, 2]}}", "min: 0.25, max: 1", "min: 1, max: 1", "trials: 27", "trials: 60")
		b.train("example", work)
		if b.full > b.cores {
			t.Errorf("trials had %d threads at once on %d cores", b.full, b.cores)
		}
		for _, one := range trialsOf(t, w, "example") {
			reports, err := w.store.Reports(w.ctx, one.ID)
			if err != nil {
				t.Fatal(err)
			}
			for _, report := range reports {
				epochs++
				if report.SystemPhase == trial.Control {
					control++
				}
				if report.Saved != nil && report.Saved.Seconds > 0 {
					saved, of = saved.Plus(report.Saved), of+float64(report.Seconds)
				}
			}
		}
		if control > epochs/20 {
			t.Errorf("%d of %d epochs ran the default for comparison, more than a twentieth", control, epochs)
		}
	})(t)
	return saved, of
}

// TestNothingIsClaimedOnASharedMachineForNothing: a script that ignores its threads saves
// nothing with fewer, also where that lets two trials run at once.
func TestNothingIsClaimedOnASharedMachineForNothing(t *testing.T) {
	t.Parallel()
	ignores := workload{name: "one core", seconds: func(int, int) float64 { return 2 }}
	claims, studies := 0, effort.Times(t, 4)
	for seed := range studies {
		if saved, _ := claimed(t, ignores.scattered(uint64(seed))); saved != nil {
			claims++
		}
	}
	t.Logf("%d of %d studies claim a saving", claims, studies)
	if claims > max(1, studies/15) { // 2.5% by chance
		t.Errorf("%d of %d studies claim that something was saved", claims, studies)
	}
}

// TestASavingIsClaimedOnASharedMachine: a script that takes longer with more threads saves
// what its epochs take less, and the interval holds that.
func TestASavingIsClaimedOnASharedMachine(t *testing.T) {
	t.Parallel()
	claims, held, truth, studies := 0, 0, 1-1.21/2.02, effort.Times(t, 2)
	for seed := range studies {
		saved, of := claimed(t, slowWithTwo.scattered(uint64(seed)))
		if saved == nil {
			continue
		}
		claims++
		low, high := float64(*saved.SecondsLow), float64(*saved.SecondsHigh)
		if low/(of+low) <= truth && truth <= high/(of+high) {
			held++
		}
	}
	t.Logf("%d of %d studies claim a saving, %d intervals hold it", claims, studies, held)
	if claims < studies*3/4 || held < claims*3/4 {
		t.Errorf("of %d studies whose trials take four tenths less %d say so, and the intervals of %d hold that", studies, claims, held)
	}
}
