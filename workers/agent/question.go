package agent

import (
	"context"
	"crypto/rand"
	"slices"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/workers/agent/clock"
	"github.com/tandem-tune/tandem/workers/agent/retry"
)

// question is what a slot asks for a trial with. It keeps its key until it is
// answered: a trial that was given in an answer that got lost would have to wait
// for the end of its lease otherwise.
type question struct {
	key string
	// repeated says that an attempt before was not answered.
	repeated bool
}

func newQuestion() question { return question{key: rand.Text()} }

// answered takes the outcome of an attempt. That the worker is not known, say
// because the server was restarted, answers nothing.
func (q *question) answered(err error) {
	if err == nil || !retry.Transient(err) && !problem.Is(err, problem.NotFound) {
		*q = newQuestion()
	} else {
		q.repeated = true
	}
}

// ask makes one attempt and returns when it was made: what is leased was
// granted, or renewed, no earlier than that. The request is held open for at
// most half a lease, so that a granted one has time left for its first
// heartbeat.
func (a *Agent) ask(ctx context.Context, q *question) (protocol.LeaseReply, clock.Moment, error) {
	wait := min(longPoll, clock.Seconds(a.times().LeaseSeconds)/2)
	calling, cancel := context.WithTimeout(ctx, wait+retry.CallPatience)
	defer cancel()
	sent := clock.Now()
	reply, err := a.options.Server.Lease(calling, protocol.LeaseRequest{
		Worker: a.id, Study: a.options.Study, WaitSeconds: wait.Seconds(), Key: q.key,
	})
	if err == nil && reply.Lease != nil && q.repeated {
		sent, err = a.confirm(ctx, *reply.Lease)
	}
	q.answered(err)
	if err != nil {
		return protocol.LeaseReply{}, sent, err
	}
	return reply, sent, nil
}

// confirm renews a lease that may have been granted long ago, and returns when
// it asked for that. The error is lease_lost if the trial was given away since.
func (a *Agent) confirm(ctx context.Context, lease protocol.Lease) (clock.Moment, error) {
	reply, sent, err := a.send(ctx, protocol.Heartbeat{Leases: []protocol.HeldLease{{Trial: lease.Trial, LeaseEpoch: lease.LeaseEpoch}}})
	if err == nil && slices.Contains(reply.Lost, lease.Trial) {
		err = problem.New(problem.LeaseLost, "trial %s was leased in an answer that did not arrive, and has been given away since", lease.Trial)
	}
	return sent, err
}
