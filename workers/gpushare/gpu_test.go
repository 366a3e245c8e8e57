package gpushare_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/workers/gpushare"
	"github.com/tandem-tune/tandem/workers/gpushare/utilization"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// profile is a training whose utilization follows its work in a layer.
func profile(i int) gpushare.Profile {
	random := rand.New(rand.NewPCG(uint64(i), 1)) //nolint:gosec // a small number
	layers := 4 + random.IntN(20)
	f := utilization.Features{Convolutions: layers, Linear: 1, Activations: layers, ModelBytes: 1 << 22, Operations: int64(math.Exp(18 + 6*random.Float64())), KeptBytes: 1 << 24, MovedBytes: 1 << 25, Batch: 32}
	work := float64(f.Operations) / float64(2*layers+1)
	return gpushare.Profile{
		Training: fmt.Sprint("training-", i), Seconds: 60, At: noon.Add(time.Duration(i) * time.Minute),
		Sample: utilization.Sample{Features: f, Family: fmt.Sprint("family-", i%5), Utilization: 0.1 + 0.85*work/(work+3e7), MemoryBytes: 1<<29 + f.Operations/100},
	}
}

func teach(g *gpushare.GPU) {
	for g.Due() {
		g.Adopt(g.TrainingSet().Fit())
	}
}

func TestNothingIsExpectedBeforeEnoughWasSeen(t *testing.T) {
	var g gpushare.GPU
	for i := range utilization.LeastToLearn - 1 {
		g.See(profile(i))
		g.See(profile(i)) // again
	}
	if g.Due() {
		t.Error("it would learn from too few")
	}
	if _, _, err := g.Expect(profile(0).Sample.Features, "family-0"); err == nil || !strings.Contains(err.Error(), "11 trainings were seen") || !strings.Contains(err.Error(), "at least 12") {
		t.Errorf("%v", err)
	}
	g.See(profile(utilization.LeastToLearn - 1))
	if _, _, err := g.Expect(profile(0).Sample.Features, "family-0"); err == nil || !strings.Contains(err.Error(), "is being learned") {
		t.Errorf("%v", err)
	}
	teach(&g)
	said, verdict, err := g.Expect(profile(0).Sample.Features, "family-0")
	if err != nil || verdict.Off <= 0 || math.Abs(said.Utilization-profile(0).Sample.Utilization) > 0.25 {
		t.Errorf("%+v, off %+v, %v; it is %g", said, verdict, err, profile(0).Sample.Utilization)
	}
	if trainings, architectures := g.Count(); trainings != 12 || architectures != 5 {
		t.Errorf("%d trainings of %d architectures", trainings, architectures)
	}
}

func TestItIsLearnedAgainWhenATenthIsNew(t *testing.T) {
	var g gpushare.GPU
	for i := range 60 {
		g.See(profile(i))
	}
	teach(&g)
	for i := range 5 {
		g.See(profile(60 + i))
		if g.Due() {
			t.Fatalf("after %d new trainings", i+1)
		}
	}
	lesson := g.TrainingSet() // nothing new enough
	g.See(profile(65))
	if !g.Due() {
		t.Fatal("not after a tenth")
	}
	g.Adopt(lesson.Fit())
	if !g.Due() {
		t.Error("a lesson in which there was nothing to learn was taken for one")
	}
	// What is seen while it learns is new behind it.
	late := g.TrainingSet()
	for i := range 7 {
		g.See(profile(66 + i))
	}
	g.Adopt(late.Fit())
	if got := g.Learned().Model.Samples; got != 66 || !g.Due() {
		t.Errorf("learned from %d; due again: %v", got, g.Due())
	}
}

func TestWhatWasSeenLongestAgoGoes(t *testing.T) {
	var g gpushare.GPU
	for i := range utilization.MostToLearn {
		if gone := g.See(profile(i)); gone != "" {
			t.Fatalf("%s went for the %dth", gone, i)
		}
	}
	again := profile(0)
	again.At = noon.Add(24 * time.Hour)
	g.See(again)
	if gone := g.See(profile(utilization.MostToLearn)); gone != "training-1" {
		t.Errorf("%q went", gone)
	}
	if _, known := g.Profile("training-0"); !known {
		t.Error("what was seen again is gone")
	}
}

func TestALessonTheMeanWouldPassTeachesNothing(t *testing.T) {
	var g gpushare.GPU
	for i := range 20 {
		one := profile(i)
		one.Sample.Features = profile(0).Sample.Features
		g.See(one)
	}
	teach(&g)
	if g.Learned() != nil || !strings.Contains(g.Reason(), "no better than by their mean") {
		t.Errorf("%v: %s", g.Learned(), g.Reason())
	}
}

func TestAModelThatIsLearnedAgainSaysTheSame(t *testing.T) {
	var g, restored gpushare.GPU
	for i := range 30 {
		g.See(profile(i))
		restored.See(profile(29 - i))
	}
	teach(&g)
	teach(&restored)
	before, _, _ := g.Expect(profile(90).Sample.Features, "new")
	if after, _, err := restored.Expect(profile(90).Sample.Features, "new"); err != nil || after != before {
		t.Errorf("%+v, before %+v (%v)", after, before, err)
	}
}

// kind is the kind with the number: the higher, the more it uses.
func kind(i int) gpushare.Training {
	return gpushare.Training{Kind: fmt.Sprint("kind-", i), Utilization: 0.15 + 0.08*float64(i), MemoryBytes: 1e9 * float64(1+i%3)}
}

// speed is the law of a made-up GPU: two that want more than there is get it in
// proportion, and every second one presses the other further.
func speed(own, other int) float64 {
	press := 1.0
	if other%2 == 1 {
		press = 0.85
	}
	return press / max(1, kind(own).Utilization+kind(other).Utilization)
}

// runs has kinds run alone, and the pairs together.
func runs(g *gpushare.GPU, kinds int, pairs func(a, b int) bool) {
	at := noon
	for a := range kinds {
		for range 3 {
			g.Ran(kind(a), "", 10+float64(a), at)
		}
		for b := range kinds {
			if !pairs(min(a, b), max(a, b)) {
				continue
			}
			for range 3 {
				at = at.Add(time.Second)
				g.Ran(kind(a), kind(b).Kind, (10+float64(a))/speed(a, b), at)
			}
		}
	}
}

func TestTwoThatWereSeenTogetherAreKnown(t *testing.T) {
	var g gpushare.GPU
	runs(&g, 2, func(a, b int) bool { return true })
	said := g.Colocated(kind(0), kind(1))
	if said.Basis != gpushare.Measured || math.Abs(said.Own-speed(0, 1)) > 1e-9 || math.Abs(said.Other-speed(1, 0)) > 1e-9 {
		t.Errorf("%+v, want %g and %g", said, speed(0, 1), speed(1, 0))
	}
	if !strings.Contains(said.String(), "were seen together: one runs at 0.85") {
		t.Error(said)
	}
}

// TestTwoOfWhomNothingIsKnownAreNotHarmless: they count as pairs do on average, and the
// reason says so.
func TestTwoOfWhomNothingIsKnownAreNotHarmless(t *testing.T) {
	told := func(g *gpushare.GPU, want gpushare.Speeds, words string) {
		t.Helper()
		said := g.Colocated(gpushare.Training{Kind: "new"}, gpushare.Training{Kind: "newer"})
		if math.Abs(said.Own-want.Own) > 0.001 || said.Other != said.Own || said.Basis != want.Basis || said.Pairs != want.Pairs || !strings.Contains(said.String(), words) {
			t.Errorf("%+v: %s, want %+v and %q", said, said, want, words)
		}
	}
	var g gpushare.GPU
	told(&g, gpushare.Speeds{Own: 0.6, Basis: gpushare.ByPrior}, "as recorded trainings of others do on average (an estimate")
	if said := g.Colocated(gpushare.Training{Utilization: 1}, gpushare.Training{Utilization: 1}); said.Gain() != 1 || !said.Loses() {
		t.Errorf("two that each fill the GPU: %+v", said)
	}
	// Three pairs, each at two fifths: with eight recorded ones at 0.6 that is 0.545.
	for _, own := range []string{"a", "b"} {
		for range 3 {
			g.Ran(gpushare.Training{Kind: own}, "", 10, noon)
			for _, other := range []string{"a", "b"} {
				g.Ran(gpushare.Training{Kind: own}, other, 25, noon)
			}
		}
	}
	teach(&g)
	told(&g, gpushare.Speeds{Own: (8*0.6 + 3*0.4) / 11, Basis: gpushare.ByAll, Pairs: 3}, "as the 3 pairs that were seen do on average (an estimate")
	if said := g.Pairs().Reason; !strings.Contains(said, "each counts as the mean of those pairs") {
		t.Error(said)
	}
}

func TestTooFewEpochsTellNothing(t *testing.T) {
	var g gpushare.GPU
	for range 2 {
		g.Ran(kind(0), "", 10, noon)
		g.Ran(kind(1), "", 10, noon)
		g.Ran(kind(0), kind(1).Kind, 20, noon)
		g.Ran(kind(1), kind(0).Kind, 20, noon)
	}
	if said := g.Colocated(kind(0), kind(1)); said.Basis != gpushare.ByPrior {
		t.Errorf("of two epochs: %+v", said)
	}
	for _, bad := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		g.Ran(kind(0), kind(1).Kind, bad, noon)
	}
	if said := g.Colocated(kind(0), kind(1)); said.Basis != gpushare.ByPrior {
		t.Errorf("of no epoch: %+v", said)
	}
	g.Ran(kind(0), kind(1).Kind, 20, noon)
	g.Ran(kind(1), kind(0).Kind, 20, noon)
	if said := g.Colocated(kind(0), kind(1)); said.Basis != gpushare.Measured || math.Abs(said.Gain()-1) > 1e-9 {
		t.Errorf("%+v, want half of the speed for each", said)
	}
}

func TestPairsThatWereNeverSeenAreTold(t *testing.T) {
	const kinds = 9
	hidden := func(a, b int) bool { return (a+2*b)%4 == 0 }
	var g gpushare.GPU
	runs(&g, kinds, func(a, b int) bool { return !hidden(a, b) })
	teach(&g)
	off, plain, count := 0.0, 0.0, 0
	for a := range kinds {
		for b := range kinds {
			if !hidden(min(a, b), max(a, b)) {
				continue
			}
			said := g.Colocated(kind(a), kind(b))
			if said.Basis != gpushare.ByFactors && said.Basis != gpushare.ByMean || said.Pairs < 8 || said.Off <= 0 {
				t.Fatalf("%d beside %d: %+v", a, b, said)
			}
			off, plain, count = off+math.Abs(said.Own-speed(a, b)), plain+math.Abs(0.85-speed(a, b)), count+1
		}
	}
	if !(off < plain/2) || count == 0 {
		t.Errorf("off by %.3f in the mean of %d, one speed for all by %.3f", off/float64(count), count, plain/float64(count))
	}
	// A kind that was never seen is told by what others do beside the other, and two
	// such kinds are not.
	mean := 0.0
	for a := range kinds {
		mean += speed(a, 8) / kinds
	}
	stranger := gpushare.Training{Kind: "stranger"}
	if said := g.Colocated(stranger, kind(8)); said.Basis != gpushare.ByMean || math.Abs(said.Own-mean) > 0.15 || !strings.Contains(said.String(), "an estimate from") {
		t.Errorf("%+v, want about %g", said, mean)
	}
	if said := g.Colocated(stranger, gpushare.Training{Kind: "another"}); said.Basis != gpushare.ByAll {
		t.Errorf("of nothing: %+v", said)
	}
}

func TestPacesAreBoundedAndReadBack(t *testing.T) {
	var g gpushare.GPU
	runs(&g, 6, func(a, b int) bool { return true })
	document, err := json.Marshal(g.EpochTimes())
	if err != nil {
		t.Fatal(err)
	}
	var read gpushare.EpochTimes
	if err := json.Unmarshal(document, &read); err != nil {
		t.Fatal(err)
	}
	var restored gpushare.GPU
	restored.RestoreEpochTimes(read)
	if !reflect.DeepEqual(g.EpochTimes(), restored.EpochTimes()) {
		t.Error("what was read back is not what was written")
	}
	teach(&g)
	teach(&restored)
	for a := range 6 {
		for b := range 6 {
			before := g.Colocated(kind(a), kind(b))
			if after := restored.Colocated(kind(a), kind(b)); after != before {
				t.Fatalf("%d beside %d: %+v, before %+v", a, b, after, before)
			}
		}
	}
	for i := range 400 {
		for j := range 3 {
			g.Ran(kind(i), kind(j).Kind, 10, noon.Add(time.Duration(i)*time.Hour))
		}
	}
	if p := g.EpochTimes(); len(p.Alone) != 256 || len(p.Together) != 1024 || p.Together[0].At.Before(noon.Add(50*time.Hour)) {
		t.Errorf("%d kinds and %d pairs, the first met at %v", len(p.Alone), len(p.Together), p.Together[0].At)
	}
}
