package study_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/protocol"
	"github.com/tandem-tune/tandem/study"
	"github.com/tandem-tune/tandem/study/search"
	"github.com/tandem-tune/tandem/trial"
)

// leaseFrom leases a trial of the study.
func (w *world) leaseFrom(worker, of string) *protocol.Lease {
	w.t.Helper()
	reply, err := w.service.Lease(w.ctx, protocol.LeaseRequest{Worker: worker, Study: of})
	if err != nil {
		w.t.Fatal(err)
	}
	if reply.Lease == nil {
		w.t.Fatalf("%s has nothing to lease", of)
	}
	return reply.Lease
}

func (w *world) deflation(of string) protocol.StudyDeflation {
	w.t.Helper()
	answer, err := w.service.Deflation(w.ctx, of)
	if err != nil {
		w.t.Fatal(err)
	}
	return answer
}

// trainFor trains a lease for so long.
func (w *world) trainFor(lease *protocol.Lease, span time.Duration) {
	w.t.Helper()
	w.sleep(span)
	w.train(lease)
}

// low and high are two studies of which one goes first.
func (w *world) lowAndHigh(low, high string) {
	w.create("name: example", "name: low\npriority: -1\n"+low)
	w.create("name: example", "name: high\npriority: 5\n"+high)
	w.register("worker-1", "worker-2")
}

func TestALowStudyLeavesDataOutWhileAHighOneRuns(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.lowAndHigh("approximation: {most_drop: 0.4}", "")
		before := w.leaseFrom("worker-1", "low")
		if before.Budget.DataFraction != 0.25 {
			t.Errorf("at first %g of the data is used", before.Budget.DataFraction)
		}
		w.trainFor(before, 20*time.Second)
		w.sleep(6 * time.Second)
		if told := w.deflation("low"); told.Drop != 0 || !strings.Contains(told.Why, "no trial of a higher priority has ended") {
			t.Errorf("nothing of the high study is known: %+v", told)
		}
		w.trainFor(w.leaseFrom("worker-2", "high"), 10*time.Second)
		w.sleep(6 * time.Second)
		told := w.deflation("low")
		if told.Drop != 0.4 || told.Most != 0.4 || told.Predicted == nil || told.Met == nil || told.Met.Trials != 1 || told.Slots != 2 || told.Load <= 0 || told.Chosen == nil {
			t.Fatalf("%+v", told)
		}
		deflated := w.leaseFrom("worker-1", "low")
		if math.Abs(deflated.Budget.DataFraction-0.15) > 1e-9 {
			t.Errorf("%g of the data is used, want 0.6 of the rung's 0.25", deflated.Budget.DataFraction)
		}
		w.trainFor(deflated, 12*time.Second)
		stored := w.trial(deflated.Trial)
		if stored.Deflation == nil || stored.Deflation.Drop != 0.4 || stored.Results[0].Deflation == nil || math.Abs(stored.Results[0].Budget.DataFraction-0.15) > 1e-9 {
			t.Errorf("stored is %+v", stored)
		}
		if high := w.leaseFrom("worker-2", "high"); high.Budget.DataFraction != 0.25 {
			t.Errorf("the high study uses %g", high.Budget.DataFraction)
		}
		if high := w.deflation("high"); high.Drop != 0 || high.Deflated != 0 || !strings.Contains(high.Why, "no approximation") {
			t.Errorf("%+v", high)
		}
		if _, err := w.service.Stop(w.ctx, "high"); err != nil {
			t.Fatal(err)
		}
		w.sleep(6 * time.Second)
		if told := w.deflation("low"); told.Drop != 0 || told.Deflated != 1 || !strings.Contains(told.Why, "no study of a higher priority") {
			t.Errorf("the high study is over: %+v", told)
		}
		after := w.leaseFrom("worker-1", "low")
		if drop := w.trial(after.Trial).Deflation; drop != nil {
			t.Errorf("still left out: %+v", drop)
		}
	})(t)
}

// With limits it is the least that keeps them, and nothing if they are kept
// without.
func TestLimitsOfResponsesDecideHowMuchIsLeftOut(t *testing.T) {
	drops := map[string]float64{}
	for name, limit := range map[string]string{"loose": "600", "tight": "16", "none": "1"} {
		in(func(t *testing.T, w *world) {
			w.lowAndHigh("approximation: {most_drop: 0.9}", "response_seconds: {mean: "+limit+"}")
			for range 4 {
				low := w.leaseFrom("worker-1", "low")
				w.trainFor(w.leaseFrom("worker-2", "high"), 10*time.Second)
				w.trainFor(low, 30*time.Second)
			}
			w.sleep(6 * time.Second)
			told := w.deflation("low")
			drops[name] = told.Drop
			t.Logf("%s: %+v", name, told)
			if want := map[string]string{"loose": "are kept without", "tight": "the least that keeps", "none": "no share keeps"}[name]; !strings.Contains(told.Why, want) {
				t.Errorf("%s: %q does not say %q", name, told.Why, want)
			}
		})(t)
	}
	if !(drops["loose"] == 0 && drops["tight"] > 0 && drops["tight"] < drops["none"] && drops["none"] > 0.85) {
		t.Errorf("left out is %v", drops)
	}
}

// The loss comes from the rungs, bounds what is left out, and the search
// compares as if nothing had been.
func TestWhatIsLostIsLearnedFromTheRungs(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.lowAndHigh("approximation: {metric_loss: 0.05, most_drop: 0.9}", "")
		w.trainFor(w.leaseFrom("worker-1", "low"), 20*time.Second)
		w.trainFor(w.leaseFrom("worker-2", "high"), 10*time.Second)
		w.sleep(6 * time.Second)
		if told := w.deflation("low"); told.Drop != 0 || !strings.Contains(told.Why, "fewer than 3 configurations") {
			t.Errorf("before anything is learned: %+v", told)
		}
		for range 16 {
			w.trainFor(w.leaseFrom("worker-1", "low"), 5*time.Second)
		}
		w.trainFor(w.leaseFrom("worker-2", "high"), 10*time.Second)
		w.sleep(6 * time.Second)
		told := w.deflation("low")
		if told.Drop <= 0 || told.Drop >= 0.9 || told.Loss == nil || *told.Loss <= 0 || *told.LossBound < *told.Loss || *told.LossBound > 0.05 {
			t.Fatalf("%+v", told)
		}
		lease := w.leaseFrom("worker-1", "low")
		w.trainFor(lease, 5*time.Second)
		stored := w.trial(lease.Trial)
		result := stored.Results[len(stored.Results)-1]
		events, err := w.store.Events(w.ctx, stored.Study, 0, 10_000)
		if err != nil {
			t.Fatal(err)
		}
		seen := trial.Float(math.NaN())
		for _, event := range events {
			var decision study.Decision
			if event.Kind == study.Searched && json.Unmarshal(event.Data, &decision) == nil && decision.Event.Kind == search.Measured && decision.Event.Trial == stored.Number && decision.Event.Rung == result.Rung {
				seen = decision.Event.Values[0]
			}
		}
		if want := result.Values[0] + trial.Float(*told.Loss); math.Abs(float64(seen-want)) > 1e-9 {
			t.Errorf("the search was told %g, want the measured %g and %g that it is taken to cost", seen, result.Values[0], *told.Loss)
		}
		w.start() // the log is replayed: it decides the same
		if view := w.view("low"); view.Reason != "" {
			t.Errorf("after a restart: %s", view.Reason)
		}
	})(t)
}

// A winner that left something out says so, and its repeats leave nothing out.
func TestAWinnerThatLeftDataOutSaysSo(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.create("name: example", "name: low\npriority: -1\napproximation: {most_drop: 0.4}", "seed: 7}", "seed: 7, repeats: {trials: 1, times: 2}}", "trials: 27", "trials: 3",
			"epochs: {min: 1, max: 9}, data_fraction: {min: 0.25, max: 1}", "epochs: 1", "policy: multi, ", "")
		w.create("name: example", "name: high\npriority: 5")
		w.register("worker-1", "worker-2")
		w.trainFor(w.leaseFrom("worker-1", "low"), 20*time.Second)
		w.trainFor(w.leaseFrom("worker-2", "high"), 10*time.Second)
		w.sleep(6 * time.Second)
		for value := range 2 {
			lease := w.leaseFrom("worker-1", "low")
			if math.Abs(lease.Budget.DataFraction-0.6) > 1e-9 {
				t.Fatalf("%+v", lease.Budget)
			}
			w.sleep(5 * time.Second)
			w.comes(lease, 2+float64(value))
		}
		if w.recommended("low").FullBudget {
			t.Error("a winner that left something out is said to have had the full budget")
		}
		if notes := strings.Join(w.recommended("low").Notes, "\n"); !strings.Contains(notes, "40% less data than its rung has") || !strings.Contains(notes, "its repeats will be trained on all data") {
			t.Errorf("the notes are\n%s", notes)
		}
		repeat := w.leaseFrom("worker-1", "low")
		if stored := w.trial(repeat.Trial); stored.RepeatOf == nil || repeat.Budget.DataFraction != 1 {
			t.Errorf("the repeat is %+v, of %+v", repeat.Budget, stored.RepeatOf)
		}
		w.comes(repeat, 3.5)
		if told := w.deflation("low"); told.LossMeasured == nil || math.Abs(*told.LossMeasured-0.5) > 1e-9 || told.LossTrials != 1 {
			t.Errorf("%+v", told)
		}
	})(t)
}

// What was met with goes on behind a restart: after a server that was closed all of
// it, after one that was killed all but the newest half a minute.
func TestWhatTrainingsTakeIsKnownBehindARestart(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.lowAndHigh("approximation: {most_drop: 0.4}", "response_seconds: {mean: 11}")
		for range 4 {
			low := w.leaseFrom("worker-1", "low")
			w.trainFor(w.leaseFrom("worker-2", "high"), 10*time.Second)
			w.trainFor(low, 30*time.Second)
		}
		w.sleep(31 * time.Second)
		before := w.deflation("low")
		if before.Drop == 0 || before.Met == nil || before.Met.Trials != 4 || before.Predicted == nil {
			t.Fatalf("before it is %+v", before)
		}
		w.start() // as after a kill
		w.register("worker-1", "worker-2")
		w.sleep(6 * time.Second)
		after := w.deflation("low")
		if after.Met == nil || *after.Met != *before.Met || after.Predicted == nil || after.Drop != before.Drop {
			t.Errorf("after a kill it is %+v, met %+v; before %+v, met %+v", after, after.Met, before, before.Met)
		}
		w.trainFor(w.leaseFrom("worker-1", "low"), 7*time.Second)
		if err := w.service.Close(w.ctx); err != nil {
			t.Fatal(err)
		}
		w.start()
		if after := w.deflation("low"); after.Met == nil || after.Met.Trials != 5 {
			t.Errorf("what ended just before the server was closed is missing: %+v", after.Met)
		}
		time.Sleep(8 * 24 * time.Hour)
		w.register("worker-2")
		w.trainFor(w.leaseFrom("worker-2", "high"), 10*time.Second)
		w.sleep(31 * time.Second)
		entries, err := w.store.PoolEntries(w.ctx, "history")
		if err != nil || len(entries) != 1 || entries[0].Name != "5" {
			t.Errorf("a week later %d histories are kept: %+v, %v", len(entries), entries, err)
		}
	})(t)
}

// A history that is old is forgotten in the store as well, also when the store
// could not be written to at first: else it would be back behind a restart.
func TestAHistoryIsForgottenThoughTheStoreWasFull(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.lowAndHigh("approximation: {most_drop: 0.4}", "response_seconds: {mean: 11}")
		low := w.leaseFrom("worker-1", "low")
		w.trainFor(w.leaseFrom("worker-2", "high"), 10*time.Second)
		w.trainFor(low, 30*time.Second)
		w.sleep(31 * time.Second)
		stored := func() string {
			entries, err := w.store.PoolEntries(w.ctx, "history")
			if err != nil {
				t.Fatal(err)
			}
			names := ""
			for _, entry := range entries {
				names += " " + entry.Name
			}
			return names
		}
		if got := stored(); got != " -1 5" {
			t.Fatalf("at first the histories are of%s", got)
		}
		time.Sleep(8 * 24 * time.Hour)
		full := &unwritable{Store: w.store, refuses: func(change study.Change) bool {
			return slices.ContainsFunc(change.Pool, func(entry study.PoolEntry) bool { return entry.Kind == "history" })
		}}
		w.store = full
		w.start()
		w.register("worker-2")
		w.trainFor(w.leaseFrom("worker-2", "high"), 10*time.Second)
		if err := w.service.Tick(w.ctx); !errors.Is(err, errFull) {
			t.Fatalf("with a full store it is %v", err)
		}
		if got := stored(); got != " -1 5" {
			t.Fatalf("while the store is full the histories are of%s", got)
		}
		full.refuses = nil
		w.sleep(31 * time.Second)
		if got := stored(); got != " 5" {
			t.Errorf("with room again the histories are of%s", got)
		}
		w.start()
		if met := w.deflation("low").Met; met != nil {
			t.Errorf("behind a restart the old one is back: %+v", met)
		}
	})(t)
}

var errFull = errors.New("the disk is full")

// unwritable is a store that refuses some changes.
type unwritable struct {
	study.Store
	refuses func(study.Change) bool
}

func (u *unwritable) Apply(ctx context.Context, change study.Change) error {
	if u.refuses != nil && u.refuses(change) {
		return errFull
	}
	return u.Store.Apply(ctx, change)
}
