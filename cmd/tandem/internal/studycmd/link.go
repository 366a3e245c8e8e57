package studycmd

import (
	"context"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/internal/protocol"
)

// linkLife is how long a link opens its study where nobody said.
const linkLife = 7 * 24 * time.Hour

func linkCommand(flags *term.Flags) *cobra.Command {
	command := term.Group(&cobra.Command{
		Use:     "link",
		Aliases: []string{"links"},
		Short:   "Make, list and revoke links that open a study, to look at, without an account",
		Long: `Make, list and revoke links that open a study, to look at, without an account.

Whoever has a link sees all of that study, its file and its logs too, and what
it took from earlier studies; nothing else. A study's owner makes links to it,
and administrators do.`,
	})
	command.AddCommand(linkCreateCommand(flags), linkListCommand(flags), linkRevokeCommand(flags))
	return command
}

// sharedLink is a link that was just made, with its whole address.
type sharedLink struct {
	protocol.IssuedLink
	URL string `json:"url"`
}

func linkCreateCommand(flags *term.Flags) *cobra.Command {
	var name string
	var life time.Duration
	command := onStudy(flags, &cobra.Command{
		Use:   "create STUDY",
		Short: "Make a link to a study and print it, this once",
		Long: `Make a link to a study and print it, this once: only a hash of its secret is
stored. It begins with the server's address as --server has it: give the one
that readers reach. It ends after --expires, at most 366 days from now.`,
		Example: `  tandem study link create lenet-fashion-mnist --name reviewers
  tandem study link create lenet-fashion-mnist --name "the talk" --expires 2h`,
	}, func(ctx context.Context, client *rest.Client, study string, out io.Writer) error {
		if strings.TrimSpace(name) == "" {
			return term.Misuse("--name must say for whom the link is, such as reviewers: the list of links and the audit log show it")
		}
		if seconds := life.Seconds(); seconds < protocol.MinLinkSeconds || seconds > protocol.MaxLinkSeconds {
			return term.Misuse("--expires (%v) must be a time from now, from a minute to 366 days, such as 168h", life)
		}
		issued, err := client.CreateLink(ctx, study, protocol.LinkRequest{Name: name, TTLSeconds: life.Seconds()})
		if err != nil {
			return err
		}
		link := sharedLink{issued, client.URL() + issued.Path}
		return term.SayAnswer(out, flags.JSON, link, "%s\n", link.URL)
	})
	command.Flags().StringVar(&name, "name", "", "for whom the link is; the list of links and the audit log show it")
	command.Flags().DurationVar(&life, "expires", linkLife, "how long it opens the study, such as 24h: a minute to 366 days")
	term.CompleteFlag(command, "expires", term.Words("24h\ta day", "168h\ta week", "720h\t30 days", "8760h\ta year"))
	return command
}

func linkListCommand(flags *term.Flags) *cobra.Command {
	return onStudy(flags, &cobra.Command{
		Use:     "list STUDY",
		Short:   "List the links to a study; their secrets are not known any more",
		Example: `  tandem study link list lenet-fashion-mnist`,
	}, func(ctx context.Context, client *rest.Client, study string, out io.Writer) error {
		links, err := client.Links(ctx, study)
		if err != nil {
			return err
		}
		if flags.JSON {
			return term.WriteJSON(out, map[string]any{"links": links})
		}
		return printLinks(out, links, time.Now())
	})
}

// printLinks tells of the links to a study, at the time now.
func printLinks(out io.Writer, links []protocol.LinkView, now time.Time) error {
	return term.Rows(out, links, "There is no link to this study", []string{"ID", "FOR", "CREATED", "EXPIRES", "LAST USED"}, func(link protocol.LinkView) []string {
		ends := term.FormatTime(&link.Expires, "")
		if !now.Before(link.Expires) {
			ends += " (over)"
		}
		return []string{link.ID, format.Plain(link.Name), term.FormatTime(&link.Created, ""), ends, term.FormatTime(link.Used, "never")}
	})
}

func linkRevokeCommand(flags *term.Flags) *cobra.Command {
	return &cobra.Command{
		Use:     "revoke STUDY ID",
		Short:   "Revoke a link to a study; whoever has it open is refused from now on",
		Example: `  tandem study link revoke lenet-fashion-mnist 3fX9kQ2mLp0a`,
		Args:    term.Arguments(2, "the name or the id of a study, and the id of a link, as 'tandem study link list' shows it"),
		RunE: flags.Server.Run(func(ctx context.Context, client *rest.Client, args []string, out io.Writer) error {
			if strings.Contains(args[1], "tandem_") {
				return term.Misuse("give the link's id, not the link: see 'tandem study link list'")
			}
			if err := client.DeleteLink(ctx, args[0], args[1]); err != nil {
				return err
			}
			return term.SayAnswer(out, flags.JSON, map[string]string{"revoked": args[1]}, "Link %s was revoked\n", format.Plain(args[1]))
		}),
	}
}
