package show

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/trial"
)

// LeaderboardLimit is how many rows a leaderboard has unless told otherwise.
const LeaderboardLimit = 10

// Leaderboard prints a page of trials in its order, one column for each parameter
// that any of them has, and why those failed or were lost that did.
func Leaderboard(out io.Writer, def definition.Definition, page protocol.TrialPage) error {
	if len(page.Trials) == 0 {
		said := "No trials yet."
		if page.All > 0 {
			said = "No trial matches."
		}
		_, err := fmt.Fprintln(out, said)
		return err
	}
	names := map[string]bool{}
	for _, t := range page.Trials {
		for name := range t.Configuration {
			names[name] = true
		}
	}
	parameters := slices.Sorted(maps.Keys(names))
	heading := []string{"RANK", "TRIAL"}
	for _, objective := range def.Objectives {
		heading = append(heading, format.Plain(objective.Label()))
	}
	if len(def.Constraints) > 0 {
		heading = append(heading, "VIOLATION")
	}
	if def.Inference != nil {
		heading = append(heading, "LATENCY")
	}
	heading = append(heading, "STATE", "RUNG", "EPOCHS", "TIME")
	for _, name := range parameters {
		heading = append(heading, format.Plain(name))
	}
	rows := make([][]string, 0, len(page.Trials))
	for _, t := range page.Trials {
		rows = append(rows, leaderboardRow(t, def, parameters))
	}
	if err := term.Table(out, heading, rows); err != nil {
		return err
	}
	if rest := page.Total - len(page.Trials); rest > 0 {
		if _, err := fmt.Fprintf(out, "and %d more: 'tandem study trials' with --limit %d lists all\n", rest, page.Total); err != nil {
			return err
		}
	}
	for _, line := range failures(page.Trials) {
		if _, err := fmt.Fprintln(out, line); err != nil {
			return err
		}
	}
	return nil
}

// failures are the reasons of the trials that failed or were lost, each once, with how
// many have it besides the first.
func failures(trials []protocol.RankedTrial) (lines []string) {
	first, count := map[string]int{}, map[string]int{}
	for _, t := range trials {
		if t.State != trial.Failed && t.State != trial.Lost {
			continue
		}
		why := string(t.State) + trial.FirstLine(t.Reason)
		if count[why]++; count[why] == 1 {
			first[why] = len(lines)
			line, _, _ := strings.Cut(Failure(t), "\n")
			lines = append(lines, line)
		}
	}
	for why, at := range first {
		if more := count[why] - 1; more > 0 {
			lines[at] += fmt.Sprintf(" (and %s)", format.Count(more, "further trial"))
		}
	}
	return lines
}

func leaderboardRow(t protocol.RankedTrial, def definition.Definition, parameters []string) []string {
	rank, rung := "-", t.Rung
	if t.Rank > 0 {
		rank = strconv.Itoa(t.Rank)
		rung = t.Results[len(t.Results)-1].Rung
	}
	row := []string{rank, strconv.Itoa(t.Number)}
	for objective, aim := range def.Objectives {
		value := "-"
		v, measured := t.Value(objective)
		if measured {
			value = format.Number(v)
		}
		if t.Repeated != nil {
			value = format.Mean(*t.Repeated, objective)
		}
		if measured && protocol.Estimated(namesOf(aim), t.Last, t.Trial) {
			value += " (estimate)"
		}
		row = append(row, value)
	}
	if len(def.Constraints) > 0 {
		row = append(row, shownViolation(t.Results))
	}
	if def.Inference != nil {
		row = append(row, shownLatency(t.Inference))
	}
	state := string(t.State)
	if t.RepeatOf != nil {
		state += fmt.Sprintf(" (repeats trial %d)", *t.RepeatOf)
	}
	if t.RetryOf != nil {
		state += fmt.Sprintf(" (retries trial %d)", *t.RetryOf)
	}
	if t.Stalled {
		state += " (stalled)"
	}
	if t.Attesting() {
		state += " (attesting)"
	}
	row = append(row, state, strconv.Itoa(rung), strconv.Itoa(t.Epochs), format.Seconds(float64(t.Seconds)))
	return append(row, Configuration(t.Configuration, parameters)...)
}

// namesOf are the numbers that an objective is made of; none where this program
// cannot read its formula.
func namesOf(objective definition.Objective) []string {
	formula, err := objective.Formula()
	if err != nil {
		return nil
	}
	return formula.Names()
}

// shownLatency is what a batch takes on the study's first device.
func shownLatency(of *trial.InferenceCost) string {
	switch {
	case of == nil || !(of.LatencySeconds > 0):
		return "-"
	case of.Method != trial.Measured:
		return Span(float64(of.LatencySeconds)) + " (estimate)"
	}
	return Span(float64(of.LatencySeconds))
}

// shownViolation is by how much the newest result misses the constraints.
func shownViolation(results []trial.Result) string {
	switch {
	case len(results) == 0:
		return "-"
	case results[len(results)-1].Violation == 0:
		return "none"
	case math.IsInf(float64(results[len(results)-1].Violation), 1):
		return "unknown" // something was no number
	}
	return format.Number(results[len(results)-1].Violation)
}

// Configuration has a cell for each of the parameters.
func Configuration(configuration space.Configuration, parameters []string) []string {
	cells := make([]string, 0, len(parameters))
	for _, name := range parameters {
		if v, has := configuration[name]; has {
			cells = append(cells, format.Value(v))
		} else {
			cells = append(cells, "-")
		}
	}
	return cells
}

// PrintRecommendation prints the study's answer.
func PrintRecommendation(out io.Writer, answer protocol.Recommendation) {
	if answer.Best == nil {
		fmt.Fprintln(out, "No recommendation: no trial was measured.")
	} else {
		best := answer.Best
		fmt.Fprintf(out, "Recommended: trial %d, %s %s with %s\n", best.Number, format.Plain(best.Metric), format.BestValue(*best), format.Budget(best.Budget))
		if answer.Pareto != nil {
			for i, one := range answer.Pareto.Objectives[1:] {
				fmt.Fprintf(out, "  %-22s %s (objective)\n", format.Plain(one.Name), FurtherValue(*best, i+1))
			}
		}
		for _, name := range slices.Sorted(maps.Keys(best.Params)) {
			fmt.Fprintf(out, "  %-22s %s\n", format.Plain(name), format.Value(best.Params[name]))
		}
		for _, name := range slices.Sorted(maps.Keys(answer.System)) {
			fmt.Fprintf(out, "  %-22s %s (system)\n", format.Plain(name), format.Value(answer.System[name]))
		}
		if answer.Checkpoint != nil {
			fmt.Fprintf(out, "  %-22s epoch %d, artifact %s\n", "checkpoint", answer.Checkpoint.Epoch, answer.Checkpoint.Artifact)
		}
	}
	if len(answer.Deployments) > 0 {
		fmt.Fprintln(out, "Deploy its model so:")
		_ = PrintDeployments(out, answer.Deployments) // as the lines around it
	}
	for _, note := range answer.Notes {
		fmt.Fprintf(out, "  Note: %s\n", format.Plain(note))
	}
}

// FurtherValue is the value of an objective behind the first.
func FurtherValue(best protocol.Best, objective int) string {
	if best.Repeated != nil {
		return format.Mean(*best.Repeated, objective)
	}
	return format.Number(best.Values[objective])
}

// printCosts prints what the study spent.
func printCosts(out io.Writer, view protocol.StudyView) {
	p := view.Progress
	fmt.Fprintf(out, "Spent: %s (%s of training), %s, %.1f data passes, %s\n",
		format.Seconds(p.ElapsedSeconds), format.Seconds(p.TrialSeconds), format.Count(p.Epochs, "epoch"), p.DataPasses, format.Energy(p.Energy))
	if p.Energy.Method != "" {
		fmt.Fprintf(out, "       how the energy was obtained: %s\n", format.Plain(p.Energy.Method))
	}
	if cost := format.Cost(p.Cost); cost != "" {
		fmt.Fprintf(out, "Cost: %s\n", cost)
	}
	fmt.Fprintf(out, "Trials: %s; %s, %d continued from a checkpoint", format.States(p.Trials, p.Retried), format.Count(p.Promotions, "promotion"), p.Resumes)
	if p.Repeats > 0 {
		fmt.Fprintf(out, ", %s", format.Count(p.Repeats, "repeat"))
	}
	fmt.Fprintln(out)
}

// checkResult turns the end of a study into the command's answer.
func checkResult(ctx context.Context, client *rest.Client, view protocol.StudyView) error {
	if view.Progress.Best != nil {
		return nil
	}
	reason := format.Plain(view.Reason)
	if failed := newestFailure(ctx, client, view.ID); failed != nil {
		first, rest, _ := strings.Cut(Failure(*failed), "\n")
		if _, why, _ := strings.Cut(first, ": "); !strings.Contains(reason, why) { // a study that failed says it itself
			reason += "; " + first
		}
		if rest != "" {
			reason += "\n" + rest
		}
	}
	return fmt.Errorf("%w: %s", term.ErrNoResult, reason)
}

// newestFailure is the last of the trials that failed or were lost; nil: none did, or nobody
// can tell now.
func newestFailure(ctx context.Context, client *rest.Client, study string) *protocol.RankedTrial {
	page, err := client.Trials(ctx, study, protocol.TrialQuery{States: []trial.State{trial.Failed, trial.Lost}, Sort: "number", Descending: true, Limit: 1})
	if err != nil || len(page.Trials) == 0 {
		return nil
	}
	return &page.Trials[0]
}

// Failure is why a trial failed or was lost.
func Failure(t protocol.RankedTrial) string {
	what := "failed"
	if t.State == trial.Lost {
		what = "was lost"
	}
	return fmt.Sprintf("trial %d %s: %s", t.Number, what, Reason(t.Reason))
}

// Reason is a reason as lines: behind the first one it has the end of what the script
// wrote on standard error.
func Reason(text string) string {
	first, rest, _ := strings.Cut(text, "\n")
	said := format.Plain(first)
	for line := range strings.Lines(rest) {
		said += "\n    " + format.Plain(strings.TrimRight(line, "\n"))
	}
	return said
}

// Best is the leading trial in a few words.
func Best(view protocol.StudyView) string {
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
		said += fmt.Sprintf(", %s %s", format.Plain(view.Definition.Objectives[i].Label()), FurtherValue(*best, i))
	}
	return fmt.Sprintf("%s (trial %d, %s)", said, best.Number, format.Budget(best.Budget))
}
