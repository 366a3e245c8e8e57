package gpushare_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/inference_emu/graph"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/gpushare"
	"github.com/tandem-tune/tandem/workers/pool"
)

const a100 = "NVIDIA A100"

// store has every architecture, and the trials of earlier studies.
type store struct {
	studies []journal.Study
	trials  map[string][]trial.Trial
	broken  bool
}

func (s store) Architecture(_ context.Context, key string) (emu.Architecture, error) {
	return emu.Architecture{Key: key, Graph: graph.Graph{}, StoredBytes: int64(len(key)) << 20}, nil
}

func (s store) Studies(context.Context) ([]journal.Study, error) {
	if s.broken {
		return nil, errors.New("the store is broken")
	}
	return s.studies, nil
}

func (s store) Trials(_ context.Context, study string) ([]trial.Trial, error) {
	return s.trials[study], nil
}

// clock is a model with the time that it takes it to be.
type clock struct {
	*gpushare.Model
	now time.Time
}

func model(of store) *clock {
	c := &clock{now: noon}
	c.Model = gpushare.New(of, gpushare.Options{Now: func() time.Time { return c.now }, RefusalTerm: time.Minute, Logger: slog.New(slog.DiscardHandler)})
	return c
}

// study is one whose trials may share GPUs.
func study(id string, trials ...trial.Trial) gpushare.Study {
	def := definition.Definition{Name: id, Command: []string{"train"}, Resources: &definition.Resources{GPUShare: definition.GPUShare{Auto: true}}}
	def.Space.Parameters = []space.Parameter{{Name: "width", Type: space.IntType, Low: 1, High: 64}, {Name: "rate", Type: space.FloatType, Low: 0, High: 1}}
	return gpushare.Study{ID: id, Owner: "ada", Definition: &def, Trials: trials, Usage: &gpushare.Usage{}}
}

// running is trial number of the study, which trains the architecture, under a lease.
func running(study string, number int, architecture string) trial.Trial {
	t := trial.Trial{ID: trial.ID(fmt.Sprintf("%s-%d", study, number)), Study: study, Number: number, State: trial.Running, LeaseEpoch: 1, GPUs: []int{0}}
	t.Configuration = space.Configuration{"width": space.Int(int64(len(architecture))), "rate": space.Float(float64(number) / 100)}
	if architecture != "" {
		t.Inference = &trial.InferenceCost{Architecture: architecture}
	}
	return t
}

func alone(utilization, seconds float64) *trial.GPUUse {
	return &trial.GPUUse{Utilization: utilization, Seconds: seconds, MemoryBytes: 1 << 30, GPUMemoryBytes: 16 << 30, Alone: true}
}

// together runs two trials on one GPU: an epoch takes 10 s alone, and the seconds
// with the other.
func together(t *testing.T, c *clock, seconds float64) (first, second trial.Trial) {
	t.Helper()
	first, second = running("first", 0, "one"), running("second", 0, "another")
	for _, pair := range [][2]trial.Trial{{first, second}, {second, first}} {
		c.Began(study(pair[0].Study), pair[0], gpushare.Place{GPU: a100, Exact: true})
		for range 4 {
			c.Observe(t.Context(), pair[0], gpushare.Place{GPU: a100, Exact: true}, gpushare.Epoch{Use: alone(0.9, 40), Seconds: 10})
		}
	}
	for range 5 {
		for _, pair := range [][2]trial.Trial{{first, second}, {second, first}} {
			at := gpushare.Place{GPU: a100, Exact: true, Colocated: []pool.LeaseID{{Trial: pair[1].ID, Epoch: 1}}}
			c.Observe(t.Context(), pair[0], at, gpushare.Epoch{Seconds: seconds})
		}
	}
	return first, second
}

// What was stored and read back is known again, and what could not be stored is stored
// the next time.
func TestWhatIsStoredIsKnownAgain(t *testing.T) {
	c := model(store{})
	together(t, c, 15)
	entries, err := c.Entries(c.now, false)
	if err != nil || len(entries) != 3 {
		t.Fatalf("%v, %v: two profiles and the epoch times were to be stored", entries, err)
	}
	if again, err := c.Entries(c.now, true); err != nil || len(again) != 0 {
		t.Errorf("%v, %v are stored twice", again, err)
	}
	c.Again(entries)
	again, err := c.Entries(c.now, false)
	if err != nil || !reflect.DeepEqual(again, entries) {
		t.Errorf("%v, %v: what could not be stored was %v", again, err, entries)
	}
	restarted := model(store{})
	if err := restarted.Load(entries); err != nil || !reflect.DeepEqual(restarted.Summary(), c.Summary()) {
		t.Errorf("%+v, %v, before %+v", restarted.Summary(), err, c.Summary())
	}
	if rest, err := restarted.Entries(c.now, true); err != nil || len(rest) != 0 {
		t.Errorf("%v, %v: what was read is not new", rest, err)
	}
	entries[0].Document = []byte(`{"gpu":`)
	if err := model(store{}).Load(entries); !problem.Is(err, problem.Internal) || !strings.Contains(err.Error(), entries[0].Kind) {
		t.Errorf("a broken entry: %v", err)
	}
}

// Epoch times are stored now and then, profiles each time.
func TestEpochTimesAreStoredNowAndThen(t *testing.T) {
	c := model(store{})
	if _, err := c.Entries(c.now, false); err != nil { // the first time is due
		t.Fatal(err)
	}
	together(t, c, 15)
	c.now = c.now.Add(time.Minute)
	if entries, err := c.Entries(c.now, false); err != nil || len(entries) != 2 {
		t.Errorf("%v, %v: two profiles", entries, err)
	}
	c.now = c.now.Add(4 * time.Minute)
	if entries, err := c.Entries(c.now, false); err != nil || len(entries) != 1 || entries[0].Name != a100 {
		t.Errorf("%v, %v: the epoch times", entries, err)
	}
}

// Two trials that lose together are kept apart, and a study is told for how long.
func TestTrialsThatLoseTogetherAreKeptApart(t *testing.T) {
	for name, test := range map[string]struct {
		seconds float64
		loses   bool
	}{"each at half of its speed": {20, true}, "hardly slower": {11, false}} {
		c := model(store{})
		first, second := together(t, c, test.seconds)
		expected := c.Expect(study("first", first), &first)
		why := expected.Refuses(second.ID)
		if loses := strings.Contains(why, "beside a trial of another study it would lose"); loses != test.loses {
			t.Errorf("%s: refused for %q", name, why)
		}
		if told := c.Refusal("first"); told != why {
			t.Errorf("%s: the study is told %q", name, told)
		}
		if share := expected.Share(); share.Refuses(second.ID) != test.loses || (share.Prefers(second.ID) < 1.05) != test.loses {
			t.Errorf("%s: the pool is told another thing: %g", name, share.Prefers(second.ID))
		}
		if c.now = c.now.Add(time.Minute + 1); c.Refusal("first") != "" {
			t.Errorf("%s: a refusal is shown for ever", name)
		}
		c.Left(second.ID)
		if why := expected.Refuses(second.ID); why != "" {
			t.Errorf("%s: a trial that is gone: %q", name, why)
		}
	}
}

// An estimate takes the nearest grounds there are.
func TestAnEstimateTakesTheNearestGrounds(t *testing.T) {
	c := model(store{})
	of := study("study", running("study", 0, "one"), running("study", 1, "one"))
	one := &of.Trials[1]
	want := func(next *trial.Trial, utilization float64, words string) {
		t.Helper()
		if got := c.Expect(of, next); got.Utilization != utilization || !strings.Contains(got.Basis, words) {
			t.Errorf("%+v, want %g and %q", got, utilization, words)
		}
	}
	want(one, -1, "nothing is known")
	of.Trials[0].GPUUse = alone(0.3, 60)
	of.Replace(trial.Trial{}, of.Trials[0])
	want(one, 0.3, "1 so far")
	if of.Fraction() != 0.3 {
		t.Errorf("a trial counts as %g", of.Fraction())
	}
	if of.Watch(*one, alone(0.6, 59)) {
		t.Error("others may join it after 59 s")
	}
	want(one, 0.3, "1 so far")
	if !of.Watch(*one, alone(0.6, 60)) || of.Watch(*one, alone(0.6, 61)) {
		t.Error("others may join it after 60 s, and that is said once")
	}
	want(one, 0.6, "observed alone for 61 s")
	before, after := *one, *one
	after.GPUUse = alone(0.5, 70) // the report has what heartbeats said
	undo := of.Replace(before, after)
	*one = after
	want(one, 0.5, "observed alone for 70 s")
	*one = before
	undo()
	want(one, 0.6, "observed alone for 61 s")
	of.Definition.Resources.GPUShare = definition.GPUShare{Part: 0.25}
	want(one, 0.25, "the study says 0.25")
	one.GPUShortage = &trial.GPUShortage{Times: 3}
	want(one, -1, "ran out of memory beside others 3 times")
}

// A trial that runs out of memory on a shared GPU comes back with a larger need, and
// alone in the end.
func TestAShortageEndsAlone(t *testing.T) {
	one := running("study", 0, "one")
	one.GPUShare = &trial.GPUShare{Utilization: 0.2, MemoryBytes: 2 << 30, Fraction: 0.2}
	need, reason := int64(0), ""
	for i := range 3 {
		one, reason = gpushare.AfterShortage(one, 16<<30, "CUDA out of memory")
		if one.GPUShortage.Times != i+1 || one.GPUShortage.NeedBytes <= need || !strings.Contains(reason, "CUDA out of memory") {
			t.Fatalf("%+v: %s", one.GPUShortage, reason)
		}
		need = one.GPUShortage.NeedBytes
		if whole := strings.Contains(reason, "it has a GPU to itself from now on"); whole != (i == 2) {
			t.Errorf("the %dth time: %s", i+1, reason)
		}
	}
	if got := model(store{}).Expect(study("study", one), &one); got.Known() || got.Fraction() != 1 {
		t.Errorf("%+v", got)
	}
}

// An earlier study of the same owner with the same script says what a trial trains; a
// store that is broken is asked again.
func TestEarlierTrialsSayWhatIsTrained(t *testing.T) {
	earlier := *study("earlier").Definition
	for name, test := range map[string]struct {
		change func(*journal.Study)
		found  bool
	}{
		"the same":        {func(*journal.Study) {}, true},
		"another owner":   {func(s *journal.Study) { s.Owner = "bob" }, false},
		"another command": {func(s *journal.Study) { s.Definition.Command = []string{"other"} }, false},
		"other parameters": {func(s *journal.Study) {
			s.Definition.Space.Parameters = []space.Parameter{{Name: "depth", Type: space.IntType}}
		}, false},
	} {
		one := journal.Study{ID: "earlier", Owner: "ada", Definition: earlier}
		test.change(&one)
		known := store{studies: []journal.Study{one}, trials: map[string][]trial.Trial{"earlier": {running("earlier", 0, "one"), running("earlier", 1, "one"), running("earlier", 2, "another")}}}
		of, broken := study("new"), known
		broken.broken = true
		next := running("new", 7, "")
		next.Configuration["width"] = space.Int(3)
		if said := model(broken).Predict(t.Context(), of, next, []string{a100}); said.Architecture != "" {
			t.Errorf("%s: a broken store says %q", name, said.Architecture)
		}
		of.Reload(nil)
		said := model(known).Predict(t.Context(), of, next, []string{a100})
		if (said.Architecture == "one") != test.found || test.found && said.Basis != "trials with the same width train this model" {
			t.Errorf("%s: it trains %q: %s", name, said.Architecture, said.Basis)
		}
		if !test.found && !strings.Contains(said.GPUs[0].Reason, "call trial.save_model") {
			t.Errorf("%s: %+v", name, said.GPUs)
		}
	}
}
