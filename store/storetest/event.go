package storetest

import (
	"math"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/journal"
)

func eventChecks() []check {
	return []check{
		{"an event is read as it was written", eventRoundTrip},
		{"events come by sequence, from a place, up to a number", eventPages},
		{"a sequence is taken once", eventTaken},
		{"a trial has its own events", eventOfTrial},
		{"an event outlives the trial of another study that it names", eventOfAnotherStudysTrial},
	}
}

func eventRoundTrip(t *testing.T, f fixture) {
	f.seed(t, "s1")
	abroad := sampleEvent("s1", 3)
	abroad.At = moment(9).In(time.FixedZone("", 5*3600+2700))
	want := []journal.Event{sampleEvent("s1", 1), trialEvent("s1", 2, trialID("s1", 0)), abroad}
	f.apply(t, journal.Change{Events: want})
	got, err := f.store.Events(t.Context(), "s1", 0, 10)
	if err != nil || len(got) != len(want) {
		t.Fatalf("%d events: %v", len(got), err)
	}
	want[2].At = want[2].At.UTC()
	same(t, "the events", got, want)
	if string(got[1].Data) != string(want[1].Data) {
		t.Errorf("data %s became %s", want[1].Data, got[1].Data)
	}
	if got[0].Data != nil {
		t.Errorf("no data became %q", got[0].Data)
	}
	if !got[2].At.Equal(want[2].At) {
		t.Errorf("at %v, want %v", got[2].At, want[2].At)
	}
}

func eventPages(t *testing.T, f fixture) {
	f.seed(t, "s1", "s2")
	for _, sequence := range []int64{3, 1, 10, 2, 9} {
		f.apply(t, journal.Change{Events: []journal.Event{sampleEvent("s1", sequence)}})
	}
	for _, one := range []struct {
		name  string
		after int64
		limit int
		want  []int64
	}{
		{"all", 0, 100, []int64{1, 2, 3, 9, 10}},
		{"the first", 0, 2, []int64{1, 2}},
		{"the next", 2, 2, []int64{3, 9}},
		{"the last", 9, 2, []int64{10}},
		{"behind the last", 10, 2, nil},
		{"far behind", math.MaxInt64, 2, nil},
		{"behind one that is missing", 5, 1, []int64{9}},
		{"before the first", -7, 1, []int64{1}},
		{"none wanted", 0, 0, nil},
		{"fewer than none wanted", 0, -1, nil},
	} {
		t.Run(one.name, func(t *testing.T) {
			list, err := f.store.Events(t.Context(), "s1", one.after, one.limit)
			if err != nil {
				t.Fatal(err)
			}
			var got []int64
			for _, event := range list {
				got = append(got, event.Sequence)
			}
			same(t, "the sequences", got, one.want)
		})
	}
	if list, err := f.store.Events(t.Context(), "s2", 0, 10); err != nil || len(list) > 0 {
		t.Errorf("another study has %v, %v", list, err)
	}
}

func eventTaken(t *testing.T, f fixture) {
	f.seed(t, "s1", "s2")
	f.apply(t, journal.Change{Events: []journal.Event{sampleEvent("s1", 1)}})
	different := trialEvent("s1", 1, trialID("s1", 0))
	f.refuse(t, journal.Change{Events: []journal.Event{different}}, problem.Conflict)
	f.refuse(t, journal.Change{Events: []journal.Event{sampleEvent("s1", 2), sampleEvent("s1", 2)}}, problem.Conflict)
	f.refuse(t, journal.Change{Events: []journal.Event{sampleEvent("s1", 2), sampleEvent("s3", 1)}}, problem.NotFound)
	f.apply(t, journal.Change{Events: []journal.Event{sampleEvent("s2", 1), sampleEvent("s1", 2)}})
}

func eventOfTrial(t *testing.T, f fixture) {
	f.seed(t, "s1", "s2")
	first, second := trialID("s1", 0), trialID("s1", 1)
	f.apply(t, journal.Change{Events: []journal.Event{
		trialEvent("s1", 4, first), sampleEvent("s1", 3), trialEvent("s1", 1, first), trialEvent("s1", 2, second),
		trialEvent("s2", 1, trialID("s2", 0)),
	}})
	got, err := f.store.TrialEvents(t.Context(), "s1", first)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "the trial's events", got, []journal.Event{trialEvent("s1", 1, first), trialEvent("s1", 4, first)})
	if list, err := f.store.TrialEvents(t.Context(), "s2", trialID("s2", 1)); err != nil || len(list) > 0 {
		t.Errorf("a trial without events has %v, %v", list, err)
	}
	_, err = f.store.TrialEvents(t.Context(), "s2", first)
	wantCode(t, "the events of another study's trial", err, problem.NotFound)
	_, err = f.store.TrialEvents(t.Context(), "s1", "")
	wantCode(t, "the events of no trial", err, problem.NotFound)
}

func eventOfAnotherStudysTrial(t *testing.T, f fixture) {
	f.seed(t, "s1", "s2")
	named := trialID("s2", 0)
	f.apply(t, journal.Change{Events: []journal.Event{trialEvent("s1", 1, named), trialEvent("s2", 1, named)}})
	f.apply(t, journal.Change{Delete: "s2"})
	f.seed(t, "s2")
	if list, err := f.store.TrialEvents(t.Context(), "s2", named); err != nil || len(list) > 0 {
		t.Errorf("the trial that came again has %v, %v", list, err)
	}
	list, err := f.store.Events(t.Context(), "s1", 0, 10)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "the other study's events", list, []journal.Event{trialEvent("s1", 1, named)})
}
