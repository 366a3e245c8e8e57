package e2e_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/e2e/storm"
)

// TestAStormLosesNothing kills and stops the server and the workers of a study
// ten times, at random. bench/faults does it 200 times.
func TestAStormLosesNothing(t *testing.T) {
	t.Parallel()
	script, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	result, err := storm.Run(ctx, storm.Options{
		Binary: binary, Script: script, Folder: t.TempDir(),
		Trials: 27, Agents: 2, Slots: 1, Blows: 10, Seed: 1,
		EpochTime: 10 * time.Millisecond, LeaseSeconds: 3, Tell: func(what string) { t.Log(what) },
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, violation := range result.Violations {
		t.Error(violation)
	}
	for _, difference := range result.Differences {
		t.Error(difference)
	}
	if result.Lost > 0 || result.Twice > 0 || result.Trials < 27 || result.Acknowledged < 27 {
		t.Errorf("lost %d, twice %d, with %d trials and %d acknowledged operations", result.Lost, result.Twice, result.Trials, result.Acknowledged)
	}
	if struck := len(result.Starts) - 1; struck < 1 {
		t.Errorf("no server was killed: %v", result.Blows)
	}
	for _, death := range result.Deaths {
		t.Error(death)
	}
	t.Logf("%+v", result)
}
