package history

import (
	"encoding/json"
	"slices"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/study/search"
	"github.com/tandem-tune/tandem/study/session"
	"github.com/tandem-tune/tandem/trial"
)

// life is a trial as its events tell it.
type life struct {
	state trial.State
	lease trial.LeaseEpoch
	// worker has, or had, the lease.
	worker   string
	workers  map[trial.LeaseEpoch]string
	states   map[held]bool // every state it was in, under which lease
	promoted int
	// behind is, for each rung, the last epoch that it had not to be trained for:
	// that of the checkpoint it goes on from, 0 without one.
	behind      map[int]int
	reports     []trial.Report
	checkpoints []trial.Checkpoint
}

func newLife(state trial.State) *life {
	return &life{state: state, workers: make(map[trial.LeaseEpoch]string), states: make(map[held]bool), behind: make(map[int]int)}
}

// held is a state under a lease.
type held struct {
	lease trial.LeaseEpoch
	state trial.State
}

// walk follows the log and checks each line against those before it.
func (c *check) walk() {
	for i, event := range c.books.Events {
		if event.Sequence != int64(i)+1 {
			c.violated(Kept, "event %d of the log has the sequence %d", i+1, event.Sequence)
			return
		}
		switch event.Kind {
		case journal.StatusChange:
			c.over, c.reopening = protocol.StudyStatus(event.State).Over(), false
		case journal.Extended:
			c.reopening = c.over
		case journal.TrialState:
			c.changed(event)
		case journal.Reported:
			c.reported(event)
		case journal.Checkpointed:
			c.committed(event)
		case journal.Searched:
			c.searched(event)
		}
	}
}

// searched takes a step of the search: it is told which trials are given up.
func (c *check) searched(event journal.Event) {
	var decision session.Decision
	if err := json.Unmarshal(event.Data, &decision); err != nil {
		c.violated(Replayed, "event %d cannot be read: %v", event.Sequence, err)
		return
	}
	if decision.Event.Kind == search.Failed {
		c.failed[decision.Event.Trial] = true
	}
}

// changed takes a change of a trial's state.
func (c *check) changed(event journal.Event) {
	next := trial.State(event.State)
	l, known := c.lives[event.Trial]
	if !known {
		if next != trial.Queued {
			c.violated(OneEnd, "trial %s begins as %s", event.Trial, next)
		}
		c.lives[event.Trial] = newLife(next)
		return
	}
	var told trial.Trial
	if err := json.Unmarshal(event.Data, &told); err != nil {
		c.violated(Kept, "event %d of trial %s cannot be read: %v", event.Sequence, event.Trial, err)
		return
	}
	reopened := c.reopening && (l.state == trial.Pruned || l.state == trial.Cancelled) && (next == trial.Queued || next == trial.Paused)
	if l.state.Terminal() && (l.state != trial.Lost || next != trial.Queued) && !reopened {
		c.violated(OneEnd, "trial %s was %s and became %s with event %d", event.Trial, l.state, next, event.Sequence)
	}
	heard := l.state == trial.Leased && told.LeaseEpoch == l.lease && event.Worker == l.worker && (told.Stalled || told.Attestation != nil && !told.Attesting())
	if next == trial.Leased && !heard {
		c.leased(event, l, told)
	} else if told.LeaseEpoch != l.lease {
		c.violated(Fenced, "trial %s became %s under lease %d while lease %d was the newest", event.Trial, next, told.LeaseEpoch, l.lease)
	}
	l.state = next
	l.states[held{told.LeaseEpoch, next}] = true
}

func (c *check) leased(event journal.Event, l *life, told trial.Trial) {
	if l.state.Held() {
		c.violated(Bounded, "trial %s was leased to %s while %s had it", event.Trial, event.Worker, l.worker)
	}
	if told.LeaseEpoch != l.lease+1 {
		c.violated(Fenced, "lease %d of trial %s follows lease %d", told.LeaseEpoch, event.Trial, l.lease)
	}
	if l.state == trial.Paused {
		l.promoted++
	}
	if _, begun := l.behind[told.Rung]; !begun {
		l.behind[told.Rung] = told.LastEpoch
	}
	l.lease, l.worker = told.LeaseEpoch, event.Worker
	l.workers[l.lease] = l.worker
}

// life returns a trial that the log has told of.
func (c *check) life(event journal.Event) *life {
	l, known := c.lives[event.Trial]
	if !known {
		c.violated(Kept, "event %d is of trial %s, of which the log does not tell that it was created", event.Sequence, event.Trial)
		l = newLife("")
		c.lives[event.Trial] = l
	}
	return l
}

// reported takes an accepted report.
func (c *check) reported(event journal.Event) {
	l := c.life(event)
	var report trial.Report
	if err := json.Unmarshal(event.Data, &report); err != nil {
		c.violated(Kept, "event %d of trial %s cannot be read: %v", event.Sequence, event.Trial, err)
		return
	}
	if !l.state.Held() || report.LeaseEpoch != l.lease || report.Worker != l.worker {
		c.violated(Current, "epoch %d of trial %s was taken from %s under lease %d, while it was %s under lease %d of %s",
			report.Epoch, event.Trial, report.Worker, report.LeaseEpoch, l.state, l.lease, l.worker)
	}
	if l.has(report.Rung, report.Epoch) {
		c.violated(Current, "epoch %d of trial %s counts twice (at rung %d)", report.Epoch, event.Trial, report.Rung)
	}
	l.reports = append(l.reports, report)
}

// has reports whether the epoch counts at the rung: it was accepted there, or
// lies behind the checkpoint that the rung goes on from and was accepted at one
// below. An epoch whose checkpoint was lost with its worker is trained again by
// a promotion, and counts at both rungs.
func (l *life) has(rung, epoch int) bool {
	return l.find(rung, epoch) >= 0
}

// find returns where among the reports the epoch of the rung is; -1: nowhere.
func (l *life) find(rung, epoch int) int {
	return slices.IndexFunc(l.reports, func(known trial.Report) bool {
		return known.Epoch == epoch && (known.Rung == rung || known.Rung < rung && epoch <= l.behind[rung])
	})
}

// committed takes a checkpoint that was published.
func (c *check) committed(event journal.Event) {
	l := c.life(event)
	var checkpoint trial.Checkpoint
	if err := json.Unmarshal(event.Data, &checkpoint); err != nil {
		c.violated(Kept, "event %d of trial %s cannot be read: %v", event.Sequence, event.Trial, err)
		return
	}
	if !l.state.Held() || event.Worker != l.worker {
		c.violated(Behind, "a checkpoint of epoch %d of trial %s came from %s while it was %s, last with %s",
			checkpoint.Epoch, event.Trial, event.Worker, l.state, l.worker)
	}
	l.checkpoints = append(l.checkpoints, checkpoint)
}
