package trial_test

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/tandem-tune/tandem/trial"
)

func FuzzFloat(f *testing.F) {
	for _, value := range []float64{0, math.Copysign(0, -1), 1, -1.5, 1e300, 5e-324, math.MaxFloat64, math.NaN(), math.Inf(1), math.Inf(-1)} {
		f.Add(math.Float64bits(value))
	}
	f.Fuzz(func(t *testing.T, bits uint64) {
		value := math.Float64frombits(bits)
		data, err := json.Marshal(trial.Float(value))
		if err != nil {
			t.Fatal(err)
		}
		var back trial.Float
		if err := json.Unmarshal(data, &back); err != nil {
			t.Fatalf("%s: %v", data, err)
		}
		same := math.Float64bits(float64(back)) == bits || math.IsNaN(value) && back.IsNaN()
		if !same {
			t.Errorf("%v became %s and then %v", value, data, float64(back))
		}
	})
}

func TestWhatIsNoMetric(t *testing.T) {
	for _, text := range []string{"null", `"nan"`, `"1"`, "true", "{}", "[1]", `""`, "1e999"} {
		var value trial.Float
		if err := json.Unmarshal([]byte(text), &value); err == nil {
			t.Errorf("%s was read as %v", text, float64(value))
		}
	}
}
