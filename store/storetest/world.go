package storetest

import (
	"encoding/json"
	"maps"
	"math"
	"slices"

	"pgregory.net/rapid"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/store/storetest/model"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/trial"
)

// world draws changes of a small world, in which their parts meet each other
// and what is there. Most of what it draws fits what the model holds, so that
// most changes are accepted; the rest is drawn without a look at it.
type world struct{ model.Model }

// likely draws one of the fitting values, or now and then any of all.
func likely[T any](r *rapid.T, what string, fitting, all []T) T {
	if len(fitting) > 0 && rapid.IntRange(0, 29).Draw(r, what+" fits") > 0 {
		all = fitting
	}
	return rapid.SampledFrom(all).Draw(r, what)
}

// in is true so many times in twelve.
func in(r *rapid.T, times int, what string) bool {
	return rapid.IntRange(0, 11).Draw(r, what) >= 12-times
}

func secondOf(r *rapid.T) int { return rapid.IntRange(0, 3).Draw(r, "second") }

func studyIDs() []string { return []string{"a", "b", "c"} }

func trialIDs() []trial.ID {
	var list []trial.ID
	for _, id := range studyIDs() {
		for number := range 3 {
			list = append(list, trialID(id, number))
		}
	}
	return list
}

// present returns the studies there are.
func (w world) present() []string {
	var list []string
	for _, one := range w.Studies {
		list = append(list, one.ID)
	}
	return list
}

func (w world) someStudy(r *rapid.T) string { return likely(r, "study", w.present(), studyIDs()) }

func (w world) someTrial(r *rapid.T) trial.ID {
	return likely(r, "trial", slices.Sorted(maps.Keys(w.Trials)), trialIDs())
}

// with is the world in which the change was made, if it can be.
func (w world) with(change journal.Change) world {
	after, _ := w.Apply(change) // a part that is refused leaves the world as it was
	return world{after}
}

func (w world) change(r *rapid.T) journal.Change {
	var c journal.Change
	if in(r, 3, "behind") {
		c.Behind = &journal.Position{Study: w.someStudy(r), Sequence: rapid.Int64Range(0, 4).Draw(r, "newest")}
	}
	if len(w.Studies) == 0 || in(r, 2, "insert") {
		c.Insert = pointer(w.inserted(r))
		w = w.with(journal.Change{Insert: c.Insert})
	}
	if in(r, 2, "update") {
		c.Update = pointer(w.updated(r))
		if at := w.Study(c.Update.ID); at >= 0 && in(r, 3, "transfer") {
			c.Transfer, c.Update.Definition = true, w.Studies[at].Definition
			c.Update.Owner = rapid.SampledFrom([]string{"", "alice", "bob"}).Draw(r, "new owner")
			c.Update.Definition.Name = rapid.SampledFrom([]string{c.Update.Definition.Name, "a", "n"}).Draw(r, "new name")
		}
	}
	if in(r, 1, "delete") {
		c.Delete = w.someStudy(r)
		w = w.with(journal.Change{Delete: c.Delete})
	}
	for range rapid.IntRange(0, 2).Draw(r, "trials") {
		c.Trials = append(c.Trials, w.write(r))
		w = w.with(journal.Change{Trials: c.Trials[len(c.Trials)-1:]})
	}
	for range rapid.IntRange(0, 2).Draw(r, "reports") {
		c.Reports = append(c.Reports, w.report(r))
	}
	for range rapid.IntRange(0, 2).Draw(r, "events") {
		c.Events = append(c.Events, w.event(r))
		w = w.with(journal.Change{Events: c.Events[len(c.Events)-1:]})
	}
	if in(r, 3, "snapshot") {
		c.Snapshot = &journal.Snapshot{Study: w.someStudy(r), Sequence: rapid.Int64Range(0, 3).Draw(r, "at"), State: json.RawMessage(`{"n":1}`)}
	}
	if in(r, 1, "forget") {
		c.Forget = pointer(rapid.SampledFrom([]string{"", "x86", "arm"}).Draw(r, "forgotten"))
	}
	for range rapid.IntRange(0, 2).Draw(r, "records") {
		id, machine := rapid.SampledFrom([]string{"r1", "r2", "r3"}).Draw(r, "record"), rapid.SampledFrom([]string{"x86", "arm"}).Draw(r, "machine")
		c.Records = append(c.Records, sampleRecord(id, machine, secondOf(r)))
	}
	for range rapid.IntRange(0, 1).Draw(r, "architectures") {
		c.Architectures = append(c.Architectures, sampleArchitecture(rapid.SampledFrom([]string{"a1", "a2"}).Draw(r, "architecture"), secondOf(r)))
	}
	for range rapid.IntRange(0, 2).Draw(r, "pool") {
		one := samplePoolEntry(rapid.SampledFrom(model.PoolKinds()).Draw(r, "kind"), rapid.SampledFrom([]string{"alice", "bob"}).Draw(r, "entry"))
		if rapid.Bool().Draw(r, "removed") {
			one.Document = nil
		}
		c.Pool = append(c.Pool, one)
	}
	if in(r, 3, "receipt") {
		free := slices.DeleteFunc(model.Keys(), func(key string) bool { _, taken := w.Receipts[key]; return taken })
		c.Receipt = pointer(sampleReceipt(likely(r, "key", free, model.Keys())))
		c.Receipt.At = moment(secondOf(r))
	}
	return c
}

func (w world) inserted(r *rapid.T) journal.Study {
	ids, names := studyIDs(), []string{"a", "n", "o", "p"}
	free := slices.DeleteFunc(studyIDs(), func(id string) bool { return w.Study(id) >= 0 })
	one := w.updated(r)
	one.ID = likely(r, "id", free, ids)
	one.Owner = rapid.SampledFrom([]string{"", "alice", "bob"}).Draw(r, "owner")
	unused := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return slices.ContainsFunc(w.Studies, func(s journal.Study) bool { return s.Owner == one.Owner && s.Definition.Name == name })
	})
	one.Definition = definition.Definition{Name: likely(r, "name", unused, names)}
	one.Created = moment(secondOf(r))
	return one
}

func (w world) updated(r *rapid.T) journal.Study {
	one := journal.Study{
		ID:      w.someStudy(r),
		Status:  rapid.SampledFrom([]protocol.StudyStatus{protocol.StudyRunning, protocol.StudyPaused}).Draw(r, "status"),
		Reason:  rapid.StringMatching(`[ -~\n☃é]{0,8}`).Draw(r, "reason"),
		Created: moment(59),
	}
	if rapid.Bool().Draw(r, "annotated") {
		one.Annotation = trial.Annotation{Tags: []string{"baseline"}, Note: rapid.StringMatching(`[ -~☃]{0,8}`).Draw(r, "note")}
	}
	if rapid.Bool().Draw(r, "since") {
		one.Since = pointer(moment(secondOf(r)))
	}
	return one
}

// write draws a trial to insert or to replace.
func (w world) write(r *rapid.T) journal.TrialWrite {
	states := []trial.State{trial.Queued, trial.Leased}
	id := w.someStudy(r)
	t := sampleTrial(id, rapid.IntRange(0, 2).Draw(r, "number"), rapid.SampledFrom(states).Draw(r, "state"))
	t.LeaseEpoch = trial.LeaseEpoch(rapid.Int64Range(0, 2).Draw(r, "lease"))
	kept, there := w.Trials[t.ID]
	t.ID = likely(r, "id", []trial.ID{t.ID}, trialIDs())
	guards := []*journal.Guard{nil, {State: trial.Queued, LeaseEpoch: 1}, {State: trial.Leased, LeaseEpoch: 2}}
	right := []*journal.Guard{nil}
	if there {
		right = []*journal.Guard{{State: kept.State, LeaseEpoch: kept.LeaseEpoch}}
	}
	return journal.TrialWrite{Trial: t, Guard: likely(r, "guard", right, guards)}
}

func (w world) report(r *rapid.T) trial.Report {
	one := sampleReport(w.someTrial(r), rapid.IntRange(0, 1).Draw(r, "rung"), rapid.IntRange(1, 2).Draw(r, "epoch"))
	value := rapid.OneOf(rapid.Float64(), rapid.Just(math.NaN()), rapid.Just(math.Copysign(0, -1))).Draw(r, "loss")
	one.Metrics = map[string]trial.Float{"loss": trial.Float(value)}
	return one
}

func (w world) event(r *rapid.T) journal.Event {
	id, next := w.someStudy(r), int64(1)
	for _, event := range w.Events {
		if event.Study == id {
			next = max(next, event.Sequence+1)
		}
	}
	sequence := likely(r, "sequence", []int64{next, next + 3}, []int64{1, 2, 3, 4})
	if rapid.Bool().Draw(r, "about a trial") {
		return trialEvent(id, sequence, trialID(id, rapid.IntRange(0, 2).Draw(r, "number")))
	}
	return sampleEvent(id, sequence)
}
