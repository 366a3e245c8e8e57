package interference_test

import (
	"math"
	"testing"

	"github.com/tandem-tune/tandem/workers/gpushare/interference"
)

// steady is a training that uses the same share of the machine all the time.
func steady(utilization float64) interference.Profile {
	return interference.Profile{Seconds: 10, Points: []interference.Point{{Utilization: utilization, MemoryBytes: 1e9}}}
}

// pairOf is two trainings that both ran at the speed beside each other.
func pairOf(first, second, speed float64) interference.Pair {
	pair := interference.Pair{Alone: [2]interference.Profile{steady(first), steady(second)}}
	for k := range pair.Together {
		pair.Together[k] = []interference.Reading{{Seconds: 10 / speed, Completion: 1, Utilization: speed / 2}}
	}
	return pair
}

// Trainings that want more than the machine has share it; the line learns that.
func TestTheLineLearnsWhatPairsLose(t *testing.T) {
	var pairs []interference.Pair
	for i := range 10 {
		for j := range 10 {
			first, second := float64(i+1)/10, float64(j+1)/10
			pairs = append(pairs, pairOf(first, second, 1/max(1, first+second)))
		}
	}
	line, err := interference.TrainLine(pairs)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range [][2]float64{{0.2, 0.3}, {0.5, 0.9}, {0.9, 0.9}} {
		said, err := line.Predict(steady(one[0]), steady(one[1]))
		if err != nil {
			t.Fatal(err)
		}
		if want := 10 * max(1, one[0]+one[1]); math.Abs(said.Jobs[0].Seconds/want-1) > 0.1 {
			t.Errorf("%v: %g s, want about %g", one, said.Jobs[0].Seconds, want)
		}
	}
	if _, err := line.Predict(steady(2), steady(0.5)); err == nil {
		t.Error("a training that uses the machine twice was taken")
	}
	if _, err := interference.TrainLine(nil); err == nil {
		t.Error("a line was learned from nothing")
	}
	broken := pairOf(0.5, 0.5, 1)
	broken.Together[0] = nil
	if _, err := interference.TrainLine([]interference.Pair{broken}); err == nil {
		t.Error("a pair without readings was learned from")
	}
}
