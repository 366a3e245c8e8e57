package main

import (
	"fmt"
	"io"
	"time"

	"github.com/tandem-tune/tandem/internal/format"
)

// drawnEvery bounds how often progress is drawn.
const drawnEvery = 100 * time.Millisecond

// transfer shows how far something long has come: a bar where its end is known,
// else what was done. It is drawn on terminals alone, and gone at the end, so
// that a pipe holds nothing but the answer.
type transfer struct {
	shown line
	what  string
	done  int64
	total int64 // bytes; 0: not known
	drawn time.Time
}

func newTransfer(out io.Writer, what string, total int64) *transfer {
	return &transfer{shown: newLine(out), what: what, total: total}
}

// at says how far it is.
func (t *transfer) at(what string, done, total int64) {
	same := what == t.what
	t.what, t.done, t.total = what, done, total
	if !t.shown.redraws() || same && time.Since(t.drawn) < drawnEvery && (total == 0 || done < total) {
		return
	}
	t.drawn = time.Now()
	t.shown.draw(t.line())
}

func (t *transfer) line() string {
	switch {
	case t.total > 0:
		return fmt.Sprintf("%s %s: %s of %s", bar(float64(t.done)/float64(t.total)), t.what, format.Size(t.done), format.Size(t.total))
	case t.done > 0:
		return fmt.Sprintf("%s: %s", t.what, format.Size(t.done))
	}
	return t.what + " ..."
}

// end takes the bar away.
func (t *transfer) end() { t.shown.clear() }

// reading counts what is read.
func (t *transfer) reading(from io.Reader) io.Reader { return &counted{from, t} }

type counted struct {
	from     io.Reader
	transfer *transfer
}

// Read reads a piece, and says so.
func (c *counted) Read(into []byte) (int, error) {
	n, err := c.from.Read(into)
	c.transfer.at(c.transfer.what, c.transfer.done+int64(n), c.transfer.total)
	return n, err
}
