package storetest

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/trial"
)

func concurrencyChecks() []check {
	return []check{
		{"changes that do not touch each other all succeed", concurrentDisjoint},
		{"of many that want the same, exactly one gets it", concurrentConflict},
		{"of many that want a trial, exactly one gets the lease", concurrentLease},
		{"changes are made in the order in which they were handed in", submittedInOrder},
		{"a reader never sees half of a change", concurrentReader},
		{"a log is the same whoever appends it when", concurrentLog},
	}
}

// writers is how many write at a time: more than a machine has processors.
const writers = 16

// together runs the function once for each writer, all at the same time.
func together(run func(writer int)) {
	var group sync.WaitGroup
	start := make(chan struct{})
	for i := range writers {
		group.Go(func() {
			<-start
			run(i)
		})
	}
	close(start)
	group.Wait()
}

func concurrentDisjoint(t *testing.T, f fixture) {
	const rounds = 10
	f.seed(t, "s1")
	together(func(writer int) {
		id := fmt.Sprintf("w%d", writer)
		for round := range rounds {
			change := journal.Change{
				Trials: []journal.TrialWrite{{Trial: sampleTrial(id, round, trial.Queued)}},
				Events: []journal.Event{sampleEvent("s1", int64(writer*rounds+round)), sampleEvent(id, int64(round))},
			}
			if round == 0 {
				change.Insert = pointer(sampleStudy(id, "name-"+id))
			} else {
				change.Reports = []trial.Report{sampleReport(trialID(id, round-1), 0, 1)}
			}
			if err := f.store.Apply(t.Context(), change); err != nil {
				t.Errorf("writer %d, round %d: %v", writer, round, err)
			}
		}
	})
	if list, err := f.store.Events(t.Context(), "s1", -1, 1000); err != nil || len(list) != writers*rounds {
		t.Errorf("%d events of %d, %v", len(list), writers*rounds, err)
	}
	for writer := range writers {
		id := fmt.Sprintf("w%d", writer)
		list, err := f.store.Trials(t.Context(), id)
		if err != nil || len(list) != rounds {
			t.Errorf("%d trials of %d, %v", len(list), rounds, err)
		}
		if reports, err := f.store.Reports(t.Context(), trialID(id, rounds-2)); err != nil || len(reports) != 1 {
			t.Errorf("reports %v, %v", reports, err)
		}
	}
}

// submittedInOrder hands in a line of changes without waiting, each behind the
// one before. One in the middle is refused, and with it all that follow it.
func submittedInOrder(t *testing.T, f fixture) {
	const length, wrong = 200, 120
	f.seed(t, "s1", "s2")
	together(func(writer int) {
		if writer > 1 {
			return
		}
		id := fmt.Sprintf("s%d", writer+1)
		outcomes := make([]*journal.Outcome, length)
		for i := range outcomes {
			change := journal.Change{
				Behind: &journal.Position{Study: id, Sequence: int64(i)}, Events: []journal.Event{sampleEvent(id, int64(i+1))},
			}
			if i == wrong {
				change.Trials = []journal.TrialWrite{{Trial: sampleTrial(id, 0, trial.Queued)}} // there is one
			}
			outcomes[i] = f.store.Submit(t.Context(), change)
		}
		for i, outcome := range outcomes {
			switch err := outcome.Wait(); {
			case i < wrong && err != nil:
				t.Errorf("change %d: %v", i, err)
			case i == wrong:
				wantCode(t, "the wrong change", err, problem.Conflict)
			case i > wrong:
				wantCode(t, "a change behind the wrong one", err, problem.Unavailable)
			}
		}
		if list, err := f.store.Events(t.Context(), id, 0, 1000); err != nil || len(list) != wrong {
			t.Errorf("%d events of %d, %v", len(list), wrong, err)
		}
	})
}

func concurrentConflict(t *testing.T, f fixture) {
	const rounds = 10
	f.seed(t, "s1")
	var won [rounds]atomic.Int64
	together(func(writer int) {
		for round := range rounds {
			sequence := int64(round + 1)
			event := sampleEvent("s1", sequence)
			event.Worker = fmt.Sprint(writer)
			inserted := sampleTrial("s1", 100+round*writers+writer, trial.Queued)
			inserted.Worker = event.Worker
			err := f.store.Apply(t.Context(), journal.Change{
				Trials: []journal.TrialWrite{{Trial: inserted}}, Events: []journal.Event{event},
			})
			switch {
			case err == nil:
				won[round].Add(1)
			case !problem.Is(err, problem.Conflict):
				t.Errorf("writer %d, round %d: %v", writer, round, err)
			}
		}
	})
	events, err := f.store.Events(t.Context(), "s1", 0, 1000)
	if err != nil || len(events) != rounds {
		t.Fatalf("%d events of %d: %v", len(events), rounds, err)
	}
	for round := range rounds {
		if won := won[round].Load(); won != 1 {
			t.Errorf("round %d: %d writers won", round, won)
		}
	}
	trials, err := f.store.Trials(t.Context(), "s1")
	if err != nil || len(trials) != 2+rounds { // 2 were seeded
		t.Fatalf("%d trials, want those of the %d winners: %v", len(trials)-2, rounds, err)
	}
	for round, one := range trials[2:] {
		if one.Worker != events[round].Worker {
			t.Errorf("round %d: the trial is of writer %s, the event of %s", round, one.Worker, events[round].Worker)
		}
	}
}

func concurrentLease(t *testing.T, f fixture) {
	f.seed(t, "s1")
	guard := journal.Guard{State: trial.Leased, LeaseEpoch: 1}
	var won atomic.Int64
	together(func(writer int) {
		mine := sampleTrial("s1", 0, trial.Running)
		mine.LeaseEpoch, mine.Worker = 2, fmt.Sprint(writer)
		err := f.store.Apply(t.Context(), journal.Change{
			Trials:  []journal.TrialWrite{{Trial: mine, Guard: &guard}},
			Reports: []trial.Report{sampleReport(mine.ID, 0, 1+writer)},
		})
		switch {
		case err == nil:
			won.Store(int64(writer))
		case !problem.Is(err, problem.LeaseLost):
			t.Errorf("writer %d: %v", writer, err)
		}
	})
	got, err := f.store.Trial(t.Context(), trialID("s1", 0))
	if err != nil || got.Worker != fmt.Sprint(won.Load()) || got.LeaseEpoch != 2 {
		t.Errorf("worker %s has lease %d, %v; want worker %d", got.Worker, got.LeaseEpoch, err, won.Load())
	}
	if reports, err := f.store.Reports(t.Context(), got.ID); err != nil || len(reports) != 1 || int64(reports[0].Epoch) != 1+won.Load() {
		t.Errorf("the reports are %v, %v; want that of writer %d", reports, err, won.Load())
	}
}

func concurrentReader(t *testing.T, f fixture) {
	f.seed(t, "s1")
	done := make(chan struct{})
	var reading sync.WaitGroup
	for range 2 {
		reading.Go(func() {
			for read := 0; ; read++ {
				select {
				case <-done:
					if read > 0 {
						return
					}
				default:
				}
				events, err := f.store.Events(t.Context(), "s1", 0, 1<<20)
				if err != nil || len(events)%3 != 0 {
					t.Errorf("%d events, which is no multiple of the 3 of each change: %v", len(events), err)
					return
				}
			}
		})
	}
	for round := range int64(50) {
		f.apply(t, journal.Change{Events: []journal.Event{
			sampleEvent("s1", 3*round+1), sampleEvent("s1", 3*round+2), sampleEvent("s1", 3*round+3),
		}})
	}
	close(done)
	reading.Wait()
}

func concurrentLog(t *testing.T, f fixture) {
	f.seed(t, "s1")
	whole := ""
	for i := range 50 {
		whole += fmt.Sprintf("line %d\n", i)
	}
	id := trialID("s1", 1)
	together(func(writer int) { // each sends all of it, in pieces of its own size
		for from := 0; from < len(whole); from += 7 + writer {
			piece := whole[from:min(len(whole), from+7+writer)]
			if err := f.store.AppendLog(t.Context(), id, 1, int64(from), piece); err != nil {
				t.Errorf("writer %d: %v", writer, err)
			}
		}
	})
	f.wantLog(t, id, whole)
}
