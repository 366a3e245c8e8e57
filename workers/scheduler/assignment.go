package scheduler

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/placement"
	"github.com/tandem-tune/tandem/workers/scheduler/costmodel"
)

// Place is where a trial is leased.
type Place struct {
	// Machine is the type of the worker's machine, Skipped the first one on which the
	// trial was not begun for a better one.
	Machine, Skipped string
	// Types are the types that it was chosen among.
	Types []trial.PlacementOption
	// Energy is the weight of energy. Epochs is how many the trial has left there; 0
	// where nobody knows.
	Energy float64
	Epochs int
}

// Assign notes on a trial that is leased why its machine was chosen, and says it in
// words.
func Assign(t trial.Trial, at Place, estimate func(machine string) costmodel.Estimate) (trial.Trial, string) {
	options := slices.Clone(at.Types)
	if !slices.ContainsFunc(options, func(o trial.PlacementOption) bool { return o.Machine == at.Machine }) {
		options = append(options, trial.PlacementOption{Machine: at.Machine})
	}
	placed := &trial.Assignment{Energy: at.Energy, Machine: at.Machine}
	placed.Options, placed.ByTime = scored(options, placed.Energy, estimate)
	placed.Options = fewest(placed.Options, at.Machine)
	placed.Why = why(*placed)
	if at.Skipped != "" && at.Skipped != at.Machine {
		if saved := savedBy(estimate(at.Skipped), estimate(at.Machine), at.Epochs); saved != nil {
			placed.Instead, placed.Saved = at.Skipped, saved
			t.PlacementSaved = t.PlacementSaved.Plus(saved)
		}
	}
	t.Placement = placed
	return t, placed.Why
}

// mostOptions is how many types of machine a placement keeps.
const mostOptions = 16

// fewest keeps the best options, and the one that it went to.
func fewest(options []trial.PlacementOption, machine string) []trial.PlacementOption {
	if len(options) <= mostOptions {
		return options
	}
	own := slices.IndexFunc(options, func(o trial.PlacementOption) bool { return o.Machine == machine })
	if own < mostOptions {
		return slices.Clip(options[:mostOptions])
	}
	return append(slices.Clip(options[:mostOptions-1]), options[own])
}

// scored fills in what is predicted of each type, and puts the best one first.
// byTime says that energy was to count and is not known.
func scored(options []trial.PlacementOption, energy float64, look func(machine string) costmodel.Estimate) (list []trial.PlacementOption, byTime bool) {
	predictions := make([]placement.Prediction, len(options))
	for i := range options {
		one := look(options[i].Machine)
		options[i].Basis, options[i].Estimated = one.Basis, one.Estimated
		if !one.Known() {
			continue
		}
		predictions[i] = one.Prediction
		options[i].Epoch = estimateOf(one.Prediction)
		byTime = byTime || energy > 0 && one.Joules == 0
	}
	for i, score := range placement.Scores(predictions, energy) {
		options[i].Score = trial.Float(score)
	}
	slices.SortFunc(options, func(a, b trial.PlacementOption) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), strings.Compare(a.Machine, b.Machine))
	})
	return options, byTime
}

func estimateOf(p placement.Prediction) *trial.Estimate {
	return &trial.Estimate{Seconds: trial.Float(p.Seconds), Joules: trial.Float(p.Joules)}
}

// savedBy is what so many epochs on one type save against another; nil where one
// of them is not known.
func savedBy(instead, here costmodel.Estimate, epochs int) *trial.Saving {
	if !instead.Known() || !here.Known() || epochs <= 0 {
		return nil
	}
	saved := &trial.Saving{Seconds: trial.Float(instead.Seconds-here.Seconds) * trial.Float(epochs)}
	if instead.Joules > 0 && here.Joules > 0 {
		saved.Joules = trial.Float(instead.Joules-here.Joules) * trial.Float(epochs)
	}
	return saved
}

// mostNamed is how many other types a sentence names.
const mostNamed = 3

// why says a placement in words.
func why(p trial.Assignment) string {
	at := slices.IndexFunc(p.Options, func(o trial.PlacementOption) bool { return o.Machine == p.Machine })
	here := p.Options[at]
	if here.Epoch == nil {
		return fmt.Sprintf("placed on %s, of which nothing is known yet", p.Machine)
	}
	var others []string
	for _, one := range p.Options {
		switch {
		case one.Machine == p.Machine:
		case len(others) == mostNamed:
			others = append(others, "others")
		case len(others) > mostNamed:
		case one.Epoch == nil:
			others = append(others, one.Machine+" (nothing is known of it yet)")
		default:
			others = append(others, fmt.Sprintf("%s (score %.2f: %s)", one.Machine, float64(one.Score), metered(one)))
		}
	}
	basis := "an estimate"
	if here.Basis == trial.EarlierEpochs {
		basis = "an estimate from an earlier study of this command"
	}
	text := fmt.Sprintf("placed on %s with score %.2f at H=%g: an epoch should take %s (%s); compared with %s",
		p.Machine, float64(here.Score), p.Energy, metered(here), basis, strings.Join(others, ", "))
	if p.ByTime {
		text += "; by time alone, as energy is not known of all"
	}
	return text
}

// amountsOf says seconds and joules.
func amountsOf(e trial.Estimate) string {
	if e.Joules == 0 {
		return fmt.Sprintf("%.3g s", float64(e.Seconds))
	}
	return fmt.Sprintf("%.3g s and %.3g J", float64(e.Seconds), float64(e.Joules))
}

// metered says the amounts of a type, and where its joules come from no meter.
func metered(o trial.PlacementOption) string {
	if o.Estimated && o.Epoch.Joules > 0 {
		return amountsOf(*o.Epoch) + " that were not metered"
	}
	return amountsOf(*o.Epoch)
}
