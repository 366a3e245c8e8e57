package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/protocol"
	"github.com/tandem-tune/tandem/store/sqlite"
	"github.com/tandem-tune/tandem/web/auth"
)

func tokenCommand() *cobra.Command {
	var flags studyFlags
	command := group(&cobra.Command{
		Use:   "token",
		Short: "Create, list and delete tokens",
		Long: `Create, list and delete the tokens a server accepts.

Scopes: admin may do everything; worker may run trials; viewer may read.`,
	})
	connectionFlags(command, &flags.server)
	command.PersistentFlags().BoolVar(&flags.json, "json", false, "print JSON for scripts")
	command.AddCommand(tokenCreateCommand(&flags), tokenListCommand(&flags), tokenDeleteCommand(&flags))
	return command
}

func tokenCreateCommand(flags *studyFlags) *cobra.Command {
	var data, name, scope string
	var database databaseOptions
	var life time.Duration
	command := &cobra.Command{
		Use:   "create",
		Short: "Create a token and print it, this once",
		Long: `Create a token and print it, this once: only its hash is stored.

If the last admin token was lost, stop the server and make one in its data
folder with --data, or make one in its database with --database.`,
		Example: `  tandem token create --scope worker --name rack-7
  tandem token create --scope viewer --name dashboard --valid-for 720h
  tandem token create --scope admin --data ~/.local/share/tandem`,
		Args: arguments(0, "no arguments"),
		RunE: func(command *cobra.Command, _ []string) error {
			ask := protocol.TokenRequest{Name: name, Scope: scope, TTLSeconds: life.Seconds()}
			issued, err := createToken(command.Context(), flags, data, database, ask)
			if err != nil {
				return err
			}
			if flags.json {
				return writeJSON(command.OutOrStdout(), issued)
			}
			_, err = fmt.Fprintln(command.OutOrStdout(), issued.Token)
			return err
		},
	}
	command.Flags().StringVar(&scope, "scope", string(auth.Worker), "admin, worker or viewer")
	command.Flags().StringVar(&name, "name", hostName(), "who or what will use it")
	command.Flags().DurationVar(&life, "valid-for", 0, "how long it is valid; 0 means for ever")
	command.Flags().StringVar(&data, "data", "", "make it in this data folder, whose server is stopped")
	databaseFlags(command, &database, "make it in this PostgreSQL database, whose servers may run: postgres://USER@HOST/DATABASE")
	return command
}

func createToken(ctx context.Context, flags *studyFlags, data string, database databaseOptions, ask protocol.TokenRequest) (issued protocol.IssuedToken, err error) {
	if database.chosen() {
		return createTokenIn(ctx, database, ask)
	}
	if data == "" {
		client, err := flags.server.open()
		if err != nil {
			return issued, err
		}
		return client.CreateToken(ctx, ask)
	}
	path := filepath.Join(data, "tandem.db")
	if _, err := os.Stat(path); err != nil {
		return issued, usageError{fmt.Errorf("--data: there is no server's data in %s: %w", data, err)}
	}
	store, err := sqlite.Open(ctx, path, sqlite.Options{})
	if err != nil {
		return issued, err
	}
	defer func() {
		if closed := store.Close(); err == nil {
			err = closed
		}
	}()
	return issue(ctx, store, ask)
}

// createTokenIn makes the token in the database itself, beside servers that may
// be at work.
func createTokenIn(ctx context.Context, options databaseOptions, ask protocol.TokenRequest) (protocol.IssuedToken, error) {
	database, err := options.open(ctx)
	if err != nil {
		return protocol.IssuedToken{}, err
	}
	defer database.Close()
	tokens, closeTokens := database.Guest()
	defer closeTokens()
	return issue(ctx, tokens, ask)
}

func issue(ctx context.Context, store auth.Store, ask protocol.TokenRequest) (issued protocol.IssuedToken, err error) {
	life := time.Duration(ask.TTLSeconds * float64(time.Second))
	secret, token, err := auth.Issue(ctx, store, ask.Name, auth.Scope(ask.Scope), life)
	if err != nil {
		return issued, err
	}
	return protocol.IssuedToken{Token: secret, TokenView: protocol.TokenView{
		ID: token.ID, Name: token.Name, Scope: string(token.Scope), Created: token.Created, Expires: token.Expires,
	}}, nil
}

func tokenListCommand(flags *studyFlags) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the tokens; their secrets are not known any more",
		Example: `  tandem token list`,
		Args:    arguments(0, "no arguments"),
		RunE: func(command *cobra.Command, _ []string) error {
			client, err := flags.server.open()
			if err != nil {
				return err
			}
			tokens, err := client.Tokens(command.Context())
			if err != nil {
				return err
			}
			if flags.json {
				return writeJSON(command.OutOrStdout(), map[string]any{"tokens": tokens})
			}
			return printTokens(command.OutOrStdout(), tokens)
		},
	}
}

func printTokens(out io.Writer, tokens []protocol.TokenView) error {
	rows := make([][]string, 0, len(tokens))
	for _, token := range tokens {
		expires := "never"
		if token.Expires != nil {
			expires = token.Expires.Local().Format("2006-01-02 15:04")
		}
		rows = append(rows, []string{token.ID, plainText(token.Name), token.Scope, token.Created.Local().Format("2006-01-02 15:04"), expires})
	}
	return table(out, []string{"ID", "NAME", "SCOPE", "CREATED", "EXPIRES"}, rows)
}

func tokenDeleteCommand(flags *studyFlags) *cobra.Command {
	return &cobra.Command{
		Use:     "delete ID",
		Short:   "Delete a token; whoever uses it is refused from now on",
		Example: `  tandem token delete 3fX9kQ2mLp0a`,
		Args:    arguments(1, "the id of a token, as 'tandem token list' shows it"),
		RunE: func(command *cobra.Command, args []string) error {
			client, err := flags.server.open()
			if err != nil {
				return err
			}
			if strings.HasPrefix(args[0], "tandem_") {
				return usageError{fmt.Errorf("give the token's id, not the token: see 'tandem token list'")}
			}
			if err := client.DeleteToken(command.Context(), args[0]); err != nil {
				return err
			}
			if flags.json {
				return writeJSON(command.OutOrStdout(), map[string]string{"deleted": args[0]})
			}
			_, err = fmt.Fprintf(command.OutOrStdout(), "Token %s was deleted\n", args[0])
			return err
		},
	}
}
