package placement_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tandem-tune/tandem/workers/placement"
)

// table predicts by type alone.
type table map[string]placement.Prediction

func (t table) Predict(kind string, _ placement.Task) (placement.Prediction, bool) {
	one, known := t[kind]
	return one, known
}

func TestScoresAreThoseOfTheEquation(t *testing.T) {
	predictions := []placement.Prediction{{Seconds: 10, Joules: 500}, {Seconds: 40, Joules: 100}, {}, {Seconds: 20, Joules: 250}}
	for energy, want := range map[float64][]float64{
		0:   {1, 0.25, 0, 0.5},
		1:   {0, 0.8, 0, 0.5},
		0.5: {0.5, 0.525, 0, 0.5},
	} {
		for i, got := range placement.Scores(predictions, energy) {
			if math.Abs(got-want[i]) > 1e-12 {
				t.Errorf("H=%g: the machine %d has %g, want %g", energy, i, got, want[i])
			}
		}
	}
	for _, odd := range []placement.Prediction{{Seconds: math.NaN(), Joules: 1}, {Seconds: 1, Joules: math.Inf(1)}, {Seconds: -1, Joules: 1}} {
		if got := placement.Scores([]placement.Prediction{odd, {Seconds: 1, Joules: 1}}, 0.5); got[0] != 0 || got[1] != 0.5 {
			t.Errorf("with %+v: %v", odd, got)
		}
	}
}

// The machines of the thesis's figure 3.1 in small: a server is fast, a board
// frugal.
var (
	lab = []placement.Machine{
		{Name: "server", Type: "server", Free: placement.Resources{Cores: 4, MemoryBytes: 8}},
		{Name: "board", Type: "board", Free: placement.Resources{Cores: 4, MemoryBytes: 1}},
	}
	known = table{"server": {Seconds: 69, Joules: 565}, "board": {Seconds: 372, Joules: 373}}
)

func task(name string, cores int, energy float64) placement.Task {
	return placement.Task{Name: name, Needs: placement.Resources{Cores: cores}, Energy: energy}
}

func TestTheUserDecides(t *testing.T) {
	for energy, want := range map[float64]string{0: "server", 0.5: "server", 1: "board"} {
		got := placement.Place([]placement.Task{task("k-means", 2, energy)}, lab, known)
		if got[0] != want {
			t.Errorf("H=%g: %+v, want %s", energy, got[0], want)
		}
	}
}

func TestWhatFitsNowhereHoldsUpNobody(t *testing.T) {
	large := task("large", 5, 0)
	memory := placement.Task{Name: "memory", Needs: placement.Resources{Cores: 1, MemoryBytes: 2}, Energy: 1}
	got := placement.Place([]placement.Task{large, task("first", 4, 1), memory, task("second", 4, 1), task("third", 3, 1)}, lab, known)
	want := []string{"", "board", "server", "", "server"}
	for i, one := range got {
		if one != want[i] {
			t.Errorf("task %d is on %q, want %q", i, one, want[i])
		}
	}
}

func TestWithoutPredictionsMachinesAreFilled(t *testing.T) {
	machines := []placement.Machine{{Name: "empty", Type: "a", Free: placement.Resources{Cores: 8}}, {Name: "half", Type: "b", Free: placement.Resources{Cores: 4}}}
	got := placement.Place([]placement.Task{task("one", 4, 0), task("two", 4, 0), task("three", 4, 0)}, machines, table{})
	for i, want := range []string{"half", "empty", "empty"} {
		if got[i] != want {
			t.Errorf("%s, want %s", got[i], want)
		}
	}
}

// naive is algorithm 4 with a look at each machine.
func naive(pending []placement.Task, machines []placement.Machine, predictor placement.Predictor) []string {
	machines = slices.Clone(machines)
	var places []string
	for _, task := range pending {
		var rooms []int
		var predictions []placement.Prediction
		for i, one := range machines {
			if one.Free.Holds(task.Needs) {
				p, _ := predictor.Predict(one.Type, task)
				rooms, predictions = append(rooms, i), append(predictions, p)
			}
		}
		scores := placement.Scores(predictions, task.Energy)
		best := -1
		for i := range rooms {
			if best < 0 || scores[i] > scores[best] || scores[i] == scores[best] && machines[rooms[i]].Free.Cores < machines[rooms[best]].Free.Cores {
				best = i
			}
		}
		if best < 0 {
			places = append(places, "")
			continue
		}
		free := &machines[rooms[best]].Free
		free.Cores -= task.Needs.Cores
		free.GPUs -= task.Needs.GPUs
		free.MemoryBytes -= task.Needs.MemoryBytes
		places = append(places, machines[rooms[best]].Name)
	}
	return places
}

func TestPlacesAreThoseOfTheAlgorithmAndFit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		predictor := table{}
		for kind := range 3 {
			if rapid.Bool().Draw(t, "known") {
				predictor[fmt.Sprint(kind)] = placement.Prediction{Seconds: rapid.Float64Range(1, 9).Draw(t, "s"), Joules: rapid.Float64Range(1, 9).Draw(t, "J")}
			}
		}
		need := func(most int) placement.Resources {
			return placement.Resources{Cores: rapid.IntRange(0, most).Draw(t, "cores"), GPUs: rapid.IntRange(0, most/3).Draw(t, "gpus"), MemoryBytes: int64(rapid.IntRange(0, most).Draw(t, "memory"))}
		}
		var machines []placement.Machine
		free := map[string]placement.Resources{}
		for i := range rapid.IntRange(0, 6).Draw(t, "machines") {
			one := placement.Machine{Name: fmt.Sprint("m", i), Type: fmt.Sprint(rapid.IntRange(0, 2).Draw(t, "type")), Free: need(12)}
			machines = append(machines, one)
			free[one.Name] = one.Free
		}
		var pending []placement.Task
		for i := range rapid.IntRange(0, 12).Draw(t, "tasks") {
			pending = append(pending, placement.Task{Name: fmt.Sprint("t", i), Needs: need(6), Energy: rapid.Float64Range(0, 1).Draw(t, "H")})
		}
		want := naive(pending, machines, predictor)
		for i, one := range placement.Place(pending, machines, predictor) {
			if (one == "") != (want[i] == "") {
				t.Fatalf("%s is on %q, and by the algorithm on %q", pending[i].Name, one, want[i])
			}
			if one == "" {
				continue
			}
			left := free[one]
			if !left.Holds(pending[i].Needs) {
				t.Fatalf("%s is on %s, which has %+v left", pending[i].Name, one, left)
			}
			left.Cores -= pending[i].Needs.Cores
			left.GPUs -= pending[i].Needs.GPUs
			left.MemoryBytes -= pending[i].Needs.MemoryBytes
			free[one] = left
			// Of equal machines it may be another one; they differ only from then on.
			if one != want[i] {
				return
			}
		}
	})
}

func TestARunningTaskMovesWhereItPays(t *testing.T) {
	running := func(remaining float64, move placement.Prediction) []placement.Running {
		return []placement.Running{{Task: task("k-means", 2, 1), Machine: "server", Remaining: remaining, Move: move}}
	}
	cheap := placement.Prediction{Seconds: 5, Joules: 20}
	waiting := []placement.Task{task("small", 1, 0)}
	none := []placement.Task{task("huge", 64, 0)}
	for name, test := range map[string]struct {
		running []placement.Running
		pending []placement.Task
		moves   bool
	}{
		"early":                       {running(0.9, cheap), nil, true},
		"when it costs more":          {running(0.9, placement.Prediction{Seconds: 5, Joules: 300}), nil, false},
		"when little is left":         {running(0.05, placement.Prediction{}), nil, false},
		"when little is left to gain": {running(0.12, cheap), nil, false},
		"while others wait":           {running(0.9, cheap), waiting, false},
		"while none can start":        {running(0.9, cheap), none, true},
	} {
		t.Run(name, func(t *testing.T) {
			moves := placement.Reschedule(test.running, test.pending, lab, known, placement.Settings{})
			if (len(moves) == 1) != test.moves {
				t.Fatalf("%+v", moves)
			}
			if !test.moves {
				return
			}
			one := moves[0]
			if one.To != "board" || one.From != "server" || one.Goes.Joules >= one.Stays.Joules || one.Gain < 0.05 {
				t.Errorf("%+v", one)
			}
		})
	}
}

func TestMovesSeeEachOther(t *testing.T) {
	var running []placement.Running
	for i := range 3 {
		running = append(running, placement.Running{Task: task(fmt.Sprint(i), 2, 1), Machine: "server", Remaining: 1})
	}
	moves := placement.Reschedule(running, nil, lab, known, placement.Settings{}) // the board has room for two
	if len(moves) != 2 || moves[0].Task != "0" || moves[1].Task != "1" {
		t.Errorf("%+v", moves)
	}
	// Nobody moves among machines of one type, nor from one that nothing is known of.
	twins := []placement.Machine{{Name: "server", Type: "server"}, {Name: "other", Type: "server", Free: placement.Resources{Cores: 8}}}
	if moves := placement.Reschedule(running, nil, twins, known, placement.Settings{}); len(moves) != 0 {
		t.Errorf("%+v", moves)
	}
	if moves := placement.Reschedule(running, nil, lab, table{"board": known["board"]}, placement.Settings{}); len(moves) != 0 {
		t.Errorf("%+v", moves)
	}
}

func BenchmarkPlace(b *testing.B) {
	for _, kinds := range []int{4, 50} {
		b.Run(fmt.Sprintf("types=%d", kinds), func(b *testing.B) {
			random := rand.New(rand.NewPCG(1, 2))
			models := placement.NewModels(placement.ModelSettings{})
			var machines []placement.Machine
			for i := range 1000 {
				machines = append(machines, placement.Machine{Name: fmt.Sprint(i), Type: fmt.Sprint(i % kinds), Free: placement.Resources{Cores: 1 + random.IntN(16), MemoryBytes: 1 << 34}})
			}
			for kind := range kinds {
				for range 50 {
					x := random.Float64()
					if _, err := models.Observe(placement.Observation{Type: fmt.Sprint(kind), Features: []float64{x, 1, 2}, Took: placement.Prediction{Seconds: math.Exp(x), Joules: 3}}); err != nil {
						b.Fatal(err)
					}
				}
			}
			var pending []placement.Task
			for i := range 1000 {
				pending = append(pending, placement.Task{Name: fmt.Sprint(i), Needs: placement.Resources{Cores: 1 + random.IntN(4), MemoryBytes: 1 << 30}, Features: []float64{random.Float64(), 1, 2}, Energy: random.Float64()})
			}
			for b.Loop() {
				placement.Place(pending, machines, models)
			}
		})
	}
}

func TestWithoutAMeterEverythingIsPlacedByTime(t *testing.T) {
	predictions := []placement.Prediction{{Seconds: 10, Joules: 500}, {Seconds: 40, Joules: 100}, {Seconds: 20}}
	for _, energy := range []float64{0, 0.5, 1} {
		for i, got := range placement.Scores(predictions, energy) {
			if want := []float64{1, 0.25, 0.5}[i]; math.Abs(got-want) > 1e-12 {
				t.Errorf("H=%g: the machine %d has %g, want %g", energy, i, got, want)
			}
		}
	}
}

func TestWhatDoesNotSuitIsPassedBy(t *testing.T) {
	frugal := task("one", 1, 1)
	frugal.Suits = func(machine int) bool { return lab[machine].Name != "board" }
	if got := placement.Place([]placement.Task{frugal, task("two", 1, 1)}, lab, known); got[0] != "server" || got[1] != "board" {
		t.Errorf("%+v", got)
	}
	frugal.Suits = func(int) bool { return false }
	if got := placement.Place([]placement.Task{frugal}, lab, known); got[0] != "" {
		t.Errorf("%+v", got)
	}
	// What waits and suits nothing that is free keeps nobody from moving.
	running := []placement.Running{{Task: task("k-means", 2, 1), Machine: "server", Remaining: 0.9}}
	if moves := placement.Reschedule(running, []placement.Task{frugal}, lab, known, placement.Settings{}); len(moves) != 1 || moves[0].There-moves[0].Here != moves[0].Gain {
		t.Errorf("%+v", moves)
	}
}
