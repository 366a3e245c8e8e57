// Package studycmd is "tandem study": it creates, shows and controls studies on a server.
package studycmd

import (
	"context"
	"io"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/attestcmd"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/comparecmd"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/show"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/internal/protocol"
)

// Command is "tandem study".
func Command() *cobra.Command {
	var flags term.Flags
	return flags.Group(&cobra.Command{
		Use:     "study",
		Aliases: []string{"studies"},
		Short:   "Create, look at and control studies on a server",
		Long: `Create, look at and control studies on a server.

A study is named by its name or its id; with an admin's token, a user's study as
OWNER:NAME. The server is --server or
TANDEM_SERVER; the token is in TANDEM_TOKEN or in --token-file.`,
	},
		planCommand(&flags), createCommand(&flags), listCommand(&flags), showCommand(&flags), watchCommand(&flags),
		trialsCommand(&flags), trialCommand(&flags), logCommand(&flags), recommendCommand(&flags), checkpointCommand(&flags), attestcmd.Command(&flags), comparecmd.Command(&flags), artifactsCommand(&flags), reportCommand(&flags), adviseCommand(&flags), importanceCommand(&flags), deploymentsCommand(&flags), exportCommand(&flags), replayCommand(&flags), enqueueCommand(&flags), shareCommand(&flags), transferCommand(&flags), hooksCommand(&flags),
		pauseCommand(&flags), resumeCommand(&flags), stopCommand(&flags), extendCommand(&flags), setCommand(&flags), retryCommand(&flags), deleteCommand(&flags),
	)
}

// onStudy is a command about one study.
func onStudy(flags *term.Flags, command *cobra.Command, run func(ctx context.Context, client *rest.Client, study string, out io.Writer) error) *cobra.Command {
	command.Args = term.Arguments(1, "the name or the id of a study")
	command.RunE = flags.Server.Run(func(ctx context.Context, client *rest.Client, args []string, out io.Writer) error {
		return run(ctx, client, args[0], out)
	})
	return command
}

func listCommand(flags *term.Flags) *cobra.Command {
	var owner string
	var mine bool
	command := &cobra.Command{
		Use:   "list",
		Short: "List the studies, the newest first",
		Long: `List the studies, the newest first: a user's own, or those of all with the token
of an admin or a viewer.`,
		Example: `  tandem study list
  tandem study list --owner alice`,
		Args: term.Arguments(0, "no arguments"),
		RunE: flags.Server.Run(func(ctx context.Context, client *rest.Client, _ []string, out io.Writer) error {
			if mine && owner != "" {
				return term.Misuse("--mine and --owner %s exclude each other: give one of them", owner)
			}
			studies, err := ownedBy(ctx, client, owner, mine)
			if err != nil {
				return err
			}
			if flags.JSON {
				return term.WriteJSON(out, studyList{studies})
			}
			return PrintStudies(out, studies)
		}),
	}
	command.Flags().StringVar(&owner, "owner", "", "only the studies of this user; admin: of the administrators")
	command.Flags().BoolVar(&mine, "mine", false, "only the studies of whoever the token is of")
	return command
}

// studyList is the list as JSON.
type studyList struct {
	Studies []protocol.StudyView `json:"studies"`
}

// ownedBy returns the studies of the owner, of the token's own, or all that the
// token sees.
func ownedBy(ctx context.Context, client *rest.Client, owner string, mine bool) ([]protocol.StudyView, error) {
	if mine {
		identity, err := client.Identity(ctx)
		if err != nil {
			return nil, err
		}
		if identity.Owner == "" {
			return nil, term.Misuse("--mine: a token with the scope %s has no studies of its own", identity.Scope)
		}
		owner = identity.Owner
	}
	studies, err := client.Studies(ctx)
	if err != nil || owner == "" {
		return studies, err
	}
	return slices.DeleteFunc(studies, func(study protocol.StudyView) bool { return study.Owner != owner }), nil
}

// PrintStudies prints studies as a table.
func PrintStudies(out io.Writer, studies []protocol.StudyView) error {
	heading := []string{"NAME", "OWNER", "STATUS", "BEST", "METRIC", "TRIALS", "EPOCHS", "TIME", "CREATED", "ID"}
	return term.Rows(out, studies, "No studies yet. Create one: tandem study create study.yaml", heading, func(study protocol.StudyView) []string {
		p := study.Progress
		best, metric := "-", "-"
		if p.Best != nil {
			best, metric = format.BestValue(*p.Best), format.Plain(p.Best.Metric)
			for i := 1; i < len(p.Best.Values); i++ { // the best compromise
				best += ", " + show.FurtherValue(*p.Best, i)
				metric += ", " + format.Plain(study.Definition.Objectives[i].Label())
			}
		}
		trials := strconv.Itoa(p.Created)
		if p.MaxTrials > 0 {
			trials += "/" + strconv.Itoa(p.MaxTrials)
		}
		return []string{
			format.Plain(study.Name), format.Plain(study.Owner), string(study.Status), best, metric, trials, strconv.Itoa(p.Epochs),
			format.Seconds(p.ElapsedSeconds), study.Created.Local().Format("2006-01-02 15:04"), study.ID,
		}
	})
}

func showCommand(flags *term.Flags) *cobra.Command {
	limit := show.LeaderboardLimit
	command := onStudy(flags, &cobra.Command{
		Use:   "show STUDY",
		Short: "Show a study's progress and its leaderboard",
		Example: `  tandem study show lenet-fashion-mnist
  tandem study show lenet-fashion-mnist --trials 50
  tandem study show lenet-fashion-mnist --json | jq .progress.best`,
	}, func(ctx context.Context, client *rest.Client, study string, out io.Writer) error {
		if flags.JSON {
			view, err := client.Study(ctx, study)
			if err != nil {
				return err
			}
			return term.WriteJSON(out, view)
		}
		return show.Study(ctx, client, study, limit, out)
	})
	command.Flags().IntVar(&limit, "trials", show.LeaderboardLimit, "rows of the leaderboard")
	return command
}

func watchCommand(flags *term.Flags) *cobra.Command {
	return onStudy(flags, &cobra.Command{
		Use:     "watch STUDY",
		Short:   "Follow a study until it ends, then print its result",
		Example: `  tandem study watch lenet-fashion-mnist`,
	}, func(ctx context.Context, client *rest.Client, study string, out io.Writer) error {
		return show.Follow(ctx, client, study, flags.JSON, out)
	})
}
