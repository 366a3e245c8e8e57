package main

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestTeachersNeverIncludeWhatIsMeasured(t *testing.T) {
	for _, w := range workloads() {
		for _, one := range teachers(w, others) {
			if one.name == w.name || one.data == w.data {
				t.Errorf("the warm ground truth of %s has %s, on %s", w.name, one.name, one.data)
			}
		}
		if !slices.ContainsFunc(teachers(w, everything), func(one workload) bool { return one.name == w.name }) {
			t.Errorf("%s was seen before, but is not in its ground truth", w.name)
		}
		if got := teachers(w, nothing); got != nil {
			t.Errorf("a cold start on %s knows %v", w.name, got)
		}
	}
}

func TestArrivals(t *testing.T) {
	seen, unseen := trainable()[:4], trainable()[6]
	jobs := arrivals(options{jobs: 20, interarrival: 9}, seen, unseen, 3)
	fresh := 0
	for i, one := range jobs {
		if i > 0 && one.Arrival < jobs[i-1].Arrival {
			t.Errorf("job %d arrives before the one in front of it", i)
		}
		if one.Seen == (one.Workload == unseen.name) {
			t.Errorf("job %d is of %s, and seen is %v", i, one.Workload, one.Seen)
		}
		if !one.Seen {
			fresh++
		}
	}
	if fresh != 4 {
		t.Errorf("%d of 20 jobs are unseen, want 20%%", fresh)
	}
	if again := arrivals(options{jobs: 20, interarrival: 9}, seen, unseen, 3); !slices.Equal(again, jobs) {
		t.Error("the same repetition has other arrivals")
	}
	if other := arrivals(options{jobs: 20, interarrival: 9}, seen, unseen, 4); slices.Equal(other, jobs) {
		t.Error("another repetition has the same arrivals")
	}
}

func TestStatistics(t *testing.T) {
	never := math.Inf(1)
	for name, one := range map[string]struct {
		values []float64
		want   string
	}{
		"odd":            {[]float64{3, 1, 2}, "2.0 (1.0 to 3.0)"},
		"even":           {[]float64{4, 1, 2, 3}, "2.5 (1.0 to 4.0)"},
		"all alike":      {[]float64{2, 2}, "2.0"},
		"mostly reached": {[]float64{never, 1, 2}, "2.0 (1.0 to never)"},
		"mostly not":     {[]float64{never, never, 2}, "never (2.0 to never)"},
		"none":           {nil, ""},
	} {
		if got := spread(one.values, 1); got != one.want {
			t.Errorf("%s: %q, want %q", name, got, one.want)
		}
	}
	if got := geometricMean([]float64{0.5, 2}); math.Abs(got-1) > 1e-12 {
		t.Errorf("the geometric mean of a half and two is %g", got)
	}
	points := []point{{At: 1, Accuracy: 0.5}, {At: 2, Accuracy: 0.9}, {At: 3, Accuracy: 0.95}}
	if got := secondsTo(points, 0.9); got != 2 {
		t.Errorf("0.9 is reached after %g s, want 2", got)
	}
	if got := secondsTo(points, 0.99); !math.IsInf(got, 1) {
		t.Errorf("0.99 is reached after %g s, want never", got)
	}
}

func TestExpectedSecondsCountRunsThatNeverArrive(t *testing.T) {
	never := math.Inf(1)
	pairs := []pair{{{2, 10}, {4, 8}}, {{never, 10}, {6, 12}}, {{never, 12}, {2, 2}}}
	if seconds, reached := expectedTo(pairs, 0); seconds != 24 || reached != 1 {
		t.Errorf("24 s were spent for one arrival, got %g s of %d", seconds, reached)
	}
	if seconds, reached := expectedTo(pairs, 1); seconds != 4 || reached != 3 {
		t.Errorf("12 s were spent for three arrivals, got %g s of %d", seconds, reached)
	}
	if low, high := ratioInterval(pairs); low != 0.5 || !math.IsInf(high, 1) {
		t.Errorf("from %g to %g; the best draw has three times the first run, the worst none of it", low, high)
	}
	if low, high := ratioInterval([]pair{{{3, 9}, {4, 9}}, {{3, 9}, {4, 9}}}); low != 0.75 || high != 0.75 {
		t.Errorf("equal repetitions spread from %g to %g", low, high)
	}
	if got, want := ratio([]pair{{{3, 9}, {never, 9}}}), "base never (base never to base never)"; got != want {
		t.Errorf("the ratio to a base that never arrives is %q, want %q", got, want)
	}
	if got, want := ratio([]pair{{{never, 9}, {3, 9}}}), "never (never to never)"; got != want {
		t.Errorf("the ratio of an arm that never arrives is %q, want %q", got, want)
	}
	if seconds, _ := expectedTo([]pair{{{never, 9}, {never, 9}}}, 0); !math.IsInf(seconds, 1) {
		t.Errorf("nobody arrives after %g s", seconds)
	}
	if low, high := ratioInterval([]pair{{{never, 9}, {never, 9}}}); !math.IsNaN(low) || !math.IsNaN(high) {
		t.Errorf("nobody arrives, and the ratio is %g to %g", low, high)
	}
}

func TestPeersWinner(t *testing.T) {
	began := time.Unix(1000, 0)
	var r run
	err := r.take([]line{
		{At: 1001, Trial: 0, Epoch: 1, Accuracy: 0.99, Seconds: 1, Threads: 1}, // pruned after a lucky epoch
		{At: 1002, Trial: 1, Epoch: 1, Accuracy: 0.5, Seconds: 1, Threads: 1},
		{At: 1004, Trial: 1, Epoch: 2, Accuracy: 0.8, Seconds: 2, Threads: 1},
		{At: 1005, Trial: 2, Epoch: 2, Accuracy: 0.7, Seconds: 1, Threads: 1},
	}, began)
	if err != nil {
		t.Fatal(err)
	}
	if r.Winner.Accuracy != 0.8 || r.Winner.Trained != 3 || r.Winner.Epochs != 2 || r.Trials != 3 || r.Epochs != 4 || r.Curve[2].At != 4 {
		t.Errorf("got %+v", r)
	}
	if err := (&run{}).take(nil, began); err == nil {
		t.Error("a peer that trained nothing is taken for a result")
	}
}

func TestStudyDocuments(t *testing.T) {
	o := options{python: "python3", passes: 27, scale: 2}
	for _, a := range arms() {
		if a.tool != byTandem {
			continue
		}
		text, err := o.document(workloads()[0], a, "some", 3)
		if err != nil {
			t.Fatal(err)
		}
		var study struct {
			Objective map[string]any `json:"objective"`
			Space     map[string]any `json:"space"`
			System    any            `json:"system"`
			Stop      map[string]any `json:"stop"`
		}
		if err := json.Unmarshal(text, &study); err != nil {
			t.Fatal(err)
		}
		_, threads := study.Space["threads"]
		if threads != a.asParameters || (study.Objective["expression"] != nil) != a.asParameters || (study.System != "off") != a.tuned {
			t.Errorf("%s: %s", a.name, text)
		}
		if study.Stop["data_passes"] != 27.0 {
			t.Errorf("%s has the budget %v", a.name, study.Stop)
		}
	}
}

func TestReportPairsRepetitions(t *testing.T) {
	o := options{out: t.TempDir(), passes: 27, scale: 2}
	curve := []point{{At: 4, Accuracy: 0.9}}
	for _, one := range []run{
		{Arm: "v1", Repetition: 1, Seconds: 10}, {Arm: "v1", Repetition: 2, Seconds: 100}, {Arm: "v1", Repetition: 3, Seconds: 1000},
		{Arm: "cold", Repetition: 1, Seconds: 5}, {Arm: "cold", Repetition: 2, Seconds: 60}, {Arm: "cold", Repetition: 3, Seconds: 700},
		{Arm: "warm", Repetition: 1, Seconds: 1, Error: "it broke"},
	} {
		one.Workload, one.Passes, one.Scale, one.Curve, one.Winner.Retrained = "bfs", 27, 2, curve, true
		if err := add(o.resultsFile(), one); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	if err := report(o, &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| cold | bfs | 0.60 (0.50 to 0.70) |", "| v1 | 3 | 100.0 (10.0 to 1000.0) |", "1 runs failed",
		"| 95% | cold | bfs | 4.0 | 3 of 3 | 4.0 | 3 of 3 | 1.00 (1.00 to 1.00) |"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "| warm |") {
		t.Errorf("a failed run is in the report:\n%s", out.String())
	}
}

func TestLoadRefusesBrokenLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.jsonl")
	if err := os.WriteFile(path, []byte("{\"arm\": \"v1\"}\n{\"arm\":\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := load[run](path); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("got %v", err)
	}
}
