package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/protocol"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/trial"
)

// writeJSON prints a document for scripts.
func writeJSON(out io.Writer, document any) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(document)
}

// table prints rows under a heading, in columns.
func table(out io.Writer, heading []string, rows [][]string) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, strings.Join(heading, "\t"))
	for _, row := range rows {
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	return w.Flush()
}

// shownNumber is a measured value with five significant digits.
func shownNumber(value trial.Float) string {
	return strconv.FormatFloat(float64(value), 'g', 5, 64)
}

// shownValue is a parameter's value, numbers with five significant digits.
func shownValue(value space.Value) string {
	if _, whole := value.Integer(); whole {
		return value.String()
	}
	if number, ok := value.Number(); ok {
		return shownNumber(trial.Float(number))
	}
	return plainText(value.String())
}

// shownSeconds is a span of time as people say it.
func shownSeconds(seconds float64) string {
	span := time.Duration(seconds * float64(time.Second))
	switch {
	case seconds < 10:
		return fmt.Sprintf("%.1fs", seconds)
	case span < time.Minute:
		return fmt.Sprintf("%.0fs", seconds)
	case span < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(span.Minutes()), int(span.Seconds())%60)
	default:
		return fmt.Sprintf("%dh%02dm", int(span.Hours()), int(span.Minutes())%60)
	}
}

// shownEnergy says joules, and that they are an estimate where they are.
func shownEnergy(energy trial.Energy) string {
	if energy.Method == "" {
		return "energy not known"
	}
	text := fmt.Sprintf("%.0f J", float64(energy.Joules))
	if float64(energy.Joules) >= 10_000 {
		text = fmt.Sprintf("%.1f kJ", float64(energy.Joules)/1000)
	}
	if energy.Estimated() {
		return text + " (estimate)"
	}
	return text
}

// shownBudget is what a trial has spent or may spend.
func shownBudget(b budget.Budget) string {
	if b.Seconds > 0 {
		return shownSeconds(b.Seconds) + " of training"
	}
	if b.Joules > 0 {
		return shownEnergy(trial.Energy{Joules: trial.Float(b.Joules), Method: "budget"})
	}
	return fmt.Sprintf("%s, %s%% of data", count(b.Epochs, "epoch"), strconv.FormatFloat(math.Round(b.DataFraction*1000)/10, 'g', 4, 64))
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// shownStates says how many trials are in each state, leaving out empty ones.
func shownStates(trials map[trial.State]int) string {
	var parts []string
	for _, state := range trial.States() {
		if n := trials[state]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, state))
		}
	}
	if len(parts) == 0 {
		return "no trials yet"
	}
	return strings.Join(parts, ", ")
}

// shownParams is a configuration in one line, by name.
func shownParams(params space.Configuration) string {
	parts := make([]string, 0, len(params))
	for _, name := range sortedNames(params) {
		parts = append(parts, plainText(name)+"="+shownValue(params[name]))
	}
	return strings.Join(parts, " ")
}

func sortedNames[V any](values map[string]V) []string {
	names := make([]string, 0, len(values))
	for name := range values {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// plainText removes what would steer a terminal: names and reasons come from
// other people's files and scripts.
func plainText(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t':
			return ' '
		case r < 0x20, r >= 0x7f && r < 0xa0:
			return -1
		}
		return r
	}, text)
}

// shownMean is what the trainings of a repeated configuration came to in one
// objective: the mean, its standard error and of how many.
func shownMean(came protocol.Repeated, objective int) string {
	if objective >= len(came.StandardErrors) {
		return shownNumber(came.Mean[objective])
	}
	return fmt.Sprintf("%s ± %.2g (mean of %d)", shownNumber(came.Mean[objective]), float64(came.StandardErrors[objective]), came.Results)
}

// shownBest is the leading trial in a few words.
func shownBest(best *protocol.Best) string {
	if best == nil {
		return "nothing measured yet"
	}
	return fmt.Sprintf("best %s %s (trial %d, %s)", plainText(best.Metric), shownBestValue(*best), best.Number, shownBudget(best.Budget))
}

// shownBestValue is the leading trial's value, and says so where joules that
// are an estimate went into it.
func shownBestValue(best protocol.Best) string {
	shown := shownNumber(best.Value)
	if best.Repeated != nil {
		shown = shownMean(*best.Repeated, 0)
	}
	if best.Estimated {
		shown += " (estimate)"
	}
	return shown
}
