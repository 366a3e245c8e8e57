package storetest

import (
	"encoding/json"
	"testing"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/journal"
)

func poolChecks() []check {
	return []check{
		{"an entry of the pool is read as it was written, and goes when it is removed", poolRoundTrip},
		{"entries of the pool come by name, each kind by itself", poolOrder},
		{"an entry of the pool is refused with the rest of its change", poolRefused},
	}
}

func samplePoolEntry(kind, name string) journal.PoolEntry {
	return journal.PoolEntry{Kind: kind, Name: name, Document: json.RawMessage(`{"b":1.0,  "a":"o'brien ☃"}`)}
}

// wantPool compares all entries of the kind.
func (f fixture) wantPool(t *testing.T, kind string, want ...journal.PoolEntry) {
	t.Helper()
	got, err := f.store.PoolEntries(t.Context(), kind)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "the entries of kind "+kind, append([]journal.PoolEntry{}, got...), append([]journal.PoolEntry{}, want...))
	for i := range got { // to the letter
		if string(got[i].Document) != string(want[i].Document) {
			t.Errorf("document %d is %s, want %s", i, got[i].Document, want[i].Document)
		}
	}
}

func poolRoundTrip(t *testing.T, f fixture) {
	f.wantPool(t, "quota")
	one := samplePoolEntry("quota", "o'brien ☃")
	f.apply(t, journal.Change{Pool: []journal.PoolEntry{one}})
	f.wantPool(t, "quota", one)
	one.Document = json.RawMessage(`{"trials":2}`)
	f.apply(t, journal.Change{Pool: []journal.PoolEntry{one}})
	f.wantPool(t, "quota", one)
	f.apply(t, journal.Change{Pool: []journal.PoolEntry{{Kind: "quota", Name: one.Name}, {Kind: "quota", Name: "nobody"}}})
	f.wantPool(t, "quota")
}

func poolOrder(t *testing.T, f fixture) {
	b, a, other := samplePoolEntry("quota", "b"), samplePoolEntry("quota", "a"), samplePoolEntry("drain", "a")
	f.apply(t, journal.Change{Pool: []journal.PoolEntry{b, other, a}})
	f.wantPool(t, "quota", a, b)
	f.wantPool(t, "drain", other)
	// What comes later in one change wins.
	f.apply(t, journal.Change{Pool: []journal.PoolEntry{{Kind: "drain", Name: "a"}, other, {Kind: "quota", Name: "a"}}})
	f.wantPool(t, "quota", b)
	f.wantPool(t, "drain", other)
}

func poolRefused(t *testing.T, f fixture) {
	kept, receipt := samplePoolEntry("quota", "kept"), pointer(sampleReceipt("key-1"))
	f.apply(t, journal.Change{Pool: []journal.PoolEntry{kept}, Receipt: receipt})
	f.refuse(t, journal.Change{Pool: []journal.PoolEntry{{Kind: "quota", Name: "kept"}, samplePoolEntry("quota", "new")}, Receipt: receipt}, problem.Conflict)
	f.wantPool(t, "quota", kept)
}
