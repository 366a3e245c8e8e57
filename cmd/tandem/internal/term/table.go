package term

import (
	"fmt"
	"io"
	"strings"

	"github.com/tandem-tune/tandem/internal/format"
)

const (
	// between is the space between columns.
	between = 2
	// leastText is how short a column of text may become: "estimate:…" is told
	// from other words by that.
	leastText = 10
)

// Table prints rows under a heading, in columns. On a terminal it is as wide as
// that: the widest texts are shortened, never a number or an id, and where that
// is not enough, columns are left out from the right, and named below. In a
// file or a pipe everything is whole.
func Table(out io.Writer, heading []string, rows [][]string) error {
	_, err := io.WriteString(out, layout(heading, rows, columnsOf(out)))
	return err
}

// Rows prints a table with a row for each of the list, or what is said where there is
// none.
func Rows[T any](out io.Writer, list []T, none string, heading []string, row func(T) []string) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(out, none)
		return err
	}
	rows := make([][]string, 0, len(list))
	for _, one := range list {
		rows = append(rows, row(one))
	}
	return Table(out, heading, rows)
}

// column is one of a table's.
type column struct {
	heading string
	cells   []string
	// natural is how wide its cells are, least how short they may become.
	natural, least int
	width          int
}

// layout is the table in at most so many columns; 0: in as many as it takes.
func layout(heading []string, rows [][]string, columns int) string {
	all := columnsFrom(heading, rows)
	shown := all
	if columns > 0 {
		shown = fitting(all, columns)
	}
	var text strings.Builder
	line := func(cell func(column) string) {
		var said strings.Builder
		for _, one := range shown {
			piece := shorten(cell(one), one.width)
			said.WriteString(piece)
			said.WriteString(strings.Repeat(" ", one.width-displayWidth(piece)+between))
		}
		text.WriteString(strings.TrimRight(said.String(), " "))
		text.WriteByte('\n')
	}
	line(func(c column) string { return c.heading })
	for row := range rows {
		line(func(c column) string { return c.cells[row] })
	}
	if hidden := all[len(shown):]; len(hidden) > 0 {
		names := make([]string, len(hidden))
		for i, one := range hidden {
			names[i] = one.heading
		}
		note := fmt.Sprintf("Left out for want of room (a wider terminal or a pipe has them): %s", strings.Join(names, ", "))
		for _, line := range wrapped(note, max(columns, leastText)) {
			fmt.Fprintln(&text, line)
		}
	}
	return text.String()
}

// columnsFrom turns rows around. Whatever stands in a cell steers no terminal.
func columnsFrom(heading []string, rows [][]string) []column {
	count := len(heading)
	for _, row := range rows {
		count = max(count, len(row))
	}
	all := make([]column, count)
	for i := range all {
		c := column{cells: make([]string, len(rows))}
		if i < len(heading) {
			c.heading = format.Plain(heading[i])
		}
		whole := c.heading == "ID" // is for copying
		numbers := true
		for at, row := range rows {
			if i < len(row) {
				c.cells[at] = format.Plain(row[i])
			}
			c.natural = max(c.natural, displayWidth(c.cells[at]))
			numbers = numbers && numeric(c.cells[at])
		}
		c.least = c.natural
		if !numbers && !whole {
			c.least = min(c.natural, leastText)
		}
		c.width = max(c.natural, displayWidth(c.heading))
		all[i] = c
	}
	return all
}

// numeric reports whether a cell is a number, with a unit perhaps, or stands
// for one.
func numeric(cell string) bool {
	switch cell {
	case "", "-", "?", "NaN", "+Inf", "-Inf":
		return true
	}
	digits := strings.TrimLeft(cell, "+-~.±")
	return digits != "" && digits[0] >= '0' && digits[0] <= '9'
}

// fitting are the columns, from the left, that have room, with their widths.
func fitting(all []column, columns int) []column {
	for count := len(all); count > 1; count-- {
		shown := append([]column(nil), all[:count]...)
		over := between*(count-1) - columns
		for _, one := range shown {
			over += one.width
		}
		if over = shrink(shown, over); over <= 0 {
			return shown
		}
	}
	return all[:min(len(all), 1)]
}

// floor is how narrow the column may become. A heading over narrow cells may
// lose its end.
func (c column) floor() int {
	return max(c.least, min(displayWidth(c.heading), leastText))
}

// shrink takes columns off the widest that have any to give, and returns how
// many are over still.
func shrink(shown []column, over int) int {
	for ; over > 0; over-- {
		widest := -1
		for i, one := range shown {
			if one.width > one.floor() && (widest < 0 || one.width > shown[widest].width) {
				widest = i
			}
		}
		if widest < 0 {
			return over
		}
		shown[widest].width--
	}
	return over
}

// wrapped is a text in lines of at most so many columns. A word that is longer is
// shortened.
func wrapped(text string, columns int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		word = shorten(word, columns)
		switch {
		case line == "":
			line = word
		case displayWidth(line)+1+displayWidth(word) <= columns:
			line += " " + word
		default:
			lines, line = append(lines, line), word
		}
	}
	return append(lines, line)
}
