package reuse_test

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tandem-tune/tandem/similarity"
	"github.com/tandem-tune/tandem/similarity/reuse"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/study/system"
	"github.com/tandem-tune/tandem/trial"
)

var threads = system.Settings{Objective: system.Seconds, Tuned: []system.Tuned{{Name: system.CPUThreads, Values: ints(1, 2, 4)}}}

func ints(values ...int64) []space.Value {
	var list []space.Value
	for _, value := range values {
		list = append(list, space.Int(value))
	}
	return list
}

func with(n int64) system.Configuration {
	return system.Configuration{system.CPUThreads: space.Int(n)}
}

// features are of a workload under a number of threads.
func features(workload, n float64) map[string]float64 {
	return map[string]float64{"faults": workload, "switches": workload * n / 2, "instructions": 3 + math.Sin(workload)}
}

// start is the setting of a run that begins on a machine with four cores.
func start(memory *similarity.Memory, record similarity.Record) trial.Setting {
	input := reuse.Input{Settings: threads, Situation: reuse.Situation{Machine: 4, Cores: 4}, Record: record}
	input.Planned = reuse.Guess(memory, input)
	return reuse.Start(memory, input)
}

// run plays a run of so many epochs and returns its settings and its record.
func run(memory *similarity.Memory, id string, workload float64, seconds map[int64]float64, epochs int) ([]trial.Setting, similarity.Record) {
	at := reuse.Situation{Machine: 4, Cores: 4}
	record := similarity.Record{ID: id, Machine: "m"}
	setting := start(memory, record)
	var settings []trial.Setting
	for epoch := range epochs {
		n, _ := setting.Configuration[system.CPUThreads].Integer()
		noise := 1 + 0.01*math.Sin(float64(epoch)*12.9)
		result := reuse.Decide(memory, reuse.Input{
			Settings: threads, Situation: at, Record: record, NewRecord: id + "-again", Left: epochs - epoch - 1,
			Epoch: reuse.Epoch{At: time.Unix(int64(epoch), 0), Configuration: setting.Configuration, Timed: epoch > 0,
				Seconds: seconds[n] * noise, Joules: seconds[n] * float64(n), Features: features(workload, float64(n))},
		})
		setting, record = result.Setting, result.Record
		memory.Put(record)
		settings = append(settings, setting)
	}
	return settings, record
}

var slower = map[int64]float64{1: 1, 2: 1.3, 4: 2}

func TestAnUnknownWorkloadIsProbedAndThenDecided(t *testing.T) {
	memory := similarity.NewMemory(similarity.Options{})
	settings, record := run(memory, "first-run", 7, slower, 9)
	last := settings[len(settings)-1]
	if last.Phase != trial.Decided || !system.Configuration(last.Configuration).Equal(with(1)) {
		t.Errorf("after nine epochs it is %+v, want one thread, decided", last)
	}
	if !strings.Contains(last.Why, "fewer seconds than the default cpu_threads=4") {
		t.Errorf("it is told as %q", last.Why)
	}
	probed := slices.ContainsFunc(settings, func(s trial.Setting) bool { return s.Phase == trial.Probing })
	if !probed || len(record.Cells) < 2 {
		t.Errorf("it was not probed: %+v", settings)
	}
}

func TestAKnownWorkloadIsNotProbedAgain(t *testing.T) {
	memory := similarity.NewMemory(similarity.Options{})
	for i := range 4 {
		run(memory, fmt.Sprintf("known-%03d", i), 7, slower, 9)
	}
	settings, _ := run(memory, "next-run", 7, slower, 3)
	for i, setting := range settings {
		if setting.Phase != trial.Similar && setting.Phase != trial.Decided || !system.Configuration(setting.Configuration).Equal(with(1)) || setting.Workload == "" {
			t.Errorf("epoch %d of a known workload: %+v, want one thread, by what is similar", i+1, setting)
		}
	}
}

func TestAnUnlikeWorkloadIsNotTakenForAKnownOne(t *testing.T) {
	memory := similarity.NewMemory(similarity.Options{})
	for i := range 4 {
		run(memory, fmt.Sprintf("known-%03d", i), 7, slower, 9)
	}
	faster := map[int64]float64{1: 4, 2: 2, 4: 1}
	settings, _ := run(memory, "other-run", 900, faster, 9)
	if first := settings[0]; first.Workload != "" {
		t.Errorf("a workload unlike all known is taken for %q", first.Workload)
	}
	if last := settings[len(settings)-1]; !system.Configuration(last.Configuration).Equal(with(4)) {
		t.Errorf("it ends with %+v, want four threads", last)
	}
}

func TestARunThatIsTooShortKeepsWhatItHas(t *testing.T) {
	before := trial.Setting{Configuration: with(2), Phase: trial.Reused, Why: "it was best for most"}
	for _, left := range []int{0, 1} {
		result := reuse.Decide(similarity.NewMemory(similarity.Options{}), reuse.Input{
			Settings: threads, Situation: reuse.Situation{Machine: 4, Cores: 4}, Record: similarity.Record{ID: "some-run"}, NewRecord: "x", Left: left, Planned: before,
			Epoch: reuse.Epoch{Configuration: with(2), Seconds: 1, Joules: 1, Features: features(7, 2)},
		})
		if got := result.Setting; got.Phase != before.Phase || got.Why != before.Why || !system.Configuration(got.Configuration).Equal(before.Configuration) {
			t.Errorf("with %d epochs left it is %+v, want what it was", left, got)
		}
	}
}

// A trial of one epoch is promoted: its next epoch is one to learn from.
func TestAShortRunIsMeasuredWhenItGoesOn(t *testing.T) {
	memory := similarity.NewMemory(similarity.Options{})
	at := reuse.Situation{Machine: 4, Cores: 4}
	input := reuse.Input{Settings: threads, Situation: at, Record: similarity.Record{ID: "short-run"}, NewRecord: "x"}
	input.Planned = start(memory, input.Record)
	input.Epoch = reuse.Epoch{Configuration: with(4), First: true, Timed: true, Seconds: 2.6, Joules: 8, Features: features(7, 4)}
	paused := reuse.Decide(memory, input)
	if paused.Setting.Phase != trial.Default {
		t.Errorf("after its only epoch it is %+v, want the default, as nothing else was measured", paused.Setting)
	}
	memory.Put(paused.Record)
	input.Record, input.Left = paused.Record, 2
	resumed := reuse.Resume(memory, input)
	if resumed.Phase != trial.Probing || system.Configuration(resumed.Configuration).Equal(with(4)) {
		t.Fatalf("it goes on with %+v, want something else to be measured", resumed)
	}
	n, _ := resumed.Configuration[system.CPUThreads].Integer()
	input.Epoch = reuse.Epoch{Configuration: resumed.Configuration, First: true, Timed: true, Seconds: 1.3 * slower[n], Joules: 4, Features: features(7, float64(n))}
	input.Left = 0
	ended := reuse.Decide(memory, input).Setting
	if ended.Phase != trial.Probing || !system.Configuration(ended.Configuration).Equal(resumed.Configuration) || !strings.Contains(ended.Why, "so far") {
		t.Errorf("in the end it is %+v, want the faster one so far", ended)
	}
	input.Situation.Cores, input.Left = 1, 2
	if busy := reuse.Resume(memory, input).Configuration; !system.Configuration(busy).Equal(with(1)) {
		t.Errorf("with one free core it goes on with %v", busy)
	}
}

func TestADriftIsLookedUpAnew(t *testing.T) {
	memory := similarity.NewMemory(similarity.Options{})
	_, record := run(memory, "first-run", 7, slower, 9)
	for i := range 4 {
		run(memory, fmt.Sprintf("known-%03d", i), 7, slower, 9)
	}
	input := reuse.Input{
		Settings: threads, Situation: reuse.Situation{Machine: 4, Cores: 4}, Record: record, NewRecord: "fresh-run", Left: 5,
		Epoch: reuse.Epoch{Configuration: with(1), Timed: true, Seconds: 9, Joules: 9, Features: features(900, 1)},
	}
	once := reuse.Decide(memory, input)
	if once.Drifted || once.Record.ID != record.ID || !once.Record.Odd || strings.Contains(once.Setting.Why, "has changed") {
		t.Errorf("one odd profile is answered with %+v", once)
	}
	for i, cell := range once.Record.Cells {
		if !reflect.DeepEqual(cell, record.Cells[i]) {
			t.Errorf("one odd epoch made %+v of %+v", cell, record.Cells[i])
		}
	}
	input.Record = once.Record
	result := reuse.Decide(memory, input)
	if !result.Drifted || result.Record.Odd || result.Record.ID != "fresh-run" || len(result.Record.Cells) != 1 || !strings.Contains(result.Setting.Why, "has changed") {
		t.Errorf("a changed profile is answered with %+v", result)
	}
	input.Epoch.Features = features(7, 1)
	if result := reuse.Decide(memory, input); result.Drifted || result.Record.ID != record.ID || result.Record.Odd {
		t.Errorf("an unchanged profile is taken for a drift: %+v", result)
	}
}

func TestSharesCountWhileOthersWait(t *testing.T) {
	memory := similarity.NewMemory(similarity.Options{})
	// Two threads are 1.5 times as fast as one, four twice.
	_, record := run(memory, "first-run", 7, map[int64]float64{1: 2, 2: 1.33, 4: 1}, 12)
	ask := func(at reuse.Situation) trial.Setting {
		return reuse.Decide(memory, reuse.Input{Settings: threads, Situation: at, Record: record, NewRecord: "x", Left: 5,
			Epoch: reuse.Epoch{Configuration: with(4), Timed: true, Seconds: 1, Joules: 1, Features: features(7, 4)}}).Setting
	}
	if got := ask(reuse.Situation{Machine: 4, Cores: 4, Elastic: true}); !system.Configuration(got.Configuration).Equal(with(4)) {
		t.Errorf("with nobody waiting it is %+v, want all four", got)
	}
	if got := ask(reuse.Situation{Machine: 4, Cores: 4, Elastic: true, Wanted: true}); system.Configuration(got.Configuration).Demand(4) > 2 {
		t.Errorf("with others waiting it is %+v, want fewer threads", got)
	}
}

func TestKnobsThatNeedANewStartStay(t *testing.T) {
	settings := system.Settings{Objective: system.Seconds, Tuned: []system.Tuned{
		{Name: system.CPUThreads, Values: ints(1, 2)}, {Name: system.GPUs, Values: ints(0, 1)},
	}}
	present := system.Configuration{system.CPUThreads: space.Int(2), system.GPUs: space.Int(0)}
	memory := similarity.NewMemory(similarity.Options{})
	record := similarity.Record{ID: "some-run"}
	for epoch := range 10 {
		result := reuse.Decide(memory, reuse.Input{
			Settings: settings, Situation: reuse.Situation{Machine: 2, Cores: 2}, Record: record, NewRecord: "x", Held: []string{system.GPUs}, Left: 9,
			Epoch: reuse.Epoch{Configuration: present, Timed: epoch > 0, Seconds: 1, Joules: 1},
		})
		if result.Setting.Configuration[system.GPUs] != space.Int(0) {
			t.Fatalf("the GPUs were switched while the command runs: %+v", result.Setting)
		}
		record, present = result.Record, result.Setting.Configuration
	}
}

// A trial that has a part of a machine's cores measures knobs that take none.
func TestKnobsThatTakeNoCoresAreTunedOnAPartOfAMachine(t *testing.T) {
	settings := system.Settings{Objective: system.Seconds, Tuned: []system.Tuned{{Name: system.LoaderWorkers, Values: ints(0, 4)}}}
	seconds := map[string]float64{}
	for at, configuration := range settings.Grid(nil, 16) {
		seconds[configuration.Key()] = float64(2 - at)
	}
	memory := similarity.NewMemory(similarity.Options{})
	record, present := similarity.Record{ID: "some-run"}, system.Configuration{system.LoaderWorkers: space.Int(0)}
	for epoch := range 10 {
		result := reuse.Decide(memory, reuse.Input{
			Settings: settings, Situation: reuse.Situation{Machine: 16, Cores: 4}, Record: record, NewRecord: "x", Left: 40,
			Epoch: reuse.Epoch{Configuration: present, Timed: epoch > 0, Seconds: seconds[present.Key()], Joules: 1},
		})
		record, present = result.Record, result.Setting.Configuration
	}
	if present[system.LoaderWorkers] != space.Int(4) {
		t.Errorf("in the end it has %s", present.Key())
	}
}

func TestFitTakesWhatIsNearest(t *testing.T) {
	settings := system.Settings{Tuned: []system.Tuned{{Name: system.CPUThreads, Values: ints(1, 2, 4)}, {Name: system.MemoryGiB, Values: ints(2, 8)}}}
	grid := settings.Grid(nil, 4)
	wanted := system.Configuration{system.CPUThreads: space.Int(4), system.MemoryGiB: space.Int(8)}
	got := reuse.Fit(wanted, grid, reuse.Situation{Machine: 4, Cores: 3})
	if want := (system.Configuration{system.CPUThreads: space.Int(2), system.MemoryGiB: space.Int(8)}); !got.Equal(want) {
		t.Errorf("on 3 cores %s becomes %s, want %s", wanted.Key(), got.Key(), want.Key())
	}
	if got := reuse.Fit(wanted, grid, reuse.Situation{Machine: 4, Cores: 4}); !got.Equal(wanted) {
		t.Errorf("what fits became %s", got.Key())
	}
}

// TestAdviceIsAlwaysPossible asks at random: the result is on the grid, has the
// cores it needs or stays, says why, and is the same when asked twice.
func TestAdviceIsAlwaysPossible(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		settings := system.Settings{Objective: rapid.SampledFrom([]system.Objective{system.Seconds, system.Joules, system.Cost}).Draw(t, "objective"),
			Tuned: []system.Tuned{{Name: system.CPUThreads}, {Name: system.LoaderWorkers, Values: ints(0, 2)}}}
		machine := rapid.IntRange(1, 16).Draw(t, "machine")
		grid := settings.Grid(nil, machine)
		play := func(seed int) []trial.Setting {
			memory := similarity.NewMemory(similarity.Options{})
			var all []trial.Setting
			record := similarity.Record{ID: "the-run"}
			present := system.Configuration(reuse.Guess(memory, reuse.Input{Settings: settings, Situation: reuse.Situation{Machine: machine, Cores: machine}}).Configuration)
			for epoch := range 6 {
				cost := 1 + math.Abs(math.Sin(float64(seed+epoch)))
				at := reuse.Situation{Machine: machine, Cores: 1 + (seed+epoch)%machine, Elastic: seed%2 == 0, Wanted: seed%3 == 0}
				result := reuse.Decide(memory, reuse.Input{Settings: settings, Situation: at, Record: record, NewRecord: fmt.Sprint("fresh-", epoch), Left: 6 - epoch,
					Epoch: reuse.Epoch{At: time.Unix(int64(epoch), 0), Configuration: present, Timed: epoch > 0, Neighbours: seed % 3, Seconds: cost, Joules: cost, Features: features(float64(seed%5), 1)}})
				next := system.Configuration(result.Setting.Configuration)
				if !slices.ContainsFunc(grid, next.Equal) {
					t.Fatalf("%s is not on the grid", next.Key())
				}
				if next.Demand(machine) > at.Cores && !next.Equal(present) {
					t.Fatalf("%s was chosen with %d cores of %d", next.Key(), at.Cores, machine)
				}
				if result.Setting.Why == "" || result.Setting.Phase == "" {
					t.Fatalf("nothing says why: %+v", result.Setting)
				}
				record, present = result.Record, next
				memory.Put(record)
				all = append(all, result.Setting)
			}
			return all
		}
		seed := rapid.IntRange(0, 1000).Draw(t, "seed")
		if a, b := fmt.Sprint(play(seed)), fmt.Sprint(play(seed)); a != b {
			t.Fatalf("asked twice, it answered\n%s\nand\n%s", a, b)
		}
	})
}
