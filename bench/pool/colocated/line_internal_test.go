package colocated

import (
	"math"
	"testing"
)

func using(utilization float64) use {
	return use{Utilization: utilization, MemoryBytes: 1e9}
}

// Trainings that want more than the machine has share it; the line learns that.
func TestTheLineLearnsWhatPairsLose(t *testing.T) {
	var seen []beside
	for i := range 10 {
		for j := range 10 {
			first, second := float64(i+1)/10, float64(j+1)/10
			seen = append(seen, beside{Own: using(first), Other: using(second), Speed: 1 / max(1, first+second)})
		}
	}
	line, err := regress(seen)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range [][2]float64{{0.2, 0.3}, {0.5, 0.9}, {0.9, 0.9}} {
		said := line.speed(using(one[0]), using(one[1]))
		if want := 1 / max(1, one[0]+one[1]); math.Abs(said/want-1) > 0.1 {
			t.Errorf("%v: %g, want about %g", one, said, want)
		}
	}
	if _, err := regress(nil); err == nil {
		t.Error("a line was learned from nothing")
	}
	for _, speed := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		if _, err := regress([]beside{{Own: using(0.5), Other: using(0.5), Speed: speed}}); err == nil {
			t.Errorf("the speed %g was learned from", speed)
		}
	}
}
