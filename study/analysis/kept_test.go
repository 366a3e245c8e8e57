package analysis

import (
	"context"
	"testing"

	"github.com/tandem-tune/tandem/internal/gate"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/journal"
)

// What takes long is found once for a study, until its log goes on; who gave up waiting for
// others has an error.
func TestWhatWasFoundIsKept(t *testing.T) {
	k, asked := kept{gate: gate.New(), found: make(map[string]finding)}, 0
	find := func() []protocol.AdvicePiece {
		asked++
		return []protocol.AdvicePiece{{Kind: "idle"}}
	}
	for want := 1; want <= 2; want++ {
		now := journal.View{Study: journal.Study{ID: "s"}, Sequence: int64(want)}
		for range 3 {
			if found, err := k.of(t.Context(), now, find); err != nil || len(found) != 1 || asked != want {
				t.Errorf("at event %d: %v, %v, asked %d times", want, found, err, asked)
			}
		}
	}
	if err := k.gate.Enter(t.Context()); err != nil {
		t.Fatal(err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := k.of(over, journal.View{Study: journal.Study{ID: "s"}, Sequence: 9}, find); err == nil {
		t.Error("it did not wait for its turn")
	}
}
