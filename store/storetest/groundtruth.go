package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/similarity"
	"github.com/tandem-tune/tandem/study/journal"
)

func recordChecks() []check {
	return []check{
		{"a record is read as it was written", recordRoundTrip},
		{"a record's later write replaces the earlier one", recordUpsert},
		{"records come the oldest first", recordOrder},
		{"a type of machine keeps its newest records", recordBound},
		{"a study is deleted without what it taught", recordOutlivesStudy},
		{"records are forgotten by the type of machine", recordForget},
	}
}

// learn writes the records, in one change.
func (f fixture) learn(t *testing.T, records ...similarity.Record) {
	t.Helper()
	f.apply(t, journal.Change{Records: records})
}

// wantTruth compares the ids of a type's records.
func (f fixture) wantTruth(t *testing.T, machine string, want ...string) {
	t.Helper()
	list, err := f.store.Records(t.Context(), machine)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, one := range list {
		ids = append(ids, one.ID)
	}
	same(t, fmt.Sprintf("the records of %q", machine), ids, want)
}

func (f fixture) wantTypes(t *testing.T, want ...string) {
	t.Helper()
	types, err := f.store.RecordTypes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	same(t, "the types of machine", append([]string{}, types...), append([]string{}, want...))
}

func recordRoundTrip(t *testing.T, f fixture) {
	f.wantTypes(t)
	f.wantTruth(t, "")
	f.wantTruth(t, "x86")
	elsewhere, empty := sampleRecord("r1", "Intel(R) Xeon(R) ☃ 'quoted', 8 cores", 1), similarity.Record{ID: "r2", Machine: "x86"}
	elsewhere.Updated = elsewhere.Updated.In(time.FixedZone("", 5*3600+1800))
	f.learn(t, elsewhere, empty)
	for _, want := range []similarity.Record{elsewhere, empty} {
		want.Updated = want.Updated.UTC()
		list, err := f.store.Records(t.Context(), want.Machine)
		if err != nil {
			t.Fatal(err)
		}
		same(t, "the records", list, []similarity.Record{want})
	}
	f.wantTypes(t, elsewhere.Machine, "x86")
	f.wantTruth(t, "x8")
	f.wantTruth(t, "%")
}

func recordUpsert(t *testing.T, f fixture) {
	f.learn(t, sampleRecord("r1", "x86", 5), sampleRecord("r2", "x86", 6))
	later, older := sampleRecord("r1", "x86", 7), sampleRecord("r2", "x86", 1)
	later.Cells, older.Cells = later.Cells[:1], nil
	f.learn(t, later)
	f.learn(t, sampleRecord("r2", "x86", 9), older) // by the order of writing, not by the time in it
	list, err := f.store.Records(t.Context(), "x86")
	if err != nil {
		t.Fatal(err)
	}
	same(t, "the records", list, []similarity.Record{older, later})
	f.learn(t, sampleRecord("r1", "arm", 8))
	f.wantTruth(t, "x86", "r2")
	f.wantTruth(t, "arm", "r1")
}

func recordOrder(t *testing.T, f fixture) {
	nearly := sampleRecord("nearly", "x86", 3)
	nearly.Updated = nearly.Updated.Add(1)
	f.learn(t, sampleRecord("b", "x86", 3), nearly, sampleRecord("newest", "x86", 4), sampleRecord("other", "arm", 2))
	f.learn(t, sampleRecord("a", "x86", 3), sampleRecord("oldest", "x86", 1), sampleRecord("B", "x86", 3))
	f.wantTruth(t, "x86", "oldest", "B", "a", "b", "nearly", "newest")
	f.wantTruth(t, "", "oldest", "other", "B", "a", "b", "nearly", "newest")
}

func recordBound(t *testing.T, f fixture) {
	numbered := func(number int) similarity.Record {
		return similarity.Record{ID: fmt.Sprintf("r%05d", number), Machine: "x86", Updated: moment(0).Add(time.Duration(number))}
	}
	var many []similarity.Record
	for number := range journal.MaxRecords {
		many = append(many, numbered(number))
	}
	f.learn(t, append(many, sampleRecord("other", "arm", 0))...)
	count := func(first, last int) {
		t.Helper()
		list, err := f.store.Records(t.Context(), "x86")
		if err != nil || len(list) != journal.MaxRecords {
			t.Fatalf("%d records are kept, want %d: %v", len(list), journal.MaxRecords, err)
		}
		if got, want := []string{list[0].ID, list[len(list)-1].ID}, []string{numbered(first).ID, numbered(last).ID}; got[0] != want[0] || got[1] != want[1] {
			t.Errorf("the oldest and the newest kept are %v, want %v", got, want)
		}
	}
	count(0, journal.MaxRecords-1)

	// One that goes on takes no room, at any age.
	f.learn(t, numbered(0), numbered(5))
	count(0, journal.MaxRecords-1)
	renewed := numbered(3)
	renewed.Updated = moment(0).Add(time.Duration(journal.MaxRecords))
	f.learn(t, renewed, numbered(journal.MaxRecords+1))
	count(1, journal.MaxRecords+1)

	// What is refused with the rest of its change makes no room.
	receipt := pointer(sampleReceipt("key-1"))
	f.apply(t, journal.Change{Receipt: receipt})
	f.refuse(t, journal.Change{Records: []similarity.Record{numbered(journal.MaxRecords + 2)}, Receipt: receipt}, problem.Conflict)
	count(1, journal.MaxRecords+1)

	// One older than all that are kept is not kept.
	f.learn(t, numbered(-1))
	count(1, journal.MaxRecords+1)
	f.learn(t, numbered(journal.MaxRecords+2), numbered(journal.MaxRecords+3)) // 3 is among the newest
	count(4, journal.MaxRecords+3)
	f.wantTruth(t, "arm", "other")

	// One that comes from another type of machine takes room as well.
	moved := numbered(journal.MaxRecords + 4)
	moved.ID = "other"
	f.learn(t, moved)
	list, err := f.store.Records(t.Context(), "x86")
	if err != nil || len(list) != journal.MaxRecords || list[len(list)-1].ID != "other" {
		t.Errorf("%d records are kept, want %d: %v", len(list), journal.MaxRecords, err)
	}
}

func recordOutlivesStudy(t *testing.T, f fixture) {
	f.seed(t, "s1")
	f.apply(t, journal.Change{Events: []journal.Event{sampleEvent("s1", 1)}, Records: []similarity.Record{sampleRecord("r1", "x86", 1)}})
	f.apply(t, journal.Change{Delete: "s1", Records: []similarity.Record{sampleRecord("r2", "x86", 2)}})
	f.wantTruth(t, "x86", "r1", "r2")
}

func recordForget(t *testing.T, f fixture) {
	f.learn(t, sampleRecord("r1", "x86", 1), sampleRecord("r2", "arm", 2), sampleRecord("r3", "x86", 3))
	f.apply(t, journal.Change{Forget: pointer("riscv")})
	f.wantTypes(t, "arm", "x86")
	// What is written with it is new.
	f.apply(t, journal.Change{Forget: pointer("x86"), Records: []similarity.Record{sampleRecord("r3", "x86", 4), sampleRecord("r4", "x86", 5)}})
	f.wantTruth(t, "", "r2", "r3", "r4")
	f.apply(t, journal.Change{Forget: pointer("")})
	f.wantTypes(t)
	f.wantTruth(t, "")
}
