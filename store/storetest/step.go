package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/trial"
)

// NewStudy is a change that inserts a study to write to.
func NewStudy(id string) journal.Change {
	return journal.Change{Insert: &journal.Study{ID: id, Definition: definition.Definition{Name: id}, Created: time.Unix(1, 0)}}
}

// Step is a change as a worker causes it: a trial, its report and its event.
func Step(id string, number int) journal.Change {
	t := trial.Trial{ID: trial.ID(fmt.Sprintf("%s-%d", id, number)), Study: id, Number: number, State: trial.Queued}
	return journal.Change{
		Trials:  []journal.TrialWrite{{Trial: t}},
		Reports: []trial.Report{{Trial: t.ID, Epoch: 1, Metrics: map[string]trial.Float{"loss": 1}}},
		Events:  []journal.Event{{Study: id, Sequence: int64(number) + 1, Kind: journal.TrialState, Trial: t.ID, State: "queued"}},
	}
}

// Apply makes a change that the store takes.
func Apply(t testing.TB, store journal.Store, change journal.Change) {
	t.Helper()
	if err := store.Apply(t.Context(), change); err != nil {
		t.Fatal(err)
	}
}

// Broken reports whether the store has said that it stopped.
func Broken(store interface{ Broken() <-chan struct{} }) bool {
	select {
	case <-store.Broken():
		return true
	default:
		return false
	}
}
