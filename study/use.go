package study

import (
	"cmp"
	"slices"

	"github.com/tandem-tune/tandem/study/system"
	"github.com/tandem-tune/tandem/trial"
)

// use adds up under which system configurations a study's epochs ran. It is kept
// up to date with the trials: adding up thousands of them takes too long for a
// page that asks every second.
type use map[usedWith]trial.SystemUse

// usedWith is a configuration's key, and a phase.
type usedWith struct {
	configuration string
	phase         trial.Phase
}

// replace takes out what a trial had and puts in what it has now.
func (u use) replace(before, now []trial.SystemUse) {
	if len(before) == len(now) && (len(now) == 0 || &before[0] == &now[0]) {
		return // the list is made anew whenever it changes
	}
	for _, one := range before {
		u.add(one, -1)
	}
	for _, one := range now {
		u.add(one, 1)
	}
}

func (u use) add(one trial.SystemUse, sign int) {
	where := usedWith{system.Configuration(one.Configuration).Key(), one.Phase}
	sum, known := u[where]
	if !known {
		sum = trial.SystemUse{Configuration: one.Configuration, Phase: one.Phase}
	}
	one.Epochs *= sign
	one.Seconds *= trial.Float(sign)
	one.Joules *= trial.Float(sign)
	if one.Saved != nil {
		one.Saved = &trial.Saving{Seconds: one.Saved.Seconds * trial.Float(sign), Joules: one.Saved.Joules * trial.Float(sign)}
	}
	if sum = sum.Plus(one); sum.Epochs == 0 {
		delete(u, where)
		return
	}
	u[where] = sum
}

// list has those with the most epochs first, and counts the epochs of each phase.
// Both are nil where nothing was tuned.
func (u use) list() ([]trial.SystemUse, map[trial.Phase]int) {
	if len(u) == 0 {
		return nil, nil
	}
	var places []usedWith
	phases := make(map[trial.Phase]int)
	for where, one := range u {
		places = append(places, where)
		if where.phase != "" {
			phases[where.phase] += one.Epochs
		}
	}
	slices.SortFunc(places, func(a, b usedWith) int {
		return cmp.Or(cmp.Compare(u[b].Epochs, u[a].Epochs), cmp.Compare(a.configuration, b.configuration), cmp.Compare(a.phase, b.phase))
	})
	var sorted []trial.SystemUse
	for _, where := range places {
		sorted = append(sorted, u[where])
	}
	return sorted, phases
}
