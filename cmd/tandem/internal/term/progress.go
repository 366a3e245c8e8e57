package term

import (
	"fmt"
	"io"
	"strings"
)

// Line is a line of output that is redrawn in its place where that is possible.
type Line struct {
	// Out is where it is written.
	Out    io.Writer
	screen *terminal // nil where there is none
	shown  bool
}

// NewLine returns a line of the output.
func NewLine(out io.Writer) Line {
	if screen, ok := terminalOf(out); ok {
		return Line{Out: out, screen: &screen}
	}
	return Line{Out: out}
}

// Redraws reports whether the line can be drawn in its place.
func (l *Line) Redraws() bool { return l.screen != nil }

// Draw puts a text in the place of the one before.
func (l *Line) Draw(text string) {
	fmt.Fprintf(l.Out, "\r\x1b[K%s", shorten(text, l.screen.columns()-1))
	l.shown = true
}

// Clear takes the line away.
func (l *Line) Clear() {
	if l.shown {
		fmt.Fprint(l.Out, "\r\x1b[K")
		l.shown = false
	}
}

// End leaves the last text standing.
func (l *Line) End() {
	if l.shown {
		fmt.Fprintln(l.Out)
		l.shown = false
	}
}

// barWidth is how wide a bar is, without its ends.
const barWidth = 20

// Bar shows a part of 1, in signs that every terminal and screen reader has.
func Bar(part float64) string {
	part = min(max(part, 0), 1)
	full := int(part * barWidth)
	return fmt.Sprintf("[%s%s] %3.0f%%", strings.Repeat("#", full), strings.Repeat("-", barWidth-full), 100*part)
}
