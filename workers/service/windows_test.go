package service

import (
	"math"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/trial"
)

func TestMetricsAreReadFromWhatTheLoadPrints(t *testing.T) {
	t.Parallel()
	printed := &tail{}
	if _, err := printed.Write([]byte("tps = 1.5 (warming up)\n\ntps = 250.25\np99 7 ms\n{\"tps\": 3, \"name\": \"x\", \"epoch\": 4}\n\n")); err != nil {
		t.Fatal(err)
	}
	for patterns, wanted := range map[string]map[string]float64{
		"":                                 {"tps": 3},
		`tps=tps = ([0-9.]+),p99=p99 (\d)`: {"tps": 250.25, "p99": 7},
	} {
		of := map[string]string{}
		for one := range strings.SplitSeq(patterns, ",") {
			if name, pattern, found := strings.Cut(one, "="); found {
				of[name] = pattern
			}
		}
		got, err := read(printed, of)
		if err != nil || len(got) != len(wanted) {
			t.Fatalf("%q: read %v, %v", patterns, got, err)
		}
		for name, value := range wanted {
			if got[name] != value {
				t.Errorf("%q: %s is %v, want %v", patterns, name, got[name], value)
			}
		}
	}
	for pattern, wanted := range map[string]string{`(name)`: "which is no number", `rps ([0-9]+)`: "nothing that the load printed matches"} {
		if _, err := read(printed, map[string]string{"x": pattern}); err == nil || !strings.Contains(err.Error(), wanted) {
			t.Errorf("%s: %v", pattern, err)
		}
	}
	if _, err := read(&tail{content: []byte("[1]\n")}, nil); err == nil || !strings.Contains(err.Error(), "no JSON object") {
		t.Errorf("a list: %v", err)
	}
}

func TestWindowsAreKeptAndReportedAsMeans(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	known, err := restored(folder)
	if err != nil || len(known) != 0 {
		t.Fatalf("at first there are %v, %v", known, err)
	}
	known.add(map[string]float64{"tps": 10})
	if report := known.report(); report["tps"] != 10 || report["windows"] != 1 || len(report) != 2 {
		t.Errorf("of one window: %v", report)
	}
	known.add(map[string]float64{"tps": 12, "late": math.NaN()})
	if err := known.keep(folder); err != nil {
		t.Fatal(err)
	}
	again, err := restored(folder)
	if err != nil {
		t.Fatal(err)
	}
	again.add(map[string]float64{"tps": 14})
	report := again.report()
	// Student's t with two degrees of freedom is 4.303, and the standard error 2/sqrt(3).
	if half := float64(report["tps.half_width"]); report["tps"] != 12 || report["windows"] != 3 || math.Abs(half-4.969) > 0.001 || !report["late"].IsNaN() {
		t.Errorf("of three windows: %v", report)
	}
	if _, has := report["late.half_width"]; has || trial.Float(report["late"]).IsFinite() {
		t.Errorf("of what is no number: %v", report)
	}
}
