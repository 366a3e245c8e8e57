package reuse_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/similarity"
	"github.com/tandem-tune/tandem/similarity/reuse"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/study/system"
	"github.com/tandem-tune/tandem/trial"
)

// recorded are the epochs of three studies of one script on one GPU, as scripts/gpu-check
// ran them: a residual network, a transformer, and that transformer again.
type recorded map[string][]struct {
	Knobs    map[string]space.Value `json:"knobs"`
	Seconds  float64                `json:"seconds"`
	Features map[string]float64     `json:"features"`
}

var onGPU = system.Settings{Objective: system.Seconds, Tuned: []system.Tuned{
	{Name: "loader_workers", Values: []space.Value{space.Int(0), space.Int(4)}},
	{Name: "precision", Values: []space.Value{space.String("fp32"), space.String("bf16")}},
}}

// replay decides after each epoch of a study, as it was recorded.
func (r recorded) replay(memory *similarity.Memory, study, fixed string) []trial.Setting {
	var settings []trial.Setting
	record := similarity.Record{ID: study + "-record", Machine: "m", Study: study, Script: "train", Fixed: fixed}
	for i, epoch := range r[study] {
		input := reuse.Input{
			Settings: onGPU, Situation: reuse.Situation{Machine: 16, Cores: 16}, Record: record, NewRecord: study + "-again", Left: len(r[study]) - i - 1,
			Planned: trial.Setting{Configuration: epoch.Knobs},
			Epoch:   reuse.Epoch{At: time.Unix(int64(i), 0), Configuration: epoch.Knobs, First: i == 0, Timed: true, Seconds: epoch.Seconds, Joules: epoch.Seconds, Features: epoch.Features},
		}
		result := reuse.Decide(memory, input)
		settings, record = append(settings, result.Setting), result.Record
		memory.Put(record)
	}
	return settings
}

// A script trains two networks by an argument, and their profiles on a GPU match no known
// workload. The second study of one of them still goes on with what its first one found:
// by the ratios of costs, or at once where the argument is a fixed parameter.
func TestAKnownTrainingOnAGPUStaysKnown(t *testing.T) {
	raw, err := os.ReadFile("testdata/gpu.json")
	if err != nil {
		t.Fatal(err)
	}
	var epochs recorded
	if err := json.Unmarshal(raw, &epochs); err != nil {
		t.Fatal(err)
	}
	for i := range epochs["resnet"] { // so that bf16 gains nothing in one of the networks
		if epochs["resnet"][i].Knobs["precision"] == space.String("bf16") {
			epochs["resnet"][i].Seconds *= 1.1
		}
	}
	for name, c := range map[string]struct {
		fixed map[string]string
		most  int
	}{"by ratios": {most: 3}, "by the argument": {fixed: map[string]string{"resnet": "one", "transformer": "other", "known": "other"}}} {
		memory := similarity.NewMemory(similarity.Options{})
		epochs.replay(memory, "resnet", c.fixed["resnet"])
		epochs.replay(memory, "transformer", c.fixed["transformer"])
		probed := 0
		for i, setting := range epochs.replay(memory, "known", c.fixed["known"]) {
			if setting.Phase == trial.Probing {
				probed++
			}
			if i >= 2 && strings.Contains(setting.Why, "no known workload") {
				t.Errorf("%s: after epoch %d of a known training: %s", name, i+1, setting.Why)
			}
		}
		t.Logf("%s: %d epochs probe", name, probed)
		if probed > c.most {
			t.Errorf("%s: %d of %d epochs of a known training probe, want at most %d", name, probed, len(epochs["known"]), c.most)
		}
	}
}
