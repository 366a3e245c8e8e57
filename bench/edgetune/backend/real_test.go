package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The runs that are kept have what predictors learn, and learning them makes
// predictions for other models better and choices as good as one backend for all.
func TestRealRunsTeachMemoryAndUse(t *testing.T) {
	r, err := readReal([]string{"../onnxruntime.json", "../../../inference_emu/estimate/testdata/onnxruntime.json"})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.names) != 18 || len(r.profiles) != 2 || len(r.batches) != 6 {
		t.Fatalf("%d models, %d backends, %d batches", len(r.names), len(r.profiles), len(r.batches))
	}
	var early, late [3]float64
	for seed := range uint64(3) {
		chooser, err := r.ridge()
		if err != nil {
			t.Fatal(err)
		}
		s, err := r.play(chooser, seed)
		if err != nil {
			t.Fatal(err)
		}
		if s.regret[1] < 0 || s.fixed[0] < 0 {
			t.Errorf("seed %d: better than the best in hindsight: %+v", seed, s)
		}
		for i := range early {
			early[i], late[i] = early[i]+s.early[i]/3, late[i]+s.late[i]/3
		}
	}
	if !(late[0] < early[0] && late[1] < 0.6) {
		t.Errorf("errors of latency, memory and CPU use: %v after ten runs, %v at the end", early, late)
	}
}

// Estimates of the device, with what was measured in their place, choose better than one
// backend for all.
func TestEstimatesChooseWell(t *testing.T) {
	r, err := readReal([]string{"../onnxruntime.json", "../../../inference_emu/estimate/testdata/onnxruntime.json"})
	if err != nil {
		t.Fatal(err)
	}
	chooser, err := r.estimates()
	if err != nil {
		t.Fatal(err)
	}
	chooser.(*estimatePlayer).every = 40 // a fit takes seconds
	s, err := r.play(chooser, 1)
	if err != nil || s.regret[1] < 0 || s.regret[1] > s.fixed[1] || s.regret[1] >= s.regret[0] {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestRealRunsHaveToBeComplete(t *testing.T) {
	content, err := os.ReadFile("../onnxruntime.json")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(content), "\n")
	path := filepath.Join(t.TempDir(), "runs.json")
	if err := os.WriteFile(path, []byte(strings.Join(append(lines[:5:5], lines[6:]...), "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := reportReal(&bytes.Buffer{}, []string{path}, 1); err == nil || !strings.Contains(err.Error(), "was not run") {
		t.Errorf("a run is missing: %v", err)
	}
}
