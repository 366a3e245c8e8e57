// Package analysis answers questions about a study's results: which parameters
// matter, in which order what was measured.
//
// Everything here reads an immutable copy of a study, and changes nothing.
package analysis

import (
	"context"
	"sync"

	"github.com/tandem-tune/tandem/internal/gate"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/journal"
)

// Queries are the use cases that analyse studies. They are safe for concurrent use.
type Queries struct {
	look   func(ctx context.Context, ref string) (journal.View, error)
	leader func(journal.View) *int
	kept   kept
}

// kept is what took seconds to find out of ended studies. One is worked on at a time.
type kept struct {
	gate  gate.Gate
	mutex sync.Mutex // guards what follows
	found map[string]finding
}

// finding is what was found when a study's log ended there.
type finding struct {
	sequence int64
	pieces   []protocol.AdvicePiece
}

// mostKept bounds the studies of which something is kept.
const mostKept = 256

// of is what find finds of the study, which is asked once until its log goes on.
func (k *kept) of(ctx context.Context, now journal.View, find func() []protocol.AdvicePiece) ([]protocol.AdvicePiece, error) {
	if pieces, ok := k.at(now); ok {
		return pieces, nil
	}
	if err := k.gate.Enter(ctx); err != nil {
		return nil, problem.New(problem.Unavailable, "the caller gave up: %w", err)
	}
	defer k.gate.Leave()
	if pieces, ok := k.at(now); ok {
		return pieces, nil
	}
	pieces := find()
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if len(k.found) >= mostKept {
		clear(k.found)
	}
	k.found[now.Study.ID] = finding{now.Sequence, pieces}
	return pieces, nil
}

func (k *kept) at(now journal.View) ([]protocol.AdvicePiece, bool) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	last, ok := k.found[now.Study.ID]
	return last.pieces, ok && last.sequence == now.Sequence
}

// New returns the queries: look returns a copy of the study with the reference, leader
// the number of its leading trial; nil if there is none.
func New(look func(ctx context.Context, ref string) (journal.View, error), leader func(journal.View) *int) *Queries {
	return &Queries{look: look, leader: leader, kept: kept{gate: gate.New(), found: make(map[string]finding)}}
}
