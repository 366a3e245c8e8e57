package journal

import (
	"encoding/json"
)

// Entry is a value as the pool's entries have it: numbers, words and times only.
func Entry(kind, name string, value any) PoolEntry {
	document, _ := json.Marshal(value)
	return PoolEntry{Kind: kind, Name: name, Document: document}
}

// Decode reads the value of an entry.
func Decode[T any](entry PoolEntry, take func(T)) error {
	var value T
	if err := json.Unmarshal(entry.Document, &value); err != nil {
		return err
	}
	take(value)
	return nil
}
