package study_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study"
	"github.com/tandem-tune/tandem/study/access"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/study/session"
	"github.com/tandem-tune/tandem/trial"
)

// among lets the world have these users.
func (w *world) among(users ...string) {
	w.t.Helper()
	there := map[string]bool{}
	for _, name := range users {
		there[name] = true
	}
	w.service = study.New(w.store, w.logs, study.Options{Now: time.Now, Random: w.random.Uint64, LeaseSeconds: 60, HeartbeatSeconds: 10,
		Users: func(context.Context) (map[string]bool, error) { return there, nil }})
	if err := w.service.Start(w.ctx); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) transfer(ref, owner string) error {
	_, err := w.service.Transfer(w.ctx, ref, protocol.Ownership{Owner: owner})
	return err
}

// uses is what the user's trials have of the pool.
func (w *world) uses(user string) protocol.PoolUse {
	w.t.Helper()
	for _, view := range w.quotas() {
		if view.User == user {
			return view.Uses
		}
	}
	return protocol.PoolUse{}
}

// A study is its new owner's in everything, also after a restart; what was used before
// stays with who had it. Without a transfer, the placebo, it stays hers.
func TestATransferredStudyIsItsNewOwners(t *testing.T) {
	for name, owner := range map[string]string{"transferred": "bob", "kept": "ada"} {
		t.Run(name, in(func(t *testing.T, w *world) {
			w.among("ada", "bob")
			for _, one := range []string{"ada", "bob"} {
				if _, err := w.service.SetQuota(w.ctx, one, protocol.Quota{JoulesADay: 1000}); err != nil {
					t.Fatal(err)
				}
			}
			ada, bob := w.as(user("ada")), w.as(user("bob"))
			created := ada.create()
			if _, err := w.service.Reserve(w.ctx, protocol.ReservationRequest{Study: created.ID, Worker: "worker-9", To: time.Now().Add(time.Hour)}); err != nil {
				t.Fatal(err)
			}
			w.register("worker-1", "worker-2")
			lease := w.mustLease("worker-1")
			w.mustReport(lease, lease.FirstEpoch)
			second := w.mustLease("worker-2")
			if owner == "bob" {
				view, err := w.service.Transfer(w.ctx, "ada:example", protocol.Ownership{Owner: owner})
				if err != nil || view.Owner != "bob" || view.ID != created.ID || view.Status != protocol.StudyRunning {
					t.Fatalf("%+v, %v", view, err)
				}
			}
			its := map[string]*world{"ada": ada, "bob": bob}[owner]
			other := map[string]*world{"ada": bob, "bob": ada}[owner]
			look := func(when string) {
				t.Helper()
				for _, ref := range []string{"example", created.ID, owner + ":example"} {
					if view := its.view(ref); view.ID != created.ID || view.Owner != owner {
						t.Errorf("%s, by %s it is %s of %s", when, ref, view.ID, view.Owner)
					}
				}
				for _, ref := range []string{"example", created.ID, owner + ":example"} {
					if _, err := other.service.Study(other.ctx, ref); !problem.Is(err, problem.NotFound) {
						t.Errorf("%s, the other finds it by %s: %v", when, ref, err)
					}
				}
				if list, err := other.service.Studies(other.ctx); err != nil || len(list) != 0 {
					t.Errorf("%s, the other lists %d studies, %v", when, len(list), err)
				}
				for at, want := range map[*world]string{its: owner + ":example", other: ""} {
					if kept, err := at.service.Reservations(at.ctx); err != nil || len(kept) != 1 || kept[0].Study != want {
						t.Errorf("%s, a worker is kept for %+v, want %q: %v", when, kept, want, err)
					}
				}
				for _, one := range []string{"ada", "bob"} {
					held, joules := 0, 0.0
					if one == owner {
						held = 2
					}
					if one == "ada" {
						joules = 3
					}
					if got := w.uses(one); got.Trials != held || got.JoulesToday != joules {
						t.Errorf("%s, %s holds %d trials and has used %g J, want %d and %g", when, one, got.Trials, got.JoulesToday, held, joules)
					}
				}
			}
			look("at once")
			w.sleep(2 * time.Second) // what was used is stored
			w.among("ada", "bob")
			w.register("worker-1", "worker-2")
			ada.service, bob.service = w.service, w.service
			look("after a restart")
			w.train(second)
			want := 3 * float64(second.Budget.Epochs)
			if owner == "ada" {
				want += 3
			}
			if got := w.uses(owner).JoulesToday; got != want {
				t.Errorf("of what was used since, %s has %g J, want %g", owner, got, want)
			}
			checkTransferLog(t, w, created.ID, owner == "bob")
		}))
	}
}

// checkTransferLog checks that the log says so, and replays.
func checkTransferLog(t *testing.T, w *world, id string, told bool) {
	t.Helper()
	events, err := w.store.Events(w.ctx, id, 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(events, func(e journal.Event) bool { return e.Kind == journal.Transferred })
	if (at >= 0) != told || told && (string(events[at].Data) != `{"owner":"bob","name":"example"}` || events[at].Reason != "from ada to bob, by admin") {
		t.Errorf("the log has it at %d of %d: %+v", at, len(events), events)
	}
	if n, err := session.Replay(w.view(id).Definition, events); err != nil || n < 2 {
		t.Errorf("%d decisions come out the same: %v", n, err)
	}
}

// A worker of hers loses its trial at once, with what it had reported, and nothing is held
// against the trial. A worker for all users, and a study that stays hers, the placebos, go on.
func TestAWorkerOfWhoHadTheStudyLosesItsTrial(t *testing.T) {
	for name, c := range map[string]struct {
		worker func(w, ada *world) *world
		owner  string
		loses  bool
	}{
		"hers": {func(_, ada *world) *world { return ada }, "bob", true},
		"her launcher's": {func(w, _ *world) *world {
			return w.as(access.Caller{Owner: "ada", Sight: access.Own, Holder: "user:ada/crew"})
		}, "bob", true},
		"for all":        {func(w, _ *world) *world { return w }, "bob", false},
		"hers, it stays": {func(_, ada *world) *world { return ada }, "ada", false},
	} {
		t.Run(name, in(func(t *testing.T, w *world) {
			w.among("ada", "bob")
			ada := w.as(user("ada"))
			created := ada.create(append([]string{"policy: multi", "policy: epochs", "{min: 1, max: 9}", "{min: 9, max: 9}"}, "trials: 27", "trials: 1")...)
			its := c.worker(w, ada)
			its.register("worker-1")
			lease := its.mustLease("worker-1")
			its.mustReport(lease, 1)
			if err := its.checkpoint(lease, 1); err != nil {
				t.Fatal(err)
			}
			its.mustReport(lease, 2)
			if _, err := w.service.Transfer(w.ctx, created.ID, protocol.Ownership{Owner: c.owner, Name: "given"}); err != nil {
				t.Fatal(err)
			}
			if now := w.trial(lease.Trial); (now.State == trial.Queued) != c.loses || now.Failures != 0 || len(now.LostOn) != 0 || now.Losses != now.Explained || now.Epochs != 2 {
				t.Errorf("its trial is %s (%s) with %d epochs, lost %d times, %d explained", now.State, now.Reason, now.Epochs, now.Losses, now.Explained)
			}
			if uses := w.uses(c.owner).Trials; (uses == 0) != c.loses {
				t.Errorf("%s has %d trials", c.owner, uses)
			}
			if !c.loses {
				for epoch := 3; epoch <= 9; epoch++ {
					its.mustReport(lease, epoch)
				}
				return
			}
			if _, err := its.report(lease, 3); !problem.Is(err, problem.LeaseLost) {
				t.Errorf("her worker reports: %v", err)
			}
			if beat, err := its.service.Heartbeat(its.ctx, "worker-1", protocol.Heartbeat{Leases: []protocol.HeldLease{{Trial: lease.Trial, LeaseEpoch: lease.LeaseEpoch}}}); err != nil || len(beat.Lost) != 1 {
				t.Errorf("her worker hears %+v, %v", beat, err)
			}
			if other := its.lease("worker-1"); other != nil {
				t.Errorf("her worker gets trial %d of it", other.Number)
			}
			w.register("worker-2")
			again := w.mustLease("worker-2")
			if again.Trial != lease.Trial || again.Checkpoint == nil || again.FirstEpoch != 2 {
				t.Errorf("another goes on with %s at epoch %d", again.Trial, again.FirstEpoch)
			}
			w.train(again)
			if done := w.trial(lease.Trial); done.Epochs != 9 || done.State != trial.Completed {
				t.Errorf("it is %s with %d epochs", done.State, done.Epochs)
			}
		}))
	}
}

// slow is a store that takes its time over a transfer.
type slow struct{ study.Store }

func (s slow) Submit(ctx context.Context, change journal.Change) *journal.Outcome {
	if !change.Transfer {
		return s.Store.Submit(ctx, change)
	}
	outcome, inner := journal.NewOutcome(), s.Store.Submit(ctx, change)
	go func() {
		time.Sleep(time.Minute)
		outcome.Settle(inner.Wait())
	}()
	return outcome
}

// While the study changes hands, who has it still is lent no trial of it any more.
func TestNobodyIsLentATrialOfAStudyThatChangesHands(t *testing.T) {
	for name, owner := range map[string]string{"to bob": "bob", "to ada herself": "ada"} {
		t.Run(name, in(func(t *testing.T, w *world) {
			w.store = slow{w.store}
			w.among("ada", "bob")
			ada := w.as(user("ada"))
			created := ada.create()
			ada.register("worker-1")
			given := make(chan error, 1)
			go func() {
				_, err := w.service.Transfer(w.ctx, created.ID, protocol.Ownership{Owner: owner, Name: "given"})
				given <- err
			}()
			synctest.Wait()
			lease := ada.lease("worker-1")
			if err := <-given; err != nil {
				t.Fatal(err)
			}
			if held := w.uses(owner).Trials; (lease != nil) != (owner == "ada") || (held > 0) != (owner == "ada") {
				t.Errorf("her worker is lent %+v, and %s has %d trials", lease, owner, held)
			}
		}))
	}
}

func TestWhoGetsNoStudy(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.among("ada", "bob", "eve")
		ada, bob, eve := w.as(user("ada")), w.as(user("bob")), w.as(user("eve"))
		hers := ada.create()
		namesake := bob.create()
		before, err := w.store.Events(w.ctx, hers.ID, 0, 1000)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			name  string
			by    *world
			ref   string
			owner string
			code  problem.Code
			says  string
			field problem.Field
		}{
			{"who is no user", w, hers.ID, "zoe", problem.Invalid, "'tandem user list'", problem.Field{Path: "owner", Value: "zoe"}},
			{"what is no name of a user", w, hers.ID, "a:b", problem.Invalid, "'tandem user list'", problem.Field{Path: "owner", Value: "a:b"}},
			{"who has one of the name", ada, "example", "bob", problem.Conflict, "bob has a study of this name already: give another one (--name NAME)", problem.Field{Path: "name", Value: "example"}},
			{"by a stranger", eve, hers.ID, "eve", problem.NotFound, "there is no study", problem.Field{}},
			{"of a study that there is not", w, "never-was", "eve", problem.NotFound, "there is no study", problem.Field{}},
		} {
			err := c.by.transfer(c.ref, c.owner)
			var told *problem.Error
			if !problem.Is(err, c.code) || !strings.Contains(err.Error(), c.says) || !errors.As(err, &told) ||
				c.field.Path != "" && (len(told.Fields) != 1 || told.Fields[0].Path != c.field.Path || told.Fields[0].Value != c.field.Value) {
				t.Errorf("%s: %v", c.name, err)
			}
		}
		after, err := w.store.Events(w.ctx, hers.ID, 0, 1000)
		if err != nil || len(after) != len(before) || w.view(hers.ID).Owner != "ada" || w.view("bob:example").ID != namesake.ID {
			t.Errorf("something changed: %d events, then %d, %v", len(before), len(after), err)
		}
		// Its owner may, to the administrators, who may give it back; and to who has it
		// already, which is no event.
		for _, step := range []struct {
			by    *world
			owner string
		}{{ada, access.Administrators}, {w, access.Administrators}, {w, "ada"}, {ada, "eve"}} {
			if err := step.by.transfer(hers.ID, step.owner); err != nil || w.view(hers.ID).Owner != step.owner {
				t.Errorf("to %s: %v", step.owner, err)
			}
		}
		if all, err := w.store.Events(w.ctx, hers.ID, 0, 1000); err != nil || len(all) != len(before)+3 {
			t.Errorf("%d events behind %d: %v", len(all), len(before), err)
		}
		if view, err := w.service.Transfer(w.ctx, hers.ID, protocol.Ownership{Owner: "bob", Name: "adas"}); err != nil || view.Name != "adas" || view.Definition.Name != "adas" {
			t.Errorf("under another name it is %s, %v", view.Name, err)
		}
		w.among("ada", "bob", "eve")
		bob.service, eve.service = w.service, w.service
		if view := bob.view("adas"); view.ID != hers.ID || view.Name != "adas" || view.Definition.Name != "adas" || bob.view("example").ID != namesake.ID {
			t.Errorf("after a restart it is %s, %s", view.Name, view.ID)
		}
		if err := bob.service.Delete(bob.ctx, "adas"); err != nil {
			t.Fatal(err)
		}
		if err := w.transfer(hers.ID, "ada"); !problem.Is(err, problem.NotFound) {
			t.Errorf("a deleted study: %v", err)
		}
	})(t)
}

// What was not stored has not happened: the study stays hers, and so do its trials.
func TestARefusedTransferLeavesTheStudy(t *testing.T) {
	in(func(t *testing.T, w *world) {
		broken := &refusing{Store: w.store}
		w.store = broken
		w.among("ada", "bob")
		ada, bob := w.as(user("ada")), w.as(user("bob"))
		hers := ada.create()
		w.register("worker-1")
		lease := w.mustLease("worker-1")
		broken.refuse = true
		if err := w.transfer(hers.ID, "bob"); err == nil {
			t.Fatal("it was not refused")
		}
		broken.refuse = false
		if view := ada.view("example"); view.Owner != "ada" {
			t.Errorf("it is %s's", view.Owner)
		}
		if _, err := bob.service.Study(bob.ctx, hers.ID); !problem.Is(err, problem.NotFound) {
			t.Errorf("bob finds it: %v", err)
		}
		if held := w.uses("ada").Trials; held != 1 || w.uses("bob").Trials != 0 {
			t.Errorf("ada holds %d trials", held)
		}
		w.train(lease)
	})(t)
}
