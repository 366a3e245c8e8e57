package comparison_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/comparison"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/study/studyfile"
	"github.com/tandem-tune/tandem/trial"
)

const studyFile = `
name: lenet
command: [python, train.py]
objective: {metric: accuracy, direction: maximize, target: 0.9}
space:
  learning_rate: {type: float, low: 1e-4, high: 1e-1, log: true}
  optimizer: {values: [sgd, adam]}
budget: {policy: epochs, epochs: {min: 1, max: 3}, eta: 3}
search: {method: bohb, seed: 7}
stop: {trials: 20}
`

func parsed(t *testing.T, file string) definition.Definition {
	t.Helper()
	def, err := studyfile.Parse([]byte(file), studyfile.YAML)
	if err != nil {
		t.Fatal(err)
	}
	return def
}

// side is a study of so many trials, of which the last is recommended.
func side(t *testing.T, trials int) comparison.Side {
	t.Helper()
	def := parsed(t, studyFile)
	energy := trial.Energy{Joules: 1234, Method: "estimate: 15 W a core"}
	best := protocol.Best{Number: trials - 1, Metric: "accuracy", Value: trial.Float(0.9 - 0.4/float64(trials)), Budget: def.Ladder()[0].Budget,
		Params: space.Configuration{"learning_rate": space.Float(1e-4 * float64(trials)), "optimizer": space.String("sgd")}}
	return comparison.Side{
		Study: protocol.StudyView{ID: "k3vqh8w2mz", Name: def.Name, Owner: "alice", Status: protocol.StudyCompleted, Created: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), Definition: def, Rungs: def.Ladder(),
			Progress: protocol.Progress{Trials: map[trial.State]int{trial.Completed: trials}, Created: trials, MaxTrials: trials, Epochs: trials, ElapsedSeconds: 90, TrialSeconds: 160, Energy: energy, Best: &best}},
		Recommendation: protocol.Recommendation{Study: "lenet", Status: protocol.StudyCompleted, Best: &best, Metrics: map[string]trial.Float{"accuracy": best.Value}, Energy: energy, Seconds: 8},
	}
}

func TestStudiesDifferByPath(t *testing.T) {
	t.Parallel()
	a, b := side(t, 9), side(t, 6)
	b.Study.Definition = parsed(t, strings.NewReplacer("name: lenet", "name: other", "high: 1e-1", "high: 1.0", "[sgd, adam]", "[sgd, adam, lion]", "trials: 20", "trials: 40").Replace(
		strings.Replace(studyFile, "  optimizer:", "  momentum: {type: float, low: 0, high: 1}\n  optimizer:", 1)))
	b.Study.Status = protocol.StudyRunning
	found, err := comparison.Compare(a, b)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, change := range found.Definition {
		got[change.Path] = string(change.A) + " " + string(change.B)
	}
	for path, want := range map[string]string{
		"space.learning_rate.high": "0.1 1", "space.optimizer.values": `["sgd","adam"] ["sgd","adam","lion"]`, "space.momentum": `null {"high":1,"kind":"training","low":0,"name":"momentum","type":"float"}`, "stop.trials": "20 40",
	} {
		if got[path] != want {
			t.Errorf("%s: %q, want %q; all: %v", path, got[path], want, got)
		}
	}
	for path := range got {
		if path == "name" || strings.HasPrefix(path, "space.optimizer.name") || strings.HasPrefix(path, "space.learning_rate.low") {
			t.Errorf("%s is told to differ: %s", path, got[path])
		}
	}
	if first := found.Results[0]; first.Name != "best accuracy" || first.A == nil || first.B == nil || *first.A == *first.B {
		t.Errorf("the first result is %+v", first)
	}
	winner := map[string]comparison.Change{}
	for _, one := range found.Winner {
		winner[one.Path] = one
	}
	if one := winner["trial"]; string(one.A) != "8" || string(one.B) != "5" || !one.Differs() {
		t.Errorf("the winners are %s and %s", one.A, one.B)
	}
	if len(found.Notes) == 0 || !strings.Contains(found.Notes[0], "still running") {
		t.Errorf("the notes are %q", found.Notes)
	}
}

func TestAStudyDoesNotDifferFromItself(t *testing.T) {
	t.Parallel()
	one := side(t, 9)
	again := one
	again.Study.Definition.Name = "another-name"
	found, err := comparison.Compare(one, again)
	if err != nil || len(found.Definition) != 0 || len(found.Notes) != 0 {
		t.Fatalf("%+v: %v", found, err)
	}
	for _, change := range found.Winner {
		if change.Differs() {
			t.Errorf("%s differs: %s and %s", change.Path, change.A, change.B)
		}
	}
	for _, result := range found.Results {
		if percent, known := result.Percent(); known && percent != 0 {
			t.Errorf("%s changed by %g%%", result.Name, percent)
		}
		if estimated := result.Name == "energy"; result.EstimateA != estimated || result.EstimateB != estimated {
			t.Errorf("%s is an estimate: %v, %v", result.Name, result.EstimateA, result.EstimateB)
		}
	}
	if text, err := json.Marshal(found); err != nil || strings.Contains(string(text), ":null,\"b\":null") {
		t.Errorf("as JSON it is %s: %v", text, err)
	}
}
