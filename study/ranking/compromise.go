package ranking

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/objective"
	"github.com/tandem-tune/tandem/study/pareto"
	"github.com/tandem-tune/tandem/trial"
)

// compromise is why a trial is the best compromise of its front.
type compromise struct {
	usual []pareto.Range
	// passed is the trial that is nearer to the ideal; nil: there is none. tied are
	// the objectives in which the two cannot be told apart, better those in which the
	// chosen one is better.
	passed       *trial.Trial
	better, tied []int
}

// choose puts the best compromise before the others of a front, whose nearest to the
// ideal stand first already. Only trials that are as well known as the first compete.
func (b *Board) choose(front []*trial.Trial, points map[*trial.Trial]pareto.Point, usual []pareto.Range) compromise {
	why := compromise{usual: usual}
	formulas := b.banded(front)
	if formulas == nil {
		return why
	}
	var near []pareto.Judged
	for _, t := range front {
		if b.compareRepeated(front[0], t) != 0 {
			break
		}
		judged := pareto.Judged{Point: points[t]}
		for i, formula := range formulas {
			judged.Bands = append(judged.Bands, bandOf(t, formula, b.objectives[i].Direction, points[t][i]))
		}
		near = append(near, judged)
	}
	if at := pareto.Choose(near); at > 0 {
		why.passed = front[0]
		why.better, _, why.tied = pareto.Compare(near[at], near[0])
		chosen := front[at]
		copy(front[1:at+1], front[:at])
		front[0] = chosen
	}
	return why
}

// banded are the objectives' formulas, if the trials have values that are known only
// within bands; else nil.
func (b *Board) banded(front []*trial.Trial) []objective.Formula {
	if !slices.ContainsFunc(front, func(t *trial.Trial) bool { return t.Inference != nil && t.Inference.LatencyHighSeconds > 0 }) {
		return nil
	}
	formulas := make([]objective.Formula, 0, len(b.objectives))
	for _, one := range b.objectives {
		formula, err := one.Formula()
		if err != nil {
			return nil
		}
		formulas = append(formulas, formula)
	}
	return formulas
}

// bandOf is what the trial's score in an objective may be, as far as that follows from
// what inference of its model takes. The metrics are those of its newest report: from
// them comes the width of the band, and its place from the score.
func bandOf(t *trial.Trial, formula objective.Formula, direction definition.Direction, score float64) pareto.Band {
	band := pareto.Band{Low: score, High: score}
	i := t.Inference
	if i == nil || !(i.LatencyHighSeconds > 0) || !slices.ContainsFunc(formula.Names(), func(name string) bool { return slices.Contains(definition.EdgeNames(), name) }) {
		return band
	}
	value := func(latency, joules trial.Float) float64 {
		assumed, other := *t, *i
		other.LatencySeconds, other.SamplesPerSecond, other.JoulesPerSample = latency, trial.Float(i.BatchSize)/latency, joules
		other.P99Seconds *= latency / i.LatencySeconds
		assumed.Inference = &other
		return direction.Score(trial.Float(formula.Value(Numbers(assumed, t.Last))))
	}
	joules := []trial.Float{i.JoulesPerSampleLow, i.JoulesPerSampleHigh}
	if !(i.JoulesPerSampleHigh > 0) { // nothing is known of the device's power
		joules = []trial.Float{i.JoulesPerSample}
	}
	middle := value(i.LatencySeconds, i.JoulesPerSample)
	for _, latency := range []trial.Float{i.LatencyLowSeconds, i.LatencyHighSeconds} {
		for _, spent := range joules {
			if off := value(latency, spent) - middle; !math.IsNaN(off) {
				band.Low, band.High = min(band.Low, score+off), max(band.High, score+off)
			}
		}
	}
	return band
}

// why says why the first trial of a front is recommended.
func (b *Board) why(front []*trial.Trial, made compromise) string {
	first := front[0]
	if len(front) == 1 {
		return fmt.Sprintf("trial %d is chosen: no other is better than it in any objective, or as good in all", first.Number)
	}
	var ranges []string
	for i, one := range made.usual {
		direction := b.objectives[i].Direction
		ranges = append(ranges, fmt.Sprintf("%s from %.4g to %.4g", b.objectives[i].Label(), float64(direction.Score(trial.Float(one.Best))), float64(direction.Score(trial.Float(one.Worst)))))
	}
	again := ""
	if b.Repeated[first.Number] != nil {
		again = "of those that were trained again "
	}
	measured := "measured in parts of the usual ranges near the front (" + strings.Join(ranges, ", ") + ")"
	if made.passed == nil {
		return fmt.Sprintf("trial %d is chosen: %sit is the nearest to the best values of all objectives, %s", first.Number, again, measured)
	}
	return fmt.Sprintf("trial %d is chosen: trial %d is %snearer to the best values of all objectives, %s, but their difference in %s lies within the band of an estimate, and trial %d is better in %s",
		first.Number, made.passed.Number, again, measured, b.labels(made.tied), first.Number, b.labels(made.better))
}

// labels names objectives.
func (b *Board) labels(of []int) string {
	var names []string
	for _, i := range of {
		names = append(names, b.objectives[i].Label())
	}
	return strings.Join(names, " and ")
}

// TrainJoules is the one number of the server's that may be an estimate, or
// not known at all.
const TrainJoules = "train_joules"

// Numbers are what formulas may use of a trial: the metrics of a report, and
// what the server knows of it with the report counted in. A metric goes before
// a number of the server's with the same name.
func Numbers(t trial.Trial, metrics map[string]trial.Float) map[string]float64 {
	known := map[string]float64{
		"train_seconds": float64(t.Seconds), "epochs": float64(t.Budget.Epochs), "data_fraction": t.Budget.DataFraction,
	}
	if t.Budget.Measured() { // whose epochs are a bound
		known["epochs"] = float64(t.LastEpoch)
	}
	if t.Energy.Method != "" {
		known[TrainJoules] = float64(t.Energy.Joules)
	}
	if t.Cost != nil && t.Cost.Currency != "" {
		known[definition.TrainCost] = float64(t.Cost.Amount)
	}
	if t.Cost != nil && t.Cost.CO2 != nil {
		known[definition.TrainCO2] = float64(*t.Cost.CO2)
	}
	if i := t.Inference; i != nil && i.Device != "" {
		known["edge.latency_ms"], known["edge.samples_per_second"] = 1e3*float64(i.LatencySeconds), float64(i.SamplesPerSecond)
		known["edge.joules_per_sample"], known["edge.memory_mib"] = float64(i.JoulesPerSample), float64(i.MemoryBytes)/(1<<20)
		if known[definition.EdgeP99] = 1e3 * float64(i.P99Seconds); i.P99Seconds == 0 { // overloaded, or it does not run
			known[definition.EdgeP99] = math.NaN()
		}
		known["inference_seconds"], known["inference_joules"] = 1/float64(i.SamplesPerSecond), float64(i.JoulesPerSample)
	}
	for name, value := range metrics {
		known[name] = float64(value)
	}
	return known
}
