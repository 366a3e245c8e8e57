package sqlite_test

import (
	"testing"

	"github.com/tandem-tune/tandem/similarity"
	"github.com/tandem-tune/tandem/store/sqlite"
	"github.com/tandem-tune/tandem/study"
)

func TestDatabaseOfAnEarlierVersionIsBroughtUpToDate(t *testing.T) {
	t.Parallel()
	path := fresh(t)
	if err := sqlite.MakeOld(t.Context(), path, 1); err != nil {
		t.Fatal(err)
	}
	old := raw(t, path)
	execute(t, old,
		`INSERT INTO study (id, name, definition, status, reason, created, elapsed) VALUES
			('s1', 'as before', '{"name":"as before"}', 'paused', 'because', '2026-01-02T03:04:05.000000006Z', 7)`,
		`INSERT INTO event (study, sequence, at, kind, trial, state, worker, reason, data) VALUES
			('s1', 1, '2026-01-02T03:04:05.000000006Z', 'status', '', 'paused', '', 'because', '')`)
	var tables int
	if err := old.QueryRowContext(t.Context(), "SELECT count(*) FROM sqlite_schema WHERE name = 'ground_truth'").Scan(&tables); err != nil || tables != 0 {
		t.Fatalf("the database of version 1 has the newer table %d times: %v", tables, err)
	}
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	for round := range 2 {
		store := open(t, path)
		got, err := store.Study(t.Context(), "s1")
		if err != nil || got.Definition.Name != "as before" || got.Reason != "because" || got.Elapsed != 7 {
			t.Errorf("the study is %+v, %v", got, err)
		}
		if events, err := store.Events(t.Context(), "s1", 0, 10); err != nil || len(events) != 1 {
			t.Errorf("%d events of 1: %v", len(events), err)
		}
		records, err := store.Records(t.Context(), "")
		if err != nil || len(records) != round {
			t.Errorf("%d records of %d: %v", len(records), round, err)
		}
		apply(t, store, study.Change{Records: []similarity.Record{{ID: "r1", Machine: "x86"}}})
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
