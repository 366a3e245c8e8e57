package main

import (
	"fmt"
	"io"
	"strconv"

	"github.com/tandem-tune/tandem/protocol"
	"github.com/tandem-tune/tandem/trial"
)

// leaderboardLimit is how many rows a leaderboard has unless told otherwise.
const leaderboardLimit = 10

// printLeaderboard prints trials in the order of their ranks, one column for
// each parameter that any of them has.
func printLeaderboard(out io.Writer, metric string, page protocol.TrialPage) error {
	if len(page.Trials) == 0 {
		_, err := fmt.Fprintln(out, "No trials yet.")
		return err
	}
	names := map[string]bool{}
	for _, t := range page.Trials {
		for name := range t.Configuration {
			names[name] = true
		}
	}
	parameters := sortedNames(names)
	heading := []string{"RANK", "TRIAL", plainText(metric), "STATE", "RUNG", "EPOCHS", "TIME"}
	for _, name := range parameters {
		heading = append(heading, plainText(name))
	}
	rows := make([][]string, 0, len(page.Trials))
	for _, t := range page.Trials {
		rows = append(rows, leaderboardRow(t, parameters))
	}
	if err := table(out, heading, rows); err != nil {
		return err
	}
	if rest := page.Total - len(page.Trials); rest > 0 {
		_, err := fmt.Fprintf(out, "and %d more\n", rest)
		return err
	}
	return nil
}

func leaderboardRow(t protocol.RankedTrial, parameters []string) []string {
	rank, value, rung := "-", "-", t.Rung
	if t.Rank > 0 {
		rank = strconv.Itoa(t.Rank)
		rung = t.Results[len(t.Results)-1].Rung
	}
	if v, measured := t.Value(0); measured {
		value = shownNumber(v)
	}
	row := []string{
		rank, strconv.Itoa(t.Number), value, string(t.State), strconv.Itoa(rung),
		strconv.Itoa(t.Epochs), shownSeconds(float64(t.Seconds)),
	}
	for _, name := range parameters {
		if v, has := t.Configuration[name]; has {
			row = append(row, shownValue(v))
		} else {
			row = append(row, "-")
		}
	}
	return row
}

// printRecommendation prints the study's answer.
func printRecommendation(out io.Writer, answer protocol.Recommendation) {
	if answer.Best == nil {
		fmt.Fprintln(out, "No recommendation: no trial was measured.")
	} else {
		best := answer.Best
		fmt.Fprintf(out, "Recommended: trial %d, %s %s with %s\n", best.Number, plainText(best.Metric), shownBestValue(*best), shownBudget(best.Budget))
		for _, name := range sortedNames(best.Params) {
			fmt.Fprintf(out, "  %-22s %s\n", plainText(name), shownValue(best.Params[name]))
		}
		for _, name := range sortedNames(answer.System) {
			fmt.Fprintf(out, "  %-22s %s (system)\n", plainText(name), shownValue(answer.System[name]))
		}
		if answer.Checkpoint != nil {
			fmt.Fprintf(out, "  %-22s epoch %d, artifact %s\n", "checkpoint", answer.Checkpoint.Epoch, answer.Checkpoint.Artifact)
		}
	}
	for _, note := range answer.Notes {
		fmt.Fprintf(out, "  Note: %s\n", plainText(note))
	}
}

// printCosts prints what the study spent.
func printCosts(out io.Writer, view protocol.StudyView) {
	p := view.Progress
	fmt.Fprintf(out, "Spent: %s (%s of training), %s, %.1f data passes, %s\n",
		shownSeconds(p.ElapsedSeconds), shownSeconds(p.TrialSeconds), count(p.Epochs, "epoch"), p.DataPasses, shownEnergy(p.Energy))
	if p.Energy.Estimated() {
		fmt.Fprintf(out, "       how the energy was obtained: %s\n", plainText(p.Energy.Method))
	}
	fmt.Fprintf(out, "Trials: %s; %s, %d continued from a checkpoint\n",
		shownStates(p.Trials), count(p.Promotions, "promotion"), p.Resumes)
}

// finished turns the end of a study into the command's answer.
func finished(view protocol.StudyView) error {
	if view.Progress.Best == nil {
		reason := view.Reason
		if failed := view.Progress.Trials[trial.Failed]; failed > 0 {
			reason = fmt.Sprintf("%s; %s failed, see 'tandem study log %s 0'", reason, count(failed, "trial"), view.Name)
		}
		return fmt.Errorf("%w: %s", errNoResult, plainText(reason))
	}
	return nil
}
