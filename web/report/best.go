package report

import (
	"fmt"
	"math"

	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/trial"
)

// spent is what a chart of the best value so far goes over.
type spent struct {
	id, title, across string
	seconds           bool
	of                func(Measurement) float64
	shown             func(float64) string
}

// bestFigures are the best value so far, over time and over what was trained.
func bestFigures(source Source) []figure {
	created := source.Study.Created
	return []figure{
		bestFigure(source, spent{"best", "Best value so far, over time", "since the study was created", true,
			func(m Measurement) float64 { return m.At.Sub(created).Seconds() }, format.Seconds}),
		bestFigure(source, spent{"spent", "Best value so far, over epochs trained", "epochs of all trials together", false,
			func(m Measurement) float64 { return float64(m.Epochs) }, tick}),
	}
}

func bestFigure(source Source, over spent) figure {
	objective := source.Study.Definition.Objectives[0]
	rungs := len(source.Study.Rungs)
	f := figure{ID: over.id, Title: over.title, Width: wide, Height: 280}
	measured := source.History.Measurements
	leaders := source.History.Leaders(objective.Direction)
	if len(leaders) == 0 {
		f.Summary = "No trial has been measured."
		return f
	}
	last := leaders[len(leaders)-1]
	f.Summary = fmt.Sprintf("%s: the best value so far is %s, of trial %d, after %s.", objective.Label(), format.Number(trial.Float(last.Value)), last.Number, format.Count(len(measured), "measurement"))
	values := make([]float64, len(measured))
	most := 0.0
	for i, one := range measured {
		values[i], most = one.Value, max(most, over.of(one))
	}
	low, high, outside := fairRange(values, last.Value)
	a := plotIn(f.Width, f.Height, scale{low: 0, high: max(most, 1e-9), seconds: over.seconds}, scale{low: low, high: high})
	f.frame(a, over.across, objective.Label(), over.shown)
	for _, one := range evenly(measured, maxDots) {
		if !a.y.inside(one.Value) {
			continue
		}
		f.circle("dot "+rungClass(one.Rung, rungs), a.x.at(over.of(one)), a.y.at(one.Value), dotRadius(one.Rung, rungs),
			fmt.Sprintf("trial %d, rung %d: %s after %s", one.Number, one.Rung, format.Number(trial.Float(one.Value)), over.shown(over.of(one))))
	}
	f.path("leader", stair(a, leaders, over), "the best value so far")
	f.Keys = append([]key{{"leader", "line", "best so far"}}, rungKeys(rungs)...)
	f.target(a, objective)
	f.remarks(source, leaders, outside)
	if over.id == "best" {
		f.Numbers = leaderTable(source, leaders, objective)
	}
	return f
}

// stair keeps a leader's value until the next one.
func stair(a axes, leaders []Measurement, over spent) *trace {
	var path trace
	for i, one := range leaders {
		if i > 0 {
			path.to(a.x.at(over.of(one)), a.y.at(leaders[i-1].Value))
		}
		path.to(a.x.at(over.of(one)), a.y.at(one.Value))
	}
	path.to(a.x.to, a.y.at(leaders[len(leaders)-1].Value))
	return &path
}

// target is a line at the objective's target.
func (f *figure) target(a axes, objective definition.Objective) {
	if objective.Target == nil || !a.y.inside(*objective.Target) {
		return
	}
	at := a.y.at(*objective.Target)
	f.line("mark", a.x.from, at, a.x.to, at)
	f.text("tick end", a.x.to, at-4, "target "+tick(*objective.Target))
}

// remarks say what of the measurements is not drawn, and why the line may fall
// back.
func (f *figure) remarks(source Source, leaders []Measurement, outside int) {
	if measured := len(source.History.Measurements); measured > maxDots {
		f.note(fmt.Sprintf("%d of %d measurements are drawn as dots, evenly chosen; the line is of all.", maxDots, measured))
	}
	if outside > 0 {
		f.note(fmt.Sprintf("%s outside the range, or not a finite number, %s not drawn.", format.Count(outside, "value"), isAre(outside)))
	}
	if best := source.Recommendation.Best; best != nil && best.Estimated {
		f.note(fmt.Sprintf("The values of %s are estimates: joules or inferences that were not measured went into them.", best.Metric))
	}
	if stepsBack(leaders, source.Study.Definition.Objectives[0].Direction) {
		f.note("The line steps back where a higher rung was measured first: its values count more, since they were trained with more.")
	}
}

// stepsBack reports whether a leader was worse than the one before.
func stepsBack(leaders []Measurement, direction definition.Direction) bool {
	for i := 1; i < len(leaders); i++ {
		if better(leaders[i-1].Value, leaders[i].Value, direction) {
			return true
		}
	}
	return false
}

func isAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

func leaderTable(source Source, leaders []Measurement, objective definition.Objective) *table {
	t := &table{Caption: "The trials that led, in turn", Heading: []string{"After", "Trial", "Rung", objective.Label()}}
	drawn := evenly(leaders, maxRows)
	for _, one := range drawn {
		t.Rows = append(t.Rows, []cell{numeral(format.Seconds(one.At.Sub(source.Study.Created).Seconds())), numeral(fmt.Sprint(one.Number)),
			numeral(fmt.Sprint(one.Rung)), numeral(format.Number(trial.Float(one.Value)))})
	}
	if left := len(leaders) - len(drawn); left > 0 {
		t.Caption += fmt.Sprintf(" (%d between them left out)", left)
	}
	return t
}

// dotRadius tells rungs apart for those who see no colours.
func dotRadius(rung, rungs int) float64 {
	return 2 + 2.2*float64(rung)/math.Max(1, float64(rungs-1))
}

// rungKeys are the legend of rungs: of many, the first and the last.
func rungKeys(rungs int) []key {
	var keys []key
	for rung := range rungs {
		if rungs <= 5 || rung == 0 || rung == rungs-1 {
			keys = append(keys, key{rungClass(rung, rungs), "dot", fmt.Sprintf("rung %d", rung)})
		}
	}
	return keys
}
