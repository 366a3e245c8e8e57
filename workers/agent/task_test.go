package agent_test

import (
	"slices"
	"strings"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/trial/series"
)

// task is a trial of the server.
type task struct {
	hurried    bool // one of a higher priority waits for its machine
	lease      protocol.Lease
	rungs      []int // epochs of each rung
	rung       int
	queued     bool
	hold       bool // it is not queued again by itself
	holder     string
	reports    []protocol.Report
	checkpoint *trial.Checkpoint
	finishes   []protocol.FinishRequest
	log        map[trial.LeaseEpoch]string
	samples    series.Series     // the newest
	logged     map[string]string // artifacts by name
	directive  protocol.Directive
	resumed    []int // first epoch of each lease
	// systems are the configurations for the epochs after these.
	systems map[int]map[string]space.Value
}

// write is a call under a lease, and what it was answered.
type write struct {
	call  string
	trial trial.ID
	epoch trial.LeaseEpoch
	err   error
}

// epochs are the reported epochs, in the order they came.
func (t *task) epochs() []int {
	var epochs []int
	for _, report := range t.reports {
		epochs = append(epochs, report.Epoch)
	}
	return epochs
}

func (t *task) outcomes() string {
	var list []string
	for _, finish := range t.finishes {
		list = append(list, string(finish.Outcome))
	}
	return strings.Join(list, " ")
}

func (t *task) reason() string {
	if len(t.finishes) == 0 {
		return ""
	}
	return t.finishes[len(t.finishes)-1].Reason
}

// calls counts the writes of a kind.
func (s *server) calls(call string) int {
	count := 0
	for _, w := range s.writes {
		if w.call == call {
			count++
		}
	}
	return count
}

// afterLoss are the writes that came under a lease epoch after it was answered
// that the lease is lost.
func (s *server) afterLoss(id trial.ID, epoch trial.LeaseEpoch) []write {
	told := slices.IndexFunc(s.writes, func(w write) bool { return w.trial == id && w.epoch == epoch && problem.Is(w.err, problem.LeaseLost) })
	var late []write
	for i, w := range s.writes {
		if told >= 0 && i > told && w.trial == id && w.epoch == epoch && w.call != "heartbeat" {
			late = append(late, w)
		}
	}
	return late
}
