package study_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

// traded is a pool of two busy workers: what wants to be fast runs on the frugal one,
// and what wants to save energy on the swift one.
func traded(c *crew, thrifty, hasty *world) (saves, hurries protocol.StudyView) {
	c.enrol(c.ctx, "swift-1-x", swift, true)
	saves = thrifty.single("saves", 1)
	time.Sleep(3 * time.Second)
	c.enrol(c.ctx, "frugal-1", frugal, true)
	hurries = hasty.single("hurries", 0)
	return saves, hurries
}

// TestRunningTrialsChangePlaces: nobody waits, no machine is free, and each of two
// running trials is better off where the other one is.
func TestRunningTrialsChangePlaces(t *testing.T) {
	for name, owners := range map[string][2]string{"of one user": {"ada", "ada"}, "of two users": {"ada", "bob"}} {
		t.Run(name, in(func(t *testing.T, w *world) {
			c := newCrew(w)
			defer c.dismiss()
			if _, err := w.service.SetQuota(w.ctx, "ada", protocol.Quota{Trials: 2}); err != nil {
				t.Fatal(err)
			}
			saves, hurries := traded(c, w.as(user(owners[0])), w.as(user(owners[1])))
			waits := w.as(user("ada")).create(named("waits", "priority: -5")...) // takes whatever is free
			c.until(saves.ID, hurries.ID)
			for id, want := range map[string]breed{saves.ID: frugal, hurries.ID: swift} {
				one := w.trial(trial.ID(id + "-0"))
				if one.Epochs != 30 || one.Losses+one.Failures != 0 || len(one.Migrations) != 1 || one.Migrations[0].ArrivedType != want.kind() {
					t.Errorf("%s: %d epochs, %d losses, %d failures, moves %+v", one.ID, one.Epochs, one.Losses, one.Failures, one.Migrations)
				}
			}
			// The one with the longer epochs goes first, so that a worker waits for the
			// shorter ones only.
			long, short := w.trial(trial.ID(hurries.ID+"-0")).Migrations, w.trial(trial.ID(saves.ID+"-0")).Migrations
			if len(long) == 1 && len(short) == 1 && !long[0].At.Before(short[0].At) {
				t.Errorf("the one with the longer epochs left at %v, the other at %v", long[0].At, short[0].At)
			}
			checkDecisions(t, w, saves.ID)
			for _, one := range trialsOf(t, w, waits.ID) {
				for _, id := range []string{saves.ID, hurries.ID} {
					if m := w.trial(trial.ID(id + "-0")).Migrations; len(m) == 1 && one.Started != nil && one.Started.Before(m[0].At) {
						t.Errorf("a trial that waited had a place at %v, and %s left its own at %v", one.Started, id, m[0].At)
					}
				}
			}
		}))
	}
}

// TestATrialWhosePartnerEndsHasItsPlace: the second of two that change places is over,
// or its worker gone, before it leaves; the first one goes on all the same, and what
// else there is to do is not kept from the workers for long.
func TestATrialWhosePartnerEndsHasItsPlace(t *testing.T) {
	for name, end := range map[string]func(w *world, study string, vanish context.CancelFunc){
		"stopped": func(w *world, study string, _ context.CancelFunc) {
			if _, err := w.service.Stop(w.ctx, study); err != nil {
				w.t.Error(err)
			}
		},
		"gone": func(_ *world, _ string, vanish context.CancelFunc) { vanish() },
		"drained": func(w *world, _ string, _ context.CancelFunc) {
			if _, err := w.service.Drain(w.ctx, "swift-1-x", protocol.DrainRequest{}); err != nil {
				w.t.Error(err)
			}
		},
	} {
		t.Run(name, in(func(t *testing.T, w *world) {
			c := newCrew(w)
			defer c.dismiss()
			ctx, vanish := context.WithCancel(c.ctx)
			defer vanish()
			c.enrol(ctx, "swift-1-x", swift, true)
			saves := w.single("saves", 1)
			time.Sleep(3 * time.Second)
			c.enrol(c.ctx, "frugal-1", frugal, true)
			hurries := w.single("hurries", 0)
			moves := func() (count int) {
				for _, machine := range poolOf(t, w).Machines {
					for _, run := range machine.Running {
						if run.Moves != "" {
							count++
						}
					}
				}
				return count
			}
			for at := 0; moves() < 2; at++ {
				if at > 300 {
					t.Fatal("they are never to change places")
				}
				time.Sleep(100 * time.Millisecond)
			}
			end(w, saves.ID, vanish)
			c.until(hurries.ID)
			one := w.trial(trial.ID(hurries.ID + "-0"))
			if one.Epochs != 30 || one.Failures != 0 || one.State != trial.Completed {
				t.Errorf("%+v", one)
			}
			began := time.Now()
			after := w.single("after", 0)
			c.until(after.ID)
			if took := time.Since(began); took > 10*time.Minute {
				t.Errorf("what came later took %v", took)
			}
		}))
	}
}

// TestManyTrialsChangePlacesInGoodOrder: whatever comes and goes, all trials end, each
// epoch is trained once, and no move is of a trial that has moved too often.
func TestManyTrialsChangePlacesInGoodOrder(t *testing.T) {
	in(func(t *testing.T, w *world) {
		c := newCrew(w)
		defer c.dismiss()
		for i := range 3 {
			c.enrol(c.ctx, fmt.Sprintf("swift-%d-x", i), swift, true)
		}
		var ids []string
		for i := range 8 {
			if i == 3 { // one that saves is on a swift machine by then, and has reason to move
				for i := range 3 {
					c.enrol(c.ctx, fmt.Sprintf("frugal-%d", i), frugal, true)
				}
			}
			ids = append(ids, w.as(user(fmt.Sprint("user", i%2))).single(fmt.Sprint("study", i), float64(i%2)).ID)
			time.Sleep(7 * time.Second)
		}
		c.until(ids...)
		moved := 0
		for _, id := range ids {
			one := w.trial(trial.ID(id + "-0"))
			moved += len(one.Migrations)
			if one.Epochs != 30 || one.Losses+one.Failures != 0 || len(one.Migrations) > 3 {
				t.Errorf("%s: %d epochs, %d losses, %d failures, moves %+v", id, one.Epochs, one.Losses, one.Failures, one.Migrations)
			}
		}
		if moved == 0 {
			t.Error("nothing moved: this shows nothing")
		}
	})(t)
}
