package report

import (
	"fmt"
	"math"

	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/space"
)

// axle is one of the parallel axes.
type axle struct {
	name    string
	x       float64
	numbers *scale        // of a float, an int or a value
	values  []space.Value // of a choice
	y       scale         // of a choice, over the places of its values
	none    float64       // where those without it go through; 0: all have it
}

// parallelFigure draws each measured trial as a line over axes of its parameters,
// with the objective last.
func parallelFigure(source Source) figure {
	f := figure{ID: "parallel", Title: "Parallel coordinates", Width: wide, Height: 340}
	all := measuredTrials(source.Trials)
	if len(all) == 0 {
		f.Summary = "No trial has been measured."
		return f
	}
	drawn := all[:min(len(all), maxLines)]
	list := axlesOf(source, drawn, &f)
	objective := source.Study.Definition.Objectives[0]
	f.Summary = fmt.Sprintf("%s as lines over %s and %s; the thickest line is trial %d, the best.",
		format.Count(len(drawn), "measured trial"), format.Count(len(list)-1, "parameter"), objective.Label(), drawn[0].Number)
	for i := len(drawn) - 1; i >= 0; i-- { // the best one on top
		class := "thread shade" + fmt.Sprint(shadeOf(float64(len(drawn)-1-i), float64(len(drawn)-1)))
		if i == 0 {
			class = "thread leader"
		}
		f.path(class, thread(list, drawn[i]), fmt.Sprintf("trial %d, rank %d: %s", drawn[i].Number, drawn[i].Rank, format.Parameters(drawn[i].Configuration)))
	}
	for _, one := range list { // over the lines, to be read
		f.axle(one)
	}
	f.Keys = []key{{"leader", "line", "the best trial"}, {"shade6", "line", "ranks first"}, {"shade0", "line", "ranks last"}}
	if left := len(all) - len(drawn); left > 0 {
		f.note(fmt.Sprintf("The %d best of %d measured trials are drawn; %d are left out.", len(drawn), len(all), left))
	}
	f.note("A line that ends before the last axis is of a trial whose value is not a finite number.")
	return f
}

// measuredTrials are those with a rank, which is their order.
func measuredTrials(trials []protocol.RankedTrial) []protocol.RankedTrial {
	var list []protocol.RankedTrial
	for _, one := range trials {
		if one.Rank > 0 {
			list = append(list, one)
		}
	}
	return list
}

// axlesOf are the axes: the parameters in the study's order, and the objective.
func axlesOf(source Source, drawn []protocol.RankedTrial, f *figure) []axle {
	parameters := source.Study.Definition.Space.Parameters
	if left := len(parameters) - maxAxes; left > 0 {
		f.note(fmt.Sprintf("The first %d parameters have an axis; %d are left out.", maxAxes, left))
		parameters = parameters[:maxAxes]
	}
	top, bottom := 46.0, f.Height-42
	list := make([]axle, 0, len(parameters)+1)
	for _, p := range parameters {
		one := axle{name: p.Name, values: p.Values}
		if len(p.Values) == 0 {
			low, high := p.Low, p.High
			one.numbers = &scale{low: low, high: high, from: bottom, to: top, log: p.Log && low > 0}
		} else {
			one.y = scale{low: 0, high: float64(len(p.Values) - 1), from: bottom, to: top}
		}
		if len(p.When) > 0 { // some have it not
			one.none = bottom + 16
		}
		list = append(list, one)
	}
	var values []float64
	for _, t := range drawn {
		if value, measured := t.Value(0); measured {
			values = append(values, float64(value))
		}
	}
	best := math.NaN()
	if value, measured := drawn[0].Value(0); measured {
		best = float64(value)
	}
	low, high, _ := fairRange(values, best)
	list = append(list, axle{name: source.Study.Definition.Objectives[0].Label(), numbers: &scale{low: low, high: high, from: bottom, to: top}})
	for i := range list {
		list[i].x = 50 + float64(i)*(f.Width-150)/math.Max(1, float64(len(list)-1))
	}
	return list
}

// axle draws one with its name and the values at its ends, or its choices.
func (f *figure) axle(one axle) {
	from, to := one.y.from, one.y.to
	if one.numbers != nil {
		from, to = one.numbers.from, one.numbers.to
	}
	f.line("axis", one.x, from, one.x, to)
	f.text("name", one.x-6, to-26, clipped(one.name, 16))
	if one.none > 0 {
		f.text("tick", one.x+5, one.none+13, "none")
	}
	if one.numbers != nil {
		f.text("tick", one.x+5, from+14, tick(one.numbers.low))
		f.text("tick", one.x+5, to-8, tick(one.numbers.high))
		return
	}
	every := (len(one.values) + 9) / 10
	for i, value := range one.values {
		if i%every == 0 {
			f.text("tick", one.x+5, one.y.at(float64(i))+4, clipped(format.Value(value), 12))
		}
	}
}

// thread is a trial's line. It leaves out axes that the trial has no place on.
func thread(list []axle, t protocol.RankedTrial) *trace {
	var path trace
	for i, one := range list {
		if i == len(list)-1 {
			if value, measured := t.Value(0); measured && value.IsFinite() {
				path.to(one.x, one.numbers.at(float64(value)))
			}
			continue
		}
		value, has := t.Configuration[one.name]
		if !has {
			if one.none > 0 {
				path.to(one.x, one.none)
			}
			continue
		}
		if one.numbers != nil {
			if number, is := value.Number(); is {
				path.to(one.x, one.numbers.at(number))
			}
			continue
		}
		for place, choice := range one.values {
			if choice == value {
				path.to(one.x, one.y.at(float64(place)))
			}
		}
	}
	return &path
}

// clipped is a text of at most so many letters.
func clipped(text string, most int) string {
	letters := []rune(format.Plain(text))
	if len(letters) <= most {
		return string(letters)
	}
	return string(letters[:most-1]) + "…"
}
