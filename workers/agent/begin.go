package agent

import (
	"fmt"
	"net/http"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/workers/agent/clock"
)

// shortestSetup is reported where a start took no measurable time: 0 would say
// that nobody knows.
const shortestSetup = time.Microsecond

// postBegin marks the start of training.
func (r *run) postBegin(request *http.Request) (any, error) {
	var body struct {
		Epoch int `json:"epoch"`
	}
	if err := decode(request, &body); err != nil {
		return nil, err
	}
	if p := r.soFar(); body.Epoch < p.first || body.Epoch > p.epochs {
		return nil, problem.WithFields("the start of training is not valid", []problem.Field{{Path: "epoch", Value: body.Epoch,
			Message: fmt.Sprintf("is not in this run, which trains epochs %d to %d (TANDEM_FIRST_EPOCH, TANDEM_EPOCHS)", p.first, p.epochs)}})
	}
	r.markBegin()
	return struct{}{}, nil
}

// markBegin separates the start of the script from its first epoch: the
// profile begins anew, and how long the start took is kept for the report. Time
// and energy of a start are spent as well, so those go on. Only the first mark
// of a run counts, and none after a report.
func (r *run) markBegin() {
	at := clock.Now()
	if r.soFar().reported {
		return // without waiting for a report that is on its way
	}
	r.reporting.Lock()
	defer r.reporting.Unlock()
	if r.sealed || r.setup != 0 || r.soFar().reported {
		return
	}
	r.setup = max(time.Duration(at-r.mark.at), shortestSetup)
	r.seat.process.lap()
}
