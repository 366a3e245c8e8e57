package main

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"
)

// The network gives what its own values say, to four digits.
func TestSurrogateAgreesWithItsGoldenValues(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(dataFolder(), "yahpo_surrogates", "lcbench.golden.json"))
	if err != nil {
		t.Skip("the recorded data is not here: set TANDEM_DATA")
	}
	var golden []struct {
		Categories []float32 `json:"x_cat"`
		Numbers    []float32 `json:"x_cont"`
		Values     []float64 `json:"y"`
	}
	if err := json.Unmarshal(text, &golden); err != nil {
		t.Fatal(err)
	}
	n, err := loadNetwork(dataFolder())
	if err != nil {
		t.Fatal(err)
	}
	if len(golden) < 30 {
		t.Fatalf("%d golden values", len(golden))
	}
	for _, g := range golden {
		got, err := n.predict(g.Categories, g.Numbers)
		if err != nil || len(got) != len(g.Values) {
			t.Fatal(err, len(got))
		}
		for i, want := range g.Values {
			if math.Abs(float64(got[i])-want) > 1e-4*max(math.Abs(want), 1) {
				t.Errorf("%v %v: output %d is %v, want %v", g.Categories, g.Numbers, i, got[i], want)
			}
		}
	}
}

func BenchmarkSurrogate(b *testing.B) {
	n, err := loadNetwork(dataFolder())
	if err != nil {
		b.Skip(err)
	}
	for b.Loop() {
		if _, err := n.predict([]float32{34}, []float32{33, 270, 0.017, 0.92, 0.07, 3, 146, 0.77}); err != nil {
			b.Fatal(err)
		}
	}
}
