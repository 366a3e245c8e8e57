package deployment

import (
	"slices"

	"github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/inference_emu/tuning"
)

// MostMeasured is how many settings of an architecture are measured on a board: then the
// answer is the best of those.
const MostMeasured = 12

// Cell is a setting to measure.
type Cell struct {
	Batch, Threads int
	Provider       string
}

// Next are the settings that a board is best asked to measure, the best first and no more
// than most: the one that would be recommended now, and those that would be better than
// every measured one if they took what the good end of their band says. None are left
// when no setting could be better, or [MostMeasured] are known. Then those that were measured
// are measured by the other providers, one after the other, which nothing estimates.
//
// To be optimistic where one is unsure finds the best with few measurements: the regret
// grows with the logarithm of their number (Srinivas and others, GP-UCB, ICML 2010).
func Next(a emu.Architecture, target Target, known []emu.Architecture, settings Settings, most int) ([]Cell, error) {
	cells, err := hopeful(a, target, known, settings, most)
	for _, provider := range target.having(settings) {
		if err != nil || len(cells) > 0 {
			break
		}
		cells = target.unprovided(withRuns(a, known), settings, provider)
	}
	return cells[:min(len(cells), most)], err
}

func hopeful(a emu.Architecture, target Target, known []emu.Architecture, settings Settings, most int) ([]Cell, error) {
	s, result, err := search(a, target, known, settings)
	if err == nil {
		result, _, err = s.underLoad(result)
	}
	most = min(most, MostMeasured-s.known())
	if err != nil || most <= 0 || result.Best == nil && result.Nearest == nil {
		return nil, err
	}
	chosen, best := result.Best, (*tuning.Evaluation)(nil)
	if chosen == nil {
		chosen = result.Nearest
	}
	for i, one := range result.Tried {
		if one.Outcome.Measured && (best == nil || one.Better(*best)) {
			best = &result.Tried[i]
		}
	}
	var hopes []tuning.Evaluation
	for _, one := range result.Tried {
		if one.Failure != "" || one.Outcome.Measured || !s.highest(one.Configuration) {
			continue
		}
		hoped := tuning.Hoped(tuning.Settings{Objective: settings.Objective, Constraints: settings.Constraints}, one)
		if first := one.Configuration == chosen.Configuration; first {
			hopes = slices.Insert(hopes, 0, hoped)
		} else if best == nil || hoped.Better(*best) {
			hopes = append(hopes, hoped)
		}
	}
	if len(hopes) > 0 {
		rest := hopes[1:]
		if hopes[0].Configuration != chosen.Configuration {
			rest = hopes
		}
		slices.SortStableFunc(rest, func(a, b tuning.Evaluation) int {
			switch {
			case a.Better(b):
				return -1
			case b.Better(a):
				return 1
			}
			return 0
		})
	}
	return s.apart(hopes, most), nil
}

// alike is how near two batches are that teach the same.
const alike = 1.25

// apart are the first cells, without those that are much like one before them.
func (s site) apart(hopes []tuning.Evaluation, most int) (cells []Cell) {
	for _, one := range hopes {
		cell := Cell{s.batches(one.Configuration.BatchSize), one.Configuration.Cores, ""}
		if len(cells) >= most {
			break
		}
		if !slices.ContainsFunc(cells, func(other Cell) bool {
			return other.Threads == cell.Threads && float64(max(other.Batch, cell.Batch)) < alike*float64(min(other.Batch, cell.Batch))
		}) {
			cells = append(cells, cell)
		}
	}
	return cells
}
