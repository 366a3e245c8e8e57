package show

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/trial"
)

// PrintTrialSystem prints with which system configuration each epoch ran, why,
// and what that saved; nothing for a trial of a study that tunes none.
func PrintTrialSystem(out io.Writer, detail protocol.TrialDetail) error {
	var rows [][]string
	t := detail.Trial
	if t.Setting == nil {
		return nil
	}
	for _, report := range detail.Reports {
		seconds, joules := shownSaving(report.Saved, report.Energy)
		rows = append(rows, []string{strconv.Itoa(report.Rung), strconv.Itoa(report.Epoch), shownSystem(report.System), string(cmp.Or(report.SystemPhase, "not followed")),
			format.Seconds(float64(report.Seconds)), format.Energy(report.Energy), seconds, joules, format.Plain(report.SystemWhy)})
	}
	fmt.Fprintln(out, "System configuration of each epoch; savings against the default are measured, with 95% intervals")
	if len(rows) > 0 {
		if err := term.Table(out, []string{"RUNG", "EPOCH", "CONFIGURATION", "PHASE", "TIME", "ENERGY", "SAVED TIME", "SAVED ENERGY", "WHY"}, rows); err != nil {
			return err
		}
	}
	if t.Saved != nil {
		fmt.Fprintf(out, "Saved: %s\n", shownSavings(*t.Saved, t.Energy))
	}
	if !t.State.Terminal() {
		fmt.Fprintf(out, "Next:  %s (%s): %s\n", shownSystem(t.Setting.Configuration), t.Setting.Phase, format.Plain(t.Setting.Why))
	}
	_, err := fmt.Fprintln(out)
	return err
}

// printStudySystem prints what tuning the system has saved a study, and under
// which configurations its epochs ran; nothing for one that tunes none.
func printStudySystem(out io.Writer, p protocol.Progress) error {
	if len(p.SystemUse) == 0 {
		return nil
	}
	fmt.Fprintf(out, "System: %s\n", shownPhases(p.EpochsByPhase))
	fmt.Fprintf(out, "Saved: %s\n\n", shownStudySavings(p))
	var rows [][]string
	for _, use := range p.SystemUse {
		seconds, joules := shownSaving(use.Saved, p.Energy)
		rows = append(rows, []string{shownSystem(use.Configuration), string(cmp.Or(use.Phase, "not followed")), strconv.Itoa(use.Epochs), format.Seconds(float64(use.Seconds)), seconds, joules})
	}
	return term.Table(out, []string{"CONFIGURATION", "PHASE", "EPOCHS", "TIME", "SAVED TIME", "SAVED ENERGY"}, rows)
}

// shownPhases says which part of the epochs ran in which phase.
func shownPhases(epochs map[trial.Phase]int) string {
	total := 0
	for _, n := range epochs {
		total += n
	}
	var parts []string
	for _, phase := range trial.Phases() {
		if n := epochs[phase]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s (%.0f %%)", n, phase, 100*float64(n)/float64(total)))
		}
	}
	return "epochs by phase: " + strings.Join(parts, ", ")
}

// shownSystem is a system configuration in one line.
func shownSystem(configuration map[string]space.Value) string {
	if len(configuration) == 0 {
		return "-"
	}
	return format.Parameters(configuration)
}

// shownSaving is a saving in two columns: seconds and joules, with a minus where
// more was used than the default would have.
func shownSaving(saved *trial.Saving, spent trial.Energy) (seconds, joules string) {
	if saved == nil {
		return "-", "-"
	}
	return signed(saved.Seconds, format.Seconds), signed(saved.Joules, shownJoules) + estimated(spent)
}

// estimated marks what follows from an estimate of the energy that was spent.
func estimated(spent trial.Energy) string {
	if spent.Estimated() {
		return " (estimate)"
	}
	return ""
}

func shownJoules(v float64) string {
	return format.Energy(trial.Energy{Joules: trial.Float(v), Method: "saved"})
}

func signed(value trial.Float, shown func(float64) string) string {
	if text := shown(math.Abs(float64(value))); value < 0 && text != shown(0) {
		return "-" + text
	}
	return shown(math.Abs(float64(value)))
}

// shownStudySavings is what a study saved, or why that is not known.
func shownStudySavings(p protocol.Progress) string {
	if p.Saved != nil {
		return shownSavings(*p.Saved, p.Energy)
	}
	if control := p.EpochsByPhase[trial.Control]; control > 0 {
		return fmt.Sprintf("no difference from the default system configuration found in %s with it", format.Count(control, "epoch"))
	}
	return "not measured yet: no control epoch compared with the default system configuration"
}

// shownSavings is a total as a sentence.
func shownSavings(saved trial.Saving, spent trial.Energy) string {
	text := amount(saved.Seconds, saved.SecondsLow, saved.SecondsHigh, format.Seconds) + " of the machine's time"
	if saved.Seconds == 0 {
		text = "no difference in the machine's time found"
	}
	if saved.Joules != 0 && !math.IsNaN(float64(saved.Joules)) {
		text += " and " + amount(saved.Joules, saved.JoulesLow, saved.JoulesHigh, shownJoules) + estimated(spent)
	}
	text += " than with the default system configuration"
	if saved.SecondsLow == nil {
		text += ", an estimate"
	}
	return text
}

// amount is an amount that was saved, or used in addition, with its interval.
func amount(value trial.Float, low, high *trial.Float, shown func(float64) string) string {
	word := "less"
	if value < 0 {
		word = "more"
	}
	text := shown(math.Abs(float64(value)))
	if low != nil && high != nil && *low != *high {
		text += fmt.Sprintf(" (95%% interval %s to %s)", signed(min(*low, *high), shown), signed(max(*low, *high), shown))
		if value < 0 {
			text = fmt.Sprintf("%s (95%% interval %s to %s)", shown(-float64(value)), signed(-*high, shown), signed(-*low, shown))
		}
	}
	return text + " " + word
}
