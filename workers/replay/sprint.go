package replay

import (
	"fmt"
	"math"
	"slices"
)

// Sprint makes jobs of high priority faster for a while, as long as a budget of
// joules lasts (DiAS, thesis, chapter 4): a higher clock or power cap.
type Sprint struct {
	// Priority is the lowest that sprints.
	Priority int
	// AfterSeconds is for how long a job runs before it sprints: the timeout T.
	AfterSeconds float64
	// Speed is how fast it is then, relative to before; Watts what it draws more.
	Speed, Watts float64
	// BudgetJoules is what is there in the beginning, and at most; RefillWatts
	// how fast it comes back.
	BudgetJoules, RefillWatts float64
}

func (s *Sprint) check(policy string) error {
	if !(s.Speed >= 1) || !(s.AfterSeconds >= 0) || !(s.Watts >= 0) || !(s.BudgetJoules >= 0) || !(s.RefillWatts >= 0) || math.IsInf(s.Speed, 0) {
		return fmt.Errorf("policy %q sprints at speed %g after %g s, with %g W of %g J and %g W: the speed must be 1 or more, the others 0 or more", policy, s.Speed, s.AfterSeconds, s.Watts, s.BudgetJoules, s.RefillWatts)
	}
	return nil
}

// tank is the budget of sprints.
type tank struct {
	joules  float64
	since   float64
	running []*Running
	version int
}

// timeSprint puts a job's sprint on the agenda.
func (e *engine) timeSprint(one *Running) {
	if sprint := e.policy.Sprint; sprint != nil && one.Priority >= sprint.Priority && sprint.Speed > 1 {
		e.push(event{at: e.now + sprint.AfterSeconds, what: sprints, job: one, version: one.life})
	}
}

// sprint makes a job faster, if there is anything in the tank.
func (e *engine) sprint(one *Running) {
	e.tank.level(e.policy.Sprint, e.now)
	if e.tank.joules <= 0 || !one.Working() {
		return
	}
	e.tank.running = append(e.tank.running, one)
	e.bring(one)
	one.sprinting, one.sprinted = true, true
	e.rate(one, e.speed(one))
	e.planDrain()
}

// level reckons what is in the tank now.
func (t *tank) level(sprint *Sprint, now float64) {
	flow := sprint.RefillWatts - float64(len(t.running))*sprint.Watts
	t.joules = min(sprint.BudgetJoules, max(0, t.joules+flow*(now-t.since)))
	t.since = now
}

// planDrain puts the time at which the tank is empty on the agenda.
func (e *engine) planDrain() {
	e.tank.version++
	flow := float64(len(e.tank.running))*e.policy.Sprint.Watts - e.policy.Sprint.RefillWatts
	if flow > 0 {
		e.push(event{at: e.now + e.tank.joules/flow, what: drains, version: e.tank.version})
	}
}

// drained ends all sprints.
func (e *engine) drained(version int) {
	if version != e.tank.version {
		return
	}
	e.tank.level(e.policy.Sprint, e.now)
	running := e.tank.running
	e.tank.running, e.tank.joules = nil, 0
	for _, one := range running {
		e.slow(one)
	}
}

// slow takes a job back to its own speed.
func (e *engine) slow(one *Running) {
	e.bring(one)
	e.account.drawing -= one.watts(e.policy.Sprint)
	one.sprinting = false
	e.account.drawing += one.watts(e.policy.Sprint)
	if one.Working() {
		e.rate(one, e.speed(one))
	}
}

// endSprint is of a job that leaves its machine.
func (e *engine) endSprint(one *Running) {
	if !one.sprinting {
		return
	}
	e.tank.level(e.policy.Sprint, e.now)
	e.tank.running = slices.DeleteFunc(e.tank.running, func(other *Running) bool { return other == one })
	e.slow(one)
	e.planDrain()
}
