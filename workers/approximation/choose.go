package approximation

import (
	"fmt"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/workers/pool"
)

// dropSteps is how finely it is looked how much a study allows: in steps of 1/20.
const dropSteps = 20

// Study is a running study as the controller sees it.
type Study struct {
	ID       string
	Priority int
	Accepts  *definition.Approximation
	Limits   Limits
	Sprint   *definition.Sprint
	// Curve is what leaving data out costs; Unknown says why there is none.
	Curve   Curve
	Unknown error
	// Waits is for how many seconds a worker could have had its next trial, were it
	// not for others; 0: nothing waits.
	Waits float64
	// Workers are those that its trials could be on, were nothing there.
	Workers map[string]bool
}

// limited reports whether it is said how long the study's trials may take.
func (c Study) limited() bool { return c.Limits != Limits{} }

// Choose says anew what trials of low priority leave out, and which of them sprint for
// those that wait. The studies come with the highest priority first, the leases are
// all that there are, the account is what all workers may spend on sprints, and
// awaited has the workers that trials of a priority wait for.
func (d *Controller) Choose(studies []Study, leases []pool.Lease, account protocol.SprintAccount, awaited map[string]int, now time.Time) {
	chosen := map[string]Choice{}
	for _, c := range studies {
		if c.Accepts != nil || c.limited() || c.Sprint != nil && c.Sprint.Auto {
			chosen[c.ID] = Choice{Chosen: now, Why: "nothing is left out: the study has no approximation"}
		}
	}
	d.leaveOutAll(studies, leases, chosen, now)
	d.sprintAll(studies, account, chosen, now)
	d.settle(chosen, awaited)
}

// most is the largest share of its data that the study allows to leave out, and
// why that is nothing.
func (c Study) most() (share float64, why string) {
	if c.Accepts == nil {
		return 0, ""
	}
	if c.Accepts.MetricLoss == 0 {
		return c.Accepts.MostDrop, ""
	}
	if c.Unknown != nil {
		return 0, "nothing is left out: it is not known what that would cost, as " + c.Unknown.Error()
	}
	for step := 1; step < dropSteps; step++ {
		drop := float64(step) / dropSteps
		if drop > c.Accepts.MostDrop+1e-9 || c.Curve.Bound(drop) > c.Accepts.MetricLoss {
			break
		}
		share = drop
	}
	if share == 0 {
		return 0, fmt.Sprintf("nothing is left out: a share of 1/%d may cost %.3g already, and approximation.metric_loss is %g", dropSteps, c.Curve.Bound(1.0/dropSteps), c.Accepts.MetricLoss)
	}
	return share, ""
}

// leaveOutAll has the controller of each study with limits say what those of a lower
// priority that run on the same workers leave out. Of several of these each leaves
// out the same share, as far as it allows that much.
func (d *Controller) leaveOutAll(studies []Study, leases []pool.Lease, chosen map[string]Choice, now time.Time) {
	var below []Study
	for _, c := range studies {
		if c.Accepts == nil {
			continue
		}
		one := chosen[c.ID]
		one.Most, one.Why = c.most()
		if one.Why == "" {
			one.Why = "nothing is left out: no study of a higher priority runs on its workers that has response_seconds"
			below = append(below, c)
		}
		if c.Priority == studies[0].Priority {
			one.Why = "nothing is left out: no study of a higher priority is running"
		}
		chosen[c.ID] = one
	}
	worst := map[string]Verdict{}
	for _, c := range studies {
		if !c.limited() {
			continue
		}
		decision, others := d.ask(c, below, leases, chosen, now)
		one := chosen[c.ID]
		one.Met, one.LimitsWhy = decision.Met, limitsReason(decision, c)
		chosen[c.ID] = one
		for _, other := range others {
			one := chosen[other.ID]
			share := min(one.Most, decision.Share)
			if verdict, known := worst[other.ID]; known && (share < one.Drop || share == one.Drop && decision.Verdict <= verdict) {
				continue
			}
			worst[other.ID] = decision.Verdict
			one.Drop, one.Why = share, leftOutReason(share, decision, c)
			one.Loss, one.Bound = nil, nil
			if other.Unknown == nil && share > 0 {
				loss, bound := other.Curve.Loss(share), other.Curve.Bound(share)
				one.Loss, one.Bound = &loss, &bound
			}
			chosen[other.ID] = one
		}
	}
}

// ask asks the controller of a study's limits. The others are those of the
// studies below it which run on the same workers.
func (d *Controller) ask(c Study, below []Study, leases []pool.Lease, chosen map[string]Choice, now time.Time) (Decision, []Study) {
	at, record := inSeconds(now), d.recordOf(c.ID)
	o := Observations{Now: at, Limits: c.Limits, Ended: record.Runs.Runs(), Oldest: at}
	if c.Waits > 0 {
		o.Open = append(o.Open, Run{Began: at, Waited: c.Waits})
	}
	others, leavesOut := []Study{}, map[string]bool{}
	for _, other := range below {
		if other.Priority < c.Priority && c.meets(other) {
			others, leavesOut[other.ID] = append(others, other), true
			o.Most = max(o.Most, chosen[other.ID].Most)
		}
	}
	for _, lease := range leases {
		began := inSeconds(lease.Granted)
		switch {
		case lease.Study == c.ID:
			o.Open = append(o.Open, Run{Began: began, Waited: d.waited(lease.Trial), Seconds: max(1e-3, at-began)})
		case leavesOut[lease.Study] && c.Workers[lease.Worker]:
			o.Below, o.Oldest = o.Below+1, min(o.Oldest, began)
		}
	}
	state, decision := NextShare(record.State, o)
	d.controlled(c.ID, state)
	return decision, others
}

// meets reports whether both studies' trials could be on one worker.
func (c Study) meets(other Study) bool {
	for worker := range other.Workers {
		if c.Workers[worker] {
			return true
		}
	}
	return false
}
