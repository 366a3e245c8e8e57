package main

import (
	"fmt"
	"io"
	"strings"
)

// line is a line of output that is redrawn in its place where that is possible.
type line struct {
	out    io.Writer
	screen *terminal // nil where there is none
	shown  bool
}

// newLine returns a line of the output.
func newLine(out io.Writer) line {
	if screen, ok := terminalOf(out); ok {
		return line{out: out, screen: &screen}
	}
	return line{out: out}
}

// redraws reports whether the line can be drawn in its place.
func (l *line) redraws() bool { return l.screen != nil }

// draw puts a text in the place of the one before.
func (l *line) draw(text string) {
	fmt.Fprintf(l.out, "\r\x1b[K%s", shortened(text, l.screen.columns()-1))
	l.shown = true
}

// clear takes the line away.
func (l *line) clear() {
	if l.shown {
		fmt.Fprint(l.out, "\r\x1b[K")
		l.shown = false
	}
}

// end leaves the last text standing.
func (l *line) end() {
	if l.shown {
		fmt.Fprintln(l.out)
		l.shown = false
	}
}

// barWidth is how wide a bar is, without its ends.
const barWidth = 20

// bar shows a part of 1, in signs that every terminal and screen reader has.
func bar(part float64) string {
	part = min(max(part, 0), 1)
	full := int(part * barWidth)
	return fmt.Sprintf("[%s%s] %3.0f%%", strings.Repeat("#", full), strings.Repeat("-", barWidth-full), 100*part)
}
