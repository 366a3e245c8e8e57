package reuse_test

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/effort"
	"github.com/tandem-tune/tandem/similarity"
	"github.com/tandem-tune/tandem/similarity/reuse"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/study/system"
	"github.com/tandem-tune/tandem/trial"
)

// gpu plays trainings of two networks, which one script trains by an argument. It draws
// their epochs from those that scripts/gpu-check recorded on a GPU.
type gpu struct {
	memory   *similarity.Memory
	random   *rand.Rand
	recorded map[string][]recordedEpoch
}

type recordedEpoch struct {
	Knobs    system.Configuration `json:"knobs"`
	First    bool                 `json:"first"`
	Seconds  float64              `json:"seconds"`
	Features map[string]float64   `json:"features"`
}

// epoch draws one of the network under the configuration.
func (g *gpu) epoch(network string, configuration system.Configuration, first bool) recordedEpoch {
	var like []recordedEpoch
	for _, one := range g.recorded[network] {
		if one.Knobs.Equal(configuration) && !one.First {
			like = append(like, one)
		}
	}
	drawn := like[g.random.IntN(len(like))]
	if first { // warms up
		drawn.Seconds *= 1.2
	}
	return drawn
}

// train returns the settings of the epochs of a study with one trial.
func (g *gpu) train(study, network, argument string, epochs int) []trial.Setting {
	record := similarity.Record{ID: study + "-record", Machine: "m", Study: study, Script: "train", Fixed: argument}
	input := reuse.Input{Settings: system.Settings{Objective: system.Seconds, Tuned: []system.Tuned{
		{Name: "loader_workers", Values: []space.Value{space.Int(0), space.Int(4)}},
		{Name: "precision", Values: []space.Value{space.String("fp32"), space.String("bf16")}},
	}}, Situation: reuse.Situation{Machine: 16, Cores: 16}, Record: record}
	input.Planned = reuse.Guess(g.memory, input)
	setting := reuse.Start(g.memory, input)
	var ran []trial.Setting
	for i := range epochs {
		drawn := g.epoch(network, setting.Configuration, i == 0)
		ran = append(ran, setting)
		input.Record, input.NewRecord, input.Left, input.Planned = record, study+"-again", epochs-i-1, setting
		input.Epoch = reuse.Epoch{At: time.Unix(int64(i), 0), Configuration: setting.Configuration, First: i == 0, Timed: true, Seconds: drawn.Seconds, Joules: drawn.Seconds, Features: drawn.Features}
		result := reuse.Decide(g.memory, input)
		setting, record = result.Setting, result.Record
		g.memory.Put(record)
	}
	return ran
}

func newGPU(t *testing.T, seed uint64) *gpu {
	t.Helper()
	raw, err := os.ReadFile("testdata/gpu.json")
	if err != nil {
		t.Fatal(err)
	}
	g := &gpu{memory: similarity.NewMemory(similarity.Options{}), random: rand.New(rand.NewPCG(seed, 1))}
	if err := json.Unmarshal(raw, &g.recorded); err != nil {
		t.Fatal(err)
	}
	return g
}

func count(settings []trial.Setting, is func(trial.Setting) bool) int {
	n := 0
	for _, one := range settings {
		if is(one) {
			n++
		}
	}
	return n
}

func probes(s trial.Setting) bool { return s.Phase == trial.Probing }

// One network gains from bf16 and the other does not, and the profile of a run is often
// like no known workload. The argument, a fixed parameter, tells them apart: the first
// study of the second network finds its own best, and its second study goes on with that.
func TestAKnownTrainingOnAGPUStaysKnown(t *testing.T) {
	seeds := effort.ByDay(t, 10, 40)
	best := system.Configuration{"loader_workers": space.Int(4), "precision": space.String("bf16")}
	isBest := func(s trial.Setting) bool { return best.Equal(s.Configuration) }
	found, probed, good := 0, 0, 0
	for seed := range uint64(seeds) {
		g := newGPU(t, seed)
		g.train("first", "resnet", "one", 14)
		found += count(g.train("second", "transformer", "other", 14)[13:], isBest)
		third := g.train("third", "transformer", "other", 20)
		probed, good = probed+count(third, probes), good+count(third, isBest)
	}
	t.Logf("%d of %d first studies find the best; in second ones %.1f%% of the epochs probe, %.1f%% have the best",
		found, seeds, 5*float64(probed)/float64(seeds), 5*float64(good)/float64(seeds))
	if found < seeds*9/10 || probed > 2*seeds || good < 18*seeds {
		t.Error("want the best found in 90% of the first studies; in second ones at most 10% of the epochs that probe, and 90% with the best")
	}
}

// A doubt about one epoch of another run ends: the run measures what it is doubted for,
// instead of the only configuration it has, which would teach nothing however often.
func TestADoubtOnAGPUEnds(t *testing.T) {
	for seed := range uint64(effort.ByDay(t, 10, 40)) {
		g := newGPU(t, seed)
		g.train("first", "resnet", "", 14)
		for _, study := range []string{"second", "third"} {
			ran := g.train(study, "transformer", "", 20)
			if n := count(ran, probes); n > 10 {
				t.Errorf("seed %d: %d of 20 epochs of the %s study probe, the last for this: %s", seed, n, study, ran[19].Why)
			}
		}
	}
}
