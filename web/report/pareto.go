package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

// paretoFigures are the front of the first objective against each other one.
func paretoFigures(source Source) []figure {
	front := source.Recommendation.Pareto
	if front == nil {
		return nil
	}
	var list []figure
	for second := 1; second < len(front.Objectives); second++ {
		list = append(list, paretoFigure(source, *front, second))
	}
	return list
}

// place is a trial in the plane of two objectives.
type place struct {
	number  int
	x, y    float64
	onFront bool
}

func paretoFigure(source Source, front protocol.Pareto, second int) figure {
	first, other := front.Objectives[0].Name, front.Objectives[second].Name
	f := figure{ID: fmt.Sprintf("pareto-%d", second), Title: fmt.Sprintf("Pareto front: %s against %s", first, other), Width: wide, Height: 320}
	places := placesOf(source.Trials, front, second)
	if len(places) == 0 {
		f.Summary = "No feasible trial has been measured."
		return f
	}
	var xs, ys []float64
	for _, one := range places {
		xs, ys = append(xs, one.x), append(ys, one.y)
	}
	lowX, highX, outsideX := fairRange(xs, frontEdge(places, true))
	lowY, highY, outsideY := fairRange(ys, frontEdge(places, false))
	a := plotIn(f.Width, f.Height, scale{low: lowX, high: highX}, scale{low: lowY, high: highY})
	f.frame(a, first+" ("+string(front.Objectives[0].Direction)+")", other+" ("+string(front.Objectives[second].Direction)+")", tick)
	f.Summary = fmt.Sprintf("%s measured at rung %d; %s on the front, drawn as the large dots on the line.", format.Count(len(places), "trial"), front.Rung, format.Count(len(front.Trials), "trial"))
	var line trace
	for _, one := range places {
		if one.onFront && a.x.inside(one.x) && a.y.inside(one.y) {
			line.to(a.x.at(one.x), a.y.at(one.y))
		}
	}
	f.path("leader", &line, "the front")
	for _, one := range places {
		if !a.x.inside(one.x) || !a.y.inside(one.y) {
			continue
		}
		class, radius := "dot shade1", 2.5
		if one.onFront {
			class, radius = "dot front", 5
		}
		f.circle(class, a.x.at(one.x), a.y.at(one.y), radius, fmt.Sprintf("trial %d: %s %s, %s %s", one.number, first, tick(one.x), other, tick(one.y)))
	}
	f.Keys = []key{{"front", "dot", "on the front"}, {"shade1", "dot", "beaten in both, or in all objectives"}}
	if outside := max(outsideX, outsideY); outside > 0 {
		f.note(fmt.Sprintf("%s outside the range, or not a finite number, %s not drawn.", format.Count(outside, "trial"), isAre(outside)))
	}
	if len(front.Objectives) > 2 {
		f.note("The front is of all objectives: between two of them, its trials may seem beaten.")
	}
	if second == 1 {
		f.Numbers = frontTable(front)
		f.Notes = append(f.Notes, front.Notes...)
	}
	return f
}

// placesOf are the feasible trials measured at the front's rung, from the left.
// At most so many as a chart has dots; those of the front are always in.
func placesOf(trials []protocol.RankedTrial, front protocol.Pareto, second int) []place {
	on := map[int][]trial.Float{}
	for _, one := range front.Trials {
		on[one.Number] = one.Values
	}
	var list, rest []place
	for _, t := range trials {
		if values, is := on[t.Number]; is {
			list = append(list, place{t.Number, float64(values[0]), float64(values[second]), true})
			continue
		}
		for _, result := range t.Results {
			if result.Rung == front.Rung && result.Violation == 0 && len(result.Values) > second && t.RepeatOf == nil {
				rest = append(rest, place{t.Number, float64(result.Values[0]), float64(result.Values[second]), false})
			}
		}
	}
	list = append(list, rest[:min(len(rest), max(0, maxDots-len(list)))]...)
	slices.SortStableFunc(list, func(a, b place) int { return cmp.Compare(a.x, b.x) })
	return list
}

// frontEdge is a coordinate of the front, so that it is inside the drawing.
func frontEdge(places []place, across bool) float64 {
	for _, one := range places {
		if one.onFront {
			if across {
				return one.x
			}
			return one.y
		}
	}
	return math.NaN()
}

func frontTable(front protocol.Pareto) *table {
	t := &table{Caption: "The front, the best compromise first", Heading: []string{"Trial"}}
	for _, one := range front.Objectives {
		t.Heading = append(t.Heading, one.Name)
	}
	t.Heading = append(t.Heading, "Parameters")
	for i, one := range front.Trials {
		if i == maxRows {
			t.Caption += fmt.Sprintf(" (%d left out)", len(front.Trials)-maxRows)
			break
		}
		row := []cell{numeral(fmt.Sprint(one.Number))}
		for _, value := range one.Values {
			said := format.Number(value)
			if one.Estimated {
				said += " (estimate)"
			}
			row = append(row, numeral(said))
		}
		t.Rows = append(t.Rows, append(row, words(format.Parameters(one.Params))))
	}
	return t
}
