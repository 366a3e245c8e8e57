package agent

import (
	"maps"
	"slices"
	"strings"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/workers/agent/script"
)

// lineScript is a run whose script has no client: it prints its reports.
type lineScript struct{ *run }

// read reports what a script without a client prints, in order.
func (r lineScript) read() {
	looked := false
	for line := range r.lines {
		if err := r.ctx.Err(); err != nil {
			continue // the reader of the output must not be held up
		}
		if !looked && line.Epoch < r.lease.Budget.Epochs {
			r.noteLacking(line)
		}
		looked = true
		directive, err := r.report(script.Outcome{Epoch: line.Epoch, Metrics: line.Metrics})
		if err != nil {
			r.log.Note("the report of epoch %d was refused: %v", line.Epoch, err)
			if line.Epoch > r.lease.Budget.Epochs && r.soFar().complete() {
				r.end(spent, "it trains on though its budget is spent", r.agent.options.StopGrace)
			}
			continue
		}
		if !line.Checkpoint {
			r.endSpent(directive)
			continue
		}
		if _, err := r.commit(line.Epoch, false); err != nil {
			r.log.Note("the checkpoint of epoch %d was not kept: %v", line.Epoch, err)
		} else if directive.Action == protocol.Pause {
			// It cannot be told otherwise, and all it has done is kept.
			r.end(paused, directive.Reason, r.agent.options.StopGrace)
		}
		r.endSpent(directive)
	}
}

// noteLacking says at the first report, and not when the whole budget has been
// trained, that the last one must have a metric which this one lacks.
func (r lineScript) noteLacking(line script.Line) {
	for _, objective := range r.lease.Objectives {
		if _, has := line.Metrics[objective]; !has {
			r.log.Note("epoch %d was reported without %s (but with %s), which the study needs: the report of epoch %d, the last of the budget, must have it, or the trial fails",
				line.Epoch, objective, strings.Join(slices.Sorted(maps.Keys(line.Metrics)), ", "), r.lease.Budget.Epochs)
			return
		}
	}
}

// endSpent ends a script without a client whose budget is an amount of time or
// energy: it cannot know at which epoch it is spent.
func (r lineScript) endSpent(directive protocol.Directive) {
	if directive.Action == protocol.Finish && r.lease.Budget.Measured() {
		r.end(spent, directive.Reason, r.agent.options.StopGrace)
	}
}
