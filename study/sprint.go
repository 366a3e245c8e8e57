package study

import (
	"fmt"

	"github.com/tandem-tune/tandem/protocol"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/workers/deflate"
)

// engine is what trials run on: how many at once, and what is left for sprints.
type engine struct {
	slots   int
	account protocol.SprintAccount
}

// allows reports whether any worker lets trials sprint, and says what that takes.
func (e engine) allows() bool { return e.account.Of > 0 && e.account.ExtraWatts > 0 }

// paysFor is the account of all workers together: what is left is spread over the
// time for which responses are predicted, so that an account that is not
// replenished is used as well.
func (e engine) paysFor() deflate.Account {
	return deflate.Account{Joules: e.account.Of, Watts: e.account.Watts + e.account.Joules/foreseen.Seconds()}
}

// sprint is how trials of a priority are sped up, as it was seen; fixed if all of
// its studies say themselves when. The zero value: not, or it is not known.
func (e engine) sprint(running []contender, history deflate.History) (sprint deflate.Sprint, fixed bool) {
	speed, known := history.Speed()
	if !known || speed <= 1 || !e.allows() {
		return deflate.Sprint{}, false
	}
	some, auto := false, false
	for _, c := range running {
		switch {
		case c.sprint == nil:
		case c.sprint.Auto:
			some, auto = true, true
		default:
			sprint.TimeoutSeconds = max(sprint.TimeoutSeconds, c.sprint.AfterSeconds)
			some = true
		}
	}
	if !some {
		return deflate.Sprint{}, false
	}
	sprint.Speed, sprint.Watts = speed, e.account.ExtraWatts
	return sprint, !auto
}

// decides reports whether anything is chosen for the study.
func (c contender) decides() bool { return c.accepts != nil || c.sprint != nil && c.sprint.Auto }

// leastGain is by how much a sprint has to speed trainings up to be worth it.
const leastGain = 1.01

// sprints notes after how long trials of the study sprint, and why.
func (d *deflation) sprints(c contender, history deflate.History, choice deflate.Choice, k int, on engine) {
	speed, known := history.Speed()
	if c.sprint != nil && known {
		d.speed = speed
	}
	if c.sprint == nil || !c.sprint.Auto {
		return
	}
	after := history.Seconds() / 2
	switch {
	case !on.allows():
		d.sprintWhy = "trials do not sprint: no worker that is heard of allows any (--sprint-joules and --sprint-extra-watts)"
	case history.Len() == 0:
		d.sprintWhy = fmt.Sprintf("trials do not sprint: none of priority %d has ended yet, so that how long they take is not known", c.priority)
	case !known:
		d.sprint, d.sprintWhy = &after, "trials sprint after half of what they take: by how much that speeds them up is not known before three have ended that had epochs with and without"
	case speed < leastGain:
		d.sprintWhy = "trials do not sprint: it was seen to make them no faster"
	case k < 0 || k >= len(choice.Sprints):
		d.sprint, d.sprintWhy = &after, fmt.Sprintf("trials sprint after half of what they take: of priority %d too few have ended in the last hour to choose by", c.priority)
	case choice.Sprints[k].Speed <= 1:
		d.sprintWhy = "trials do not sprint: those of other priorities bring more for what the workers may take"
	default:
		after = choice.Sprints[k].TimeoutSeconds
		d.sprint, d.sprintWhy = &after, fmt.Sprintf("trials sprint after %.3g s, as early as what the workers may take pays for in the next hour, with %.3g times the speed", after, speed)
	}
}

// sprinting is what a worker is told of a study's sprint; nil: the trial does not.
func (d deflation) sprinting(wanted *definition.Sprint) *definition.Sprint {
	switch {
	case wanted == nil || !wanted.Auto:
		return wanted
	case d.sprint == nil:
		return nil
	}
	return &definition.Sprint{AfterSeconds: *d.sprint}
}
