package study_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/store/memory"
	"github.com/tandem-tune/tandem/study"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/study/studyfile"
	"github.com/tandem-tune/tandem/trial"
)

const longFile = `
name: long
objective: {metric: loss, direction: minimize}
space: {a: {type: float, low: 0, high: 1}, b: {type: float, low: 0, high: 1}, c: {type: float, low: 0, high: 1}, d: {type: int, low: 1, high: 64}, e: {values: [x, y, z]}, f: {values: [true, false]}}
budget: {epochs: 3}
search: {method: random, seed: 1}
stop: {trials: 10000}
`

// longStudy is a study that is over, with so many trials in the log.
func longStudy(b *testing.B, trials int) *study.Service {
	b.Helper()
	def, err := studyfile.Parse([]byte(longFile), studyfile.YAML)
	if err != nil {
		b.Fatal(err)
	}
	kept, random, began := memory.New(), rand.New(rand.NewPCG(1, 2)), time.Now()
	ended := began.Add(time.Hour)
	change := journal.Change{Insert: &journal.Study{ID: "long", Definition: def, Status: protocol.StudyCompleted, Created: began, Finished: &ended}}
	cube, top := def.Space.Cube(), def.Ladder()[0]
	for number := range trials {
		point := make([]float64, len(def.Space.Parameters))
		for i := range point {
			point[i] = random.Float64()
		}
		one := trial.Trial{
			ID: trial.ID(fmt.Sprintf("long-%d", number)), Study: "long", Number: number, Configuration: space.Configuration(cube.Decode(point)), Origin: "random",
			State: trial.Running, Budget: top.Budget, Epochs: 3, LastEpoch: 3, Seconds: trial.Float(30 + 20*point[3]), Energy: trial.Energy{Joules: 300, Method: "rapl"}, Created: began,
		}
		for _, state := range []trial.State{trial.Leased, trial.Running, trial.Completed} {
			if one.State = state; state == trial.Completed {
				one.Results = []trial.Result{{Budget: top.Budget, Values: []trial.Float{trial.Float(math.Abs(point[0]-0.3) + 0.1*random.Float64())}}}
			}
			data, err := json.Marshal(one)
			if err != nil {
				b.Fatal(err)
			}
			change.Events = append(change.Events, journal.Event{
				Study: "long", Sequence: int64(len(change.Events) + 1), At: began.Add(time.Duration(number) * 300 * time.Millisecond), Kind: journal.TrialState, Trial: one.ID, State: string(state), Data: data,
			})
		}
		change.Trials = append(change.Trials, journal.TrialWrite{Trial: one})
	}
	if err := kept.Apply(b.Context(), change); err != nil {
		b.Fatal(err)
	}
	service := study.New(kept, kept, study.Options{Now: time.Now, Random: rand.Uint64})
	if err := service.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	return service
}

// BenchmarkOverviews are the answers that the pages of several studies wait for, of
// a study of 10,000 trials.
func BenchmarkOverviews(b *testing.B) {
	b.Run("first trajectory", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			service := longStudy(b, 10000)
			if _, err := service.Trajectory(b.Context(), "long"); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
			if answer, err := service.Trajectory(b.Context(), "long"); err != nil || answer.Measurements != 10000 {
				b.Fatalf("%d measurements: %v", answer.Measurements, err)
			}
		}
	})
	service := longStudy(b, 10000)
	b.Run("trajectory", func(b *testing.B) {
		for b.Loop() {
			if _, err := service.Trajectory(b.Context(), "long"); err != nil {
				b.Fatal(err)
			}
		}
	})
}
