package analysis

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/similarity"
	"github.com/tandem-tune/tandem/similarity/groundtruth"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/study/system"
	"github.com/tandem-tune/tandem/trial"
)

// knobImpacts are how far time and energy of an epoch vary with each knob that the
// study tunes, by the name of the outcome. A run (see [similarity.Record]) trains
// one configuration of hyperparameters with several of the system, so epochs that
// differ in one knob only were measured.
func (q *Queries) knobImpacts(ctx context.Context, now journal.View) (map[string][]protocol.ParameterImpact, error) {
	tuning := now.Study.Definition.Tuning()
	if tuning == nil {
		return nil, nil
	}
	ids := make(map[string]bool)
	types, err := q.store.RecordTypes(ctx)
	if err != nil {
		return nil, err
	}
	var records []similarity.Record
	for _, machine := range types {
		clear(ids)
		for _, t := range now.Trials {
			for _, id := range recordsOf(t, now, machine) {
				ids[id] = true
			}
		}
		known, err := q.store.Records(ctx, machine)
		if err != nil {
			return nil, err
		}
		records = append(records, slices.DeleteFunc(known, func(record similarity.Record) bool { return !ids[record.ID] })...)
	}
	found := make(map[string][]protocol.ParameterImpact)
	for _, knob := range tuning.Tuned {
		for name, of := range map[string]timings{"training_seconds": loggedSeconds, "training_joules": loggedJoules} {
			if one, ok := knobImpact(knob.Name, records, of); ok {
				found[name] = append(found[name], one)
			}
		}
	}
	return found, nil
}

// recordsOf are the ids of the records that the trial may have written.
func recordsOf(t trial.Trial, now journal.View, machine string) []string {
	if t.Setting == nil {
		return nil
	}
	var ids []string
	setting := *t.Setting
	for drifts := range t.Setting.Drifts + 1 {
		setting.Drifts = drifts
		t.Setting = &setting
		for _, rung := range now.Ladder {
			t.Budget = rung.Budget
			ids = append(ids, groundtruth.RecordID(t, machine))
		}
	}
	return ids
}

// stretch is how far a run's epochs varied with a knob.
type stretch struct{ low, high extreme }

// extreme is the logarithm of what an epoch took, and the knob's value then.
type extreme struct {
	logarithm float64
	value     space.Value
}

func (s stretch) variation() float64 { return 1 - math.Exp(s.low.logarithm-s.high.logarithm) }

// knobImpact is the median over the runs that compared values of the knob; of an
// even number the lower one.
func knobImpact(knob string, records []similarity.Record, of timings) (protocol.ParameterImpact, bool) {
	var stretches []stretch
	for _, record := range records {
		if one, ok := stretchOf(knob, record, of); ok {
			stretches = append(stretches, one)
		}
	}
	if len(stretches) == 0 {
		return protocol.ParameterImpact{}, false
	}
	slices.SortStableFunc(stretches, func(a, b stretch) int { return cmp.Compare(a.variation(), b.variation()) })
	middle := stretches[(len(stretches)-1)/2]
	o := outcome{ImpactOutcome: ofCost("", "", "")}
	return protocol.ParameterImpact{
		Name: knob, Kind: space.System, Class: o.classOf(middle.variation()), Variation: middle.variation(),
		Lowest: math.Exp(middle.low.logarithm), Highest: math.Exp(middle.high.logarithm), LowestAt: middle.low.value, HighestAt: middle.high.value,
		Measured: true, Runs: len(stretches),
	}, true
}

// stretchOf compares epochs that differ in the knob only, beside as many other
// trials; of several such groups the one with most values. First epochs after a
// start warm up, and compare only with each other: they count where they compare
// more.
func stretchOf(knob string, record similarity.Record, of timings) (stretch, bool) {
	later, first := extremesOf(knob, record, of, false), extremesOf(knob, record, of, true)
	if len(first) > len(later) {
		later = first
	}
	if len(later) < 2 {
		return stretch{}, false
	}
	result := stretch{later[0], later[0]}
	for _, one := range later[1:] {
		if one.logarithm < result.low.logarithm {
			result.low = one
		}
		if one.logarithm > result.high.logarithm {
			result.high = one
		}
	}
	return result, true
}

// extremesOf are the times under the values of the knob, in the largest group.
func extremesOf(knob string, record similarity.Record, of timings, first bool) []extreme {
	type group struct {
		others     string
		neighbours int
	}
	groups := make(map[group][]extreme)
	for _, cell := range record.Cells {
		value, has := cell.Configuration[knob]
		logarithm, known := of(cell, first)
		if !has || !known {
			continue
		}
		others := maps.Clone(cell.Configuration)
		delete(others, knob)
		at := group{system.Configuration(others).Key(), cell.Neighbours}
		groups[at] = append(groups[at], extreme{logarithm, value})
	}
	var extremes []extreme
	for _, at := range slices.SortedFunc(maps.Keys(groups), func(a, b group) int {
		if a.neighbours != b.neighbours {
			return a.neighbours - b.neighbours
		}
		return strings.Compare(a.others, b.others)
	}) {
		if len(groups[at]) > len(extremes) {
			extremes = groups[at]
		}
	}
	return extremes
}

// timings are the logarithm of what epochs of a cell took, of those that come first
// after a start or of the others; false where there were none.
type timings func(cell similarity.Cell, first bool) (float64, bool)

func loggedSeconds(cell similarity.Cell, first bool) (float64, bool) {
	if first {
		return cell.FirstLogSeconds, cell.Firsts > 0
	}
	return cell.LogSeconds, cell.Epochs > 0
}

// leastLogged is the logarithm of less energy than any epoch takes: it stands for
// none that was metered.
const leastLogged = -20

func loggedJoules(cell similarity.Cell, first bool) (float64, bool) {
	if first {
		return cell.FirstLogJoules, cell.Firsts > 0 && cell.FirstLogJoules > leastLogged
	}
	return cell.LogJoules, cell.Epochs > 0 && cell.LogJoules > leastLogged
}
