package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/tandem-tune/tandem/protocol"
	"github.com/tandem-tune/tandem/wording"
)

// writeJSON prints a document for scripts.
func writeJSON(out io.Writer, document any) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(document)
}

func sortedNames[V any](values map[string]V) []string {
	names := make([]string, 0, len(values))
	for name := range values {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// shownBest is the leading trial in a few words.
func shownBest(best *protocol.Best) string {
	if best == nil {
		return "nothing measured yet"
	}
	return fmt.Sprintf("best %s %s (trial %d, %s)", wording.Plain(best.Metric), wording.BestValue(*best), best.Number, wording.Budget(best.Budget))
}
