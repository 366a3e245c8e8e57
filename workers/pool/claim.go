package pool

import (
	"slices"
	"time"
)

// clearedSpan is how long what was cleared for a study is kept for it: so much longer
// than a worker takes to ask that it could not have come any more.
const clearedSpan = 30 * time.Second

// cleared is a claim on what a trial has left.
type cleared struct {
	Claim
	// since is when it was first seen to stand; zero: not yet.
	since time.Time
}

// restate notes the priority of the study, if the claim is its.
func (c *Claim) restate(study string, priority int) {
	if c.Study == study {
		c.Priority = priority
	}
}

// clear keeps what the lease leaves for the study for which it made way.
func (l *Leases) clear(lease Lease) {
	by := lease.LeaveFor
	if by.Study == "" || by.Lapsed || slices.ContainsFunc(l.cleared[lease.Worker], func(one cleared) bool { return one.Study == by.Study }) {
		return
	}
	if l.cleared == nil {
		l.cleared = make(map[string][]cleared)
	}
	l.cleared[lease.Worker] = append(l.cleared[lease.Worker], cleared{Claim: by})
}

// take ends the claim on the worker of the study that has a trial there now.
func (l *Leases) take(lease Lease) {
	l.keepCleared(lease.Worker, func(one cleared) bool { return one.Study != lease.Study })
}

// keepCleared keeps some of the claims on what trials have left of a worker.
func (l *Leases) keepCleared(worker string, which func(cleared) bool) {
	var kept []cleared
	for _, one := range l.cleared[worker] {
		if which(one) {
			kept = append(kept, one)
		}
	}
	if len(kept) == 0 {
		delete(l.cleared, worker)
	} else {
		l.cleared[worker] = kept
	}
}

// Stand says of each claim whether it holds: whether the study wants, and may have,
// what trials leave of the worker. While it does not, others may have that; a claim on
// what was left already is over then, and so is one for which nobody has come. lapsed
// reports whether others may have anything that they might not have before.
func (l *Leases) Stand(now time.Time, holds func(study, worker string) bool) (lapsed bool) {
	for id, lease := range l.byTrial {
		if by := lease.LeaveFor; by.Study != "" {
			lease.LeaveFor.Lapsed = !holds(by.Study, lease.Worker)
			lapsed = lapsed || lease.LeaveFor.Lapsed && !by.Lapsed
			l.byTrial[id] = lease
		}
	}
	for worker, claims := range l.cleared {
		for i := range claims {
			if claims[i].since.IsZero() {
				claims[i].since = now
			}
		}
		before := len(claims)
		l.keepCleared(worker, func(one cleared) bool { return now.Sub(one.since) < clearedSpan && holds(one.Study, worker) })
		lapsed = lapsed || len(l.cleared[worker]) < before
	}
	return lapsed
}

// Claimed returns the claim of the highest priority on what trials leave of the worker,
// or have left: until all have left that make way for it, and its study has started, that
// is for that study. It may need it together, and others would be in its way again.
func (l *Leases) Claimed(worker string) (by Claim, claimed bool) {
	consider := func(one Claim) {
		if one.Study != "" && !one.Lapsed && (!claimed || one.Priority > by.Priority) {
			by, claimed = one, true
		}
	}
	for id := range l.byWorker[worker] {
		consider(l.byTrial[id].LeaveFor)
	}
	for _, one := range l.cleared[worker] {
		consider(one.Claim)
	}
	return by, claimed
}
