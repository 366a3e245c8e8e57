package record

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/tandem-tune/tandem/internal/problem"
)

// LogLimit is how many bytes a store keeps of a trial's log unless told otherwise.
const LogLimit = 1 << 20

// Span is a range of bytes of one lease's log, counted as its worker wrote it.
type Span struct {
	Start, Stop int64
}

// Piece is text to be kept for a span. It may be longer or shorter than the
// span, because what no store can keep was replaced.
type Piece struct {
	Span
	Text string
}

// Log is how much a store keeps of a trial's log.
type Log struct {
	// Bytes is the length of all pieces of all leases.
	Bytes int64
	// Full says that text was dropped; nothing is added any more.
	Full bool
}

// Chunk is text a worker sends for its lease's log.
type Chunk struct {
	Offset int64
	Text   string
}

// Span is the range of the lease's log the chunk covers.
func (c Chunk) Span() Span { return Span{c.Offset, c.Offset + int64(len(c.Text))} }

// Check reports a chunk that cannot be meant.
func (c Chunk) Check() error {
	if c.Offset < 0 || c.Offset+int64(len(c.Text)) < c.Offset {
		return problem.WithFields("the log cannot be kept", []problem.Field{
			{Path: "offset", Message: "must be the place in the lease's log where the text starts, 0 or more", Value: c.Offset},
		})
	}
	return nil
}

// Add returns the pieces of the chunk to keep, given the spans of the lease
// that are kept already (in order, and only those that touch the chunk matter),
// and the log as it is then. What would grow it beyond the limit is dropped.
func (l Log) Add(chunk Chunk, kept []Span, limit int64) ([]Piece, Log) {
	var pieces []Piece
	for _, gap := range gaps(chunk.Span(), kept) {
		if l.Full {
			break
		}
		text := Text(chunk.Text[gap.Start-chunk.Offset : gap.Stop-chunk.Offset])
		if fitting := fit(text, limit-l.Bytes); len(fitting) < len(text) {
			text, l.Full = fitting, true
		}
		l.Bytes += int64(len(text))
		pieces = append(pieces, Piece{Span: gap, Text: text})
	}
	return pieces, l
}

// LogNotice is the last line of a log that is full.
func LogNotice(limit int64) string {
	return fmt.Sprintf("\n[tandem keeps %d bytes of a trial's log; more was dropped here]\n", limit)
}

// gaps returns the parts of the span that no kept span covers.
func gaps(span Span, kept []Span) []Span {
	var free []Span
	for _, k := range kept {
		if k.Start >= span.Stop {
			break
		}
		if k.Start > span.Start {
			free = append(free, Span{span.Start, k.Start})
		}
		span.Start = max(span.Start, k.Stop)
	}
	if span.Start < span.Stop {
		free = append(free, span)
	}
	return free
}

// Text replaces what not every store, terminal and JSON reader can hold: bytes
// that are no UTF-8, and NUL.
func Text(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
}

// fit cuts the text to the number of bytes, between two characters.
func fit(text string, bytes int64) string {
	if int64(len(text)) <= bytes {
		return text
	}
	cut := int(max(bytes, 0))
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut]
}
