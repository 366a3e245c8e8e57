package memory

import (
	"context"
	"time"

	"github.com/tandem-tune/tandem/store/record"
	"github.com/tandem-tune/tandem/study/journal"
)

func (s *Store) insertReceipt(undo *undoing, receipt journal.Receipt) error {
	if _, taken := s.receipts[receipt.Key]; taken {
		return record.KeyTaken(receipt.Key)
	}
	receipt.At, receipt.Answer = record.UTC(receipt.At), raw(receipt.Answer)
	s.receipts[receipt.Key] = receipt
	undo.add(func() { delete(s.receipts, receipt.Key) })
	return nil
}

// Receipt returns the answer stored under the key.
func (s *Store) Receipt(ctx context.Context, key string) (journal.Receipt, error) {
	if err := alive(ctx); err != nil {
		return journal.Receipt{}, err
	}
	s.mutex.RLock()
	defer s.mutex.RUnlock()
	receipt, found := s.receipts[key]
	if !found {
		return journal.Receipt{}, record.NoReceipt(key)
	}
	receipt.Answer = raw(receipt.Answer)
	return receipt, nil
}

// PurgeReceipts deletes the receipts older than the time and returns how many.
func (s *Store) PurgeReceipts(ctx context.Context, before time.Time) (int, error) {
	if err := alive(ctx); err != nil {
		return 0, err
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	purged := 0
	for key, receipt := range s.receipts {
		if receipt.At.Before(before) {
			delete(s.receipts, key)
			purged++
		}
	}
	return purged, nil
}
