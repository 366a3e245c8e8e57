package approximation

import (
	"fmt"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/definition"
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
func (d *Controller) sprintAll(studies []Study, account protocol.SprintAccount, chosen map[string]Choice, now time.Time) {
	at := inSeconds(now)
	left := account.Watts + account.Joules/sprintsOver
	var autos []Study
	for _, c := range studies {
		switch {
		case c.Sprint == nil:
		case c.Sprint.Auto:
			autos = append(autos, c)
		default:
			runs := d.recordOf(c.ID).Runs
			speed, _ := runs.Speed()
			own := Sprint{TimeoutSeconds: c.Sprint.AfterSeconds, Speed: speed, Watts: account.ExtraWatts}
			left -= own.Takes(runs.Plain(), runs.Rate(at))
		}
	}
	for i, c := range autos {
		alike := 0
		for _, other := range autos[i:] {
			if other.Priority == c.Priority {
				alike++
			}
		}
		one := chosen[c.ID]
		left -= one.sprints(d.recordOf(c.ID).Runs, at, protocol.SprintAccount{Of: account.Of, ExtraWatts: account.ExtraWatts, Watts: max(0, left) / float64(alike)})
		chosen[c.ID] = one
	}
}

// sprints notes after how long trials of the study sprint with what it may take, and
// why. It returns the watts that this takes.
func (d *Choice) sprints(runs History, at float64, may protocol.SprintAccount) (takes float64) {
	speed, known := runs.Speed()
	if known {
		d.Speed = speed
	}
	half := runs.Seconds() / 2
	switch {
	case may.Of <= 0 || may.ExtraWatts <= 0:
		d.SprintWhy = "trials do not sprint: no worker that is heard of allows any (--sprint-joules and --sprint-extra-watts)"
	case runs.Len() == 0:
		d.SprintWhy = "trials do not sprint: none of the study has ended yet, so that how long they take is not known"
	case !known:
		d.Sprint, d.SprintWhy = &half, "trials sprint after half of what they take: by how much that speeds them up is not known before three have ended that had epochs with and without"
	case speed < leastGain:
		d.SprintWhy = "trials do not sprint: it was seen to make them no faster"
	case runs.Rate(at) == 0:
		d.Sprint, d.SprintWhy = &half, "trials sprint after half of what they take: too few have ended in the last hour to choose by"
	case may.Watts <= 0:
		d.SprintWhy = "trials do not sprint: those of other studies take all that the workers may"
	default:
		sprint := Sprint{Speed: speed, Watts: may.ExtraWatts}.Paid(runs.Plain(), runs.Rate(at), Account{Joules: may.Of, Watts: may.Watts})
		d.Sprint, d.SprintWhy = &sprint.TimeoutSeconds, fmt.Sprintf("trials sprint after %.3g s, as early as what the workers may take pays for in the next hour, with %.3g times the speed", sprint.TimeoutSeconds, speed)
		return sprint.Takes(runs.Plain(), runs.Rate(at))
	}
	return 0
}

// Sprinting is what a worker is told of a study's sprint; nil: the trial does not.
func (d Choice) Sprinting(wanted *definition.Sprint) *definition.Sprint {
	switch {
	case wanted == nil || !wanted.Auto:
		return wanted
	case d.Sprint == nil:
		return nil
	}
	return &definition.Sprint{AfterSeconds: *d.Sprint}
}
