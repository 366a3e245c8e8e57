package sharing

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/tandem-tune/tandem/workers/gpushare/utilization"
)

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

func TestTuneTakesWhatPredictsBest(t *testing.T) {
	samples := drawn(40, 0.1)
	best, err := tune(samples, utilization.Forest, 3)
	if err != nil {
		t.Fatal(err)
	}
	tuned, err := hide(samples, best, bySample)
	if err != nil {
		t.Fatal(err)
	}
	for _, other := range []utilization.Settings{{Method: utilization.Forest, Trees: 100, Depth: 4, Leaf: 4, Seed: 3}, {Method: utilization.Forest, Trees: 100, Depth: 16, Leaf: 1, Seed: 3}} {
		v, err := hide(samples, other, bySample)
		if err != nil {
			t.Fatal(err)
		}
		if v.Utilization < 0.98*tuned.Utilization {
			t.Errorf("%+v is better than %+v, which was chosen", other, best)
		}
	}
}

func TestTheOnlyFamilyIsNotHidden(t *testing.T) {
	samples := drawn(8, 0.1)
	for i := range samples {
		samples[i].Family = "one"
	}
	if _, err := hide(samples, utilization.Settings{}, byFamily); err == nil {
		t.Error("the only family was hidden")
	}
}
