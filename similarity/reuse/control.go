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
	// farthest is how many epochs may lie between the default's and one that it is
	// compared with, where another trial has to end, or to start, between them.
	farthest = 2
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
	next := *pending
	seconds, joules := math.Log(max(least, epoch.Seconds)), math.Log(max(least, epoch.Joules))
	same, useful := epoch.Configuration.Equal(pending.Configuration), epoch.Timed && !epoch.First && epoch.Seconds > 0
	beside := useful && epoch.Neighbours == pending.Neighbours
	switch between := pending.Alone && same && !epoch.First; {
	case pending.Waits && same && beside:
		next.LogSeconds, next.LogJoules, next.Before = seconds, joules, 0
		record.Contrast = &next
	case pending.Waits && between && pending.Before < farthest:
		next.Before++
		record.Contrast = &next
	case !pending.Ended && (same || epoch.First || pending.Waits): // the default did not run
	case !pending.Ended && epoch.Loads:
		record.Uncompared++
		record.Contrast = pending
	case !pending.Ended && useful && (beside && !pending.Alone || epoch.Alone && pending.Alone):
		next.Ended, next.DefaultLogSeconds, next.DefaultLogJoules = true, seconds, joules
		record.Contrast = &next
	case pending.Ended && same && beside:
		count(record.Cells, *pending, seconds, joules)
	case pending.Ended && between && pending.After < farthest:
		next.After++
		record.Contrast = &next
	default:
		record.Uncompared++
	}
	return record
}

// count adds the comparison that ends with an epoch to the cell of its configuration. Where
// the epochs before and after lie unlike far from the default's, the nearer one weighs more.
func count(cells []similarity.Cell, of similarity.Contrast, seconds, joules float64) {
	before, after := float64(of.Before+1), float64(of.After+1)
	one := similarity.Compared{
		Count:   1,
		Seconds: of.DefaultLogSeconds - (after*of.LogSeconds+before*seconds)/(before+after),
		Joules:  of.DefaultLogJoules - (after*of.LogJoules+before*joules)/(before+after),
	}
	for i, cell := range cells {
		if cell.Neighbours != of.Neighbours || !cell.Configuration.Equal(of.Configuration) {
			continue
		}
		sum := &cells[i].Compared
		if of.Alone {
			sum = &cells[i].ComparedAlone
		}
		if *sum != nil {
			one = (*sum).Plus(one)
		}
		*sum = &one
	}
}

// contrast is the comparison that is being made. It begins one with the default, if that is
// worth an epoch now; else it is nil. The epoch that has ended is its first part.
func (d decision) contrast(setting trial.Setting) *similarity.Contrast {
	epoch, at, standard := d.input.Epoch, d.input.Situation, d.standard()
	lacks := standard.Demand(at.Machine) > at.Cores // it cannot run now
	if pending := d.seen.own.Contrast; pending != nil {
		next := *pending
		next.Waits = pending.Waits && lacks
		if !next.Ended && d.input.Left < 2 || next.Waits && d.input.Left < 3 || pending.Waits && !next.Configuration.Equal(setting.Configuration) {
			return nil
		}
		return &next
	}
	needed, waits := 1, 0
	if d.loads(standard) {
		needed = 2 // the first of them loads its code
	}
	if lacks {
		waits = 1
	}
	settled := setting.Phase == trial.Decided || setting.Phase == trial.Study || setting.Phase == trial.Script || setting.Phase == trial.Similar
	switch {
	case !settled || d.input.Left <= needed+waits || !d.lastTimed(epoch):
		return nil
	case !epoch.Configuration.Equal(setting.Configuration) || epoch.Configuration.Equal(standard):
		return nil
	case !d.reachable(standard) || lacks && !d.mayWait(epoch.Configuration):
		return nil
	}
	log, deviation := d.costOf(standard, lacks)
	mean, half, enough := interval(d.comparisons(epoch.Configuration, epoch.Neighbours, lacks), ofSeconds)
	known := half <= max(sharp, mean*sharpPart) || lacks && mean+half <= 0
	if enough && known && d.checked() || lacks && log+2*deviation <= 0 {
		return nil
	}
	spent, epochs := d.spentOnControl()
	price := math.Exp(log)
	if lacks { // of the machine's time, while its cores wait as well: half an epoch's on average
		beside := float64(epoch.Neighbours)
		price = (1+beside)*price - 1 + beside/2
	}
	if made := float64(spent + needed); made > controlShare*float64(epochs) || made*price > controlCost*float64(epochs) {
		return nil
	}
	return &similarity.Contrast{Configuration: epoch.Configuration, Neighbours: epoch.Neighbours, Alone: lacks, Waits: lacks,
		LogSeconds: math.Log(max(least, epoch.Seconds)), LogJoules: math.Log(max(least, epoch.Joules))}
}

// mayWait reports whether the run, which has a part of the machine, may have it all for one
// epoch: as soon as the only other trial ends. Of several that end one after the other,
// too many cores would be idle for too long.
func (d decision) mayWait(configuration system.Configuration) bool {
	at := d.input.Situation
	return at.Elastic && d.input.Epoch.Neighbours == 1 && d.standard().Demand(at.Machine) >= at.Machine && configuration.Demand(at.Machine) < at.Machine
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

// costOf is how many times as long as now an epoch of the configuration takes, as a
// logarithm with its deviation: beside as many others, or alone.
func (d decision) costOf(configuration system.Configuration, alone bool) (log, deviation float64) {
	model := probing.Fit(d.grid, d.seen.observations(system.Seconds, d.grid))
	present := probing.Candidate{Configuration: d.input.Epoch.Configuration, Neighbours: d.input.Epoch.Neighbours}
	other := probing.Candidate{Configuration: configuration, Neighbours: present.Neighbours}
	if alone {
		other.Neighbours = 0
	}
	return model.Ratio(other, present)
}

// spentOnControl counts the comparisons of the run and its kin, and all their epochs.
func (d decision) spentOnControl() (comparisons, epochs int) {
	for record := range d.seen.kin() {
		comparisons += record.Uncompared
		if record.Contrast != nil && !record.Contrast.Waits {
			comparisons++
		}
		for _, cell := range record.Cells {
			epochs += cell.Epochs + cell.Firsts
			for _, compared := range []*similarity.Compared{cell.Compared, cell.ComparedAlone} {
				if compared != nil {
					comparisons += compared.Count
				}
			}
		}
	}
	return comparisons, epochs
}

// control is the setting of the default's epoch in a comparison, or of one that waits for it.
func (d decision) control(setting trial.Setting, waits bool) trial.Setting {
	if waits {
		setting.AwaitsControl = true
		setting.Why += "; the default runs once as soon as the machine is free, so that savings are measured"
		return setting
	}
	setting.Why = fmt.Sprintf("one epoch runs the default, so that what %s saves is measured", shown(setting.Configuration))
	setting.Configuration, setting.Phase = d.standard(), trial.Control
	return setting
}

// comparisons are those of the run and its kin under the configuration beside as many
// other trials: with the default beside as many, or alone.
func (d decision) comparisons(configuration system.Configuration, neighbours int, alone bool) similarity.Compared {
	var sum similarity.Compared
	for record := range d.seen.kin() {
		for _, cell := range record.Cells {
			compared := cell.Compared
			if alone {
				compared = cell.ComparedAlone
			}
			if compared != nil && cell.Neighbours == neighbours && cell.Configuration.Equal(configuration) {
				sum = sum.Plus(*compared)
			}
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
// Beside others that leave the default no room, an epoch's seconds are compared with those
// that the default takes alone. The machine gains more than that difference, as the others
// ran as well: what that is worth, and in joules, is not claimed.
func (d decision) saved() *trial.Saving {
	epoch, standard := d.input.Epoch, d.standard()
	if epoch.Seconds <= 0 || epoch.Loads || epoch.Configuration.Equal(standard) {
		return nil
	}
	found, share := d.comparisons(epoch.Configuration, epoch.Neighbours, false), float64(1+epoch.Neighbours)
	seconds, joules := compare(found, ofSeconds), compare(found, ofJoules)
	switch {
	case found.Count >= leastCompared:
	case d.input.Planned.Phase == trial.Probing:
		seconds, joules = d.lost(system.Seconds), d.lost(system.Joules)
	case epoch.Neighbours > 0 && d.input.Situation.Elastic:
		seconds, share = compare(d.comparisons(epoch.Configuration, epoch.Neighbours, true), ofSeconds), 1
		if seconds.mean < 0 {
			seconds = difference{} // others gained by it
		}
	}
	if seconds == (difference{}) && joules == (difference{}) {
		return nil
	}
	time := seconds.of(epoch.Seconds / share)
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

// drift is the standard deviation of what comparisons of one study have in common, and
// those of an hour later have not, as a logarithm: as much as the controls after four claims
// differed from them (docs/benchmarks/pipetune.md).
const drift = 0.012

func compare(found similarity.Compared, take quantity) difference {
	mean, half, enough := interval(found, take)
	half = math.Hypot(half, regression.Normal95*drift)
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
