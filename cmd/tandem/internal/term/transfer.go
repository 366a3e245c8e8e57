package term

import (
	"fmt"
	"io"
	"time"

	"github.com/tandem-tune/tandem/internal/format"
)

// drawnEvery bounds how often progress is drawn.
const drawnEvery = 100 * time.Millisecond

// Transfer shows how far something long has come: a bar where its end is known,
// else what was done. It is drawn on terminals alone, and gone at the end, so
// that a pipe holds nothing but the answer.
type Transfer struct {
	shown Line
	what  string
	done  int64
	total int64 // bytes; 0: not known
	drawn time.Time
}

// NewTransfer starts one of so many bytes; 0: nobody knows how many.
func NewTransfer(out io.Writer, what string, total int64) *Transfer {
	return &Transfer{shown: NewLine(out), what: what, total: total}
}

// Update says how far it is.
func (t *Transfer) Update(what string, done, total int64) {
	same := what == t.what
	t.what, t.done, t.total = what, done, total
	if !t.shown.Redraws() || same && time.Since(t.drawn) < drawnEvery && (total == 0 || done < total) {
		return
	}
	t.drawn = time.Now()
	t.shown.Draw(t.line())
}

func (t *Transfer) line() string {
	switch {
	case t.total > 0:
		return fmt.Sprintf("%s %s: %s of %s", Bar(float64(t.done)/float64(t.total)), t.what, format.Size(t.done), format.Size(t.total))
	case t.done > 0:
		return fmt.Sprintf("%s: %s", t.what, format.Size(t.done))
	}
	return t.what + " ..."
}

// End takes the bar away.
func (t *Transfer) End() { t.shown.Clear() }

// Reader counts what is read.
func (t *Transfer) Reader(from io.Reader) io.Reader { return &counted{from, t} }

type counted struct {
	from     io.Reader
	transfer *Transfer
}

// Read reads a piece, and says so.
func (c *counted) Read(into []byte) (int, error) {
	n, err := c.from.Read(into)
	c.transfer.Update(c.transfer.what, c.transfer.done+int64(n), c.transfer.total)
	return n, err
}
