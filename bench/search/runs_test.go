package main

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

func TestRunsAreTheSameAfterAFile(t *testing.T) {
	runs := []finished{
		{method: "a", problem: "p", seed: 3, workers: 8, budget: 10, seconds: 7, marks: []mark{{1, 0.5, 0.25}, {2, 1, 0}}, full: []milestone{{2, 0}}},
		{method: "b", problem: "q", seed: 1, workers: 1, budget: 5, seconds: 2},
	}
	path := filepath.Join(t.TempDir(), "runs")
	if err := saveRuns(path, runs); err != nil {
		t.Fatal(err)
	}
	got, err := loadRuns(path)
	if err != nil || !reflect.DeepEqual(got, runs) {
		t.Errorf("%+v became %+v (%v)", runs, got, err)
	}
	if _, err := loadRuns(path + "-missing"); err == nil {
		t.Error("a missing file was read")
	}
	if err := os.WriteFile(path, []byte(`{"method": "a", "marks": [[1, 1, 0]]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := loadRuns(path); err == nil {
		t.Errorf("a run without what was measured in full became %+v", got)
	}
}
