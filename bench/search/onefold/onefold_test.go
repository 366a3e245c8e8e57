package onefold

import (
	"maps"
	"testing"

	"github.com/tandem-tune/tandem/study/space"
)

func TestTheHardestTargetThatMostBatchSizesReach(t *testing.T) {
	t.Parallel()
	run := func(batch, target, epochs string) record {
		return record{"batch_size": batch, "target_metric": target, "target_epoch": epochs}
	}
	got := toTarget([]record{
		run("8", "0.5", "1"), run("8", "0.5", "2"), run("16", "0.5", "3"), run("16", "0.5", "3"),
		run("8", "0.7", "5"), run("8", "0.7", "7"), run("16", "0.7", "9"), run("16", "0.7", ""), // one run of 16 never got there
		run("8", "0.9", "20"), run("8", "0.9", ""), run("16", "0.9", ""), run("16", "0.9", ""), // nor all runs of any
	})
	if want := map[int64]float64{8: 6}; !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestTogetherFindsWhatOneAfterTheOtherMisses(t *testing.T) {
	t.Parallel()
	// At full power 1 is the faster and the thriftier batch size; with little
	// power 2 is, which nobody sees who fixed the batch size before.
	w := &workload{
		name: "crossed", batches: []int64{1, 2}, watts: []int64{100, 250},
		seconds: map[[2]int64]float64{{1, 250}: 10, {2, 250}: 12, {1, 100}: 30, {2, 100}: 14},
		joules:  map[[2]int64]float64{{1, 250}: 2500, {2, 250}: 3000, {1, 100}: 3000, {2, 100}: 1400},
	}
	found, err := w.compare(t.Context(), "random", 16, 1)
	if err != nil || found != [3]float64{1400, 2500, 2500} || w.least() != 1400 {
		t.Errorf("%v, %v", found, err)
	}
	if lost := w.worth([2]int64{9, 9}); lost != 3000 {
		t.Errorf("no answer is worth %v", lost)
	}
	if m := w.Measure(space.Configuration{"batch_size": space.Int(3), "power_limit": space.Int(100)}, 1, 1); m.Value == m.Value {
		t.Errorf("what never reached the target has the value %v", m.Value)
	}
}
