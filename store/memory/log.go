package memory

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/tandem-tune/tandem/store/record"
	"github.com/tandem-tune/tandem/trial"
)

// AppendLog adds text at the offset of the lease's log, up to
// record.LogLimit bytes for the trial.
func (s *Store) AppendLog(ctx context.Context, id trial.ID, epoch trial.LeaseEpoch, offset int64, text string) error {
	if err := alive(ctx); err != nil {
		return err
	}
	chunk := record.Chunk{Offset: offset, Text: text}
	if err := chunk.Check(); err != nil {
		return err
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	kept := s.trials[id]
	if kept == nil {
		return record.NoTrial(id)
	}
	if kept.epoch != epoch {
		return record.LogClosed(id, epoch)
	}
	var spans []record.Span
	for _, piece := range kept.leases[epoch] {
		spans = append(spans, piece.Span)
	}
	pieces, log := kept.log.Add(chunk, spans, record.LogLimit)
	for i := range pieces {
		pieces[i].Text = strings.Clone(pieces[i].Text) // not a part of the caller's larger text
	}
	kept.log = log
	kept.leases[epoch] = append(kept.leases[epoch], pieces...)
	slices.SortFunc(kept.leases[epoch], func(a, b record.Piece) int { return cmp.Compare(a.Start, b.Start) })
	return nil
}

// Log returns the trial's log, the leases in order.
func (s *Store) Log(ctx context.Context, id trial.ID) (string, error) {
	if err := alive(ctx); err != nil {
		return "", err
	}
	s.mutex.RLock()
	defer s.mutex.RUnlock()
	kept := s.trials[id]
	if kept == nil {
		return "", record.NoTrial(id)
	}
	var text strings.Builder
	for _, epoch := range slices.Sorted(maps.Keys(kept.leases)) {
		for _, piece := range kept.leases[epoch] {
			text.WriteString(piece.Text)
		}
	}
	if kept.log.Full {
		text.WriteString(record.LogNotice(record.LogLimit))
	}
	return text.String(), nil
}
