package report

import (
	"fmt"
	"math"

	"github.com/tandem-tune/tandem/internal/format"
)

// curvesFigure has the learning curves of the best trials, each in the colours of
// the rungs it climbed.
func curvesFigure(source Source) figure {
	history, rungs := source.History, len(source.Study.Rungs)
	f := figure{ID: "curves", Title: "Learning curves by rung", Width: wide, Height: 300}
	var drawn []int
	for _, one := range source.Trials {
		if len(history.Curves[one.Number]) > 0 && len(drawn) < maxCurves {
			drawn = append(drawn, one.Number)
		}
	}
	if len(drawn) == 0 {
		f.Summary = "No trial has reported an epoch."
		return f
	}
	best := drawn[0]
	var values []float64
	first, last := math.Inf(1), math.Inf(-1)
	for _, number := range drawn {
		for _, point := range history.Curves[number] {
			values = append(values, point.Value)
			first, last = min(first, float64(point.Epoch)), max(last, float64(point.Epoch))
		}
	}
	ofBest := history.Curves[best]
	low, high, outside := fairRange(values, ofBest[len(ofBest)-1].Value)
	if first == last { // a single epoch stands in the middle
		first, last = first-0.5, last+0.5
	}
	a := plotIn(f.Width, f.Height, scale{low: first, high: last}, scale{low: low, high: high})
	f.frame(a, "epoch", history.Metric, tick)
	f.Summary = fmt.Sprintf("%s over epochs, of the %s best trials with reports; the thickest line is of trial %d.", history.Metric, fmt.Sprint(len(drawn)), best)
	for i := len(drawn) - 1; i >= 0; i-- { // the best one on top
		f.curve(a, drawn[i], history.Curves[drawn[i]], curveStyle{rungs, drawn[i] == best})
	}
	f.Keys = append(rungKeys(rungs), key{"leader", "line", fmt.Sprintf("trial %d, the best", best)})
	if left := len(history.Curves) - len(drawn); left > 0 {
		f.note(fmt.Sprintf("%s of the %d that reported are drawn, the best ones; %d are left out.", format.Count(len(drawn), "trial"), len(history.Curves), left))
	}
	if outside > 0 {
		f.note(fmt.Sprintf("%s outside the range, or not a finite number, %s not drawn.", format.Count(outside, "value"), isAre(outside)))
	}
	if objective := source.Study.Definition.Objectives[0]; objective.Metric == "" {
		f.note(fmt.Sprintf("The objective %s is a formula, known only where a rung ends: the curves are of %s.", objective.Label(), history.Metric))
	}
	return f
}

type curveStyle struct {
	rungs int
	best  bool
}

// curve draws one: a path for each rung, which begins where the one below ended
// if it continues it.
func (f *figure) curve(a axes, number int, points []Point, style curveStyle) {
	var path trace
	finish := func(rung int) {
		class := "curve " + rungClass(rung, style.rungs)
		if style.best {
			class = "curve leader"
		}
		f.path(class, &path, fmt.Sprintf("trial %d, rung %d", number, rung))
	}
	for i, point := range points {
		if i > 0 && point.Rung != points[i-1].Rung {
			finish(points[i-1].Rung)
			path = trace{}
			if before := points[i-1]; before.Epoch < point.Epoch && a.y.inside(before.Value) {
				path.to(a.x.at(float64(before.Epoch)), a.y.at(before.Value))
			}
		}
		if !a.y.inside(point.Value) {
			finish(point.Rung)
			path = trace{}
			continue
		}
		x, y := a.x.at(float64(point.Epoch)), a.y.at(point.Value)
		path.to(x, y)
		if len(points) == 1 {
			f.circle("dot "+rungClass(point.Rung, style.rungs), x, y, dotRadius(point.Rung, style.rungs), fmt.Sprintf("trial %d: %s", number, tick(point.Value)))
		}
	}
	if len(points) > 0 {
		finish(points[len(points)-1].Rung)
	}
}
