package series_test

import (
	"bytes"
	"compress/gzip"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/trial/series"
)

// However many samples there were, what lasts and what was used in all stay the same, and
// the series is short.
func TestMergedSamplesKeepTheirSums(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 3*series.Most).Draw(rt, "samples")
		epochs := rapid.IntRange(1, 40).Draw(rt, "epochs")
		var s series.Series
		total, used := 0.0, 0.0
		for i := range n {
			seconds, cores := 0.5+float64(i%7)/7, float64(i%5)
			total, used = total+seconds, used+seconds*cores
			s.Add(seconds, 1+i*epochs/n, map[string]trial.Float{"tree.cpu_user": trial.Float(cores)})
		}
		if len(s.Seconds) > series.Most || len(s.Epochs) != len(s.Seconds) || n <= series.Most/2 && len(s.Seconds) != n {
			rt.Fatalf("%d samples became %d with %d epochs", n, len(s.Seconds), len(s.Epochs))
		}
		kept := 0.0
		for i, seconds := range s.Seconds {
			kept += float64(seconds * s.Metrics["tree.cpu_user"][i])
		}
		if math.Abs(float64(s.Total())-total) > 1e-6*total || math.Abs(kept-used) > 1e-6*(1+used) {
			rt.Fatalf("%v s and %v became %v s and %v", total, used, s.Total(), kept)
		}
		if !slices.IsSorted(s.Epochs) || s.Epochs[len(s.Epochs)-1] != 1+(n-1)*epochs/n {
			rt.Fatalf("the epochs are %v", s.Epochs)
		}
	})
}

func TestASeriesComesBackWithFourDigits(t *testing.T) {
	s := series.Series{Begin: time.Unix(1700000000, 5e6).UTC(), Method: "rapl"}
	s.Add(1.00012, 1, map[string]trial.Float{"a": 123456, "b": 1e-9})
	s.Add(1, 2, map[string]trial.Float{"b": 2, "gpu.late": 3})
	packed, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	back, err := series.Decode(packed)
	if err != nil {
		t.Fatal(err)
	}
	if !back.Begin.Equal(s.Begin) || back.Method != "rapl" || back.Seconds[0] != 1 || !slices.Equal(back.Epochs, []int{1, 2}) ||
		back.Metrics["a"][0] != 123500 || !back.Metrics["a"][1].IsNaN() || back.Metrics["b"][0] != 1e-9 || !back.Metrics["gpu.late"][0].IsNaN() || back.Metrics["gpu.late"][1] != 3 {
		t.Errorf("%+v", back)
	}
	if s.Metrics["a"][0] != 123456 {
		t.Error("packing changed the series")
	}
}

func TestWhatIsNoSeriesIsRefused(t *testing.T) {
	packed := func(text string) []byte {
		var out bytes.Buffer
		w := gzip.NewWriter(&out)
		_, _ = w.Write([]byte(text))
		_ = w.Close()
		return out.Bytes()
	}
	for name, data := range map[string][]byte{
		"nothing":           nil,
		"no gzip":           []byte(`{"seconds":[1],"epochs":[1],"metrics":{}}`),
		"no JSON":           packed("x"),
		"an unknown field":  packed(`{"seconds":[1],"epochs":[1],"metrics":{},"more":1}`),
		"no samples":        packed(`{"seconds":[],"epochs":[],"metrics":{}}`),
		"too few epochs":    packed(`{"seconds":[1,1],"epochs":[1],"metrics":{}}`),
		"a short column":    packed(`{"seconds":[1,1],"epochs":[1,1],"metrics":{"a":[1]}}`),
		"a nameless column": packed(`{"seconds":[1],"epochs":[1],"metrics":{"":[1]}}`),
		"a negative time":   packed(`{"seconds":[-1],"epochs":[1],"metrics":{}}`),
		"a time of NaN":     packed(`{"seconds":["NaN"],"epochs":[1],"metrics":{}}`),
		"a negative epoch":  packed(`{"seconds":[1],"epochs":[-1],"metrics":{}}`),
		"too many":          packed(`{"seconds":[1` + strings.Repeat(",1", series.Most) + `],"epochs":[1` + strings.Repeat(",1", series.Most) + `],"metrics":{}}`),
		"a bomb":            packed(`{"energy_method":"` + strings.Repeat("x", 8<<20) + `"}`),
	} {
		if _, err := series.Decode(data); !problem.Is(err, problem.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
