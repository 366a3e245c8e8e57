package report

import (
	"math"
	"strconv"
	"strings"
)

// figure is a chart as the template draws it.
type figure struct {
	// ID names it in the page, Title heads it, Summary says to those who do not
	// see it what is to be seen.
	ID, Title, Summary string
	Width, Height      float64
	Marks              []mark
	Keys               []key
	// Notes are sentences below: what was left out, what is an estimate.
	Notes []string
	// Numbers has what is drawn as a table, where the leaderboard has it not.
	Numbers *table
}

// mark is one thing that is drawn.
type mark struct {
	// Shape is line, path, circle, bar or text.
	Shape string
	Class string
	// X and Y are where it is, or begins; of a line, X2 and Y2 are where it ends,
	// of a bar its width and height, of a circle X2 is the radius.
	X, Y, X2, Y2 float64
	Path         string
	Text         string
	// Note is shown where a pointer rests on it.
	Note string
}

// key is a line of a legend.
type key struct {
	Class string
	// Shape is line, dot or bar.
	Shape string
	Text  string
}

// table is numbers in rows.
type table struct {
	Caption string
	Heading []string
	Rows    [][]cell
}

// Numeric reports whether a column holds numbers.
func (t table) Numeric(column int) bool {
	return len(t.Rows) > 0 && column < len(t.Rows[0]) && t.Rows[0][column].Number
}

// cell is one of a table's.
type cell struct {
	Text string
	// Number puts it to the right.
	Number bool
	// Strong sets it off.
	Strong bool
}

func words(text string) cell   { return cell{Text: text} }
func numeral(text string) cell { return cell{Text: text, Number: true} }

// coordinate is a place on a drawing, to a tenth.
func coordinate(value float64) string {
	return strconv.FormatFloat(math.Round(value*10)/10, 'f', -1, 64)
}

func (f *figure) line(class string, x, y, x2, y2 float64) {
	f.Marks = append(f.Marks, mark{Shape: "line", Class: class, X: x, Y: y, X2: x2, Y2: y2})
}

func (f *figure) circle(class string, x, y, radius float64, note string) {
	f.Marks = append(f.Marks, mark{Shape: "circle", Class: class, X: x, Y: y, X2: radius, Note: note})
}

// box is where a bar is.
type box struct{ x, y, width, height float64 }

func (f *figure) bar(class string, at box, note string) {
	f.Marks = append(f.Marks, mark{Shape: "bar", Class: class, X: at.x, Y: at.y, X2: max(at.width, 0.5), Y2: at.height, Note: note})
}

func (f *figure) text(class string, x, y float64, text string) {
	f.Marks = append(f.Marks, mark{Shape: "text", Class: class, X: x, Y: y, Text: text})
}

func (f *figure) path(class string, path *trace, note string) {
	if path.points > 1 {
		f.Marks = append(f.Marks, mark{Shape: "path", Class: class, Path: path.text.String(), Note: note})
	}
}

func (f *figure) note(text string) { f.Notes = append(f.Notes, text) }

// trace is a line through points.
type trace struct {
	text   strings.Builder
	points int
}

// to goes on to a point, from the one before if there is one.
func (t *trace) to(x, y float64) {
	command := " L"
	if t.points == 0 {
		command = "M"
	}
	t.text.WriteString(command + coordinate(x) + " " + coordinate(y))
	t.points++
}

// The room around a chart's plot.
const (
	plotLeft   = 64.0
	plotRight  = 12.0
	plotTop    = 12.0
	plotBottom = 42.0
	wide       = 880.0
)

// axes is a plot with two axes.
type axes struct {
	x, y scale
}

// frame draws the axes with their ticks and names.
func (f *figure) frame(a axes, across, up string, shown func(float64) string) {
	bottom := a.y.from
	for _, value := range a.y.ticks(5) {
		at := a.y.at(value)
		f.line("grid", a.x.from, at, a.x.to, at)
		f.text("tick end", a.x.from-6, at+4, tick(value))
	}
	for _, value := range a.x.ticks(7) {
		at := a.x.at(value)
		f.line("grid", at, bottom, at, bottom+4)
		f.text("tick middle", at, bottom+17, shown(value))
	}
	f.line("axis", a.x.from, bottom, a.x.to, bottom)
	f.text("name end", a.x.to, bottom+34, across)
	f.text("name", 4, plotTop-1, up)
}

// plotIn is the plot of a drawing of the size, for values in the ranges.
func plotIn(width, height float64, x, y scale) axes {
	x.from, x.to = plotLeft, width-plotRight
	y.from, y.to = height-plotBottom, plotTop+10
	return axes{x, y}
}

// rungClass is the class of a rung's colour: the higher, the darker (on a dark
// page: the lighter).
func rungClass(rung, rungs int) string {
	return "shade" + strconv.Itoa(shadeOf(float64(rung), float64(rungs-1)))
}

// shades is how many there are.
const shades = 7

func shadeOf(value, most float64) int {
	if most <= 0 {
		return shades - 1
	}
	return int(math.Round(min(max(value/most, 0), 1) * (shades - 1)))
}
