package study

import (
	"fmt"
	"strings"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/workers/allocator"
)

// waits says why the study's next trial does not start; nil where nothing is in
// its way, or it has none. The study's lock is held.
func (s *Service) waits(r *session) []protocol.Wait {
	if r.study.Status != protocol.StudyRunning || len(r.study.Definition.Command) == 0 || r.broken != nil || !r.mayStart() {
		return nil
	}
	if r.full(0) {
		return []protocol.Wait{{Cause: protocol.WaitParallel, Reason: fmt.Sprintf("it runs %d of at most %d trials at once (parallel)", r.held, r.study.Definition.Parallel)}}
	}
	one := allocator.Waiting{Ask: s.ask(r, nil), Running: r.held}
	if one.SharesGPUs {
		if one.Expected = s.firstSharer(r).String(); s.gpus.Refusal(r.id) != "" {
			one.Expected += "; " + s.gpus.Refusal(r.id)
		}
	}
	if len(r.queue) > 0 && strings.HasPrefix(r.trials[r.queue[0]].Reason, protocol.CannotRun) {
		t := &r.trials[r.queue[0]]
		one.Returned = &allocator.Returned{Worker: t.Worker, Number: t.Number, Reason: firstLine(t.Reason)}
	}
	return s.allocator.Waits(one)
}
