package main

import (
	"fmt"
	"io"
	"math"
	"slices"
)

// column is one measure in a table.
type column struct {
	name string
	of   measure
}

// goals are what a run has measured in full after a share of its budget: anything,
// or a share of the best there is.
func goals() []column {
	until := func(missing float64) measure { return func(f finished) float64 { return f.reaches(missing) } }
	return []column{{"first full training", until(math.Inf(1))}, {"90% of the best", until(0.1)}, {"95%", until(0.05)}, {"98%", until(0.02)}, {"99%", until(0.01)}}
}

// censored takes a goal that was never reached for one reached at the end.
func censored(goals []column) []column {
	var columns []column
	for _, c := range goals {
		columns = append(columns, column{c.name, func(f finished) float64 { return min(c.of(f), 1) }})
	}
	return columns
}

// regrets are at shares of the budget.
func regrets() []column {
	var columns []column
	for _, share := range []float64{0.1, 0.3, 1} {
		columns = append(columns, column{fmt.Sprintf("%.0f%%", 100*share), func(f finished) float64 { return f.regretAt(share) }})
	}
	return columns
}

func headings(columns []column) []string {
	var texts []string
	for _, c := range columns {
		texts = append(texts, c.name)
	}
	return texts
}

// printAnswers shows what had to be spent until something was measured in full.
func (r report) printAnswers(w io.Writer, title string) {
	header(w, title+": % of the budget spent until it is measured, median (quartiles)", append([]string{"runs"}, headings(goals())...)...)
	for _, method := range r.methods() {
		count, cells := 0, ""
		for _, goal := range goals() {
			var values []float64
			for _, t := range r.tables {
				values = append(values, r.on(t, method, goal.of)...)
			}
			count = len(values)
			cells += " | " + spread(values)
		}
		if count > 0 {
			fmt.Fprintf(w, "| %s | %d%s |\n", method, count, cells)
		}
	}
}

// spread has the median and the quartiles of shares, each one of them, and counts
// those that are infinite.
func spread(shares []float64) string {
	if len(shares) == 0 {
		return ""
	}
	slices.Sort(shares)
	at := func(part float64) string {
		value := shares[int(math.Ceil(part*float64(len(shares))))-1]
		if math.IsInf(value, 1) {
			return "never"
		}
		return fmt.Sprintf("%.1f", 100*value)
	}
	text := fmt.Sprintf("%s (%s to %s)", at(0.5), at(0.25), at(0.75))
	if first, _ := slices.BinarySearch(shares, math.Inf(1)); first < len(shares) {
		text += fmt.Sprintf(", %d never", len(shares)-first)
	}
	return text
}
