package session

import (
	"fmt"
	"slices"

	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/similarity/groundtruth"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/study/search"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/allocator"
	"github.com/tandem-tune/tandem/workers/approximation"
	"github.com/tandem-tune/tandem/workers/gpushare"
	"github.com/tandem-tune/tandem/workers/placement"
	"github.com/tandem-tune/tandem/workers/scheduler"
	"github.com/tandem-tune/tandem/workers/scheduler/costmodel"
)

// Lessee is the worker that a trial is leased to, what is reserved of it for that, why it
// was chosen, and what is known for the lease.
type Lessee struct {
	*allocator.Reservation
	Worker string
	Holder string // to whom the lease belongs
	Chosen scheduler.Choice
	// Approximation is what the trial leaves out.
	Approximation approximation.Choice
	// Known is what is known of system configurations on the worker's machine.
	Known *groundtruth.Machine
	// Costs and probes estimate epochs on the machines it was chosen among.
	Costs  *costmodel.Model
	Probes map[string][]placement.Probe
}

// at is the trial with its budget at the rung.
func (l *Lessee) at(t trial.Trial, rung int, ladder []budget.Rung) trial.Trial {
	t.Rung = rung
	return l.Approximation.LeaveOut(t, ladder[rung].Budget)
}

// place notes on a trial that is leased why its machine was chosen, and says it in words;
// empty where there was nothing to choose.
func (l *Lessee) place(t trial.Trial, r *Session) (trial.Trial, string) {
	t = l.arrived(t)
	t.Placement = nil
	if len(l.Chosen.Types) == 0 {
		return t, ""
	}
	at := scheduler.Place{Machine: l.Machine, Skipped: l.Skipped, Types: l.Chosen.Types, Energy: r.Study.Definition.Placement.Energy}
	if !t.Budget.Measured() {
		at.Epochs = t.Budget.Epochs - t.NextEpoch(r.Ladder[t.Rung]) + 1
	}
	encoded := l.Costs.Encode(t.Configuration)
	return scheduler.Assign(t, at, func(machine string) costmodel.Estimate {
		return l.Costs.Estimate(encoded, t.Budget.DataFraction, machine, l.Probes)
	})
}

// arrived notes where a trial goes on that has moved.
func (l *Lessee) arrived(t trial.Trial) trial.Trial {
	last := len(t.Migrations) - 1
	if last < 0 || t.Migrations[last].Arrived != "" {
		return t
	}
	t.Migrations = slices.Clone(t.Migrations)
	t.Migrations[last].Arrived, t.Migrations[last].ArrivedType = l.Name, l.Machine
	return t
}

// NextTrial decides what a free worker does: a queued trial before anything
// new, then whatever the search says. Nil: nothing now, or the study is over.
func (tx *Transaction) NextTrial() (*trial.Trial, error) {
	number, found := 0, false
	if tx.Here.Part != nil { // it was chosen with its part of a GPU
		number, found = tx.Here.Part.Number, tx.Here.Part.Number != next
	} else {
		number, found = tx.Session.NextQueued(tx.Now, tx.Here.Worker, tx.Here.Chosen.Number, tx.Here.Held)
	}
	if found {
		return tx.lease(tx.trial(number), "goes on")
	}
	for {
		actions, err := tx.Search(search.Event{Kind: search.Request})
		if err != nil {
			return nil, err
		}
		if action := actions[0]; action.Kind == search.Promote {
			passed, err := tx.passed(tx.trial(action.Trial), action)
			if err != nil || tx.Study != nil { // it may have reached the target
				return nil, err
			}
			if passed {
				continue
			}
		}
		return tx.follow(actions[0])
	}
}

// follow does what the search says.
func (tx *Transaction) follow(action search.Action) (*trial.Trial, error) {
	r := tx.Session
	switch action.Kind {
	case search.Create:
		t := trial.Trial{
			ID: trialID(r.Study.ID, action.Trial), Study: r.Study.ID, Number: action.Trial,
			Configuration: action.Configuration, Origin: action.Origin, RepeatOf: action.RepeatOf, RetryOf: action.RetryOf, Seed: trialSeed(r.Study.Definition.Search.Seed, action.Trial),
			State: trial.Queued, Results: []trial.Result{}, Created: tx.Now,
		}
		t = tx.Here.at(t, action.Rung, r.Ladder)
		tx.Log(journal.Event{Kind: journal.TrialState, Trial: t.ID, State: string(t.State), Reason: action.Reason}, nil)
		return tx.lease(t, "new")
	case search.Promote:
		t := tx.trial(action.Trial)
		t.Promotions++
		t = tx.Here.at(t, action.Rung, r.Ladder)
		t.LastEpoch = t.NextEpoch(r.Ladder[action.Rung]) - 1
		return tx.lease(t, action.Reason)
	case search.Wait:
		return nil, nil
	default: // search.Finish
		return nil, tx.Conclude(protocol.StudyCompleted, searchEnded)
	}
}

func (tx *Transaction) lease(t trial.Trial, reason string) (*trial.Trial, error) {
	t.GPUs, t.GPUShare = nil, nil
	if tx.Here.Part != nil && !tx.takePart(&t) {
		return nil, tx.postpone(t)
	}
	t.LeaseEpoch++
	t.Worker, t.Host, t.Holder, t.Setting = tx.Here.Worker, tx.Here.Host, tx.Here.Holder, tx.Session.Tuning().Begin(tx.Here.Known, t, tx.Here.Site)
	if count := tx.Session.Study.Definition.GPUCount(t.Setting); tx.Here.Part == nil && count != nil { // the setting may say how many
		t.GPUs = tx.Here.GPUs[:min(*count, len(tx.Here.GPUs))]
	}
	if t.Started == nil {
		t.Started = &tx.Now
	}
	rung := tx.Session.Ladder[t.Rung]
	if t.ResumesAt(rung) {
		t.Resumes++
		reason += fmt.Sprintf("; resumes at epoch %d from the checkpoint of epoch %d", t.NextEpoch(rung), t.Checkpoint.Epoch)
	}
	t, why := tx.Here.place(t, tx.Session)
	if why != "" {
		reason += "; " + why
	}
	if tx.Session.Study.Definition.PolicyOf() != "" {
		t, reason = t.Attest(tx.Now), reason+"; asks the broker for its key"
	}
	t, err := tx.state(t, trial.Leased, reason)
	return &t, err
}

// takePart gives a trial that is leased the part of a GPU that was kept for it;
// false where it needs more than that: what is expected of it was not known when
// the part was chosen.
func (tx *Transaction) takePart(t *trial.Trial) bool {
	expected, part := tx.Session.ExpectedUse(t), gpushare.Part{Place: tx.Here.Part.Place, Share: tx.Here.Part.Share, Room: tx.Here.Part.Room}
	if tx.apart = part.Refuses(expected); tx.apart != "" || !part.Holds(expected) {
		return false
	}
	t.GPUs, t.GPUShare = []int{part.Place}, part.Noted(expected)
	return true
}

// postpone queues a trial that needs a larger part of a GPU than was kept.
func (tx *Transaction) postpone(t trial.Trial) error {
	tx.Postponed = true
	why := "waits for a larger part of a GPU: " + tx.Session.ExpectedUse(&t).Basis
	if tx.apart != "" {
		why = "waits for another GPU: " + tx.apart
	}
	if t.State == trial.Queued {
		t.Reason = why
		tx.Stage(t)
		return nil
	}
	_, err := tx.state(t, trial.Queued, why)
	return err
}

// next is the number of a trial that the search has not started yet.
const next = allocator.Next
