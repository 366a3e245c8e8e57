package analysis

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/trial"
)

// Measurements returns the results of the study's trials in the order in which
// they were measured, at most so many points of them.
func (q *Queries) Measurements(ctx context.Context, ref string, points int) (protocol.Measurements, error) {
	now, err := q.look(ctx, ref)
	if err != nil {
		return protocol.Measurements{}, err
	}
	direction := now.Study.Definition.Objectives[0].Direction
	all := measurementsOf(now.Trials, now.Study.Created)
	answer := protocol.Measurements{
		Study: now.Study.Definition.Name, Total: len(all), Results: []protocol.Measurement{},
		Leaders: changesOfLead(all, direction), Rungs: tallies(now.Trials, len(now.Ladder), direction), Sequence: now.Sequence,
	}
	for _, one := range all {
		if one.Seconds == nil {
			answer.Untimed++
		}
	}
	for _, at := range chosen(all, len(now.Ladder), points, direction) {
		answer.Results = append(answer.Results, all[at])
	}
	return answer, nil
}

// measurementsOf are all results but those of repeats, by time; those without one
// come first, as they are older than any that has one.
func measurementsOf(trials []trial.Trial, created time.Time) []protocol.Measurement {
	var all []protocol.Measurement
	for i := range trials {
		t := &trials[i]
		if t.RepeatOf != nil {
			continue
		}
		for at, result := range t.Results {
			if len(result.Values) == 0 {
				continue // of a study whose objectives this version cannot tell
			}
			one := protocol.Measurement{Number: t.Number, Rung: result.Rung, Values: result.Values, Violation: result.Violation, Promoted: t.Rung > result.Rung}
			when := result.At
			if when == nil && at == len(t.Results)-1 {
				when = t.Finished // an earlier version kept only this
			}
			if when != nil {
				seconds := math.Round(when.Sub(created).Seconds()*1000) / 1000
				one.Seconds = &seconds
			}
			all = append(all, one)
		}
	}
	slices.SortStableFunc(all, func(a, b protocol.Measurement) int { return cmp.Compare(secondsOf(a), secondsOf(b)) })
	return all
}

func secondsOf(one protocol.Measurement) float64 {
	if one.Seconds == nil {
		return math.Inf(-1)
	}
	return *one.Seconds
}

// changesOfLead finds each measurement that took the lead. Feasible ones lead before
// others, and values of different rungs do not compare: the higher rung leads.
func changesOfLead(all []protocol.Measurement, direction definition.Direction) []protocol.Leader {
	leaders := []protocol.Leader{}
	leader := -1
	for i := range all {
		took := !all[i].Values[0].IsNaN() && (leader < 0 || compareMeasured(all[i], all[leader], direction) < 0)
		if took {
			leader = i
		}
		// Whoever leads when the times begin is where the line begins.
		if leader >= 0 && all[i].Seconds != nil && (took || len(leaders) == 0) {
			ahead := all[leader]
			leaders = append(leaders, protocol.Leader{Seconds: *all[i].Seconds, Number: ahead.Number, Rung: ahead.Rung, Value: ahead.Values[0]})
		}
	}
	return leaders
}

// compareMeasured puts first what leads, as the leaderboard does of trials.
func compareMeasured(a, b protocol.Measurement, direction definition.Direction) int {
	if feasible := a.Violation == 0; feasible != (b.Violation == 0) {
		if feasible {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(b.Rung, a.Rung), cmp.Compare(a.Violation, b.Violation), direction.Compare(a.Values[0], b.Values[0]))
}

// tallies counts what is on each rung.
func tallies(trials []trial.Trial, rungs int, direction definition.Direction) []protocol.RungTally {
	list := make([]protocol.RungTally, rungs)
	for i := range trials {
		t := &trials[i]
		switch {
		case t.State == trial.Queued || t.State.Held():
			list[t.Rung].Active++
		case t.State == trial.Paused:
			list[t.Rung].Paused++
		}
		if t.RepeatOf != nil {
			continue // its configuration is counted already
		}
		for _, result := range t.Results {
			if len(result.Values) == 0 {
				continue
			}
			rung := &list[result.Rung]
			rung.Measured++
			if t.Rung > result.Rung {
				rung.Promoted++
			}
			if value := result.Values[0]; !value.IsNaN() && (rung.Best == nil || direction.Compare(value, *rung.Best) < 0) {
				rung.Best = &value
			}
		}
	}
	return list
}

// chosen are the places of at most so many measurements, in order. Every rung
// gets an equal share, and what a rung with few of them leaves goes to the others.
func chosen(all []protocol.Measurement, rungs, points int, direction definition.Direction) []int {
	byRung := make([][]int, rungs)
	for i, one := range all {
		byRung[one.Rung] = append(byRung[one.Rung], i)
	}
	slices.SortStableFunc(byRung, func(a, b []int) int { return cmp.Compare(len(a), len(b)) })
	var places []int
	for i, members := range byRung {
		share := (points - len(places)) / (rungs - i)
		if len(members) <= share {
			places = append(places, members...)
		} else if share > 0 {
			places = append(places, fewer(all, members, share, direction)...)
		}
	}
	slices.Sort(places)
	return places
}

// fewer chooses at most so many of a rung's measurements, of which there are
// more: of stretches of equal length the best, so that no progress is lost, and
// the middle one, so that the others are seen as they lie.
func fewer(all []protocol.Measurement, members []int, most int, direction definition.Direction) []int {
	stretches := max(1, most/2)
	kept := make([]int, 0, most)
	for i := range stretches {
		part := members[i*len(members)/stretches : (i+1)*len(members)/stretches]
		best := 0
		for at := range part {
			if compareMeasured(all[part[at]], all[part[best]], direction) < 0 {
				best = at
			}
		}
		kept = append(kept, part[best])
		if most == 1 {
			break
		}
		middle := len(part) / 2
		if middle == best {
			middle = (middle + 1) % len(part)
		}
		kept = append(kept, part[middle])
	}
	return kept
}
