package study_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/store/memory"
	"github.com/tandem-tune/tandem/study"
	"github.com/tandem-tune/tandem/study/studyfile"
	"github.com/tandem-tune/tandem/trial"
)

// listed are the numbers of the trials that a query finds, in its order.
func (w *world) listed(study string, query protocol.TrialQuery) string {
	w.t.Helper()
	page, err := w.service.Trials(w.ctx, study, query)
	if err != nil {
		w.t.Fatal(err)
	}
	var numbers []string
	for _, one := range page.Trials {
		numbers = append(numbers, fmt.Sprint(one.Number))
	}
	return strings.Join(numbers, " ")
}

// singleRung replaces the rungs of the default file by one of an epoch.
var singleRung = []string{"epochs: {min: 1, max: 9}, data_fraction: {min: 0.25, max: 1}", "epochs: 1", "policy: multi, ", ""}

// story is a study of one rung in which trials 0 to 3 were measured at 0.5, NaN,
// 0.9 and 0.7, 4 failed and 5 is being trained.
func (w *world) story() protocol.StudyView {
	w.t.Helper()
	created := w.create(append(singleRung, "space: {x: {type: float, low: 0, high: 1}}",
		"space:\n  x: {type: float, low: 0, high: 1}\n  kind: {values: [a, b]}\n  extra: {type: int, low: 1, high: 9, when: {kind: b}}\nretry: {failures: 0}")...)
	w.register("worker-1")
	for _, value := range []float64{0.5, math.NaN(), 0.9, 0.7} {
		lease := w.mustLease("worker-1")
		w.value(lease, 1, value)
		if _, err := w.finish(lease, protocol.BudgetReached); err != nil {
			w.t.Fatal(err)
		}
	}
	w.comes(w.mustLease("worker-1"), math.NaN()) // fails
	w.mustLease("worker-1")
	return created
}

func TestTrialsAreSortedByAnyColumn(t *testing.T) {
	in(func(t *testing.T, w *world) {
		created := w.story()
		for _, one := range []struct {
			sort       string
			descending bool
			want       string
		}{
			{"", false, "2 3 0 1 4 5"}, {"rank", true, "1 0 3 2 4 5"}, // without a rank last, whatever the direction
			{"number", true, "5 4 3 2 1 0"},
			{"value", false, "0 3 2 1 4 5"}, {"value", true, "2 3 0 1 4 5"}, // NaN behind every value
			{"value.0", true, "2 3 0 1 4 5"},
			{"latest", true, "2 3 0 1 4 5"},
			{"state", false, "2 3 0 1 4 5"}, {"state", true, "5 4 2 3 0 1"}, // equal ones by rank
			{"epochs", false, "4 5 2 3 0 1"},
			{"joules", true, "2 3 0 1 4 5"}, {"violation", false, "2 3 0 1 4 5"}, {"rung", true, "2 3 0 1 4 5"}, {"budget", false, "2 3 0 1 4 5"},
		} {
			if got := w.listed(created.ID, protocol.TrialQuery{Sort: one.sort, Descending: one.descending}); got != one.want {
				t.Errorf("sorted by %q, descending %t: %s, want %s", one.sort, one.descending, got, one.want)
			}
		}
		_, err := w.service.Trials(w.ctx, created.ID, protocol.TrialQuery{Sort: "params.y"})
		if !problem.Is(err, problem.Invalid) || !strings.Contains(err.Error(), "one of x, kind, extra") || !strings.Contains(err.Error(), "sort") {
			t.Errorf("sorted by what is not there: %v", err)
		}
		for _, wrong := range []string{"value.1", "value.-1", "value.x", "params.", "params.accuracy", "workers"} {
			if _, err := w.service.Trials(w.ctx, created.ID, protocol.TrialQuery{Sort: wrong}); !problem.Is(err, problem.Invalid) {
				t.Errorf("sorted by %q: %v", wrong, err)
			}
		}
	})(t)
}

func TestEveryTrialIsVisitedByNumber(t *testing.T) {
	in(func(t *testing.T, w *world) {
		created := w.story()
		var got []string
		err := w.service.EachTrial(w.ctx, created.ID, func(one protocol.RankedTrial) error {
			if len(got) == 0 { // what happens meanwhile is not among them
				w.register("worker-2")
				w.mustLease("worker-2")
			}
			got = append(got, fmt.Sprintf("%d:%d", one.Number, one.Rank))
			return nil
		})
		if text := strings.Join(got, " "); err != nil || text != "0:3 1:4 2:1 3:2 4:0 5:0" {
			t.Errorf("%s: %v", text, err)
		}
		enough := errors.New("enough")
		visits := 0
		err = w.service.EachTrial(w.ctx, created.ID, func(protocol.RankedTrial) error {
			visits++
			return enough
		})
		if !errors.Is(err, enough) || visits != 1 {
			t.Errorf("after %d visits: %v", visits, err)
		}
		if err := w.service.EachTrial(w.ctx, "none", func(protocol.RankedTrial) error { return nil }); !problem.Is(err, problem.NotFound) {
			t.Errorf("of a study that is not there: %v", err)
		}
	})(t)
}

func TestTrialsAreSortedByAParameter(t *testing.T) {
	in(func(t *testing.T, w *world) {
		created := w.story()
		for _, parameter := range []string{"x", "kind", "extra"} {
			for _, descending := range []bool{false, true} {
				page, err := w.service.Trials(w.ctx, created.ID, protocol.TrialQuery{Sort: "params." + parameter, Descending: descending})
				if err != nil || len(page.Trials) != 6 {
					t.Fatalf("%d trials, %v", len(page.Trials), err)
				}
				var values []string
				missing := 0
				for _, one := range page.Trials {
					value := one.Configuration[parameter]
					if value.IsZero() {
						missing++
						continue
					}
					if missing > 0 {
						t.Errorf("%s: a trial that has it stands behind one that has not", parameter)
					}
					number, _ := value.Number()
					values = append(values, fmt.Sprintf("%010.7f %s", number, value))
				}
				if descending {
					slices.Reverse(values)
				}
				if !slices.IsSorted(values) {
					t.Errorf("%s, descending %t: %v", parameter, descending, values)
				}
			}
		}
	})(t)
}

func TestTrialsAreFoundByTheirWords(t *testing.T) {
	in(func(t *testing.T, w *world) {
		created := w.story()
		x := w.trial(trial.ID(created.ID + "-3")).Configuration["x"].String()
		for _, one := range []struct {
			query protocol.TrialQuery
			want  string
		}{
			{protocol.TrialQuery{Query: "FAILED"}, "4"}, {protocol.TrialQuery{Query: x}, "3"}, {protocol.TrialQuery{Query: "x = " + x}, "3"},
			{protocol.TrialQuery{Query: "  completed  and number = 2 "}, "2"}, {protocol.TrialQuery{Query: "worker-1 leased"}, "5"},
			{protocol.TrialQuery{Query: "not completed and (failed or leased) order by number desc"}, "5 4"},
			{protocol.TrialQuery{Query: "completed failed"}, ""}, {protocol.TrialQuery{Query: `"=` + x + `"`}, "3"},
			{protocol.TrialQuery{States: []trial.State{trial.Failed, trial.Leased}}, "4 5"},
		} {
			if got := w.listed(created.ID, one.query); got != one.want {
				t.Errorf("%+v finds %s, want %s", one.query, got, one.want)
			}
		}
		page, err := w.service.Trials(w.ctx, created.ID, protocol.TrialQuery{Query: "completed", Limit: 2, Offset: 3})
		if err != nil || page.Total != 4 || page.All != 6 || len(page.Trials) != 1 || page.Trials[0].Number != 1 || page.Trials[0].Rank != 4 {
			t.Errorf("the last page: %+v, %v", page, err)
		}
	})(t)
}

func TestAQueryChoosesTrials(t *testing.T) {
	in(func(t *testing.T, w *world) {
		created := w.story()
		with, without := "", "" // the parameter that only some configurations have
		for number := range 6 {
			if w.trial(trial.ID(fmt.Sprintf("%s-%d", created.ID, number))).Configuration["extra"].IsZero() {
				without += fmt.Sprintf(" %d", number)
			} else {
				with += fmt.Sprintf(" %d", number)
			}
		}
		if _, err := w.service.AnnotateTrial(w.ctx, created.ID, 3, trial.Amendment{AddTags: []string{"odd"}}); err != nil {
			t.Fatal(err)
		}
		for _, one := range []struct{ query, want string }{
			{"state = failed", "4"}, {"state in (failed, leased) order by number desc", "5 4"},
			{"accuracy > 0.5", "2 3"}, {"accuracy <= 0.5 or accuracy is nan", "0 1"}, {"accuracy is null", "4 5"}, {"value is not null order by value", "0 3 2 1"},
			{"metrics.accuracy >= 0.7 order by metrics.accuracy", "3 2"}, {"metrics.none is not null", ""},
			{"tags = odd", "3"}, {"rank <= 2", "2 3"}, {"rank <= 2 limit 1", "2"}, {"order by accuracy limit 2", "0 3"},
			{"extra is not null order by number", strings.TrimSpace(with)}, {"params.extra is null order by number", strings.TrimSpace(without)},
			{"kind = b order by number", strings.TrimSpace(with)}, {"reason contains COMMAND and state = failed", "4"}, {"rung = 0 and failures > 0", "4"},
			{"worker contains WORKER and epochs = 1 and duration < 10h", "2 3 0 1"},
		} {
			if got := w.listed(created.ID, protocol.TrialQuery{Query: one.query}); got != one.want {
				t.Errorf("%s: %s, want %s", one.query, got, one.want)
			}
		}
		for query, want := range map[string]string{
			"acuracy > 1": "did you mean accuracy?", "state = faild": "did you mean failed?", "kind = other": "write one of a, b", "kind > 1": "no order", "params.accuracy = 1": "at character 1",
		} {
			if _, err := w.service.Trials(w.ctx, created.ID, protocol.TrialQuery{Query: query}); !problem.Is(err, problem.Invalid) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", query, err, want)
			}
		}
		// The query's limit bounds what there is, the page is a part of that, and a column sorts it.
		page, err := w.service.Trials(w.ctx, created.ID, protocol.TrialQuery{Query: "order by number limit 4", Sort: "number", Descending: true, Limit: 3, Offset: 1})
		if err != nil || page.Total != 4 || page.All != 6 || len(page.Trials) != 3 || page.Trials[0].Number != 2 {
			t.Errorf("a page of a query: %+v, %v", page, err)
		}
	})(t)
}

// BenchmarkTrials asks a study of 10,000 trials for pages, and for what is drawn.
func BenchmarkTrials(b *testing.B) {
	kept, random := memory.New(), rand.New(rand.NewPCG(1, 1))
	service := study.New(kept, kept, study.Options{Now: time.Now, Random: random.Uint64})
	def, err := studyfile.Parse([]byte(strings.NewReplacer("bohb", "random", "trials: 27", "trials: 20000").Replace(defaultFile)), studyfile.YAML)
	if err != nil {
		b.Fatal(err)
	}
	ctx := b.Context()
	created, err := service.CreateWarm(ctx, def, nil)
	if err == nil {
		_, err = service.RegisterWorker(ctx, protocol.WorkerRegistration{ID: "worker-1", Name: "worker-1", Slots: 1})
	}
	for created := 0; err == nil && created < 10_000; {
		var reply protocol.LeaseReply
		if reply, err = service.Lease(ctx, protocol.LeaseRequest{Worker: "worker-1"}); err != nil {
			break
		}
		lease := reply.Lease
		created = lease.Number
		for epoch := lease.FirstEpoch; err == nil && epoch <= lease.Budget.Epochs; epoch++ {
			_, err = service.Report(ctx, lease.Trial, protocol.Report{LeaseEpoch: lease.LeaseEpoch, Epoch: epoch, Metrics: map[string]trial.Float{"accuracy": accuracy(lease, epoch)}})
		}
		if err == nil {
			_, err = service.Finish(ctx, lease.Trial, protocol.FinishRequest{LeaseEpoch: lease.LeaseEpoch, Outcome: protocol.BudgetReached})
		}
	}
	if err != nil {
		b.Fatal(err)
	}
	for name, query := range map[string]protocol.TrialQuery{"rank": {}, "parameter": {Sort: "params.x"}, "words": {Query: "0.1"}} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := service.Trials(ctx, created.ID, query); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("measurements", func(b *testing.B) {
		for b.Loop() {
			if _, err := service.Measurements(ctx, created.ID, 2000); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("study", func(b *testing.B) {
		for b.Loop() {
			if _, err := service.Study(ctx, created.ID); err != nil {
				b.Fatal(err)
			}
		}
	})
}
