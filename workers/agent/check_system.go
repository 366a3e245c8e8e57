package agent

import (
	"fmt"
	"maps"
	"slices"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/space"
)

// Bounds of the system configuration that a script says was in force.
const (
	maxKnobs = 32
	maxWord  = 1024
)

// checkSystem names what is wrong with the configuration a script reports.
func checkSystem(said map[string]space.Value) error {
	var faults []problem.Field
	if len(said) > maxKnobs {
		faults = append(faults, problem.Field{Path: "system", Value: len(said), Message: fmt.Sprintf("must hold at most %d values", maxKnobs)})
	}
	for _, name := range slices.Sorted(maps.Keys(said)) {
		text, _ := said[name].Text()
		switch {
		case name == "" || len(name) > maxName:
			faults = append(faults, problem.Field{Path: "system", Value: truncate(name, maxName), Message: fmt.Sprintf("a name must have 1 to %d bytes", maxName)})
		case said[name].IsZero():
			faults = append(faults, problem.Field{Path: "system." + name, Message: "must be a number, a word or a truth value"})
		case len(text) > maxWord:
			faults = append(faults, problem.Field{Path: "system." + name, Message: fmt.Sprintf("a word must have at most %d bytes", maxWord)})
		}
	}
	if len(faults) > 0 {
		return problem.WithFields("the report is not valid", faults[:min(len(faults), maxKnobs)])
	}
	return nil
}
