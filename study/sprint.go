package study

import (
	"fmt"
	"time"

	"github.com/tandem-tune/tandem/protocol"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/workers/deflate"
)

const (
	// leastGain is by how much a sprint has to speed trainings up to be worth it.
	leastGain = 1.01
	// sprintsOver is over how many seconds what is left for sprints is spread.
	sprintsOver = 3600
)

// sprintAll chooses after how long trials sprint whose studies leave that to the
// server: as early as is paid for by what comes back and what is left, spread over
// an hour. What studies take that say it themselves goes first, then those of the
// highest priority are served; those of one priority share alike.
func (s *Service) sprintAll(contenders []contender, chosen map[string]deflation, now time.Time) {
	account, at := *s.sprintAccounts(now), inSeconds(now)
	left := account.Watts + account.Joules/sprintsOver
	var autos []contender
	for _, c := range contenders {
		switch {
		case c.sprint == nil:
		case c.sprint.Auto:
			autos = append(autos, c)
		default:
			runs := s.deflator.recordOf(c.study).Runs
			speed, _ := runs.Speed()
			own := deflate.Sprint{TimeoutSeconds: c.sprint.AfterSeconds, Speed: speed, Watts: account.ExtraWatts}
			left -= own.Takes(runs.Plain(), runs.Rate(at))
		}
	}
	for i, c := range autos {
		alike := 0
		for _, other := range autos[i:] {
			if other.priority == c.priority {
				alike++
			}
		}
		one := chosen[c.study]
		left -= one.sprints(c, s.deflator.recordOf(c.study).Runs, at, protocol.SprintAccount{Of: account.Of, ExtraWatts: account.ExtraWatts, Watts: max(0, left) / float64(alike)})
		chosen[c.study] = one
	}
}

// sprints notes after how long trials of the study sprint with what it may take, and
// why. It returns the watts that this takes.
func (d *deflation) sprints(c contender, runs deflate.History, at float64, may protocol.SprintAccount) (takes float64) {
	speed, known := runs.Speed()
	if known {
		d.speed = speed
	}
	half := runs.Seconds() / 2
	switch {
	case may.Of <= 0 || may.ExtraWatts <= 0:
		d.sprintWhy = "trials do not sprint: no worker that is heard of allows any (--sprint-joules and --sprint-extra-watts)"
	case runs.Len() == 0:
		d.sprintWhy = "trials do not sprint: none of the study has ended yet, so that how long they take is not known"
	case !known:
		d.sprint, d.sprintWhy = &half, "trials sprint after half of what they take: by how much that speeds them up is not known before three have ended that had epochs with and without"
	case speed < leastGain:
		d.sprintWhy = "trials do not sprint: it was seen to make them no faster"
	case runs.Rate(at) == 0:
		d.sprint, d.sprintWhy = &half, "trials sprint after half of what they take: too few have ended in the last hour to choose by"
	case may.Watts <= 0:
		d.sprintWhy = "trials do not sprint: those of other studies take all that the workers may"
	default:
		sprint := deflate.Sprint{Speed: speed, Watts: may.ExtraWatts}.Paid(runs.Plain(), runs.Rate(at), deflate.Account{Joules: may.Of, Watts: may.Watts})
		d.sprint, d.sprintWhy = &sprint.TimeoutSeconds, fmt.Sprintf("trials sprint after %.3g s, as early as what the workers may take pays for in the next hour, with %.3g times the speed", sprint.TimeoutSeconds, speed)
		return sprint.Takes(runs.Plain(), runs.Rate(at))
	}
	return 0
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
