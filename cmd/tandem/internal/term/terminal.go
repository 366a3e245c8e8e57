package term

import (
	"io"
	"os"
	"strconv"
	"strings"
	"unicode"

	terms "golang.org/x/term"
	"golang.org/x/text/width"
)

// usualColumns is the width of a terminal that does not tell it.
const usualColumns = 80

// terminal is where output can be redrawn.
type terminal struct{ file *os.File }

// terminalOf returns the terminal that the writer writes to, if it is one that
// can be redrawn.
func terminalOf(out io.Writer) (terminal, bool) {
	file, ok := out.(*os.File)
	return terminal{file}, ok && IsTerminal(file) && os.Getenv("TERM") != "dumb" && escapes(file)
}

// IsTerminal reports whether the file is a terminal.
func IsTerminal(file *os.File) bool {
	return terms.IsTerminal(int(file.Fd()))
}

// columns is how wide it is: what COLUMNS says, or else the terminal itself.
func (t terminal) columns() int {
	if told, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && told > 0 {
		return told
	}
	if wide, _, err := terms.GetSize(int(t.file.Fd())); err == nil && wide > 0 {
		return wide
	}
	return usualColumns
}

// columnsOf is how wide what is written may be; 0 where nothing bounds it, as in
// a file or a pipe.
func columnsOf(out io.Writer) int {
	if file, ok := out.(*os.File); ok && IsTerminal(file) {
		return terminal{file}.columns()
	}
	return 0
}

// displayWidth is how many columns of a terminal the text takes: two for wide
// letters, as of Chinese, none for marks that are set over others.
func displayWidth(text string) int {
	columns := 0
	for _, r := range text {
		columns += runeWidth(r)
	}
	return columns
}

func runeWidth(r rune) int {
	switch kind := width.LookupRune(r).Kind(); {
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case kind == width.EastAsianWide, kind == width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// shorten is the text in at most so many columns, with a … where it was cut.
func shorten(text string, columns int) string {
	if displayWidth(text) <= columns {
		return text
	}
	taken, end := 1, 0 // one for the …
	for at, r := range text {
		if taken += runeWidth(r); taken > columns {
			break
		}
		end = at + len(string(r))
	}
	return strings.TrimRight(text[:end], " ") + "…"
}
