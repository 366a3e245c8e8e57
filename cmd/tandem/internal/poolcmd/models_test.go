package poolcmd

import (
	"bytes"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/protocol"
)

// learnedModels is one of everything that there can be.
func learnedModels() []protocol.PoolGPUModel {
	return []protocol.PoolGPUModel{
		{
			GPU: "NVIDIA\x1b A100", Trainings: 41, Architectures: 5, LearnedFrom: 37, Known: &protocol.GPUErrors{Utilization: 0.02, Memory: 0.03, RMSLE: 0.081}, Unseen: &protocol.GPUErrors{Utilization: 0.06, Memory: 0.12, RMSLE: 0.2},
			Importances: []protocol.GPUImportance{{Feature: "operations a layer", Share: 0.41}, {Feature: "batch", Share: 0.2}},
			Pairs:       protocol.PoolGPUPairs{Kinds: 6, Seen: 14, Learned: []protocol.GPUPairModel{{Basis: "factors", Pairs: 14, Off: 0.03, PlainOff: 0.11}, {Basis: "mean", Pairs: 13, Off: 0.05, PlainOff: 0.1}}},
		},
		{GPU: "NVIDIA T4", Trainings: 3, Architectures: 1, Reason: "3 trainings were seen", Pairs: protocol.PoolGPUPairs{Reason: "0 pairs were seen"}},
		{GPU: "NVIDIA L4", Trainings: 14, Architectures: 3, LearnedFrom: 14, Known: &protocol.GPUErrors{Utilization: 0.01}, UnseenReason: "12 of 14 trainings are of one architecture", Pairs: protocol.PoolGPUPairs{Reason: "0 pairs were seen"}},
	}
}

func TestWhatWasLearnedOfGPUsIsPrinted(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := printGPUModels(&out, learnedModels()); err != nil {
		t.Fatal(err)
	}
	for _, words := range []string{
		"A100", "0.02, memory 3%", "0.06, memory 12%", "operations a layer 41%, batch 20%", "0.081, of architectures that were hidden 0.200", "by what each did beside others, from 14 pairs: their speeds were off by 0.03",
		"by what others did beside one of the two, from 13 pairs", "is not predicted: 3 trainings were seen", "new architectures are not predicted: 12 of 14", "are not told: 0 pairs were seen",
	} {
		if !strings.Contains(out.String(), words) {
			t.Errorf("it does not say %q:\n%s", words, out.String())
		}
	}
	if strings.Contains(out.String(), "\x1b") {
		t.Error("a name reaches the terminal as it is")
	}
	out.Reset()
	if err := printGPUModels(&out, nil); err != nil || !strings.Contains(out.String(), "No training was seen on a GPU yet") {
		t.Errorf("%s, %v", out.String(), err)
	}
}
