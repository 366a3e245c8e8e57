package study

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/placement"
)

// placing notes on a trial that is leased why its machine was chosen, and says it
// in words; empty where there was nothing to choose.
func (s *Service) placing(ctx context.Context, r *session, tx *transaction, t trial.Trial) (trial.Trial, string) {
	t = arrived(t, tx)
	t.Placement = nil
	if len(tx.here.chosen.types) == 0 {
		return t, ""
	}
	known, probes := s.outlook(ctx, r), s.allocator.Probes()
	encoded := known.encode(t.Configuration)
	look := func(machine string) sight { return known.epoch(encoded, t.Budget.DataFraction, machine, probes.Known) }
	options := slices.Clone(tx.here.chosen.types)
	if !slices.ContainsFunc(options, func(o trial.PlacementOption) bool { return o.Machine == tx.here.Machine }) {
		options = append(options, trial.PlacementOption{Machine: tx.here.Machine})
	}
	placed := &trial.Assignment{Energy: r.study.Definition.Placement.Energy, Machine: tx.here.Machine}
	placed.Options, placed.ByTime = scored(options, placed.Energy, look)
	placed.Options = fewest(placed.Options, tx.here.Machine)
	placed.Why = why(*placed)
	if first := tx.here.Skipped; first != "" && first != tx.here.Machine && !t.Budget.Measured() {
		epochs := t.Budget.Epochs - t.NextEpoch(r.ladder[t.Rung]) + 1
		if saved := savedBy(look(first), look(tx.here.Machine), epochs); saved != nil {
			placed.Instead, placed.Saved = first, saved
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
func scored(options []trial.PlacementOption, energy float64, look func(machine string) sight) (list []trial.PlacementOption, byTime bool) {
	predictions := make([]placement.Prediction, len(options))
	for i := range options {
		one := look(options[i].Machine)
		options[i].Basis, options[i].Estimated = one.basis, one.estimated
		if !one.known() {
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
func savedBy(instead, here sight, epochs int) *trial.Saving {
	if !instead.known() || !here.known() || epochs <= 0 {
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
			others = append(others, fmt.Sprintf("%s (score %.2f: %s)", one.Machine, float64(one.Score), amountsOf(*one.Epoch)))
		}
	}
	text := fmt.Sprintf("placed on %s with score %.2f at H=%g: an epoch should take %s (an estimate); compared with %s",
		p.Machine, float64(here.Score), p.Energy, amountsOf(*here.Epoch), strings.Join(others, ", "))
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

// arrived notes where a trial goes on that has moved.
func arrived(t trial.Trial, tx *transaction) trial.Trial {
	last := len(t.Migrations) - 1
	if last < 0 || t.Migrations[last].Arrived != "" {
		return t
	}
	t.Migrations = slices.Clone(t.Migrations)
	t.Migrations[last].Arrived, t.Migrations[last].ArrivedType = tx.here.Name, tx.here.Machine
	return t
}
