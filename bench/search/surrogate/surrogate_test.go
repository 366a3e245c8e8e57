package surrogate_test

import (
	"compress/gzip"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/tandem-tune/tandem/bench/search/surrogate"
)

// recorded is a file of the recorded data.
func recorded(name string) string {
	return filepath.Join(os.Getenv("TANDEM_DATA"), "yahpo_surrogates", name)
}

func load(t testing.TB) *surrogate.Network {
	t.Helper()
	file, err := os.Open(recorded("lcbench.graph.json.gz"))
	if err != nil {
		t.Skip("the recorded data is not here: set TANDEM_DATA")
	}
	defer file.Close()
	content, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	n, err := surrogate.Read(content)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// The network gives what its own values say, to four digits.
func TestSurrogateAgreesWithItsGoldenValues(t *testing.T) {
	text, err := os.ReadFile(recorded("lcbench.golden.json"))
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
	n := load(t)
	if len(golden) < 30 {
		t.Fatalf("%d golden values", len(golden))
	}
	for _, g := range golden {
		got, err := n.Predict(g.Categories, g.Numbers)
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
	n := load(b)
	for b.Loop() {
		if _, err := n.Predict([]float32{34}, []float32{33, 270, 0.017, 0.92, 0.07, 3, 146, 0.77}); err != nil {
			b.Fatal(err)
		}
	}
}
