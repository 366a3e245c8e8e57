package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/internal/protocol"
)

// writeJSON prints a document for scripts.
func writeJSON(out io.Writer, document any) error {
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(document); err != nil {
		return err
	}
	_, err := io.WriteString(out, format.JSON(text.String()))
	return err
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
func shownBest(view protocol.StudyView) string {
	best := view.Progress.Best
	if best == nil {
		return "nothing measured yet"
	}
	said := "best"
	if len(best.Values) > 1 { // another trial may well be better in each of them
		said = "best compromise"
	}
	said += fmt.Sprintf(" %s %s", format.Plain(best.Metric), format.BestValue(*best))
	for i := 1; i < len(best.Values) && i < len(view.Definition.Objectives); i++ {
		said += fmt.Sprintf(", %s %s", format.Plain(view.Definition.Objectives[i].Label()), further(*best, i))
	}
	return fmt.Sprintf("%s (trial %d, %s)", said, best.Number, format.Budget(best.Budget))
}
