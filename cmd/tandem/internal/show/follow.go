// Package show writes for people what several groups of commands show: studies and
// their leaderboards, trials, deployments, profiles and what trials use of GPUs.
package show

import (
	"context"
	"fmt"
	"io"
	"math"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/definition"
)

// Study prints a study with its leaderboard of at most so many trials.
func Study(ctx context.Context, client *rest.Client, study string, limit int, out io.Writer) error {
	view, err := client.Study(ctx, study)
	if err != nil {
		return err
	}
	correlations, err := client.Correlations(ctx, view.ID)
	if err != nil {
		return err
	}
	page, err := client.Trials(ctx, view.ID, protocol.TrialQuery{Limit: limit})
	if err != nil {
		return err
	}
	deflation, err := approximationOf(ctx, client, view)
	if err != nil {
		return err
	}
	return printStudy(out, view, correlations, page, deflation)
}

// PrintUseless prints what of the study's definition has no effect, if something has none.
func PrintUseless(out io.Writer, view protocol.StudyView) {
	if view.Unmeasured != "" {
		fmt.Fprintf(out, "Not measured: %s\n", format.Plain(view.Unmeasured))
	}
	if view.Useless != "" {
		fmt.Fprintf(out, "Without effect: %s\n", format.Plain(view.Useless))
	}
}

// Place says what the study gets of the pool.
func Place(def definition.Definition) string {
	if def.Parallel == 0 {
		return fmt.Sprintf("priority %d, any number of trials at once", def.Priority)
	}
	return fmt.Sprintf("priority %d, at most %s at once", def.Priority, format.Count(def.Parallel, "trial"))
}

func printStudy(out io.Writer, view protocol.StudyView, correlations protocol.Correlations, page protocol.TrialPage, deflation *protocol.StudyDeflation) error {
	status := string(view.Status)
	if view.Reason != "" {
		status += ": " + format.Plain(view.Reason)
	}
	fmt.Fprintf(out, "%s (%s) of %s  %s\n", format.Plain(view.Name), view.ID, format.Plain(view.Owner), status)
	for _, wait := range view.Waits {
		fmt.Fprintf(out, "Waits: %s\n", format.Plain(wait.Reason))
	}
	PrintUseless(out, view)
	if def := view.Definition; def.Priority != 0 || def.Parallel != 0 || view.Set != (protocol.SetRequest{}) {
		fmt.Fprintf(out, "Pool:  %s\n", Place(def))
	}
	if view.Definition.Description != "" {
		fmt.Fprintln(out, format.Plain(view.Definition.Description))
	}
	if expects := view.Definition.Space.Expects(); expects != "" {
		fmt.Fprintf(out, "Expects: %s\n", format.Plain(expects))
	}
	for _, source := range view.Sources {
		fmt.Fprintf(out, "Known before: %s, %s", format.Plain(source.Source), source.Verdict)
		if source.Outcomes > 0 {
			fmt.Fprintf(out, " (rank correlation %.2f with %s)", source.Agreement, format.Count(source.Outcomes, "own result"))
		}
		fmt.Fprintln(out)
	}
	if readers := len(view.Definition.Recipients()); readers > 0 {
		fmt.Fprintf(out, "Checkpoints: encrypted to %s\n", format.Count(readers, "key"))
	}
	if d := view.Progress.Disclosed; d != nil {
		fmt.Fprintf(out, "Confidential: policy %s; metrics of %s can have told at most %.0f bits (%.0f bytes)\n", format.Plain(view.Definition.PolicyOf()), format.Count(view.Progress.Epochs, "epoch"), d.Bits, math.Ceil(d.Bits/8))
		fmt.Fprintf(out, "Key:   released to %s, refused to %d, asked for by %d now\n", format.Count(d.Released, "lease"), d.Refused, d.Attesting)
	}
	printCosts(out, view)
	if left := view.Progress.RemainingSeconds; left != nil {
		fmt.Fprintf(out, "Left:  about %s\n", format.Seconds(*left))
	}
	printApproximation(out, deflation, view.Definition.Objectives[0].Label())
	if err := printStudySystem(out, view.Progress); err != nil {
		return err
	}
	printCorrelations(out, correlations)
	fmt.Fprintln(out)
	return Leaderboard(out, view.Definition, page)
}

// Follow watches a study to its end and prints the result.
func Follow(ctx context.Context, client *rest.Client, study string, asJSON bool, out io.Writer) error {
	progress := out
	if asJSON {
		progress = io.Discard
	}
	view, err := Watch(ctx, client, study, progress)
	if err != nil {
		return err
	}
	return PrintResult(ctx, client, view, asJSON, out)
}

// PrintResult prints what a study that is over has found.
func PrintResult(ctx context.Context, client *rest.Client, view protocol.StudyView, asJSON bool, out io.Writer) error {
	answer, err := client.Recommendation(ctx, view.ID)
	if err != nil {
		return err
	}
	if asJSON {
		if err := term.WriteJSON(out, map[string]any{"study": view, "recommendation": answer}); err != nil {
			return err
		}
		return checkResult(ctx, client, view)
	}
	fmt.Fprintln(out)
	if err := Study(ctx, client, view.ID, LeaderboardLimit, out); err != nil {
		return err
	}
	if answer.Best != nil { // else the error says so
		fmt.Fprintln(out)
		PrintRecommendation(out, answer)
	}
	return checkResult(ctx, client, view)
}

// printCorrelations prints how far each rung's ranking holds at the next one,
// one line for each pair of neighbours that have trials in common.
func printCorrelations(out io.Writer, answer protocol.Correlations) {
	for _, one := range answer.Rungs {
		if one.To != one.From+1 {
			continue
		}
		fmt.Fprintf(out, "Rung %d ranks as rung %d does: correlation %.2f (95%%: %.2f to %.2f) among the %s measured at both; among all %d an estimated %.2f\n",
			one.From, one.To, one.Spearman, one.Low, one.High, format.Count(one.Trials, "trial"), one.Below, one.Corrected)
	}
}
