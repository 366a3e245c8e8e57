package utilization_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/bench/edgetune/zoo"
	"github.com/tandem-tune/tandem/inference_emu/graph"
	"github.com/tandem-tune/tandem/workers/gpushare/utilization"
)

func TestFeaturesAreThoseOfTheGraph(t *testing.T) {
	lenet := zoo.LeNet5(graph.Float32)
	one, many := utilization.Describe(lenet, 1), utilization.Describe(lenet, 64)
	if one.Convolutions != 2 || one.Linear != 3 || one.Depthwise != 0 || one.Batch != 1 {
		t.Errorf("%+v", one)
	}
	// 61,706 parameters of four bytes (LeCun and others, 1998).
	if one.ModelBytes != 4*61_706 || many.ModelBytes != one.ModelBytes {
		t.Errorf("%d bytes, with a batch %d", one.ModelBytes, many.ModelBytes)
	}
	if many.Operations != 64*one.Operations || many.KeptBytes != 64*one.KeptBytes || many.Batch != 64 {
		t.Errorf("a batch of 64: %+v, of one: %+v", many, one)
	}
	if zero := utilization.Describe(lenet, 0); zero != one {
		t.Errorf("a batch of none: %+v", zero)
	}
	mobile := utilization.Describe(zoo.MobileNetV1(0.25, 128, graph.Float32), 1)
	if mobile.Depthwise != 13 || mobile.Convolutions != 27 {
		t.Errorf("MobileNet has 13 depthwise convolutions of 27 in all: %+v", mobile)
	}
	lstm := utilization.Describe(graph.Graph{Operators: []graph.Operator{{Kind: "LSTM", Class: graph.Recurrent}, {Kind: "GRU", Class: graph.Recurrent}}}, 1)
	if lstm.Linear != 4 || lstm.Activations != 8 {
		t.Errorf("recurrent layers: %+v", lstm)
	}
}

// law is a made-up machine: what has more work in a layer keeps it busier, and
// what keeps more needs more memory.
func law(f utilization.Features) (share float64, bytes int64) {
	work := float64(f.Operations) / float64(f.Convolutions+f.Linear+f.Activations+f.Others)
	return 0.1 + 0.85*work/(work+3e7), 200e6 + 4*f.ModelBytes + 3*f.KeptBytes
}

func drawn(n int, noise float64) []utilization.Sample {
	random := rand.New(rand.NewPCG(5, 6))
	var list []utilization.Sample
	for i := range n {
		layers := 4 + random.IntN(40)
		f := utilization.Features{
			Convolutions: layers, Linear: 1 + random.IntN(4), Activations: layers, Others: random.IntN(10), Batch: 1 << (3 + random.IntN(6)),
			ModelBytes: int64(math.Exp(13 + 5*random.Float64())), Operations: int64(math.Exp(18 + 6*random.Float64())),
			KeptBytes: int64(math.Exp(14 + 5*random.Float64())), MovedBytes: int64(math.Exp(17 + 4*random.Float64())),
		}
		share, bytes := law(f)
		share = min(1, share*math.Exp(noise*random.NormFloat64()))
		list = append(list, utilization.Sample{Features: f, Family: fmt.Sprint(i % 6), Utilization: share, MemoryBytes: bytes})
	}
	return list
}

func TestEachMethodLearnsMoreThanTheMean(t *testing.T) {
	samples := drawn(150, 0.05)
	// judge is the RMSLE of the utilization and of the memory, and the share within the band.
	judge := func(method utilization.Method, parts [][]int) (share, memory, covered float64) {
		var said, was [2][]float64
		err := utilization.Hide(samples, parts, func(rest []utilization.Sample) (*utilization.Model, error) {
			return utilization.Train(rest, method)
		}, func(one utilization.Sample, p utilization.Prediction) {
			said[0], was[0] = append(said[0], 100*p.Utilization), append(was[0], 100*one.Utilization)
			said[1], was[1] = append(said[1], float64(p.MemoryBytes)/1e6), append(was[1], float64(one.MemoryBytes)/1e6)
			if p.UtilizationLow <= one.Utilization && one.Utilization <= p.UtilizationHigh {
				covered += 1 / float64(len(samples))
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		return utilization.RMSLE(said[0], was[0]), utilization.RMSLE(said[1], was[1]), covered
	}
	for by, parts := range map[string][][]int{"sample": utilization.DrawnParts(len(samples), 1), "family": utilization.Families(samples)} {
		meanShare, meanMemory, _ := judge(utilization.Mean, parts)
		share, memory, covered := judge(utilization.Process, parts)
		if !(share < 0.6*meanShare) || !(memory < 0.8*meanMemory) {
			t.Errorf("by %s: an error of %g and %g, the mean's %g and %g", by, share, memory, meanShare, meanMemory)
		}
		if covered < 0.5 || covered > 0.95 {
			t.Errorf("by %s: %.0f%% are within one deviation", by, 100*covered)
		}
	}
}

func TestTheSameProfilesMakeTheSameModel(t *testing.T) {
	samples := drawn(60, 0.1)
	for _, method := range []utilization.Method{utilization.Process, utilization.Mean} {
		var models [2]*utilization.Model
		for i := range models {
			var err error
			if models[i], err = utilization.Train(samples, method); err != nil {
				t.Fatal(err)
			}
		}
		for _, one := range append(drawn(80, 0.1), utilization.Sample{}) {
			p := models[0].Predict(one.Features)
			if p != models[1].Predict(one.Features) {
				t.Fatalf("%s: two models of the same profiles differ", method)
			}
			if !(p.UtilizationLow <= p.Utilization && p.Utilization <= p.UtilizationHigh && p.UtilizationLow >= 0 && p.UtilizationHigh <= 1) ||
				!(0 <= p.MemoryLow && p.MemoryLow <= p.MemoryBytes && p.MemoryBytes <= p.MemoryHigh) {
				t.Fatalf("%s: %+v", method, p)
			}
		}
	}
}

func TestWhatCannotBeLearnedFromIsRefused(t *testing.T) {
	good := drawn(8, 0.1)
	for want, change := range map[string]func([]utilization.Sample) []utilization.Sample{
		"at least 5": func(s []utilization.Sample) []utilization.Sample { return s[:4] },
		"must be a share": func(s []utilization.Sample) []utilization.Sample {
			s[3].Utilization = math.NaN()
			return s
		},
		"negative": func(s []utilization.Sample) []utilization.Sample {
			s[2].MemoryBytes = -1
			return s
		},
	} {
		if _, err := utilization.Train(change(append([]utilization.Sample(nil), good...)), utilization.Process); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestRMSLE(t *testing.T) {
	if got := utilization.RMSLE([]float64{math.E*2 - 1, 9}, []float64{1, 9}); math.Abs(got-math.Sqrt(0.5)) > 1e-12 {
		t.Errorf("%g, want the root of a half", got)
	}
	// To predict too little counts more than to predict as much too much.
	if under, over := utilization.RMSLE([]float64{30}, []float64{50}), utilization.RMSLE([]float64{70}, []float64{50}); under <= over {
		t.Errorf("under %g, over %g", under, over)
	}
}
