package study_test

import (
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

// post is a worker that is driven by hand, second by second.
type post struct {
	id    string
	of    breed
	lease *protocol.Lease
	epoch int
	ends  time.Time
	// paused is why it gives its trial back at its next step.
	paused string
	// away is until when it has not noticed that the server was started again.
	away time.Time
}

// step does what is due at a worker, as an agent does, and reports whether it was told
// to pause, or gave its trial back.
func (p *post) step(w *world) (told, left bool) {
	w.t.Helper()
	if time.Now().Before(p.away) {
		return false, false
	}
	if p.paused != "" {
		if _, err := w.service.Finish(w.ctx, p.lease.Trial, protocol.FinishRequest{LeaseEpoch: p.lease.LeaseEpoch, Outcome: protocol.Interrupted, Reason: p.paused}); err != nil {
			w.t.Fatal(err)
		}
		p.lease, p.paused = nil, ""
		return false, true
	}
	beat := protocol.Heartbeat{}
	if p.lease != nil {
		beat.Leases = []protocol.HeldLease{{Trial: p.lease.Trial, LeaseEpoch: p.lease.LeaseEpoch}}
	}
	if _, err := w.service.Heartbeat(w.ctx, p.id, beat); problem.Is(err, problem.NotFound) {
		registration := protocol.WorkerRegistration{ID: p.id, Name: p.id, Slots: 1, Machine: protocol.Machine{CPUModel: p.of.model, Cores: 2}, Probes: p.of.probes()}
		if _, err := w.service.RegisterWorker(w.ctx, registration); err != nil {
			w.t.Fatal(err)
		}
	} else if err != nil {
		w.t.Fatal(err)
	}
	if p.lease == nil {
		if p.lease = w.lease(p.id); p.lease != nil {
			p.epoch, p.ends = p.lease.FirstEpoch, time.Now().Add(p.took())
		}
		return false, false
	}
	if time.Now().Before(p.ends) {
		return false, false
	}
	return p.report(w), false
}

func (p *post) took() time.Duration { return time.Duration(p.of.seconds * float64(time.Second)) }

// report ends an epoch; true: it is told to pause.
func (p *post) report(w *world) bool {
	w.t.Helper()
	directive, err := w.service.Report(w.ctx, p.lease.Trial, protocol.Report{
		LeaseEpoch: p.lease.LeaseEpoch, Epoch: p.epoch, Seconds: trial.Float(p.of.seconds), Metrics: map[string]trial.Float{"accuracy": accuracy(p.lease, p.epoch)},
		Energy: &trial.Energy{Joules: trial.Float(p.of.seconds * p.of.watts), Method: "rapl"},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	if err := w.checkpoint(p.lease, p.epoch); err != nil {
		w.t.Fatal(err)
	}
	if directive.Action == protocol.Finish {
		if _, err := w.finish(p.lease, protocol.BudgetReached); err != nil {
			w.t.Fatal(err)
		}
		p.lease = nil
		return false
	}
	p.epoch, p.ends = p.epoch+1, time.Now().Add(p.took())
	if directive.Action == protocol.Pause {
		p.paused = directive.Reason
	}
	return p.paused != ""
}

// TestWhoChangesPlacesArrivesBehindARestart starts the server again at every step of
// an exchange, while others wait for any place at all: both go where they were meant
// to, nobody takes their places, and nothing is lost.
func TestWhoChangesPlacesArrivesBehindARestart(t *testing.T) {
	for name, when := range map[string]func(told, left int) bool{
		"decided":             func(_, _ int) bool { return true },
		"the first was told":  func(told, _ int) bool { return told == 1 },
		"the first has left":  func(_, left int) bool { return left == 1 },
		"the second was told": func(told, _ int) bool { return told == 2 },
		"the second has left": func(_, left int) bool { return left == 2 },
	} {
		for slow, away := range map[string]time.Duration{"": 0, ", noticed late": 9 * time.Second} {
			t.Run(name+slow, in(func(t *testing.T, w *world) {
				posts := []*post{{id: "swift-1-x", of: swift}, {id: "frugal-1", of: frugal}}
				saves := w.single("saves", 1)
				posts[0].step(w) // which registers
				posts[0].step(w)
				hurries := w.single("hurries", 0)
				posts[1].step(w)
				posts[1].step(w)
				waits := w.create("name: example", "name: waits")
				told, left, restarted := 0, 0, false
				over := func(id string) bool { return w.view(id).Status.Over() }
				for at := 0; at < 600 && !(over(saves.ID) && over(hurries.ID)); at++ {
					w.sleep(time.Second)
					for _, one := range posts {
						pauses, leaves := one.step(w)
						if pauses {
							told++
						}
						if leaves {
							left++
						}
						if !restarted && movesOf(t, w) > 0 || !restarted && left > 0 {
							if when(told, left) {
								restarted = true
								w.start()
								for _, other := range posts {
									other.away = time.Now().Add(away)
								}
							}
						}
					}
				}
				if !restarted || w.view(saves.ID).Status != protocol.StudyCompleted || w.view(hurries.ID).Status != protocol.StudyCompleted {
					t.Fatalf("restarted: %t; %s, %s", restarted, w.view(saves.ID).Status, w.view(hurries.ID).Status)
				}
				var ended time.Time
				for id, want := range map[string]breed{saves.ID: frugal, hurries.ID: swift} {
					one := w.trial(trial.ID(id + "-0"))
					if one.Epochs != 30 || one.Losses+one.Failures != 0 || len(one.Migrations) != 1 || one.Migrations[0].ArrivedType != want.kind() || one.LeaseEpoch != 2 {
						t.Errorf("%s: %d epochs, %d losses, %d failures, %d leases, moves %+v", one.ID, one.Epochs, one.Losses, one.Failures, one.LeaseEpoch, one.Migrations)
					}
					if one.Finished.Before(ended) || ended.IsZero() {
						ended = *one.Finished
					}
				}
				for _, one := range trialsOf(t, w, waits.ID) {
					if one.Started.Before(ended) {
						t.Fatalf("a trial that waited had a place at %v, and the first of the two ended at %v", one.Started, ended)
					}
				}
				w.sleep(time.Second) // which forgets what is over
				if entries, err := w.store.PoolEntries(w.ctx, "move"); err != nil || len(entries) != 0 {
					t.Errorf("%d moves are still stored, %v", len(entries), err)
				}
			}))
		}
	}
}

// movesOf counts the trials that are about to move.
func movesOf(t *testing.T, w *world) (count int) {
	t.Helper()
	for _, machine := range poolOf(t, w).Machines {
		for _, run := range machine.Running {
			if run.Moves != "" {
				count++
			}
		}
	}
	return count
}
