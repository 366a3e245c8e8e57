package placement_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tandem-tune/tandem/workers/placement"
)

// each predicts by task and type.
type each map[string]table

func (e each) Predict(kind string, task placement.Task) (placement.Prediction, bool) {
	return e[task.Name].Predict(kind, task)
}

func TestTwoChangePlacesWhereThatPays(t *testing.T) {
	machines := []placement.Machine{{Name: "f", Type: "fast"}, {Name: "g", Type: "green"}, {Name: "f2", Type: "fast"}}
	known := each{
		// a saves 900 J on green, b loses 100 J there against fast; c would save 50.
		"a": {"fast": {Seconds: 100, Joules: 1000}, "green": {Seconds: 150, Joules: 100}},
		"b": {"fast": {Seconds: 50, Joules: 600}, "green": {Seconds: 100, Joules: 500}},
		"c": {"fast": {Seconds: 10, Joules: 550}, "green": {Seconds: 100, Joules: 500}},
	}
	running := func(name, machine, owner string, energy float64) placement.Running {
		return placement.Running{Task: placement.Task{Name: name, Energy: energy, Needs: placement.Resources{GPUs: 1}}, Machine: machine, Owner: owner, Remaining: 1}
	}
	larger := running("b", "g", "ada", 1)
	larger.Needs.GPUs = 2
	ends := running("b", "g", "ada", 1)
	ends.Remaining = 0.05
	costly := running("a", "f", "ada", 1)
	costly.Move.Joules = 850
	stays := running("b", "g", "ada", 1)
	stays.Suits = func(machine int) bool { return machine != 0 }
	for name, test := range map[string]struct {
		running []placement.Running
		want    string
	}{
		"the energy of both":          {[]placement.Running{running("a", "f", "ada", 1), running("b", "g", "ada", 1)}, "a-b"},
		"not for time":                {[]placement.Running{running("a", "f", "ada", 0), running("c", "g", "ada", 0)}, "a-c"},
		"nothing to gain":             {[]placement.Running{running("b", "f", "ada", 1), running("a", "g", "ada", 1)}, ""},
		"of another owner, who loses": {[]placement.Running{running("a", "f", "ada", 1), running("b", "g", "bob", 1)}, ""},
		"of another owner, who gains": {[]placement.Running{running("a", "f", "ada", 1), running("b", "g", "bob", 0)}, "a-b"},
		"of one who wants otherwise":  {[]placement.Running{running("a", "f", "ada", 1), running("b", "g", "ada", 0.01)}, "a-b"},
		"who saves most":              {[]placement.Running{running("c", "f2", "ada", 1), running("a", "f", "ada", 1), running("b", "g", "ada", 1)}, "a-b"},
		"unlike needs":                {[]placement.Running{running("a", "f", "ada", 1), larger}, ""},
		"one is about to end":         {[]placement.Running{running("a", "f", "ada", 1), ends}, ""},
		"the moves cost more":         {[]placement.Running{costly, running("b", "g", "ada", 1)}, ""},
		"it may not run there":        {[]placement.Running{running("a", "f", "ada", 1), stays}, ""},
		"one is unknown":              {[]placement.Running{running("a", "f", "ada", 1), running("x", "g", "ada", 1)}, ""},
		"of one type":                 {[]placement.Running{running("a", "f", "ada", 1), running("b", "f2", "ada", 1)}, ""},
	} {
		got := ""
		for _, one := range placement.Exchanges(test.running, machines, known, placement.Settings{}) {
			got += one.First.Task + "-" + one.Second.Task
			if one.First.To != one.Second.From || one.Second.To != one.First.From || one.Gain < 0.05 {
				t.Errorf("%s: %+v", name, one)
			}
		}
		if got != test.want {
			t.Errorf("%s: %q change places, want %q", name, got, test.want)
		}
	}
}

// Whatever runs where: each task changes places once at most, with one that needs the
// same on another type of machine; together both take less of what their owner weighs,
// and nobody loses anything for somebody else.
func TestExchangesPayAndTakeFromNobody(t *testing.T) {
	met := map[string]int{}
	check := func(t *rapid.T) {
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		kinds := []string{"a", "b", "c"}
		var machines []placement.Machine
		for i := range rapid.IntRange(2, 6).Draw(t, "machines") {
			machines = append(machines, placement.Machine{Name: fmt.Sprint("m", i), Type: kinds[i%3]})
		}
		known := each{}
		var running []placement.Running
		for i := range rapid.IntRange(2, 12).Draw(t, "tasks") {
			name := fmt.Sprint(i)
			known[name] = table{}
			for _, kind := range kinds {
				known[name][kind] = placement.Prediction{Seconds: 1 + 99*random.Float64(), Joules: 1 + 99*random.Float64()}
			}
			running = append(running, placement.Running{
				Task:    placement.Task{Name: name, Energy: float64(rapid.IntRange(0, 2).Draw(t, "H")) / 2, Needs: placement.Resources{GPUs: rapid.IntRange(1, 2).Draw(t, "GPUs")}},
				Machine: machines[rapid.IntRange(0, len(machines)-1).Draw(t, "machine")].Name, Owner: rapid.SampledFrom([]string{"ada", "bob"}).Draw(t, "owner"),
				Remaining: random.Float64(), Move: placement.Prediction{Seconds: 1, Joules: 1},
			})
		}
		of := func(name string) placement.Running {
			return running[slices.IndexFunc(running, func(one placement.Running) bool { return one.Name == name })]
		}
		kindOf := func(machine string) string {
			return machines[slices.IndexFunc(machines, func(one placement.Machine) bool { return one.Name == machine })].Type
		}
		// cost is what is left of a task there, by its H, in its own units.
		cost := func(one placement.Running, kind string, moves float64) placement.Prediction {
			p := known[one.Name][kind]
			return placement.Prediction{Seconds: p.Seconds*one.Remaining + moves, Joules: p.Joules*one.Remaining + moves}
		}
		in := map[string]bool{}
		for _, one := range placement.Exchanges(running, machines, known, placement.Settings{}) {
			a, b := of(one.First.Task), of(one.Second.Task)
			if in[a.Name] || in[b.Name] || a.Needs != b.Needs || kindOf(a.Machine) == kindOf(b.Machine) || one.First.To != b.Machine || one.Second.To != a.Machine {
				t.Fatalf("%+v", one)
			}
			in[a.Name], in[b.Name] = true, true
			stayA, goA, stayB, goB := cost(a, kindOf(a.Machine), 0), cost(a, kindOf(b.Machine), 1), cost(b, kindOf(b.Machine), 0), cost(b, kindOf(a.Machine), 1)
			if a.Owner == b.Owner && a.Energy == b.Energy {
				met["together"]++
				if a.Energy == 1 && goA.Joules+goB.Joules >= stayA.Joules+stayB.Joules || a.Energy == 0 && goA.Seconds+goB.Seconds >= stayA.Seconds+stayB.Seconds {
					t.Fatalf("both together lose: %+v", one)
				}
				continue
			}
			met["apart"]++
			for _, task := range []struct {
				placement.Running
				stay, gone placement.Prediction
			}{{a, stayA, goA}, {b, stayB, goB}} {
				if task.Energy == 1 && task.gone.Joules > task.stay.Joules || task.Energy == 0 && task.gone.Seconds > task.stay.Seconds {
					t.Fatalf("%s of %s loses: %+v", task.Name, task.Owner, one)
				}
			}
		}
	}
	for rounds := 0; rounds == 0 || rounds < 20 && (met["together"] < 10 || met["apart"] < 10); rounds++ {
		rapid.Check(t, check) // 30 cases are a round of scripts/test, with about a dozen of each
	}
	if met["together"] < 10 || met["apart"] < 10 {
		t.Errorf("too few change places to show anything: %v", met)
	}
}

func BenchmarkExchanges(b *testing.B) {
	known := each{}
	var machines []placement.Machine
	var running []placement.Running
	for i := range 1000 {
		name, kind := fmt.Sprint(i), fmt.Sprint(i%20)
		machines = append(machines, placement.Machine{Name: name, Type: kind})
		known[name] = table{}
		for j := range 20 {
			known[name][fmt.Sprint(j)] = placement.Prediction{Seconds: float64(1 + (i*7+j*13)%17), Joules: float64(1 + (i*11+j*5)%19)}
		}
		running = append(running, placement.Running{Task: placement.Task{Name: name, Energy: 1, Needs: placement.Resources{GPUs: 1}}, Machine: name, Remaining: 1})
	}
	for b.Loop() {
		if len(placement.Exchanges(running, machines, known, placement.Settings{})) < 100 {
			b.Fatal("hardly any")
		}
	}
}
