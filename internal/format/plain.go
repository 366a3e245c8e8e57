package format

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
)

// Plain removes what would steer a terminal, makes one line of the text, and
// shows what cannot be seen as an escape (\u202e): names and reasons come from
// other people's files and scripts.
func Plain(text string) string {
	var plain strings.Builder
	for _, r := range text {
		switch {
		case r == '\n', r == '\t':
			plain.WriteByte(' ')
		case r < 0x20, r >= 0x7f && r < 0xa0:
		case unseen(r):
			plain.WriteString(escaped(r))
		default:
			plain.WriteRune(r)
		}
	}
	return plain.String()
}

// Lines makes each line of the text plain.
func Lines(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = Plain(line)
	}
	return strings.Join(lines, "\n")
}

// JSON escapes in a JSON document what cannot be seen in its strings, which says
// the same to a program.
func JSON(document string) string {
	if strings.IndexFunc(document, unseen) < 0 {
		return document
	}
	var seen strings.Builder
	for _, r := range document {
		if unseen(r) {
			seen.WriteString(escaped(r))
		} else {
			seen.WriteRune(r)
		}
	}
	return seen.String()
}

// escaped is the rune as JSON has it.
func escaped(r rune) string {
	var text strings.Builder
	for _, unit := range utf16.AppendRune(nil, r) {
		fmt.Fprintf(&text, `\u%04x`, unit)
	}
	return text.String()
}

// unseen reports whether the rune is not seen itself, or changes where others are
// seen: marks of direction, spaces without width, tags, separators of lines.
func unseen(r rune) bool {
	return r >= 0xa0 && !unicode.Is(unicode.Prepended_Concatenation_Mark, r) &&
		unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point)
}
