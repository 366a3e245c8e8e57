// Package hookcmd makes, lists, tests and deletes hooks: "tandem hook".
package hookcmd

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/hook"
)

// Command is "tandem hook".
func Command() *cobra.Command {
	var flags term.Flags
	return flags.Group(&cobra.Command{
		Use:   "hook",
		Short: "Say who is told what happens in studies",
		Long: `Say who is told what happens in studies: a webhook, a Slack channel, an address or a program.
A study's file names hooks by "hooks", and "tandem study hooks" says what became
of it. docs/hooks.md has the messages, and a receiver that checks signatures.`,
	}, createCommand(&flags), listCommand(&flags), testCommand(&flags), deleteCommand(&flags))
}

func createCommand(flags *term.Flags) *cobra.Command {
	var ask hook.HookRequest
	var tell []string
	command := &cobra.Command{
		Use:   "create NAME [-- PROGRAM ARGUMENT...]",
		Short: "Make a hook, and print the key of a webhook's signatures, this once",
		Long: `Make a hook, and print the key of a webhook's signatures, this once. The URL is
kept and never shown again; --url - reads it from standard input.

A program is run by the server, without a shell, and reads the message from its
standard input. It takes an admin's token, --all, and a server that was started
with --allow-hook-program PROGRAM.`,
		Example: `  tandem hook create team --url https://example.org/tandem
  tandem hook create chat --kind slack --url - --all --tell done,failures <url.txt
  tandem hook create anna --email anna@example.org --all --tell done,failures
  tandem hook create pager --all --tell held -- /usr/local/bin/page tandem`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			ask.Name, ask.Command = args[0], args[1:]
			if len(ask.Command) > 0 && !command.Flags().Changed("kind") {
				ask.Kind = hook.Command
			}
			if ask.Address != "" && !command.Flags().Changed("kind") {
				ask.Kind = hook.Email
			}
			for _, one := range tell {
				ask.Tell = append(ask.Tell, definition.Occasion(one))
			}
			if ask.URL == "-" {
				read, err := term.ReadBounded("-", command.InOrStdin(), 4096)
				if err != nil {
					return err
				}
				ask.URL = strings.TrimSpace(string(read))
			}
			client, err := flags.Server.Open()
			if err != nil {
				return err
			}
			made, err := client.CreateHook(command.Context(), ask)
			if err != nil {
				return err
			}
			said := fmt.Sprintf("Hook %s tells %s\n", made.Name, format.Plain(made.To))
			if made.Secret != "" {
				said += fmt.Sprintf("Its key is shown this once: %s\n", made.Secret)
			}
			return term.SayAnswer(command.OutOrStdout(), flags.JSON, made, "%s", said)
		},
	}
	set := command.Flags()
	set.StringVar((*string)(&ask.Kind), "kind", string(hook.Webhook), "webhook, slack, email or command")
	set.StringVar(&ask.URL, "url", "", "where a webhook or slack takes a POST; - reads it from standard input")
	set.StringVar(&ask.Address, "email", "", "whom to send e-mail, if the server's operator named a mail server")
	set.BoolVar(&ask.All, "all", false, "tell it of all your studies (an administrator's: of everybody's), not only of those that name it")
	set.StringSliceVar(&tell, "tell", nil, "with --all: occasions, of new_best, done, failures, spent, held and limit (default all but limit)")
	set.IntVar(&ask.Failures, "failures", 0, "with --all: after how many failed trials in a row; 0: 3")
	set.Float64Var(&ask.Spent, "spent", 0, "with --all: at which share of a limit in stop; 0: 0.9")
	return command
}

func listCommand(flags *term.Flags) *cobra.Command {
	return term.List[hook.HookView]{
		Short: "List the hooks; their URLs and keys are not shown", Example: `  tandem hook list`, Key: "hooks",
		Get: (*rest.Client).Hooks, Print: printHooks,
	}.Command(flags)
}

func printHooks(out io.Writer, hooks []hook.HookView) error {
	heading := []string{"NAME", "OWNER", "KIND", "TO", "STUDIES", "CREATED"}
	return term.Rows(out, hooks, "There is no hook: tandem hook create makes one", heading, func(one hook.HookView) []string {
		of := "those that name it"
		if one.All {
			of = strings.Trim(strings.ReplaceAll(fmt.Sprint(one.Tell), " ", ", "), "[]") + " of all"
		}
		return []string{one.Name, one.Owner, string(one.Kind), format.Plain(one.To), of, term.FormatTime(&one.Created, "")}
	})
}

func testCommand(flags *term.Flags) *cobra.Command {
	return &cobra.Command{
		Use: "test NAME", Short: "Tell a hook an example now, and say what it answers", Example: `  tandem hook test team`,
		Args: term.Arguments(1, "the name of a hook"),
		RunE: flags.Server.Run(func(ctx context.Context, client *rest.Client, args []string, out io.Writer) error {
			outcome, err := client.TestHook(ctx, args[0])
			if err != nil {
				return err
			}
			if !outcome.Told {
				return fmt.Errorf("hook %s did not take the example: %s", args[0], format.Plain(outcome.Answer))
			}
			return term.SayAnswer(out, flags.JSON, outcome, "Hook %s took the example: %s\n", args[0], format.Plain(outcome.Answer))
		}),
	}
}

func deleteCommand(flags *term.Flags) *cobra.Command {
	return term.Removal{
		Use: "delete NAME", Short: "Delete a hook: it is told nothing more", Example: `  tandem hook delete team`,
		What: "the name of a hook",
		Do:   (*rest.Client).DeleteHook, Done: "deleted", Said: "Hook %s was deleted",
	}.Command(flags)
}
