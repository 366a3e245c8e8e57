// Package format says quantities as people read them: numbers with five
// significant digits, spans of time, joules that are an estimate labelled as
// one. The command line and reports say the same thing in the same words.
//
// Its one invariant: an estimate is never said without saying that it is one.
// The package is pure.
package format

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/trial"
)

// Number is a measured value with five significant digits.
func Number(value trial.Float) string {
	return strconv.FormatFloat(float64(value), 'g', 5, 64)
}

// Value is a parameter's value, floats with five significant digits.
func Value(value space.Value) string {
	if _, whole := value.Integer(); whole {
		return value.String()
	}
	if number, ok := value.Number(); ok {
		return Number(trial.Float(number))
	}
	return Plain(value.String())
}

// Seconds is a span of time as people say it, from tenths of a second to hours.
func Seconds(seconds float64) string {
	whole, minutes := int(math.Round(seconds)), int(math.Round(seconds/60))
	switch {
	case seconds < 9.95:
		return fmt.Sprintf("%.1fs", seconds)
	case whole < 60:
		return fmt.Sprintf("%ds", whole)
	case whole < 3600:
		return fmt.Sprintf("%dm%02ds", whole/60, whole%60)
	default:
		return fmt.Sprintf("%dh%02dm", minutes/60, minutes%60)
	}
}

// Energy is an amount in joules, and says that it is an estimate where it is.
func Energy(energy trial.Energy) string {
	if energy.Method == "" {
		return "energy not known"
	}
	joules := float64(energy.Joules)
	text := fmt.Sprintf("%.0f J", joules)
	switch {
	case joules >= 10_000:
		text = fmt.Sprintf("%.1f kJ", joules/1000)
	case joules != 0 && math.Abs(joules) < 9.95:
		text = fmt.Sprintf("%.1f J", joules)
	}
	if energy.Estimated() {
		return text + " (estimate)"
	}
	return text
}

// Cost is what training cost, and the CO2 that it emitted; empty where nobody knows.
func Cost(cost *trial.Cost) string {
	if cost == nil {
		return ""
	}
	var parts []string
	if cost.Currency != "" {
		parts = append(parts, fmt.Sprintf("%.4g %s", float64(cost.Amount), Plain(cost.Currency)))
	}
	if cost.CO2 != nil {
		parts = append(parts, fmt.Sprintf("%.4g g of CO2", float64(*cost.CO2)))
	}
	text := strings.Join(parts, ", ")
	switch {
	case cost.Estimated():
		return text + " (estimate)"
	case cost.Method == "":
		return text + " (machine hours only)"
	}
	return text
}

// Budget is what a trial has spent or may spend.
func Budget(b budget.Budget) string {
	if b.Seconds > 0 {
		return Seconds(b.Seconds) + " of training"
	}
	if b.Joules > 0 {
		return Energy(trial.Energy{Joules: trial.Float(b.Joules), Method: "budget"})
	}
	return fmt.Sprintf("%s, %s%% of data", Count(b.Epochs, "epoch"), strconv.FormatFloat(math.Round(b.DataFraction*1000)/10, 'g', 4, 64))
}

// Count is so many of a noun: "1 trial", "2 trials".
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// States says how many trials are in each state, leaving out empty ones, and of how many
// that failed there is another try.
func States(trials map[trial.State]int, retried int) string {
	var parts []string
	for _, state := range trial.States() {
		if n := trials[state]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, state))
			if state == trial.Failed && retried > 0 {
				parts[len(parts)-1] += fmt.Sprintf(" (%d retried)", retried)
			}
		}
	}
	if len(parts) == 0 {
		return "no trials yet"
	}
	return strings.Join(parts, ", ")
}

// Parameters is a configuration in one line, in the order of its names.
func Parameters(parameters map[string]space.Value) string {
	parts := make([]string, 0, len(parameters))
	for _, name := range slices.Sorted(maps.Keys(parameters)) {
		parts = append(parts, Plain(name)+"="+Value(parameters[name]))
	}
	return strings.Join(parts, " ")
}

// Mean is what the trainings of a repeated configuration came to in one
// objective: the mean, its standard error and of how many.
func Mean(came protocol.Repeated, objective int) string {
	if objective >= len(came.StandardErrors) {
		return Number(came.Mean[objective])
	}
	return fmt.Sprintf("%s ± %.2g (mean of %d)", Number(came.Mean[objective]), float64(came.StandardErrors[objective]), came.Results)
}

// BestValue is the leading trial's value in the first objective, and says so
// where joules that are an estimate went into it.
func BestValue(best protocol.Best) string {
	said := Number(best.Value)
	if best.Repeated != nil {
		said = Mean(*best.Repeated, 0)
	}
	if best.Estimated {
		said += " (estimate)"
	}
	return said
}

// Size is a number of bytes, with four significant digits in the unit that suits.
func Size(bytes int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	value, unit := float64(bytes), 0
	for value >= 1024 && unit < len(units)-1 {
		value, unit = value/1024, unit+1
	}
	return strconv.FormatFloat(value, 'g', 4, 64) + " " + units[unit]
}
