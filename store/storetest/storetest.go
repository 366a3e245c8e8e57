// Package storetest is what every store must do, as tests: the store in memory,
// SQLite and whatever comes next answer alike because they pass this suite.
//
// A store joins with one call of [Run]. The suite sees a store only through
// the interfaces the service uses. Its one invariant: a test that passes for
// one store says nothing that the interface does not promise for all of them.
package storetest

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/similarity"
	"github.com/tandem-tune/tandem/store/storetest/model"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/trial"
)

// Run tests the store. open returns an empty one, which it closes when its
// test ends.
func Run(t *testing.T, open func(t *testing.T) model.Everything) {
	t.Helper()
	for _, group := range [][]check{
		studyChecks(), trialChecks(), reportChecks(), eventChecks(), snapshotChecks(), recordChecks(), architectureChecks(), poolChecks(), receiptChecks(),
		changeChecks(), logChecks(), tokenChecks(), concurrencyChecks(), modelChecks(),
	} {
		for _, one := range group {
			t.Run(one.name, func(t *testing.T) { one.run(t, fixture{store: open(t)}) })
		}
	}
}

// Fill puts something of everything into an empty store.
func Fill(t *testing.T, store model.Everything) {
	t.Helper()
	f := fixture{store}
	f.seed(t, "s1", "s2")
	f.fill(t, "s1", "key-1")
	f.fill(t, "s2", "key-2")
	f.apply(t, journal.Change{
		Records:       []similarity.Record{sampleRecord("r1", "arm, 4 cores", 2), sampleRecord("r2", "x86, 2 cores", 1)},
		Architectures: []emu.Architecture{sampleArchitecture("a1", 0), sampleArchitecture("a2", 1)},
		Pool:          []journal.PoolEntry{samplePoolEntry("quota", "alice"), samplePoolEntry("drain", "rack")},
	})
	if err := store.InsertToken(t.Context(), sampleToken("t1", 0)); err != nil {
		t.Fatal(err)
	}
}

// Picture is everything the store shows, as text: equal for equal content.
func Picture(t testing.TB, store model.Everything) string {
	t.Helper()
	return fixture{store}.picture(t)
}

// Look is Picture for a store that may refuse to be read.
func Look(ctx context.Context, store model.Everything) (string, error) {
	p, err := model.Take(ctx, store)
	if err != nil {
		return "", err
	}
	data, err := json.MarshalIndent(p, "", " ")
	return string(data), err
}

// check is one test of the suite; its name is a sentence about stores.
type check struct {
	name string
	run  func(*testing.T, fixture)
}

// fixture is the store under test.
type fixture struct{ store model.Everything }

// apply makes a change that must be accepted.
func (f fixture) apply(t *testing.T, change journal.Change) {
	t.Helper()
	if err := f.store.Apply(t.Context(), change); err != nil {
		t.Fatalf("a change was refused: %v", err)
	}
}

// refuse makes a change that must be refused and leave nothing behind.
func (f fixture) refuse(t *testing.T, change journal.Change, want problem.Code) {
	t.Helper()
	before := f.picture(t)
	wantCode(t, "Apply", f.store.Apply(t.Context(), change), want)
	same(t, "the store behind a refused change", f.picture(t), before)
}

// seed puts the studies there, each with trials 0 and 1, leased and running
// under lease 1.
func (f fixture) seed(t *testing.T, ids ...string) {
	t.Helper()
	for _, id := range ids {
		one := sampleStudy(id, "name-"+id)
		f.apply(t, journal.Change{Insert: &one, Trials: []journal.TrialWrite{
			{Trial: sampleTrial(id, 0, trial.Leased)}, {Trial: sampleTrial(id, 1, trial.Running)},
		}})
	}
}

// run is a test, or one run of a property: what fails in the latter comes with
// the calls that led there.
type run interface {
	Helper()
	Context() context.Context
	Fatalf(format string, args ...any)
}

// picture is everything the store shows, as text.
func (f fixture) picture(t run) string {
	t.Helper()
	p, err := Look(t.Context(), f.store)
	if err != nil {
		t.Fatalf("read the whole store: %v", err)
	}
	return p
}

func wantCode(t testing.TB, what string, err error, want problem.Code) {
	t.Helper()
	if !problem.Is(err, want) {
		t.Errorf("%s: got error %v, want one with the code %s", what, err, want)
	}
}

// same compares two values by their JSON: NaN equals NaN there, and -0 is not 0.
func same(t testing.TB, what string, got, want any) {
	t.Helper()
	if got, want := text(t, got), text(t, want); got != want {
		t.Errorf("%s is\n%s\nwant\n%s", what, got, want)
	}
}

func text(t run, value any) string {
	t.Helper()
	if already, ok := value.(string); ok {
		return already
	}
	data, err := json.MarshalIndent(value, "", " ")
	if err != nil {
		t.Fatalf("%v", err)
	}
	return string(data)
}
