package storetest

import (
	"math"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/store/storetest/model"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/trial"
)

func studyChecks() []check {
	return []check{
		{"a study is read as it was written", studyRoundTrip},
		{"a study is found by its id before its name", studyByReference},
		{"names and ids of studies are unique", studyUnique},
		{"each owner has names of its own", studyOwners},
		{"an update replaces a study's status and nothing else", studyUpdate},
		{"a transfer gives a study to another owner", studyTransfer},
		{"limits stand beside a study's definition", studyExtended},
		{"studies come the newest first", studyOrder},
		{"a study is deleted with all that belongs to it", studyDelete},
	}
}

func studyRoundTrip(t *testing.T, f fixture) {
	for name, one := range map[string]journal.Study{
		"all-fields": {
			ID: "s1", Owner: "alice", Definition: full(t, "all-fields"), Status: protocol.StudyFailed, Reason: "reason ☃ 'quoted'", Created: moment(0),
			Elapsed: time.Hour + time.Nanosecond, Since: pointer(moment(1)), Finished: pointer(moment(2)),
			Annotation: trial.Annotation{Tags: []string{"baseline", "ünïcode"}, Note: "o'brien says\n\t☃"},
			Changes:    journal.Changes{Stop: &definition.Stop{Trials: 7, Seconds: math.Nextafter(0.1, 1), Joules: 1e300, TargetReached: true}, SetRequest: protocol.SetRequest{Priority: pointer(-7), Parallel: pointer(0)}},
		},
		"no-optional-field": {ID: "s2", Definition: full(t, "no-optional-field"), Status: protocol.StudyPaused, Created: moment(3)},
		"other-time-zone": {
			ID: "s3", Definition: full(t, "other-time-zone"), Status: protocol.StudyRunning,
			Created: moment(4).In(time.FixedZone("", -7*3600-1800)),
		},
		"before-1970": {ID: "s4", Definition: full(t, "before-1970"), Status: protocol.StudyRunning, Created: time.Time{}.Add(1)},
	} {
		t.Run(name, func(t *testing.T) {
			f.apply(t, journal.Change{Insert: &one})
			one.Created = one.Created.UTC()
			for _, ref := range []string{one.ID, one.Reference()} {
				got, err := f.store.Study(t.Context(), ref)
				if err != nil {
					t.Fatal(err)
				}
				same(t, "the study", got, one)
				if !got.Created.Equal(one.Created) || got.Created.Location() != time.UTC {
					t.Errorf("created %v, want %v", got.Created, one.Created)
				}
			}
		})
	}
}

func studyByReference(t *testing.T, f fixture) {
	f.seed(t, "s1")
	confusing := sampleStudy("s2", "s1")
	f.apply(t, journal.Change{Insert: &confusing})
	for ref, want := range map[string]string{"s1": "s1", "s2": "s2", "name-s1": "s1"} {
		if got, err := f.store.Study(t.Context(), ref); err != nil || got.ID != want {
			t.Errorf("Study(%q) is %q, %v; want %q", ref, got.ID, err, want)
		}
	}
	for _, ref := range []string{"", "s3", "S1", "name-s", "name-s1 ", "%", "' OR 1=1 --"} {
		_, err := f.store.Study(t.Context(), ref)
		wantCode(t, "Study("+ref+")", err, problem.NotFound)
	}
}

func studyUnique(t *testing.T, f fixture) {
	f.seed(t, "s1")
	for _, taken := range []journal.Study{sampleStudy("s1", "other"), sampleStudy("s2", "name-s1"), sampleStudy("s1", "name-s1")} {
		f.refuse(t, journal.Change{Insert: &taken}, problem.Conflict)
	}
	fine := sampleStudy("s2", "Name-s1")
	f.apply(t, journal.Change{Insert: &fine})
}

func studyOwners(t *testing.T, f fixture) {
	f.seed(t, "s1")
	for id, owner := range map[string]string{"s2": "alice", "s3": "bob"} {
		one := sampleStudy(id, "name-s1")
		one.Owner = owner
		f.apply(t, journal.Change{Insert: &one})
		again := sampleStudy("s4", "name-s1")
		again.Owner = owner
		f.refuse(t, journal.Change{Insert: &again}, problem.Conflict)
	}
	for ref, want := range map[string]string{"name-s1": "", "alice:name-s1": "alice", "bob:name-s1": "bob"} {
		if got, err := f.store.Study(t.Context(), ref); err != nil || got.Owner != want || got.Definition.Name != "name-s1" {
			t.Errorf("Study(%q) is %q of %q, %v", ref, got.Definition.Name, got.Owner, err)
		}
	}
	update := sampleStudy("s2", "name-s1") // without the owner: an update replaces none
	f.apply(t, journal.Change{Update: &update})
	if got, err := f.store.Study(t.Context(), "s2"); err != nil || got.Owner != "alice" {
		t.Errorf("after an update it is %q's: %v", got.Owner, err)
	}
	f.apply(t, journal.Change{Delete: "s2"})
	_, err := f.store.Study(t.Context(), "alice:name-s1")
	wantCode(t, "a deleted study by its reference", err, problem.NotFound)
	free := sampleStudy("s5", "name-s1")
	free.Owner = "alice"
	f.apply(t, journal.Change{Insert: &free})
}

func studyUpdate(t *testing.T, f fixture) {
	want := journal.Study{ID: "s1", Definition: full(t, "first"), Status: protocol.StudyRunning, Created: moment(0), Since: pointer(moment(1))}
	other := sampleStudy("s2", "second")
	f.apply(t, journal.Change{Insert: &want})
	f.apply(t, journal.Change{Insert: &other})
	update := journal.Study{
		ID: "s1", Definition: full(t, "renamed"), Created: moment(40),
		Status: protocol.StudyCompleted, Reason: "60 trials", Elapsed: 7, Finished: pointer(moment(9)),
		Annotation: trial.Annotation{Tags: []string{"paper"}},
	}
	f.apply(t, journal.Change{Update: &update})
	want.Status, want.Reason, want.Elapsed, want.Since, want.Finished, want.Annotation = update.Status, update.Reason, update.Elapsed, nil, update.Finished, update.Annotation
	for _, want := range []journal.Study{want, other} {
		got, err := f.store.Study(t.Context(), want.ID)
		if err != nil {
			t.Fatal(err)
		}
		same(t, "the study", got, want)
	}
	missing := sampleStudy("s3", "first")
	f.refuse(t, journal.Change{Update: &missing}, problem.NotFound)
}

// The study is its new owner's from then on; who has one of its name gets none.
func studyTransfer(t *testing.T, f fixture) {
	f.seed(t, "s1")
	other := sampleStudy("s2", "name-s1")
	other.Owner = "bob"
	f.apply(t, journal.Change{Insert: &other})
	want, err := f.store.Study(t.Context(), "s1")
	if err != nil {
		t.Fatal(err)
	}
	want.Owner = "bob"
	f.refuse(t, journal.Change{Update: &want, Transfer: true}, problem.Conflict)
	want.Owner, want.Reason = "alice", "transferred"
	f.apply(t, journal.Change{Update: &want, Transfer: true})
	f.apply(t, journal.Change{Update: &want, Transfer: true}) // whose it is already
	for _, ref := range []string{"s1", "alice:name-s1"} {
		got, err := f.store.Study(t.Context(), ref)
		if err != nil {
			t.Fatal(err)
		}
		same(t, "the study", got, want)
	}
	_, err = f.store.Study(t.Context(), "name-s1")
	wantCode(t, "the study by its old reference", err, problem.NotFound)
	free := sampleStudy("s3", "name-s1")
	f.apply(t, journal.Change{Insert: &free})
	want.Owner = ""
	f.refuse(t, journal.Change{Update: &want, Transfer: true}, problem.Conflict)
	want.Definition.Name = "renamed"
	f.apply(t, journal.Change{Update: &want, Transfer: true})
	got, err := f.store.Study(t.Context(), "renamed")
	if err != nil {
		t.Fatal(err)
	}
	same(t, "the study", got, want)
	f.apply(t, journal.Change{Delete: "s1"})
	f.refuse(t, journal.Change{Update: &want, Transfer: true}, problem.NotFound)
}

// The limits of an extended study stand beside its definition, until they are replaced.
func studyExtended(t *testing.T, f fixture) {
	want := sampleStudy("s1", "first")
	f.apply(t, journal.Change{Insert: &want})
	for i, limits := range []*definition.Stop{{Trials: 12}, {Trials: 12, Seconds: 3600, Failures: 5}, nil} {
		want.Stop, want.Priority, want.Parallel = limits, pointer(1-i), pointer(i)
		f.apply(t, journal.Change{Update: &want})
		got, err := f.store.Study(t.Context(), "s1")
		if err != nil {
			t.Fatal(err)
		}
		same(t, "the study", got, want)
		if def := got.InForce().Definition; def.Priority != 1-i || def.Parallel != i {
			t.Errorf("priority %d and parallel %d are in force, not %d and %d", def.Priority, def.Parallel, 1-i, i)
		}
		if limits != nil && got.InForce().Definition.Stop != *limits || limits == nil && got.InForce().Definition.Stop != want.Definition.Stop {
			t.Errorf("the limits in force are %+v", got.InForce().Definition.Stop)
		}
	}
}

func studyOrder(t *testing.T, f fixture) {
	for _, one := range []struct {
		id      string
		created time.Time
	}{
		{"middle", moment(2)}, {"newest", moment(3)}, {"oldest", moment(1)},
		{"middle, later inserted", moment(2)}, {"a nanosecond newer", moment(3).Add(1)},
	} {
		inserted := sampleStudy(one.id, "name of "+one.id)
		inserted.Created = one.created
		f.apply(t, journal.Change{Insert: &inserted})
	}
	list, err := f.store.Studies(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, one := range list {
		ids = append(ids, one.ID)
	}
	same(t, "the order", ids, []string{"a nanosecond newer", "newest", "middle, later inserted", "middle", "oldest"})
}

func studyDelete(t *testing.T, f fixture) {
	f.seed(t, "kept")
	f.fill(t, "kept", model.Keys()[0])
	kept := f.picture(t)
	f.seed(t, "gone")
	f.fill(t, "gone", model.Keys()[1])
	f.apply(t, journal.Change{Delete: "gone"})
	for name, err := range f.lookUp(t, "gone") {
		wantCode(t, name+" of a deleted study", err, problem.NotFound)
	}
	f.refuse(t, journal.Change{Delete: "gone"}, problem.NotFound)
	f.refuse(t, journal.Change{Delete: "name-kept"}, problem.NotFound) // a name is no id
	got, err := model.Take(t.Context(), f.store)
	if err != nil {
		t.Fatal(err)
	}
	if _, there := got.Receipts[model.Keys()[1]]; !there {
		t.Error("the answer of a call is gone with the study: the call could not be repeated")
	}
	delete(got.Receipts, model.Keys()[1])
	same(t, "what was not deleted", text(t, got), kept)

	f.seed(t, "gone") // under the same id and name nothing of the old one comes back
	fresh, err := model.Take(t.Context(), f.store)
	if err != nil {
		t.Fatal(err)
	}
	id := trialID("gone", 1)
	if len(fresh.Reports[id])+len(fresh.Events["gone"])+len(fresh.Told[id])+len(fresh.Logs[id]) > 0 || fresh.Snapshots["gone"].Sequence > 0 {
		t.Errorf("something of the deleted study came back: %s", text(t, fresh))
	}
}

// fill gives a seeded study something of everything.
func (f fixture) fill(t *testing.T, id, key string) {
	t.Helper()
	f.apply(t, journal.Change{
		Reports:  []trial.Report{sampleReport(trialID(id, 0), 0, 1), sampleReport(trialID(id, 1), 0, 1)},
		Events:   []journal.Event{sampleEvent(id, 1), trialEvent(id, 2, trialID(id, 0))},
		Snapshot: &journal.Snapshot{Study: id, Sequence: 2, State: []byte(`{"n":1}`)},
		Receipt:  pointer(sampleReceipt(key)),
	})
	if err := f.store.AppendLog(t.Context(), trialID(id, 1), 1, 0, "line\n"); err != nil {
		t.Fatal(err)
	}
}

// lookUp asks for everything of a study and its trial 0.
func (f fixture) lookUp(t *testing.T, id string) map[string]error {
	t.Helper()
	ctx, errs := t.Context(), map[string]error{}
	_, errs["Study"] = f.store.Study(ctx, id)
	_, errs["Trials"] = f.store.Trials(ctx, id)
	_, errs["Trial"] = f.store.Trial(ctx, trialID(id, 0))
	_, errs["Reports"] = f.store.Reports(ctx, trialID(id, 0))
	_, errs["Events"] = f.store.Events(ctx, id, 0, 10)
	_, errs["TrialEvents"] = f.store.TrialEvents(ctx, id, trialID(id, 0))
	_, errs["Snapshot"] = f.store.Snapshot(ctx, id)
	_, errs["Log"] = f.store.Log(ctx, trialID(id, 0))
	errs["AppendLog"] = f.store.AppendLog(ctx, trialID(id, 0), 1, 0, "x")
	return errs
}
