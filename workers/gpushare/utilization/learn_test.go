package utilization_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/bench/edgetune/zoo"
	"github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/inference_emu/graph"
	"github.com/tandem-tune/tandem/workers/gpushare/utilization"
)

func TestWhatIsLearnedIsJudged(t *testing.T) {
	samples := drawn(60, 0.05)
	learned, err := utilization.Learn(samples)
	if err != nil {
		t.Fatal(err)
	}
	if learned.Model.Samples != 60 || len(learned.Families) != 6 || !(learned.BySample.Utilization < 0.7*learned.Mean.Utilization) || learned.BySample.Off <= 0 || learned.BySample.MemoryOff <= 0 {
		t.Errorf("%d samples of %v: %+v, the mean %+v", learned.Model.Samples, learned.Families, learned.BySample, learned.Mean)
	}
	for family, want := range map[string]*utilization.Verdict{"0": &learned.BySample, "never": learned.ByFamily} {
		said, verdict, err := learned.Expect(samples[0].Features, family)
		if err != nil || verdict != *want || said != learned.Model.Predict(samples[0].Features) {
			t.Errorf("of %s: %+v, %+v, %v", family, said, verdict, err)
		}
	}
	again, err := utilization.Learn(samples)
	if err != nil || !reflect.DeepEqual(learned.BySample, again.BySample) || !reflect.DeepEqual(learned.ByFamily, again.ByFamily) {
		t.Errorf("learned again from the same it differs: %+v, %+v (%v)", learned, again, err)
	}
}

func TestTooLittleTeachesNothing(t *testing.T) {
	one := drawn(20, 0.05)
	for i := range one {
		one[i].Family = "one"
	}
	// The same features everywhere: nothing tells the trainings apart.
	noise := drawn(20, 0.05)
	for i := range noise {
		noise[i].Features = noise[0].Features
	}
	for want, samples := range map[string][]utilization.Sample{
		"at least 12 are needed":         drawn(11, 0.05),
		"of 1 architectures: at least 3": one,
		"at most 256":                    drawn(257, 0.05),
		"no better than by their mean":   noise,
		"must be a share":                append(drawn(12, 0.05), utilization.Sample{Utilization: 2}),
	} {
		if _, err := utilization.Learn(samples); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestNewArchitecturesAreNotPredictedFromOneThatIsMostOfAll(t *testing.T) {
	samples := drawn(14, 0.02)
	for i := range samples {
		samples[i].Family = map[bool]string{true: "small", false: "rare"}[i > 1]
	}
	samples[0].Family = "rarer"
	learned, err := utilization.Learn(samples)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := learned.Expect(samples[0].Features, "never"); err == nil || !strings.Contains(err.Error(), "12 of 14 trainings are of one architecture") {
		t.Errorf("%v", err)
	}
	if _, _, err := learned.Expect(samples[0].Features, "rare"); err != nil {
		t.Error(err)
	}
}

// TestFeaturesNeedNoNames holds that what a server is told of an architecture,
// which is without names, has the features of the whole graph.
func TestFeaturesNeedNoNames(t *testing.T) {
	lenet := zoo.LeNet5(graph.Float32)
	for _, batch := range []int64{0, 1, 2, 32, 1 << 40} {
		whole := utilization.Describe(lenet, batch)
		if told := utilization.Describe(emu.Anonymous(lenet), batch); whole != told {
			t.Errorf("%+v, without names %+v", whole, told)
		}
		if outlined := utilization.OutlineOf(emu.Anonymous(lenet)).With(batch); whole != outlined {
			t.Errorf("%+v, of the outline %+v", whole, outlined)
		}
	}
}
