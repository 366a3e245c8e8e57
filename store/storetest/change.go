package storetest

import (
	"context"
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/similarity"
	"github.com/tandem-tune/tandem/store/storetest/model"
	"github.com/tandem-tune/tandem/study/access"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/trial"
)

func changeChecks() []check {
	return []check{
		{"an empty store has nothing", changeEmptyStore},
		{"a change with every part is made whole", changeWhole},
		{"a change that fails at any part leaves nothing", changeNothing},
		{"the parts of a change are made in the order of its fields", changeOrder},
		{"nothing is shared with the caller", changeShared},
		{"a caller that gave up gets no answer and changes nothing", changeGivenUp},
	}
}

func changeEmptyStore(t *testing.T, f fixture) {
	for name, err := range f.lookUp(t, "s1") {
		wantCode(t, name, err, problem.NotFound)
	}
	f.apply(t, journal.Change{})
	same(t, "the empty store", f.picture(t), text(t, model.Blank()))
}

// everyPart is a change of the seeded studies s1 and s2 that uses every field.
func everyPart() journal.Change {
	inserted, updated := sampleStudy("s3", "name-s3"), sampleStudy("s1", "name-s1")
	updated.Status, updated.Reason = protocol.StudyPaused, "paused"
	leased := sampleTrial("s1", 0, trial.Running)
	leased.LeaseEpoch = 2
	return journal.Change{
		Insert: &inserted, Update: &updated, Delete: "s2",
		Trials: []journal.TrialWrite{
			{Trial: sampleTrial("s3", 0, trial.Queued)}, {Trial: sampleTrial("s1", 2, trial.Queued)},
			{Trial: leased, Guard: &journal.Guard{State: trial.Leased, LeaseEpoch: 1}},
		},
		Reports: []trial.Report{
			sampleReport(trialID("s3", 0), 0, 1), sampleReport(trialID("s1", 1), 0, 1), sampleReport(trialID("s1", 1), 0, 2),
		},
		Events: []journal.Event{
			sampleEvent("s3", 1), trialEvent("s1", 1, trialID("s1", 0)), sampleEvent("s1", 2),
		},
		Snapshot: &journal.Snapshot{Study: "s1", Sequence: 2, State: json.RawMessage(`[1]`)},
		Forget:   pointer("forgotten"),
		Records:  []similarity.Record{sampleRecord("r1", "forgotten", 1), sampleRecord("r2", "kept", 2)},
		Pool:     []journal.PoolEntry{samplePoolEntry("quota", "alice")},
		Receipt:  pointer(sampleReceipt("key-1")),
	}
}

func changeWhole(t *testing.T, f fixture) {
	f.seed(t, "s1", "s2")
	f.apply(t, journal.Change{Records: []similarity.Record{sampleRecord("r3", "forgotten", 1), sampleRecord("r4", "kept", 3)}})
	f.apply(t, everyPart())
	want := model.Blank()
	one := everyPart()
	want.Studies = []journal.Study{*one.Insert, *one.Update}
	want.Trials["s1"] = []trial.Trial{one.Trials[2].Trial, sampleTrial("s1", 1, trial.Running), one.Trials[1].Trial}
	want.Trials["s3"] = []trial.Trial{one.Trials[0].Trial}
	want.Reports["s3-0"], want.Reports["s1-1"] = one.Reports[:1], one.Reports[1:]
	want.Events["s3"], want.Events["s1"] = one.Events[:1], one.Events[1:]
	want.Told["s1-0"] = one.Events[1:2]
	want.Snapshots["s1"], want.Receipts["key-1"] = *one.Snapshot, *one.Receipt
	want.Pool["quota"] = one.Pool
	want.All = append(one.Records, sampleRecord("r4", "kept", 3))
	want.Truth["forgotten"], want.Truth["kept"] = want.All[:1], want.All[1:]
	same(t, "the store", f.picture(t), text(t, want))
}

func changeNothing(t *testing.T, f fixture) {
	f.seed(t, "s1", "s2")
	f.apply(t, journal.Change{Records: []similarity.Record{sampleRecord("r3", "forgotten", 1), sampleRecord("r2", "moves away", 3)}})
	f.fill(t, "s1", "key-2")
	fresh := func() journal.Change { // beyond what fill has taken already
		change := everyPart()
		change.Reports[1].Epoch, change.Reports[2].Epoch = 5, 6
		change.Events[1].Sequence, change.Events[2].Sequence, change.Snapshot.Sequence = 3, 4, 4
		return change
	}
	for _, one := range []struct {
		name  string
		spoil func(*journal.Change)
		want  problem.Code
	}{
		{"the inserted study", func(c *journal.Change) { c.Insert.ID = "s1" }, problem.Conflict},
		{"the updated study", func(c *journal.Change) { c.Update.ID = "s9" }, problem.NotFound},
		{"the deleted study", func(c *journal.Change) { c.Delete = "s9" }, problem.NotFound},
		{"an inserted trial", func(c *journal.Change) { c.Trials[2] = journal.TrialWrite{Trial: sampleTrial("s1", 2, trial.Queued)} }, problem.Conflict},
		{"a trial of a study that this change deletes", func(c *journal.Change) { c.Trials[1].Trial = sampleTrial("s2", 9, trial.Queued) }, problem.NotFound},
		{"a guard", func(c *journal.Change) { c.Trials[2].Guard.LeaseEpoch = 7 }, problem.LeaseLost},
		{"a report", func(c *journal.Change) { c.Reports[2].Trial = "s9-1" }, problem.NotFound},
		{"an event", func(c *journal.Change) { c.Events[2].Sequence = 3 }, problem.Conflict},
		{"an event of no study", func(c *journal.Change) { c.Events[2].Study = "s9" }, problem.NotFound},
		{"the snapshot", func(c *journal.Change) { c.Snapshot.Study = "s9" }, problem.NotFound},
		{"a record that is no number", func(c *journal.Change) { c.Records[1].Cells[0].LogSeconds = math.NaN() }, problem.Internal},
		{"the receipt, at the very last", func(c *journal.Change) { c.Receipt.Key = "key-2" }, problem.Conflict},
	} {
		t.Run(one.name, func(t *testing.T) {
			spoiled := fresh()
			one.spoil(&spoiled)
			f.refuse(t, spoiled, one.want)
		})
	}
	f.apply(t, fresh()) // nothing else was wrong with it
}

func changeOrder(t *testing.T, f fixture) {
	f.seed(t, "s1")
	replacement := sampleStudy("s2", "name-s1")
	// The name is not free yet when the study is inserted.
	f.refuse(t, journal.Change{Insert: &replacement, Delete: "s1"}, problem.Conflict)
	f.apply(t, journal.Change{Delete: "s1"})

	updated := sampleStudy("s2", "name-s1")
	updated.Reason = "updated by the same change"
	f.apply(t, journal.Change{Insert: &replacement, Update: &updated, Trials: []journal.TrialWrite{{Trial: sampleTrial("s2", 0, trial.Queued)}}})
	if got, err := f.store.Study(t.Context(), "s2"); err != nil || got.Reason != updated.Reason {
		t.Errorf("the study is %+v, %v", got, err)
	}
	f.apply(t, journal.Change{Insert: pointer(sampleStudy("s3", "short-lived")), Delete: "s3"})
	_, err := f.store.Study(t.Context(), "s3")
	wantCode(t, "Study", err, problem.NotFound)
}

func changeShared(t *testing.T, f fixture) {
	f.seed(t, "s1", "s2")
	mine := everyPart()
	f.apply(t, mine)
	before := f.picture(t)
	mine.Insert.Since, mine.Update.Status = nil, "changed"
	mine.Trials[0].Trial.Last["loss"] = 1
	mine.Trials[0].Trial.Results[0].Values[0] = 1
	mine.Reports[0].Metrics["accuracy"] = 1
	mine.Records[0].Cells[0].Epochs, mine.Records[1].Cells[0].Features["tree.cpu_user"] = 99, 99
	mine.Events[1].Data[1], mine.Snapshot.State[0], mine.Receipt.Answer[0] = 'x', 'x', 'x'
	same(t, "the store after its caller changed what it had given", f.picture(t), before)

	p, err := model.Take(t.Context(), f.store)
	if err != nil {
		t.Fatal(err)
	}
	*p.Studies[0].Since = time.Time{}
	p.Trials["s1"][0].Last["loss"] = 1
	p.Reports["s1-1"][0].Metrics["accuracy"] = 1
	p.Events["s1"][0].Data[1], p.Told["s1-0"][0].Data[1] = 'y', 'z'
	p.All[0].Cells[0].Epochs, p.Truth["kept"][0].Cells[0].Features["tree.cpu_user"] = 98, 98
	p.Snapshots["s1"].State[0], p.Receipts["key-1"].Answer[0] = 'y', 'y'
	same(t, "the store after its caller changed what it had got", f.picture(t), before)
}

func changeGivenUp(t *testing.T, f fixture) {
	f.seed(t, "s1", "s2")
	before := f.picture(t)
	gone, leave := context.WithCancel(t.Context())
	leave()
	store := f.store
	calls := map[string]func() error{
		"Apply":    func() error { return store.Apply(gone, everyPart()) },
		"Study":    func() error { _, err := store.Study(gone, "s1"); return err },
		"Studies":  func() error { _, err := store.Studies(gone); return err },
		"Trials":   func() error { _, err := store.Trials(gone, "s1"); return err },
		"Trial":    func() error { _, err := store.Trial(gone, "s1-0"); return err },
		"Reports":  func() error { _, err := store.Reports(gone, "s1-0"); return err },
		"Events":   func() error { _, err := store.Events(gone, "s1", 0, 1); return err },
		"Told":     func() error { _, err := store.TrialEvents(gone, "s1", "s1-0"); return err },
		"Snapshot": func() error { _, err := store.Snapshot(gone, "s1"); return err },
		"Receipt":  func() error { _, err := store.Receipt(gone, "key-1"); return err },
		"Records":  func() error { _, err := store.Records(gone, ""); return err },
		"Types":    func() error { _, err := store.RecordTypes(gone); return err },
		"Purge":    func() error { _, err := store.PurgeReceipts(gone, moment(59)); return err },
		"Append":   func() error { return store.AppendLog(gone, "s1-0", 1, 0, "text") },
		"Log":      func() error { _, err := store.Log(gone, "s1-0"); return err },
		"Insert":   func() error { return store.InsertToken(gone, access.Token{ID: "t1"}) },
		"Token":    func() error { _, err := store.Token(gone, "t1"); return err },
		"Tokens":   func() error { _, err := store.Tokens(gone); return err },
		"Bind":     func() error { return store.BindToken(gone, "t1", "rack-1") },
		"Use":      func() error { return store.UseToken(gone, "t1", moment(1)) },
		"Delete":   func() error { return store.DeleteToken(gone, "t1") },
	}
	for name, call := range calls {
		wantCode(t, name, call(), problem.Unavailable)
	}
	same(t, "the store", f.picture(t), before)
}
