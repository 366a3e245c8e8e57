package studycmd

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/show"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/internal/protocol"
)

// completionTrials is how many trials are offered, the best first.
const completionTrials = 100

// studyNames are the studies as a command line names them, with what they are.
func studyNames(ctx context.Context, client *rest.Client, but []string) ([]string, error) {
	studies, err := client.Studies(ctx)
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, len(studies))
	for _, study := range studies {
		if !slices.Contains(but, study.Name) {
			names = append(names, format.Plain(study.Name)+"\t"+fmt.Sprintf("%s, %s", study.Status, show.Best(study)))
		}
	}
	return names, nil
}

// completeStudies offers the studies for so many arguments, each once.
func completeStudies(server *term.Connection, most int) term.Completion {
	return func(command *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return server.Offer(command, func(ctx context.Context, client *rest.Client) ([]string, error) { return studyNames(ctx, client, args) })
	}
}

// completeInStudy offers a study, and then those of its parts that are found.
func completeInStudy(server *term.Connection, parts func(ctx context.Context, client *rest.Client, study string) ([]string, error)) term.Completion {
	return func(command *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) != 1 {
			return completeStudies(server, 1)(command, args, begun)
		}
		return server.Offer(command, func(ctx context.Context, client *rest.Client) ([]string, error) { return parts(ctx, client, args[0]) })
	}
}

// trialNumbers are the trials of a study, the best first.
func trialNumbers(ctx context.Context, client *rest.Client, study string) ([]string, error) {
	view, err := client.Study(ctx, study)
	if err != nil {
		return nil, err
	}
	page, err := client.Trials(ctx, view.ID, protocol.TrialQuery{Limit: completionTrials})
	if err != nil {
		return nil, err
	}
	numbers := make([]string, 0, len(page.Trials))
	for _, t := range page.Trials {
		numbers = append(numbers, strconv.Itoa(t.Number)+"\t"+show.Trial(t, view.Definition))
	}
	return numbers, nil
}

// completeOwners offers the users who have studies.
func completeOwners(server *term.Connection) term.Completion {
	return func(command *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return server.Offer(command, func(ctx context.Context, client *rest.Client) ([]string, error) {
			studies, err := client.Studies(ctx)
			var owners []string
			for _, study := range studies {
				owners = append(owners, study.Owner)
			}
			slices.Sort(owners)
			return slices.Compact(owners), err
		})
	}
}
