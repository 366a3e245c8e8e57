package storetest

import (
	"testing"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/trial"
)

func trialChecks() []check {
	return []check{
		{"a trial is read as it was written", trialRoundTrip},
		{"trials come by number", trialOrder},
		{"ids and numbers of trials are unique, and belong to a study", trialUnique},
		{"a guard holds for exactly one state and lease", trialGuard},
		{"guarded writes of one change see each other", trialTwice},
		{"a guarded write does not move a trial", trialMoved},
	}
}

func trialRoundTrip(t *testing.T, f fixture) {
	f.seed(t, "s1")
	for _, want := range []trial.Trial{
		sampleTrial("s1", 2, trial.Paused),
		{ID: "s1-3", Study: "s1", Number: 3, State: trial.Queued, Created: moment(0)},
	} {
		f.apply(t, journal.Change{Trials: []journal.TrialWrite{{Trial: want}}})
		got, err := f.store.Trial(t.Context(), want.ID)
		if err != nil {
			t.Fatal(err)
		}
		same(t, "the inserted trial", got, want)

		guard := journal.Guard{State: want.State, LeaseEpoch: want.LeaseEpoch}
		want.State, want.LeaseEpoch, want.Results, want.Finished = trial.Completed, want.LeaseEpoch+1, nil, nil
		f.apply(t, journal.Change{Trials: []journal.TrialWrite{{Trial: want, Guard: &guard}}})
		if got, err = f.store.Trial(t.Context(), want.ID); err != nil {
			t.Fatal(err)
		}
		same(t, "the replaced trial", got, want)
	}
}

func trialOrder(t *testing.T, f fixture) {
	f.seed(t, "s1")
	for _, number := range []int{10, 9, 100, 2} {
		f.apply(t, journal.Change{Trials: []journal.TrialWrite{{Trial: sampleTrial("s1", number, trial.Queued)}}})
	}
	list, err := f.store.Trials(t.Context(), "s1")
	if err != nil {
		t.Fatal(err)
	}
	var numbers []int
	for _, one := range list {
		numbers = append(numbers, one.Number)
	}
	same(t, "the order", numbers, []int{0, 1, 2, 9, 10, 100})
}

func trialUnique(t *testing.T, f fixture) {
	f.seed(t, "s1", "s2")
	sameID, sameNumber, orphan := sampleTrial("s2", 7, trial.Queued), sampleTrial("s1", 0, trial.Queued), sampleTrial("s3", 7, trial.Queued)
	sameID.ID, sameNumber.ID = "s1-0", "s1-other"
	for _, one := range []struct {
		name  string
		trial trial.Trial
		want  problem.Code
	}{
		{"id and number", sampleTrial("s1", 0, trial.Queued), problem.Conflict},
		{"id in another study", sameID, problem.Conflict},
		{"number in its study", sameNumber, problem.Conflict},
		{"no study", orphan, problem.NotFound},
	} {
		t.Run(one.name, func(t *testing.T) {
			f.refuse(t, journal.Change{Trials: []journal.TrialWrite{{Trial: one.trial}}}, one.want)
		})
	}
	again := journal.TrialWrite{Trial: sampleTrial("s1", 8, trial.Queued)}
	f.refuse(t, journal.Change{Trials: []journal.TrialWrite{again, again}}, problem.Conflict)
	f.apply(t, journal.Change{Trials: []journal.TrialWrite{again}})
}

func trialGuard(t *testing.T, f fixture) {
	f.seed(t, "s1")
	held := sampleTrial("s1", 0, trial.Leased) // as seeded, under lease 1
	for _, one := range []struct {
		name  string
		guard journal.Guard
		want  problem.Code
	}{
		{"an older lease", journal.Guard{State: trial.Leased, LeaseEpoch: 0}, problem.LeaseLost},
		{"a newer lease", journal.Guard{State: trial.Leased, LeaseEpoch: 2}, problem.LeaseLost},
		{"another state", journal.Guard{State: trial.Running, LeaseEpoch: 1}, problem.LeaseLost},
		{"no state", journal.Guard{LeaseEpoch: 1}, problem.LeaseLost},
		{"another state and lease", journal.Guard{State: trial.Queued}, problem.LeaseLost},
	} {
		t.Run(one.name, func(t *testing.T) {
			f.refuse(t, journal.Change{Trials: []journal.TrialWrite{{Trial: held, Guard: &one.guard}}}, one.want)
		})
	}
	missing := sampleTrial("s1", 9, trial.Leased)
	right := journal.Guard{State: trial.Leased, LeaseEpoch: 1}
	f.refuse(t, journal.Change{Trials: []journal.TrialWrite{{Trial: missing, Guard: &right}}}, problem.NotFound)

	held.State, held.LeaseEpoch = trial.Running, 2
	f.apply(t, journal.Change{Trials: []journal.TrialWrite{{Trial: held, Guard: &right}}})
	f.refuse(t, journal.Change{Trials: []journal.TrialWrite{{Trial: held, Guard: &right}}}, problem.LeaseLost) // it held once
}

func trialTwice(t *testing.T, f fixture) {
	f.seed(t, "s1")
	first, second := sampleTrial("s1", 0, trial.Queued), sampleTrial("s1", 0, trial.Leased)
	first.LeaseEpoch, second.LeaseEpoch = 1, 2
	writes := []journal.TrialWrite{
		{Trial: first, Guard: &journal.Guard{State: trial.Leased, LeaseEpoch: 1}},
		{Trial: second, Guard: &journal.Guard{State: trial.Queued, LeaseEpoch: 1}},
	}
	f.refuse(t, journal.Change{Trials: []journal.TrialWrite{writes[1], writes[0]}}, problem.LeaseLost)
	f.apply(t, journal.Change{Trials: writes})
	got, err := f.store.Trial(t.Context(), first.ID)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "the trial", got, second)
}

func trialMoved(t *testing.T, f fixture) {
	f.seed(t, "s1", "s2")
	guard := journal.Guard{State: trial.Leased, LeaseEpoch: 1}
	elsewhere, renumbered := sampleTrial("s1", 0, trial.Leased), sampleTrial("s1", 0, trial.Leased)
	elsewhere.Study, renumbered.Number = "s2", 5
	for _, moved := range []trial.Trial{elsewhere, renumbered} {
		f.refuse(t, journal.Change{Trials: []journal.TrialWrite{{Trial: moved, Guard: &guard}}}, problem.NotFound)
	}
}
