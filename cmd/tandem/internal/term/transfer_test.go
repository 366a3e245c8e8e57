package term

import (
	"io"
	"strings"
	"testing"
)

func TestATransferSaysHowFarItIs(t *testing.T) {
	t.Parallel()
	for want, one := range map[string]Transfer{
		"[##########----------]  50% writing: 1 MiB of 2 MiB": {what: "writing", done: 1 << 20, total: 2 << 20},
		"[####################] 100% writing: 3 KiB of 2 KiB": {what: "writing", done: 3 << 10, total: 2 << 10},
		"reading: 5 B": {what: "reading", done: 5},
		"checking ...": {what: "checking"},
	} {
		if got := one.line(); got != want {
			t.Errorf("it says %q, want %q", got, want)
		}
	}
}

// TestAPipeHoldsNoBar: progress is for terminals.
func TestAPipeHoldsNoBar(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	moved := NewTransfer(&out, "reading", 10)
	data, err := io.ReadAll(moved.Reader(strings.NewReader("0123456789")))
	moved.End()
	if err != nil || string(data) != "0123456789" || moved.done != 10 || out.Len() != 0 {
		t.Errorf("read %q (%v), counted %d, printed %q", data, err, moved.done, out.String())
	}
}
