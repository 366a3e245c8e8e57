package main

import (
	"fmt"

	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/internal/protocol"
)

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
