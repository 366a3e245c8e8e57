package reuse

import (
	"fmt"
	"math"

	"github.com/tandem-tune/tandem/internal/regression"
	"github.com/tandem-tune/tandem/similarity"
	"github.com/tandem-tune/tandem/similarity/probing"
	"github.com/tandem-tune/tandem/study/system"
	"github.com/tandem-tune/tandem/trial"
)

// A saving is a difference from the default configuration. An estimate of it from the
// epochs on which the configuration was chosen is too high: it was chosen because
// they were short. So a few later epochs run the default again, each between two
// under the configuration, and only these comparisons count.
const (
	// controlShare is the largest part of the epochs that are spent on comparisons, and
	// controlCost the largest part of their cost.
	controlShare = 0.05
	controlCost  = 0.1
	// leastCompared is how many comparisons there must be for an interval.
	leastCompared = 3
	// sharp is the half width of the interval, of a logarithm, at which more
	// comparisons are not worth their epochs; sharpPart that in parts of the mean.
	sharp     = 0.02
	sharpPart = 0.2
	// steady is by how much the logarithm of an epoch's cost may change within a run by
	// itself: it widens intervals of epochs that did not alternate.
	steady = 0.02
)

// contrasted is the record with the epoch in the comparison that is being made, if
// one is: it is dropped where the epoch is not the one it needs. An epoch under the
// default that only loaded its code is followed by another one.
func contrasted(record similarity.Record, epoch Epoch) similarity.Record {
	pending := record.Contrast
	if pending == nil {
		return record
	}
	record.Contrast = nil
	seconds, joules := math.Log(max(least, epoch.Seconds)), math.Log(max(least, epoch.Joules))
	useful := epoch.Timed && !epoch.First && epoch.Seconds > 0 && epoch.Neighbours == pending.Neighbours
	switch same := epoch.Configuration.Equal(pending.Configuration); {
	case !pending.Ended && (same || epoch.First): // the default did not run
	case !pending.Ended && epoch.Loads:
		record.Uncompared++
		record.Contrast = pending
	case !pending.Ended && useful:
		next := *pending
		next.Ended, next.DefaultLogSeconds, next.DefaultLogJoules = true, seconds, joules
		record.Contrast = &next
	case same && useful:
		one := similarity.Compared{
			Count:   1,
			Seconds: pending.DefaultLogSeconds - (pending.LogSeconds+seconds)/2,
			Joules:  pending.DefaultLogJoules - (pending.LogJoules+joules)/2,
		}
		for i, cell := range record.Cells {
			if cell.Neighbours == epoch.Neighbours && cell.Configuration.Equal(epoch.Configuration) {
				if cell.Compared != nil {
					one = cell.Compared.Plus(one)
				}
				record.Cells[i].Compared = &one
			}
		}
	default:
		record.Uncompared++
	}
	return record
}

// contrast is the comparison that is being made. It begins one with the default, if that is
// worth an epoch now; else it is nil. The epoch that has ended is its first part.
func (d decision) contrast(setting trial.Setting) *similarity.Contrast {
	epoch, at, standard := d.input.Epoch, d.input.Situation, d.standard()
	if pending := d.seen.own.Contrast; pending != nil {
		if !pending.Ended && d.input.Left < 2 {
			return nil
		}
		return pending
	}
	needed := 1
	if d.loads(standard) {
		needed = 2 // the first of them loads its code
	}
	settled := setting.Phase == trial.Decided || setting.Phase == trial.Study || setting.Phase == trial.Script || setting.Phase == trial.Similar
	switch {
	case !settled || d.input.Left <= needed || !d.lastTimed(epoch):
		return nil
	case !epoch.Configuration.Equal(setting.Configuration) || epoch.Configuration.Equal(standard):
		return nil
	case !d.reachable(standard) || standard.Demand(at.Machine) > at.Cores:
		return nil // it cannot run now
	}
	if mean, half, enough := interval(d.comparisons(epoch.Configuration, epoch.Neighbours), ofSeconds); enough && half <= max(sharp, mean*sharpPart) && d.checked() {
		return nil
	}
	spent, epochs := d.spentOnControl()
	if count := float64(spent + needed); count > controlShare*float64(epochs) || count*d.costOf(standard) > controlCost*float64(epochs) {
		return nil
	}
	return &similarity.Contrast{Configuration: epoch.Configuration, Neighbours: epoch.Neighbours,
		LogSeconds: math.Log(max(least, epoch.Seconds)), LogJoules: math.Log(max(least, epoch.Joules))}
}

// checked reports whether the run's study has made a comparison, or the run other ones: of
// another study's runs it is not sure that they are of the same workload.
func (d decision) checked() bool {
	return d.seen.own.Compares() || severalTimed(d.seen.study) > 0
}

// lastTimed reports whether the epoch says how long training takes by itself.
func (d decision) lastTimed(epoch Epoch) bool {
	return epoch.Timed && !epoch.First && epoch.Seconds > 0
}

// costOf is how many times as long as now an epoch of the configuration takes.
func (d decision) costOf(configuration system.Configuration) float64 {
	model := probing.Fit(d.grid, d.seen.observations(system.Seconds, d.grid))
	neighbours := d.input.Epoch.Neighbours
	log, _ := model.Ratio(probing.Candidate{Configuration: configuration, Neighbours: neighbours},
		probing.Candidate{Configuration: d.input.Epoch.Configuration, Neighbours: neighbours})
	return math.Exp(log)
}

// spentOnControl counts the comparisons of the run and its kin, and all their epochs.
func (d decision) spentOnControl() (comparisons, epochs int) {
	for record := range d.seen.kin() {
		comparisons += record.Uncompared
		if record.Contrast != nil {
			comparisons++
		}
		for _, cell := range record.Cells {
			epochs += cell.Epochs + cell.Firsts
			if cell.Compared != nil {
				comparisons += cell.Compared.Count
			}
		}
	}
	return comparisons, epochs
}

// control is the setting of the default's epoch in a comparison.
func (d decision) control(setting trial.Setting) trial.Setting {
	setting.Why = fmt.Sprintf("one epoch runs the default, so that what %s saves is measured", shown(setting.Configuration))
	setting.Configuration, setting.Phase = d.standard(), trial.Control
	return setting
}

// comparisons are those of the run and its kin under the configuration beside as many
// other trials.
func (d decision) comparisons(configuration system.Configuration, neighbours int) similarity.Compared {
	var sum similarity.Compared
	for record := range d.seen.kin() {
		for _, cell := range record.Cells {
			if cell.Compared != nil && cell.Neighbours == neighbours && cell.Configuration.Equal(configuration) {
				sum = sum.Plus(*cell.Compared)
			}
		}
	}
	return sum
}

// withinRuns compares a configuration beside others with the default, which takes the
// whole machine and so cannot run in turn with it: one comparison is of a run, the
// own one or one of its kin, that was timed under both.
func (d decision) withinRuns(configuration system.Configuration, neighbours int) similarity.Compared {
	var sum similarity.Compared
	for record := range d.seen.kin() {
		var alone, beside *similarity.Cell
		for i, cell := range record.Cells {
			switch {
			case cell.Epochs == 0:
			case cell.Neighbours == 0 && cell.Configuration.Equal(d.standard()):
				alone = &record.Cells[i]
			case cell.Neighbours == neighbours && cell.Configuration.Equal(configuration):
				beside = &record.Cells[i]
			}
		}
		if alone != nil && beside != nil {
			sum = sum.Plus(similarity.Compared{Count: 1,
				Seconds: alone.LogSeconds - beside.LogSeconds + math.Log(float64(1+neighbours)), Joules: alone.LogJoules - beside.LogJoules})
		}
	}
	return sum
}

// quantity takes one of the two means of comparisons.
type quantity func(similarity.Compared) (mean, squares float64)

func ofSeconds(c similarity.Compared) (mean, squares float64) {
	return c.Seconds, c.SecondsSquares
}
func ofJoules(c similarity.Compared) (mean, squares float64) {
	return c.Joules, c.JoulesSquares
}

// interval is the mean of comparisons with the half width of its 95% interval by
// Student's t; enough is false where there are too few for one.
func interval(of similarity.Compared, take quantity) (mean, half float64, enough bool) {
	if of.Count < leastCompared {
		return 0, 0, false
	}
	mean, squares := take(of)
	return mean, regression.HalfWidth(squares, of.Count), true
}

// saved is what the epoch's configuration saved against the default one, by the
// comparisons of the two; nil where no difference was measured. Of a configuration
// that was only probed, what it surely cost counts: by the model, where the interval
// does not hold zero. Epochs that loaded code were not compared, and save nothing.
func (d decision) saved() *trial.Saving {
	epoch, standard := d.input.Epoch, d.standard()
	if epoch.Seconds <= 0 || epoch.Loads || epoch.Configuration.Equal(standard) {
		return nil
	}
	found, drift := d.comparisons(epoch.Configuration, epoch.Neighbours), 0.0
	if epoch.Neighbours > 0 && d.input.Situation.Elastic {
		found, drift = d.withinRuns(epoch.Configuration, epoch.Neighbours), steady
	}
	seconds, joules := compare(found, ofSeconds, drift), compare(found, ofJoules, drift)
	if found.Count < leastCompared && d.input.Planned.Phase == trial.Probing {
		seconds, joules = d.lost(system.Seconds), d.lost(system.Joules)
	}
	if seconds == (difference{}) && joules == (difference{}) {
		return nil
	}
	time := seconds.of(epoch.Seconds / float64(1+epoch.Neighbours))
	energy := joules.of(epoch.Joules)
	return &trial.Saving{Seconds: time[1], SecondsLow: &time[0], SecondsHigh: &time[2], Joules: energy[1], JoulesLow: &energy[0], JoulesHigh: &energy[2]}
}

// difference is by how much the logarithm of the default's cost is above that of
// another configuration, with its interval. It is zero where that holds zero.
type difference struct{ mean, half float64 }

// of is what the default would have cost more than the epoch, from the lower bound
// to the upper one.
func (d difference) of(cost float64) (bounds [3]trial.Float) {
	for i, log := range []float64{d.mean - d.half, d.mean, d.mean + d.half} {
		bounds[i] = trial.Float(cost * math.Expm1(log))
	}
	return bounds
}

func compare(found similarity.Compared, take quantity, drift float64) difference {
	mean, half, enough := interval(found, take)
	half += drift
	if !enough || math.Abs(mean) <= half {
		return difference{}
	}
	return difference{mean, half}
}

// lost is by how much the epoch's configuration is dearer than the default's; zero if
// it may be as cheap.
func (d decision) lost(objective system.Objective) difference {
	model := probing.Fit(d.grid, d.seen.observations(objective, d.grid))
	neighbours := d.input.Epoch.Neighbours
	log, deviation := model.Ratio(probing.Candidate{Configuration: d.standard(), Neighbours: neighbours},
		probing.Candidate{Configuration: d.input.Epoch.Configuration, Neighbours: neighbours})
	half := regression.Normal95 * deviation
	if log+half >= 0 {
		return difference{}
	}
	return difference{log, half}
}
