package e2e_test

import (
	"os"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

// A real script is told to stop by the answer to its report, ends, and its
// worker goes on with the next trial.
func TestEarlyStopping(t *testing.T) {
	t.Parallel()
	s := newStudy(t, "early", nineEpochs, "0.01", 12)
	content, err := os.ReadFile(s.file)
	if err != nil {
		t.Fatal(err)
	}
	file := strings.Replace(string(content), "method: bohb, seed: 7", "method: random, seed: 7, early_stopping: {rule: median, min_trials: 3}", 1)
	if err := os.WriteFile(s.file, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	got := cli(t, nil, "run", s.file, "--data", t.TempDir(), "--listen", "127.0.0.1:0", "--slots", "2", "--json")
	if got.code != 0 {
		t.Fatalf("exit code %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	found := read[result](t, got.stdout)
	p := found.Study.Progress
	if found.Study.Status != protocol.StudyCompleted || p.Created != 12 || p.Trials[trial.Failed]+p.Trials[trial.Lost] > 0 {
		t.Errorf("the study is %s with %v", found.Study.Status, p.Trials)
	}
	if p.Trials[trial.Pruned] == 0 || p.Trials[trial.Completed] == 0 || p.Trials[trial.Pruned]+p.Trials[trial.Completed] != 12 {
		t.Errorf("some trials must be pruned and the others completed: %v", p.Trials)
	}
	checkTrainedOnce(t, s)
	trained := map[int]int{}
	for _, e := range s.entries("trained") {
		trained[e.number]++
	}
	short := 0
	for _, epochs := range trained {
		if epochs < 9 {
			short++
		}
	}
	if short != p.Trials[trial.Pruned] || len(s.entries("trained")) != p.Epochs {
		t.Errorf("%d scripts ended before epoch 9, %d trials are pruned; %d epochs were trained, %d count",
			short, p.Trials[trial.Pruned], len(s.entries("trained")), p.Epochs)
	}
	plan := cli(t, nil, "study", "plan", s.file)
	if plan.code != 0 || !strings.Contains(plan.stdout, "At most, as median early stopping ends trials before their budget: 12 trials, 108 epochs") {
		t.Errorf("the plan says\n%s%s", plan.stdout, plan.stderr)
	}
}
