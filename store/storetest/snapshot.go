package storetest

import (
	"encoding/json"
	"testing"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/journal"
)

func snapshotChecks() []check {
	return []check{{"the newest snapshot stays", snapshotNewest}}
}

func snapshotNewest(t *testing.T, f fixture) {
	f.seed(t, "s1", "s2")
	_, err := f.store.Snapshot(t.Context(), "s1")
	wantCode(t, "Snapshot before there is one", err, problem.NotFound)
	for _, one := range []struct {
		name           string
		sequence       int64
		written, stays string
	}{
		{"the first", 5, `{"step": 1}`, `{"step": 1}`},
		{"a newer one", 7, `{"step": 2}`, `{"step": 2}`},
		{"an older one comes late", 6, `{"step": 3}`, `{"step": 2}`},
		{"the same sequence again", 7, `{"step": 4}`, `{"step": 4}`},
		{"a much older one", -1, `{"step": 5}`, `{"step": 4}`},
		{"the newest", 8, `{"step": 6}`, `{"step": 6}`},
	} {
		t.Run(one.name, func(t *testing.T) {
			f.apply(t, journal.Change{Snapshot: &journal.Snapshot{Study: "s1", Sequence: one.sequence, State: json.RawMessage(one.written)}})
			got, err := f.store.Snapshot(t.Context(), "s1")
			if err != nil {
				t.Fatal(err)
			}
			if string(got.State) != one.stays || got.Study != "s1" {
				t.Errorf("the snapshot is %s of %s, want %s", got.State, got.Study, one.stays)
			}
		})
	}
	if last, err := f.store.Snapshot(t.Context(), "s1"); err != nil || last.Sequence != 8 {
		t.Errorf("the last snapshot has sequence %d, %v; want 8", last.Sequence, err)
	}
	_, err = f.store.Snapshot(t.Context(), "s2")
	wantCode(t, "Snapshot of another study", err, problem.NotFound)
	f.refuse(t, journal.Change{Snapshot: &journal.Snapshot{Study: "s3", State: json.RawMessage(`{}`)}}, problem.NotFound)
}
