package study_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/trial"
)

// createWarm makes a study from the default file that begins with results of
// elsewhere.
func (w *world) createWarm(prior []protocol.Observation, replace ...string) (protocol.StudyView, error) {
	w.t.Helper()
	def, err := changed(replace...)
	if err != nil {
		w.t.Fatal(err)
	}
	return w.service.CreateWarm(w.ctx, def, prior)
}

func result(x, value float64) protocol.Observation {
	return protocol.Observation{Params: space.Configuration{"x": space.Float(x)}, Values: []trial.Float{trial.Float(value)}, Epochs: 9, Source: "sweep"}
}

func TestStudyBeginsWithResultsOfElsewhere(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		prior := []protocol.Observation{result(0.25, 0.1), result(0.75, 0.9), result(7, 1), result(0.5, 0.5)}
		prior[3].Params["unknown"] = space.Int(1) // the study does not have it, which is no harm
		view, err := w.createWarm(prior)
		if err != nil {
			t.Fatal(err)
		}
		want := []definition.Source{{Name: "sweep", Observations: 3, Skipped: 1, Reason: "params.x must be between 0 and 1"}}
		if warm := view.Definition.Search.WarmStart; warm == nil || !slices.Equal(warm.Sources, want) {
			t.Fatalf("the study says that it begins with %+v", warm)
		}
		w.start() // the results survive a restart
		w.register("worker-1")
		lease := w.mustLease("worker-1")
		if x, _ := lease.Params["x"].Number(); x != 0.75 || w.trial(lease.Trial).Origin != "prior" {
			t.Errorf("the first trial has x = %v, origin %s", x, w.trial(lease.Trial).Origin)
		}
		w.train(lease)
		for next := w.lease("worker-1"); next != nil; next = w.lease("worker-1") {
			w.train(next)
		}
		w.replays(view)
		if after := w.view("example").Definition.Search.WarmStart; after == nil || !slices.Equal(after.Sources, want) {
			t.Errorf("when it is over, it says that it began with %+v", after)
		}
	})
}

func TestStudyBeginsWithAnEarlierStudy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.create()
		w.register("worker-1")
		for lease := w.lease("worker-1"); lease != nil; lease = w.lease("worker-1") {
			w.train(lease)
		}
		best := w.view("example").Progress.Best
		view, err := w.createWarm(nil, "name: example", "name: again", "seed: 7", "seed: 8, warm_start: {studies: [example]}")
		if err != nil {
			t.Fatal(err)
		}
		if sources := view.Definition.Search.WarmStart.Sources; len(sources) != 1 || sources[0].Observations < 27 || sources[0].Name != "example" {
			t.Errorf("it begins with %+v", sources)
		}
		reply, err := w.service.Lease(w.ctx, protocol.LeaseRequest{Worker: "worker-1", Study: "again"})
		if err != nil || reply.Lease == nil || reply.Lease.Params["x"] != best.Params["x"] {
			t.Errorf("it begins with %+v, %v; the best before was %v", reply.Lease, err, best.Params)
		}
		w.replays(view)
	})
}

// Of the studies on the server the newest ones count that have the same
// parameters and objectives, and results.
func TestStudyBeginsWithSimilarStudies(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.register("worker-1")
		for _, one := range []struct {
			name    string
			trained bool
			replace []string
		}{
			{"oldest", true, nil},
			{"older", true, []string{"high: 1}", "high: 2}"}},
			{"other-parameter", true, []string{"x: {", "y: {"}},
			{"other-type", true, []string{"{type: float, low: 0, high: 1}", "{type: int, low: 0, high: 1}"}},
			{"other-direction", true, []string{"direction: maximize", "direction: minimize"}},
			{"newer", true, nil},
			{"nothing-measured", false, nil},
		} {
			time.Sleep(time.Second)
			w.create(append([]string{"name: example", "name: " + one.name, "trials: 27", "trials: 6"}, one.replace...)...)
			if one.trained {
				for lease := w.lease("worker-1"); lease != nil; lease = w.lease("worker-1") {
					for epoch := lease.FirstEpoch; epoch <= lease.Budget.Epochs; epoch++ {
						w.mustReport(lease, epoch)
					}
					if _, err := w.finish(lease, protocol.BudgetReached); err != nil {
						t.Fatal(err)
					}
				}
			} else if _, err := w.service.Pause(w.ctx, one.name); err != nil {
				t.Fatal(err)
			}
		}
		view, err := w.createWarm(nil, "search: {", "search: {warm_start: {similar: 2}, ")
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, source := range view.Definition.Search.WarmStart.Sources {
			if source.Observations == 0 {
				t.Errorf("nothing was found in %s", source.Name)
			}
			names = append(names, source.Name)
		}
		if want := []string{"newer", "older"}; !slices.Equal(names, want) {
			t.Errorf("it begins with %v, want %v", names, want)
		}
	})
}

func TestResultsOfElsewhereAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.create()
	w.create("name: example", "name: losses", "maximize", "minimize")
	bad := func(change func(*protocol.Observation)) []protocol.Observation {
		o := result(0.5, 0.5)
		change(&o)
		return []protocol.Observation{result(0.1, 0.2), o}
	}
	for name, c := range map[string]struct {
		prior []protocol.Observation
		from  string
		says  string
	}{
		"no study":       {nil, "nothing", "search.warm_start.studies[0]"},
		"other meaning":  {nil, "losses", "does not maximize accuracy"},
		"two values":     {bad(func(o *protocol.Observation) { o.Values = append(o.Values, 1) }), "", "prior[1].values"},
		"epochs":         {bad(func(o *protocol.Observation) { o.Epochs = -1 }), "", "prior[1].epochs"},
		"fraction":       {bad(func(o *protocol.Observation) { o.DataFraction = 2 }), "", "prior[1].data_fraction"},
		"a long name":    {bad(func(o *protocol.Observation) { o.Source = strings.Repeat("x", 200) }), "", "prior[1].source"},
		"nothing fits":   {[]protocol.Observation{result(7, 1)}, "", "between 0 and 1"},
		"no parameter":   {[]protocol.Observation{{Values: []trial.Float{1}}}, "", "no parameter of the space"},
		"more than 2000": {make([]protocol.Observation, 2001), "", "at most 2000"},
	} {
		seed := "seed: 7"
		if c.from != "" {
			seed += ", warm_start: {studies: [" + c.from + "]}"
		}
		_, err := w.createWarm(c.prior, "name: example", "name: warm", "seed: 7", seed)
		if !problem.Is(err, problem.Invalid) || !strings.Contains(err.Error()+told(err), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := w.service.Study(w.ctx, "warm"); !problem.Is(err, problem.NotFound) {
		t.Errorf("the study is there: %v", err)
	}
}

// A study without results of elsewhere has nothing of them in its log.
func TestColdStudyLogsNothingOfElsewhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	view := w.create()
	events, err := w.store.Events(w.ctx, view.ID, 0, 10)
	if err != nil || len(events) != 1 || events[0].Kind != journal.StudyCreated || strings.Contains(string(events[0].Data), "warm") {
		t.Errorf("%+v, %v", events, err)
	}
}
