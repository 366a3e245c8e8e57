package group_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/store/group"
	"github.com/tandem-tune/tandem/study/journal"
)

// TestChangesThatComeDuringACommitShareTheNextOne holds the first commit back
// until one caller has handed in a whole queue.
func TestChangesThatComeDuringACommitShareTheNextOne(t *testing.T) {
	t.Parallel()
	const others = 100
	held := make(chan struct{})
	var groups [][]int
	odd := errors.New("odd")
	w := group.Start(func(changes []int) []error {
		<-held
		groups = append(groups, slices.Clone(changes))
		outcomes := make([]error, len(changes))
		for i, change := range changes {
			if change%2 == 1 {
				outcomes[i] = odd
			}
		}
		return outcomes
	}, nil)
	outcomes := make([]*journal.Outcome, group.Most)
	for i := range outcomes {
		outcomes[i] = w.Submit(t.Context(), i)
	}
	var rest sync.WaitGroup
	for i := range others {
		rest.Go(func() {
			if err := w.Do(t.Context(), group.Most+2*i); err != nil {
				t.Errorf("change %d: %v", group.Most+2*i, err)
			}
		})
	}
	close(held)
	rest.Wait()
	for i, outcome := range outcomes {
		if err := outcome.Wait(); (err != nil) != (i%2 == 1) {
			t.Errorf("change %d: %v", i, err)
		}
	}
	w.Stop()
	all := slices.Concat(groups...)
	if len(all) != group.Most+others || w.Waiting() != 0 {
		t.Errorf("%d of %d changes were committed, %d wait", len(all), group.Most+others, w.Waiting())
	}
	if slices.ContainsFunc(groups, func(one []int) bool { return len(one) > group.Most }) || len(groups) > len(all)/10 {
		t.Errorf("%d changes took %d commits", len(all), len(groups))
	}
	first := slices.DeleteFunc(all, func(change int) bool { return change >= group.Most })
	if !slices.IsSorted(first) || len(first) != group.Most {
		t.Errorf("those of one caller were committed in the order %v", first)
	}
}

func TestWhoGaveUpOrComesTooLateChangesNothing(t *testing.T) {
	t.Parallel()
	var made []string
	behind := 0
	w := group.Start(func(changes []string) []error {
		made = append(made, changes...)
		return make([]error, len(changes))
	}, func() { behind++ })
	gone, leave := context.WithCancel(t.Context())
	leave()
	if err := w.Do(gone, "given up"); !problem.Is(err, problem.Unavailable) {
		t.Errorf("a caller that gave up: %v", err)
	}
	if err := w.Do(t.Context(), "made"); err != nil {
		t.Error(err)
	}
	w.Stop()
	w.Stop() // a second time does nothing
	if err := w.Do(t.Context(), "late"); !problem.Is(err, problem.Unavailable) {
		t.Errorf("a caller behind the end: %v", err)
	}
	if !slices.Equal(made, []string{"made"}) || behind != 1 {
		t.Errorf("made: %v, and %d groups were followed by what comes behind", made, behind)
	}
}
