package script

import (
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/trial"
)

// Bounds of a report's metrics, as the server has them.
const (
	maxMetrics = 1000
	maxName    = 128
)

// Outcome is what a script says of an epoch.
type Outcome struct {
	Epoch   int
	Metrics map[string]trial.Float
	// System is what the script ran with, of what is its own to apply.
	System map[string]space.Value
	// Waits says that the script trains on only when it has the answer.
	Waits bool
}

// Epochs are those of a run: its first one, the last that was reported, and the
// last of its budget.
type Epochs struct{ First, Last, Of int }

// Check names every fault a report has that this worker can see.
func (e Epochs) Check(epoch int, metrics map[string]trial.Float) error {
	var faults []problem.Field
	fault := func(path string, value any, format string, args ...any) {
		faults = append(faults, problem.Field{Path: path, Value: value, Message: fmt.Sprintf(format, args...)})
	}
	switch {
	case epoch < e.First || epoch > e.Of:
		fault("epoch", epoch, "is not in this run, which trains epochs %d to %d (TANDEM_FIRST_EPOCH, TANDEM_EPOCHS)", e.First, e.Of)
	case epoch <= e.Last:
		fault("epoch", epoch, "comes after epoch %d was reported: report the epochs in order, each once", e.Last)
	}
	if len(metrics) == 0 || len(metrics) > maxMetrics {
		fault("metrics", len(metrics), "must hold 1 to %d metrics", maxMetrics)
	}
	for name := range metrics {
		if name == "" || len(name) > maxName {
			fault("metrics", Truncate(name, maxName), "a metric's name must have 1 to %d bytes", maxName)
		}
	}
	if len(faults) > 0 {
		return problem.WithFields("the report is not valid", faults)
	}
	return nil
}

// CheckBegin refuses the start of training of an epoch that is not in the run.
func (e Epochs) CheckBegin(epoch int) error {
	if epoch < e.First || epoch > e.Of {
		return problem.WithFields("the start of training is not valid", []problem.Field{{Path: "epoch", Value: epoch,
			Message: fmt.Sprintf("is not in this run, which trains epochs %d to %d (TANDEM_FIRST_EPOCH, TANDEM_EPOCHS)", e.First, e.Of)}})
	}
	return nil
}

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
			faults = append(faults, problem.Field{Path: "system", Value: Truncate(name, maxName), Message: fmt.Sprintf("a name must have 1 to %d bytes", maxName)})
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

// Truncate is the longest beginning of the text that has at most so many bytes and
// splits no character.
func Truncate(text string, bytes int) string {
	if len(text) <= bytes {
		return text
	}
	for bytes > 0 && !utf8.RuneStart(text[bytes]) {
		bytes--
	}
	return text[:bytes]
}
