package duties_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/store/memory"
	"github.com/tandem-tune/tandem/study/access"
	"github.com/tandem-tune/tandem/study/duties"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/study/registry"
	"github.com/tandem-tune/tandem/study/session"
	"github.com/tandem-tune/tandem/study/studyfile"
	"github.com/tandem-tune/tandem/workers/allocator"
	"github.com/tandem-tune/tandem/workers/approximation"
	"github.com/tandem-tune/tandem/workers/pool"
)

const term = time.Minute

// server is what duties look after, with a clock of its own.
type server struct {
	*testing.T
	duties.On
	now time.Time
}

func newServer(t *testing.T) *server {
	s := &server{T: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	clock, store, logger := func() time.Time { return s.now }, memory.New(), slog.New(slog.DiscardHandler)
	s.On = duties.On{
		Sessions:  registry.New(session.Options{Now: clock, Store: store, Logger: logger, Loaded: func(*session.Session) {}}, nil),
		Allocator: allocator.New(allocator.Options{Now: clock, Term: term}), Approximation: approximation.New(), Store: store, Logger: logger, Term: term,
	}
	return s
}

// study is the session of a new study that is running, with the lines in its file.
func (s *server) study(id string, lines ...string) *session.Session {
	s.Helper()
	file := "objective: {metric: accuracy, direction: maximize}\nspace: {x: {type: float, low: 0, high: 1}}\nname: " + id + "\n" + strings.Join(lines, "\n") + "\n"
	def, err := studyfile.Parse([]byte(file), studyfile.YAML)
	if err != nil {
		s.Fatal(err)
	}
	since := s.now
	stored := journal.Study{ID: id, Definition: def, Status: protocol.StudyRunning, Created: since, Since: &since}
	created := journal.Event{Study: id, Sequence: 1, At: since, Kind: journal.StudyCreated}
	if err := s.Store.Apply(s.Context(), journal.Change{Insert: &stored, Events: []journal.Event{created}}); err != nil {
		s.Fatal(err)
	}
	r, err := s.Sessions.Session(s.Context(), id)
	if err != nil {
		s.Fatal(err)
	}
	return r
}

// register registers the worker, which has one slot.
func (s *server) register(worker string) {
	s.Helper()
	registration := protocol.WorkerRegistration{ID: worker, Name: worker, Slots: 1, Machine: protocol.Machine{Cores: 4}}
	if err := s.Allocator.Register(access.Caller{}, registration); err != nil {
		s.Fatal(err)
	}
}

// must fails the test where a duty cannot be done.
func (s *server) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// want fails the test unless the study has the status.
func (s *server) want(r *session.Session, status protocol.StudyStatus, reason string) {
	s.Helper()
	if r.Study.Status != status || r.Study.Reason != reason {
		s.Errorf("after %v the study is %s (%s), want %s (%s)", s.now.Sub(r.Study.Created), r.Study.Status, r.Study.Reason, status, reason)
	}
}

func TestDeadlinesCountTheTimeThatAStudyRuns(t *testing.T) {
	s := newServer(t)
	r := s.study("short", "command: [train]", "stop: {seconds: 60}")
	other := s.study("endless", "command: [train]", "stop: {trials: 9}")
	s.now = s.now.Add(time.Minute - 1)
	s.must(duties.Deadlines{On: s.On}.Do(t.Context(), s.now))
	s.want(r, protocol.StudyRunning, "")
	s.now = s.now.Add(1)
	s.must(duties.Deadlines{On: s.On}.Do(t.Context(), s.now))
	s.want(r, protocol.StudyCompleted, "its time of 60 s is up, and no trial was measured")
	s.want(other, protocol.StudyRunning, "")
}

func TestAStudyRestsThatNobodyAsksFor(t *testing.T) {
	s := newServer(t)
	r, trained := s.study("scripted"), s.study("trained", "command: [train]")
	rest := duties.Rest{On: s.On}
	s.must(rest.Do(t.Context(), s.now))
	s.want(r, protocol.StudyRunning, "")
	s.register("worker-1")
	r.NoteAsker("worker-1", s.now)
	s.now = s.now.Add(term)
	s.Allocator.Excuse(access.Caller{}, "worker-1")
	s.must(rest.Do(t.Context(), s.now))
	s.want(r, protocol.StudyRunning, "")
	s.Allocator.Remove(access.Caller{}, "worker-1")
	s.must(rest.Those(t.Context(), func(*session.Session) bool { return false }))
	s.want(r, protocol.StudyRunning, "")
	s.must(rest.Do(t.Context(), s.now))
	s.want(r, protocol.StudyPaused, session.RestReason)
	if r.Study.Elapsed != term || r.Study.Since != nil {
		t.Errorf("its time is %v since %v", r.Study.Elapsed, r.Study.Since)
	}
	s.want(trained, protocol.StudyRunning, "")
}

func TestTrialsMakeWayForStudiesThatMayAsk(t *testing.T) {
	s := newServer(t)
	s.register("worker-1")
	low := s.study("low", "command: [train]")
	lease := pool.Lease{Trial: "low-0", Epoch: 1, Study: low.ID, Worker: "worker-1", Granted: s.now, Resumable: true}
	s.Allocator.Regrant([]pool.Lease{lease})
	s.study("urgent", "command: [train]", "priority: 1", "preempt: true")
	s.now = s.now.Add(term) // a trial is left alone when it has just begun
	s.Allocator.Excuse(access.Caller{}, "worker-1")
	duties.Preemption{On: s.On}.Do(s.now)
	if why := s.Allocator.PauseReason("low-0", 1, "worker-1"); !strings.Contains(why, "makes way for study urgent") {
		t.Errorf("the trial in its way is told %q", why)
	}
}

func TestWhoWaitsIsWokenWhenATrialHasRested(t *testing.T) {
	s := newServer(t)
	r := s.study("lost", "command: [train]")
	r.Resting = map[int]time.Time{0: s.now.Add(time.Second)}
	changed := s.Sessions.Changes()
	woken := func() bool {
		select {
		case <-changed:
			return true
		default:
			return false
		}
	}
	if (duties.Wake{On: s.On}).Do(s.now); woken() {
		t.Error("they are woken while it rests")
	}
	if (duties.Wake{On: s.On}).Do(s.now.Add(time.Second)); !woken() {
		t.Error("they sleep on")
	}
}

func TestAStudyThatIsOverLeavesTheMemoryUnused(t *testing.T) {
	s := newServer(t)
	r := s.study("over", "command: [train]")
	eviction := duties.Eviction{On: s.On}
	s.now = s.now.Add(time.Hour)
	if eviction.Do(s.now); r.Stale {
		t.Fatal("it is dropped while it runs")
	}
	if _, err := s.Sessions.Change(t.Context(), r.ID, func(tx *session.Transaction, _ journal.Study) error {
		return tx.Conclude(protocol.StudyStopped, "stopped by a user")
	}); err != nil {
		t.Fatal(err)
	}
	if eviction.Do(s.now); r.Stale {
		t.Error("it is dropped at once")
	}
	if eviction.Do(s.now.Add(time.Hour)); !r.Stale || r.Trials != nil {
		t.Error("it stays for ever")
	}
	if view, err := s.Sessions.Summary(t.Context(), r.ID); err != nil || view.Status != protocol.StudyStopped {
		t.Errorf("lists show %+v, %v", view, err)
	}
}

// full is a store whose disk is full.
type full struct {
	journal.Store
	applied int
}

func (f *full) Apply(context.Context, journal.Change) error {
	f.applied++
	return errors.New("the disk is full")
}

func TestWhatTrainingsTookIsKeptUntilItIsStored(t *testing.T) {
	s := newServer(t)
	store := &full{Store: s.Store}
	s.Store = store
	approximate := duties.Approximation{On: s.On}
	s.must(approximate.Save(t.Context(), s.now, true))
	if store.applied != 0 {
		t.Fatal("nothing is stored though nothing is new")
	}
	entry := journal.PoolEntry{Kind: approximation.ResponsesEntry, Name: "study", Document: json.RawMessage("{}")}
	s.Approximation.Again([]journal.PoolEntry{entry})
	for range 2 {
		if err := approximate.Save(t.Context(), s.now, true); err == nil {
			t.Error("nobody hears that it was not stored")
		}
	}
	if store.applied != 2 {
		t.Errorf("it was tried %d times, want twice", store.applied)
	}
}
