package agent

import (
	"net/http"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/workers/agent/clock"
)

// asking is a script's call for its next trial, which is held open.
type asking struct {
	answer chan nextAnswer // has room for all answers there can be
	gone   chan struct{}   // closed when nobody waits for them any more
	at     clock.Moment
}

// nextAnswer is what POST /v1/next answers: the variables of the next trial.
// Without there is none for this process, which is to end.
type nextAnswer struct {
	Next        bool              `json:"next"`
	Environment map[string]string `json:"environment,omitempty"`
}

// postNext ends the run as if the script had ended with code 0, and waits for
// another one.
func (r *run) postNext(request *http.Request) (any, error) {
	if err := decode(request, &struct{}{}); err != nil {
		return nil, err
	}
	call := r.ask()
	if call == nil {
		return nextAnswer{}, nil
	}
	defer close(call.gone)
	select {
	case answer := <-call.answer:
		return answer, nil
	case <-request.Context().Done():
		return nil, problem.New(problem.Conflict, "the script has hung up")
	}
}

// ask ends the run on the script's behalf; nil if its process can have no other.
func (r *run) ask() *asking {
	if !r.reusable() {
		return nil
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.asking != nil || r.ended || r.ending.kind != notEnded {
		return nil
	}
	r.asking = &asking{answer: make(chan nextAnswer, 1), gone: make(chan struct{}), at: clock.Now()}
	close(r.asked)
	return r.asking
}

// reusable reports whether the process may have another run: nothing that it
// started is left, and its memory can be bounded anew.
func (r *run) reusable() bool {
	r.reporting.Lock() // held while it is started, and while its memory is bounded
	movable := r.seat.subject.MemoryMovable()
	r.reporting.Unlock()
	return movable && r.seat.alone()
}

// isOver answers all calls of a run that is.
func (r *run) isOver(*http.Request) (any, error) {
	return nil, problem.New(problem.LeaseLost, "this run of trial %s is over: the script has asked for another one", r.lease.Trial)
}

// over reports whether the script has asked for another trial.
func (r *run) over() bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.asking != nil
}

// vacate lets go of the process when the run is over: it waits for another one,
// or ends.
func (r *run) vacate() {
	if r.seat == nil {
		return
	}
	if err := r.place.Remove(); err != nil {
		r.logger.Warn("cannot remove the run's folder", "error", err)
	}
	r.mutex.Lock()
	asking, wanted := r.asking, r.ending.kind == notEnded
	r.process = nil // nothing that is said of this run concerns it any more
	r.mutex.Unlock()
	switch r.seat.asking = asking; {
	case asking == nil:
		r.seat.end()
	case wanted:
		r.agent.lot.park(r.seat)
	default:
		r.seat.dismiss()
	}
}
