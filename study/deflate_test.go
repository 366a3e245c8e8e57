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

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/study/search"
	"github.com/tandem-tune/tandem/study/session"
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
	w.create("name: example", "name: low\npriority: -1\n"+low, "trials: 27", "trials: 200")
	w.create("name: example", "name: high\npriority: 5\n"+high, "trials: 27", "trials: 200")
	w.register("worker-1", "worker-2")
}

// hold lets the workers train for so long, with the heartbeats that they send.
func (w *world) hold(span time.Duration, leases ...*protocol.Lease) {
	w.t.Helper()
	for end := time.Now().Add(span); time.Now().Before(end); {
		held := map[string]protocol.Heartbeat{"worker-1": {}, "worker-2": {}}
		for _, lease := range leases {
			worker := w.trial(lease.Trial).Worker
			beat := held[worker]
			beat.Leases = append(beat.Leases, protocol.HeldLease{Trial: lease.Trial, LeaseEpoch: lease.LeaseEpoch})
			held[worker] = beat
		}
		for worker, beat := range held {
			if _, err := w.service.Heartbeat(w.ctx, worker, beat); err != nil {
				w.t.Fatal(err)
			}
		}
		w.sleep(min(10*time.Second, time.Until(end)))
	}
}

// rounds has trials of the low study hold both workers, so long as they take with
// their data, while the high one waits for its next trial of a second.
func (w *world) rounds(times int) {
	w.t.Helper()
	for range times {
		one, other := w.lows()
		left := 1.0
		if out := w.trial(one.Trial).Deflation; out != nil {
			left -= out.Drop
		}
		w.hold(time.Duration(left*left*float64(time.Minute)), one, other)
		w.train(one)
		w.train(other)
		if high := w.mustLease("worker-1"); high.Study == "high" {
			w.trainFor(high, time.Second)
		} else {
			w.t.Fatalf("worker-1 got a trial of %s", high.Study)
		}
	}
}

// lows are two trials of the low study on the two workers, while the high one is
// paused for the moment.
func (w *world) lows() (one, other *protocol.Lease) {
	w.t.Helper()
	if _, err := w.service.Pause(w.ctx, "high"); err != nil {
		w.t.Fatal(err)
	}
	one, other = w.mustLease("worker-1"), w.mustLease("worker-2")
	if _, err := w.service.Resume(w.ctx, "high"); err != nil {
		w.t.Fatal(err)
	}
	return one, other
}

// A limit that is broken has the low study leave data out, until there is no high one
// any more.
func TestALowStudyLeavesDataOutWhileALimitIsBroken(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.lowAndHigh("approximation: {most_drop: 0.4}", "response_seconds: {mean: 10}")
		first := w.leaseFrom("worker-1", "low")
		if first.Budget.DataFraction != 0.25 {
			t.Errorf("at first %g of the data is used", first.Budget.DataFraction)
		}
		w.trainFor(first, 6*time.Second)
		if told := w.deflation("low"); told.Drop != 0 || told.Most != 0.4 || told.Chosen == nil || !strings.Contains(told.Why, "none was met lately") {
			t.Errorf("nothing was met with: %+v", told)
		}
		w.rounds(12)
		told := w.deflation("low")
		if told.Drop < 0.1 || told.Drop > 0.4 || told.Slots != 2 || !strings.Contains(told.Why, "% of the data is left out: trials of priority 5 took ") || !strings.Contains(told.Why, "10 s in the mean is wanted") {
			t.Fatalf("%+v", told)
		}
		high := w.deflation("high")
		if high.Drop != 0 || high.Deflated != 0 || high.Met == nil || high.Met.Mean <= 10 || !strings.Contains(high.Why, "no approximation") || !strings.Contains(high.LimitsWhy, "10 s in the mean is wanted") {
			t.Errorf("%+v", high)
		}
		deflated := w.leaseFrom("worker-1", "low")
		stored := w.trial(deflated.Trial)
		full := []float64{0.25, 0.5, 1}[stored.Rung]
		if stored.Deflation == nil || stored.Deflation.Drop != told.Drop || math.Abs(deflated.Budget.DataFraction-full*(1-told.Drop)) > 1e-9 {
			t.Errorf("%g of the data is used at rung %d: %+v, told %g", deflated.Budget.DataFraction, stored.Rung, stored.Deflation, told.Drop)
		}
		if _, err := w.service.Stop(w.ctx, "high"); err != nil {
			t.Fatal(err)
		}
		w.sleep(6 * time.Second)
		w.train(deflated) // what was decided when it was leased holds
		if stored := w.trial(deflated.Trial); stored.Results[len(stored.Results)-1].Deflation == nil {
			t.Errorf("stored is %+v", stored)
		}
		if told := w.deflation("low"); told.Drop != 0 || told.Deflated == 0 || !strings.Contains(told.Why, "no study of a higher priority") {
			t.Errorf("the high study is over: %+v", told)
		}
		if drop := w.trial(w.leaseFrom("worker-1", "low").Trial).Deflation; drop != nil {
			t.Errorf("still left out: %+v", drop)
		}
	})(t)
}

// Nothing is left out where all limits are kept, where there is none, where trials
// break theirs by themselves, and for a study that could not have the workers.
func TestNothingIsLeftOutForNothing(t *testing.T) {
	for name, test := range map[string]struct{ high, why string }{
		"limits are kept":         {"response_seconds: {mean: 600, tail: 900}", "its limits are kept"},
		"no limits":               {"", "no study of a higher priority runs on its workers that has response_seconds"},
		"they take longer alone":  {"response_seconds: {mean: 0.5}", "longer than that without any waiting"},
		"it cannot have a worker": {"response_seconds: {mean: 10}\nresources: {cores: 64}", "no study of a higher priority runs on its workers"},
	} {
		t.Run(name, in(func(t *testing.T, w *world) {
			w.create("name: example", "name: low\npriority: -1\napproximation: {most_drop: 0.9}", "trials: 27", "trials: 200")
			w.create("name: example", "name: high\npriority: 5\n"+test.high, "trials: 27", "trials: 200")
			for _, id := range []string{"worker-1", "worker-2"} {
				if _, err := w.service.RegisterWorker(w.ctx, protocol.WorkerRegistration{ID: id, Name: id, Slots: 1, Machine: protocol.Machine{Cores: 2}}); err != nil {
					t.Fatal(err)
				}
			}
			for range 12 {
				one, other := w.lows()
				w.hold(20*time.Second, one, other)
				w.train(one)
				w.train(other)
				if name != "it cannot have a worker" {
					w.trainFor(w.mustLease("worker-2"), time.Second)
				}
				if told := w.deflation("low"); told.Drop != 0 && name != "they take longer alone" { // not before some have ended
					t.Fatalf("%+v", told)
				}
			}
			if told := w.deflation("low"); told.Drop != 0 || !strings.Contains(told.Why, test.why) {
				t.Errorf("%q does not say %q", told.Why, test.why)
			}
		}))
	}
}

// What counts is what a study's own trials met with: short ones of a study before it,
// of the same priority, hide nothing.
func TestAnEarlierStudyHidesNoBrokenLimit(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.create("name: example", "name: quick\npriority: 5\nresponse_seconds: {mean: 10}", "trials: 27", "trials: 200")
		w.register("worker-1")
		for range 100 {
			w.trainFor(w.leaseFrom("worker-1", "quick"), time.Second)
		}
		if _, err := w.service.Stop(w.ctx, "quick"); err != nil {
			t.Fatal(err)
		}
		w.lowAndHigh("approximation: {most_drop: 0.1}", "response_seconds: {mean: 10}")
		w.rounds(3)
		if told := w.deflation("high"); told.Met == nil || told.Met.Mean < 10 || told.Met.Trials > 10 {
			t.Errorf("%+v, met %+v", told, told.Met)
		}
		if told := w.deflation("low"); told.Drop != 0.1 {
			t.Errorf("%+v", told)
		}
	})(t)
}

// A trial that still waits breaks a limit, before any has ended; one that its study's
// own parallel holds back does not.
func TestWhatWaitsIsSeenAtOnce(t *testing.T) {
	for parallel, want := range map[string]float64{"parallel: 2": 0.1, "parallel: 1": 0} {
		t.Run(parallel, in(func(t *testing.T, w *world) {
			w.create("name: example", "name: low\npriority: -1\napproximation: {most_drop: 0.1}")
			w.register("worker-1", "worker-2")
			low := w.mustLease("worker-1")
			w.create("name: example", "name: high\npriority: 5\nresponse_seconds: {tail: 10}\n"+parallel)
			w.hold(58*time.Second, low, w.mustLease("worker-2"))
			if told := w.deflation("low"); told.Drop != want {
				t.Errorf("%g is left out, want %g: %+v", told.Drop, want, told)
			}
			if told := w.deflation("high"); told.Met == nil || told.Met.Mean < 50 {
				t.Errorf("%+v, met %+v", told, told.Met)
			}
		}))
	}
}

// The loss comes from the rungs, bounds what is left out, and the search
// compares as if nothing had been.
func TestWhatIsLostIsLearnedFromTheRungs(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.lowAndHigh("approximation: {metric_loss: 0.05, most_drop: 0.9}", "response_seconds: {mean: 10}")
		w.rounds(1)
		w.sleep(6 * time.Second)
		if told := w.deflation("low"); told.Drop != 0 || !strings.Contains(told.Why, "fewer than 3 configurations") {
			t.Errorf("before anything is learned: %+v", told)
		}
		w.rounds(9)
		w.sleep(6 * time.Second)
		told := w.deflation("low")
		if told.Drop <= 0 || told.Drop > told.Most || told.Most >= 0.9 || told.Loss == nil || *told.Loss <= 0 || *told.LossBound < *told.Loss || *told.LossBound > 0.05 {
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
			var decision session.Decision
			if event.Kind == journal.Searched && json.Unmarshal(event.Data, &decision) == nil && decision.Event.Kind == search.Measured && decision.Event.Trial == stored.Number && decision.Event.Rung == result.Rung {
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
		w.create("name: example", "name: low\npriority: -1\napproximation: {most_drop: 0.1}", "seed: 7}", "seed: 7, repeats: {trials: 1, times: 2}}", "trials: 27", "trials: 4",
			"epochs: {min: 1, max: 9}, data_fraction: {min: 0.25, max: 1}", "epochs: 1", "policy: multi, ", "")
		w.create("name: example", "name: high\npriority: 5\nresponse_seconds: {mean: 10}")
		w.register("worker-1", "worker-2")
		one, other := w.lows()
		w.hold(70*time.Second, one, other)
		w.train(one)
		w.train(other)
		for value := range 2 {
			lease := w.leaseFrom("worker-2", "low")
			if math.Abs(lease.Budget.DataFraction-0.9) > 1e-9 {
				t.Fatalf("%+v: %+v", lease.Budget, w.deflation("low"))
			}
			w.sleep(5 * time.Second)
			w.comes(lease, 2+float64(value))
		}
		if w.recommended("low").FullBudget {
			t.Error("a winner that left something out is said to have had the full budget")
		}
		if notes := strings.Join(w.recommended("low").Notes, "\n"); !strings.Contains(notes, "10% less data than its rung has") || !strings.Contains(notes, "its repeats will be trained on all data") {
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

// What was met with and what is left out go on behind a restart: after a server that
// was closed all of it, after one that was killed all but the newest half a minute.
func TestWhatIsLeftOutGoesOnBehindARestart(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.lowAndHigh("approximation: {most_drop: 0.4}", "response_seconds: {mean: 10}")
		w.rounds(7)
		w.hold(31 * time.Second)
		before := w.deflation("low")
		if before.Drop == 0 || before.Met == nil {
			t.Fatalf("before it is %+v", before)
		}
		w.start() // as after a kill
		w.register("worker-1", "worker-2")
		w.sleep(6 * time.Second)
		after := w.deflation("low")
		if after.Met == nil || *after.Met != *before.Met || after.Drop != before.Drop {
			t.Errorf("after a kill it is %+v, met %+v; before %+v, met %+v", after, after.Met, before, before.Met)
		}
		if drop := w.trial(w.leaseFrom("worker-2", "low").Trial).Deflation; drop == nil || drop.Drop != before.Drop {
			t.Errorf("after a kill a trial leaves out %+v", drop)
		}
		w.trainFor(w.leaseFrom("worker-1", "low"), 7*time.Second)
		if err := w.service.Close(w.ctx); err != nil {
			t.Fatal(err)
		}
		w.start()
		if after := w.deflation("low"); after.Met == nil || after.Met.Trials != before.Met.Trials+1 {
			t.Errorf("what ended just before the server was closed is missing: %+v", after.Met)
		}
	})(t)
}

// A history that is old is forgotten in the store as well, also when the store
// could not be written to at first: else it would be back behind a restart.
func TestAHistoryIsForgottenThoughTheStoreWasFull(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.lowAndHigh("approximation: {most_drop: 0.4}", "response_seconds: {mean: 1000}")
		low := w.leaseFrom("worker-1", "low")
		w.trainFor(w.leaseFrom("worker-2", "high"), 10*time.Second)
		w.trainFor(low, 30*time.Second)
		w.sleep(31 * time.Second)
		kept := func() []string {
			entries, err := w.store.PoolEntries(w.ctx, "responses")
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, entry := range entries {
				names = append(names, entry.Name)
			}
			return names
		}
		ids := []string{w.view("low").ID, w.view("high").ID}
		slices.Sort(ids)
		if got := kept(); !slices.Equal(got, ids) {
			t.Fatalf("at first there is something of %v", got)
		}
		time.Sleep(8 * 24 * time.Hour)
		full := &unwritable{Store: w.store, refuses: func(change journal.Change) bool {
			return slices.ContainsFunc(change.Pool, func(entry journal.PoolEntry) bool { return entry.Kind == "responses" })
		}}
		w.store = full
		w.start()
		w.register("worker-2")
		w.trainFor(w.leaseFrom("worker-2", "high"), 10*time.Second)
		if err := w.service.Tick(w.ctx); !errors.Is(err, errFull) {
			t.Fatalf("with a full store it is %v", err)
		}
		if got := kept(); !slices.Equal(got, ids) {
			t.Fatalf("while the store is full there is something of %v", got)
		}
		full.refuses = nil
		w.sleep(31 * time.Second)
		if got := kept(); !slices.Equal(got, []string{w.view("high").ID}) {
			t.Errorf("with room again there is something of %v", got)
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
	refuses func(journal.Change) bool
}

func (u *unwritable) Apply(ctx context.Context, change journal.Change) error {
	if u.refuses != nil && u.refuses(change) {
		return errFull
	}
	return u.Store.Apply(ctx, change)
}
