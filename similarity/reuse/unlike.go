package reuse

import (
	"math"
	"slices"

	"github.com/tandem-tune/tandem/similarity"
	"github.com/tandem-tune/tandem/study/system"
)

// unlike is by how much the logarithm of a ratio of costs may differ between two runs of
// one workload. It is far above what epochs scatter by.
const unlike = 0.3

// likeness compares two runs by the configurations that both were timed under beside as
// many others: one workload has the same ratios of costs in both. It is known only where
// they share several.
func likeness(a, b similarity.Record, objective system.Objective) (alike, known bool) {
	least, most, shared := math.Inf(1), math.Inf(-1), 0
	for _, one := range a.Cells {
		for _, other := range b.Cells {
			if one.Epochs == 0 || other.Epochs == 0 || one.Neighbours != other.Neighbours || !one.Configuration.Equal(other.Configuration) {
				continue
			}
			ratio := one.LogSeconds - other.LogSeconds
			if objective == system.Joules {
				ratio = one.LogJoules - other.LogJoules
			}
			least, most, shared = min(least, ratio), max(most, ratio), shared+1
		}
	}
	return most-least <= unlike, shared > 1
}

// alike leaves out runs of other studies that train another workload: those that are
// unlike this one, and where this one compares nothing yet, those that are unlike most of
// its study. Runs of its own study stay: epochs scatter, and what divides it is learned.
func (d decision) alike(study, script []similarity.Record) []similarity.Record {
	objective := d.input.Settings.Objective
	other := func(r similarity.Record) bool {
		alike, known := likeness(d.seen.own, r, objective)
		return known && !alike
	}
	script = slices.DeleteFunc(slices.Clone(script), other)
	if !d.seen.own.Compares() {
		script = slices.DeleteFunc(script, func(r similarity.Record) bool {
			balance := 0
			for _, one := range study {
				if alike, known := likeness(one, r, objective); known && alike {
					balance++
				} else if known {
					balance--
				}
			}
			return balance < 0
		})
	}
	return script
}
