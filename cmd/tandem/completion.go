package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/internal/protocol"
)

const (
	// completionTime is how long a shell waits for a server's names: somebody has
	// pressed a key and looks at it.
	completionTime = 2 * time.Second
	// completionTrials is how many trials are offered, the best first.
	completionTrials = 100
)

// completion is what a shell calls for the words that may come next.
type completion = func(command *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective)

// offer asks the server for words. A server that does not answer, or does not
// let the token see them, offers nothing: a shell is no place for errors.
func (f *studyFlags) offer(command *cobra.Command, words func(ctx context.Context, client *rest.Client) ([]string, error)) ([]string, cobra.ShellCompDirective) {
	client, err := f.server.open()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	ctx, cancel := context.WithTimeout(command.Context(), completionTime)
	defer cancel()
	list, err := words(ctx, client)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return list, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// studyNames are the studies as a command line names them, with what they are.
func studyNames(ctx context.Context, client *rest.Client, but []string) ([]string, error) {
	studies, err := client.Studies(ctx)
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, len(studies))
	for _, study := range studies {
		if !slices.Contains(but, study.Name) {
			names = append(names, format.Plain(study.Name)+"\t"+fmt.Sprintf("%s, %s", study.Status, shownBest(study)))
		}
	}
	return names, nil
}

// completeStudy offers the studies for the first argument.
func (f *studyFlags) completeStudy(command *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	return f.completeStudies(1)(command, args, begun)
}

// completeStudies offers the studies for so many arguments, each once.
func (f *studyFlags) completeStudies(most int) completion {
	return func(command *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return f.offer(command, func(ctx context.Context, client *rest.Client) ([]string, error) { return studyNames(ctx, client, args) })
	}
}

// completeTrial offers a study, and then its trials, the best first.
func (f *studyFlags) completeTrial(command *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	switch len(args) {
	case 0:
		return f.completeStudy(command, args, begun)
	case 1:
		return f.offer(command, func(ctx context.Context, client *rest.Client) ([]string, error) {
			return trialNumbers(ctx, client, args[0])
		})
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

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
		numbers = append(numbers, strconv.Itoa(t.Number)+"\t"+shownTrial(t, view.Definition))
	}
	return numbers, nil
}

// completeToken offers the ids of tokens, with whose they are.
func (f *studyFlags) completeToken(command *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return f.offer(command, func(ctx context.Context, client *rest.Client) ([]string, error) {
		tokens, err := client.Tokens(ctx)
		ids := make([]string, 0, len(tokens))
		for _, token := range tokens {
			ids = append(ids, token.ID+"\t"+format.Plain(token.Name)+", "+token.Scope)
		}
		return ids, err
	})
}

// completeOwners offers the users who have studies.
func (f *studyFlags) completeOwners(command *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return f.offer(command, func(ctx context.Context, client *rest.Client) ([]string, error) {
		studies, err := client.Studies(ctx)
		var owners []string
		for _, study := range studies {
			owners = append(owners, study.Owner)
		}
		slices.Sort(owners)
		return slices.Compact(owners), err
	})
}

// flagWords says what a flag may be set to.
func flagWords(command *cobra.Command, flag string, words completion) {
	if err := command.RegisterFlagCompletionFunc(flag, words); err != nil {
		panic(fmt.Sprintf("%s --%s: %v", command.CommandPath(), flag, err)) // there is no such flag: a mistake of this program
	}
}

// words are those that a flag may be set to, always the same.
func words(list ...string) completion {
	return cobra.FixedCompletions(list, cobra.ShellCompDirectiveNoFileComp)
}
