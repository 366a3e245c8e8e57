package placement

import (
	"cmp"
	"math"
	"slices"
)

// Probe is what a probing task took on a machine (section 3.3.1). Setting is what
// of the machine was set for it, such as a governor or a power cap; it has no
// form, and is only compared.
type Probe struct {
	Workload, Setting string
	Took              Prediction
}

// Ratio is how many times the seconds and joules of one machine another one
// takes, by the probing tasks that both ran: the geometric mean over these, each
// in a setting that both tried or else over all settings. The joules are 0 where
// no probe of both knows them. It is false where the machines have no probe in
// common.
//
// The thesis predicts a task on a machine by a model that was trained with the
// probes there; a ratio says the same of a task that was seen elsewhere, and
// assumes that it is no other kind of work than the probes are.
func Ratio(from, to []Probe) (Prediction, bool) {
	if ratio, found := ratioBy(from, to, func(p Probe) string { return p.Workload + "\x00" + p.Setting }); found {
		return ratio, true
	}
	return ratioBy(from, to, func(p Probe) string { return p.Workload })
}

// logs are what probes with one key took together.
type logs struct {
	seconds, joules float64
	count, metered  int
}

func (l logs) with(p Prediction) logs {
	l.seconds += math.Log(p.Seconds)
	l.count++
	if p.Joules > 0 {
		l.joules += math.Log(p.Joules)
		l.metered++
	}
	return l
}

func logsBy(probes []Probe, key func(Probe) string) map[string]logs {
	all := map[string]logs{}
	for _, one := range probes {
		if one.Took.usable() {
			all[key(one)] = all[key(one)].with(one.Took)
		}
	}
	return all
}

func ratioBy(from, to []Probe, key func(Probe) string) (Prediction, bool) {
	before, after := logsBy(from, key), logsBy(to, key)
	var common []string
	for name := range before {
		if _, both := after[name]; both {
			common = append(common, name)
		}
	}
	slices.SortFunc(common, cmp.Compare[string]) // sums of floats depend on their order
	seconds, joules, metered := 0.0, 0.0, 0
	for _, name := range common {
		a, b := before[name], after[name]
		seconds += b.seconds/float64(b.count) - a.seconds/float64(a.count)
		if a.metered > 0 && b.metered > 0 {
			joules += b.joules/float64(b.metered) - a.joules/float64(a.metered)
			metered++
		}
	}
	if len(common) == 0 {
		return Prediction{}, false
	}
	ratio := Prediction{Seconds: math.Exp(seconds / float64(len(common)))}
	if metered > 0 {
		ratio.Joules = math.Exp(joules / float64(metered))
	}
	return ratio, true
}

// Times is what a task takes that takes so many times the seconds and joules.
func (p Prediction) Times(ratio Prediction) Prediction {
	return Prediction{Seconds: p.Seconds * ratio.Seconds, Joules: p.Joules * ratio.Joules}
}
