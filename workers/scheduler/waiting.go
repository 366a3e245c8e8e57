package scheduler

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/access"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/allocator"
	"github.com/tandem-tune/tandem/workers/scheduler/costmodel"
)

// mostWaiting is how many trials of a study are listed as waiting.
const mostWaiting = 20

// Waiting is what the studies have ready that the caller sees, in the pool's order, with
// what is estimated for these types of machine.
func (s *Scheduler) Waiting(ctx context.Context, caller access.Caller, types []string) []protocol.PoolTask {
	q, tasks := s.question(s.allocator.Stands("", access.Caller{}), types), []protocol.PoolTask{}
	q.most, q.explain = mostWaiting, true
	for _, candidate := range s.Candidates(caller, s.allocator.Shares()) {
		offers := s.offersOf(ctx, candidate.Study, q)
		for i, one := range offers {
			if one.number == allocator.Next && i > 0 && offers[i-1].number == allocator.Next {
				tasks[len(tasks)-1].New++
				continue
			}
			task := protocol.PoolTask{Study: one.title, StudyID: one.study, Priority: candidate.Priority, Energy: one.energy, Why: one.waits(q)}
			if one.number == allocator.Next {
				task.New = 1
			} else {
				task.Number = &one.number
			}
			task.Options = one.options(q)
			tasks = append(tasks, task)
		}
	}
	return tasks
}

// waits says why an offer waits: as its study does, where that has a reason.
func (o *offer) waits(q question) string {
	switch {
	case o.held != "":
		return fmt.Sprintf("it moved, and is kept for %s", o.held)
	case slices.Contains(o.eligible, true):
		return "a worker that waits gets it now"
	case len(o.against) > 0:
		reasons := make([]string, len(o.against))
		for i, one := range o.against {
			reasons[i] = one.Reason
		}
		return strings.Join(reasons, "; ")
	case len(q.Stands) == 0:
		return "no worker has room for another trial now"
	default:
		return "no worker that waits may run it and has room for it"
	}
}

// options are the connected types of machine for an offer, the best one first.
func (o *offer) options(q question) []trial.PlacementOption {
	options := make([]trial.PlacementOption, len(q.types.Names))
	for i, machine := range q.types.Names {
		options[i].Machine = machine
		for at, stand := range q.Stands {
			if stand.Machine == machine && o.eligible[at] {
				options[i].Waiting++
			}
		}
	}
	list, _ := scored(options, o.energy, func(machine string) costmodel.Estimate { return o.epochs[machine] })
	return list
}
