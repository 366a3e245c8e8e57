package interference_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/workers/gpushare/interference"
)

// table is the speeds of kinds that suffer, press, and meet on two resources.
func table(kinds int) (all []interference.Speed) {
	random := rand.New(rand.NewPCG(4, 4))
	var suffers, presses []float64
	var uses [][2]float64
	for range kinds {
		suffers, presses = append(suffers, 0.3*random.Float64()), append(presses, 0.5*random.Float64())
		uses = append(uses, [2]float64{random.Float64(), random.Float64()})
	}
	for a := range kinds {
		for b := range kinds {
			meet := uses[a][0]*uses[b][0] + uses[a][1]*uses[b][1]
			speed := math.Exp(-suffers[a] - presses[b] - 0.6*meet)
			all = append(all, interference.Speed{Own: fmt.Sprint(a), Other: fmt.Sprint(b), Speed: speed})
		}
	}
	return all
}

// itself is a family of one kind.
func itself(kind string) string { return kind }

// TestAKindThatWasNeverSeenIsLikeItsFamily, and not like all.
func TestAKindThatWasNeverSeenIsLikeItsFamily(t *testing.T) {
	var seen []interference.Speed
	for _, own := range []string{"gentle 1", "gentle 2", "harsh 1", "harsh 2"} {
		for _, other := range []string{"gentle 1", "gentle 2", "harsh 1", "harsh 2"} {
			speed := 0.9
			if strings.HasPrefix(other, "harsh") {
				speed = 0.3
			}
			seen = append(seen, interference.Speed{Own: own, Other: other, Speed: speed})
		}
	}
	f, err := interference.Complete(seen, func(kind string) string { name, _, _ := strings.Cut(kind, " "); return name })
	if err != nil {
		t.Fatal(err)
	}
	for other, want := range map[string]float64{"gentle 3": 0.9, "harsh 3": 0.3} {
		if said, known := f.Speed("new", other); !known || math.Abs(said-want) > 0.15 {
			t.Errorf("beside %s it has the speed %g (%v), want about %g", other, said, known, want)
		}
	}
}

func TestATableIsCompleted(t *testing.T) {
	all := table(16)
	random := rand.New(rand.NewPCG(5, 5))
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	seen, hidden := all[:len(all)*6/10], all[len(all)*6/10:]
	f, err := interference.Complete(seen, itself)
	if err != nil {
		t.Fatal(err)
	}
	mean, plain, off := 0.0, 0.0, 0.0
	for _, one := range seen {
		mean += one.Speed / float64(len(seen))
	}
	for _, one := range hidden {
		said, known := f.Speed(one.Own, one.Other)
		if !known {
			t.Fatalf("%s and %s were seen, but not together", one.Own, one.Other)
		}
		off += math.Abs(said-one.Speed) / float64(len(hidden))
		plain += math.Abs(mean-one.Speed) / float64(len(hidden))
	}
	if !(off < 0.5*plain) {
		t.Errorf("the error is %.4f, that of the mean %.4f", off, plain)
	}
	if _, known := f.Speed("never", "neither"); known {
		t.Error("two kinds that were never seen are predicted")
	}
	// Of a kind that was never seen it counts what the other does.
	gentle, known := f.Speed("never", "0")
	if harsh, too := f.Speed("never", "1"); !known || !too || gentle == harsh {
		t.Errorf("beside two kinds one that was never seen has the speeds %g and %g", gentle, harsh)
	}
}

func TestATableRepeatsAndRefuses(t *testing.T) {
	all := table(5)
	var said [2]float64
	for i := range said {
		f, err := interference.Complete(all, itself)
		if err != nil {
			t.Fatal(err)
		}
		said[i], _ = f.Speed("1", "2")
	}
	if said[0] != said[1] {
		t.Errorf("%g and %g of one table", said[0], said[1])
	}
	if _, err := interference.Complete(nil, itself); err == nil {
		t.Error("a table of nothing")
	}
	for _, bad := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		if _, err := interference.Complete([]interference.Speed{{Own: "a", Other: "b", Speed: bad}}, itself); err == nil {
			t.Errorf("a speed of %g was learned from", bad)
		}
	}
}
