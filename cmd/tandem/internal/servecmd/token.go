package servecmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/beside"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/store/sqlite"
	"github.com/tandem-tune/tandem/web/audit"
	"github.com/tandem-tune/tandem/web/auth"
)

// TokenCommand is "tandem token".
func TokenCommand() *cobra.Command {
	var flags term.Flags
	return flags.Group(&cobra.Command{
		Use:   "token",
		Short: "Create, list and revoke tokens",
		Long: `Create, list and revoke the tokens a server accepts.

Scopes: admin may do everything; user has studies of its own and sees no others;
worker may run trials; launcher may start workers (docs/launch.md); viewer may read
everything.`,
	}, tokenCreateCommand(&flags), tokenListCommand(&flags), tokenRevokeCommand(&flags))
}

func tokenCreateCommand(flags *term.Flags) *cobra.Command {
	var data, name, scope, worker string
	var database databaseOptions
	var life time.Duration
	command := &cobra.Command{
		Use:   "create",
		Short: "Create a token and print it, this once",
		Long: `Create a token and print it, this once: only its hash is stored.

It takes an admin's token, but not on the server's own machine: there the user
that the server runs as, and root, make tokens with --data, its data folder (as
by default, if no token and no --server is given), whether it runs or not. With
--database they are made in a database, and are in no server's audit log.`,
		Example: `  tandem token create --scope user --name alice
  tandem token create --scope worker --worker rack-7
  tandem token create --scope launcher --name alice
  tandem token create --scope viewer --name dashboard --expires 720h
  tandem token create --scope admin --data ~/.local/share/tandem`,
		Args: term.Arguments(0, "no arguments"),
		RunE: func(command *cobra.Command, _ []string) error {
			flags.Server.Named = command.Flags().Changed("server") || os.Getenv("TANDEM_SERVER") != ""
			ask, err := tokenRequest(name, scope, worker, life)
			if err != nil {
				return err
			}
			issued, err := createToken(command.Context(), flags, tokenPlace{data, database}, ask)
			if err != nil {
				return err
			}
			if database.chosen() {
				fmt.Fprintf(command.ErrOrStderr(), "Token %s was made in the database itself: it is in no server's audit log, and 'tandem token list' shows it\n", issued.ID)
			}
			return term.SayAnswer(command.OutOrStdout(), flags.JSON, issued, "%s\n", issued.Token)
		},
	}
	command.Flags().StringVar(&scope, "scope", string(auth.Worker), "admin, user, worker, viewer, launcher or device")
	term.CompleteFlag(command, "scope", term.Words("admin", "user", "worker", "viewer", "launcher", "device"))
	command.Flags().StringVar(&name, "name", "", "who or what will use it; for the scopes user and launcher, the name of the user; * for a launcher for all users (default the worker, or this host)")
	command.Flags().StringVar(&worker, "worker", "", "for the scope worker: the worker it is for, by the name it is started with; * for any number of them (default the first that uses it)")
	command.Flags().DurationVar(&life, "expires", 0, "how long it is valid, such as 720h; 0 means for ever")
	command.Flags().StringVar(&data, "data", "", "make it with the server of this data folder, or in the folder if none runs")
	databaseFlags(command, &database, "make it in this PostgreSQL database, whose servers may run: postgres://USER@HOST/DATABASE")
	return command
}

// tokenRequest names a token after what is known of it where nobody named it.
func tokenRequest(name, scope, worker string, life time.Duration) (protocol.TokenRequest, error) {
	switch {
	case life < 0:
		return protocol.TokenRequest{}, term.Misuse("--expires (%v) must be a time from now, such as 720h, or 0 for a token that never expires", life)
	case name == "" && (scope == string(auth.User) || scope == string(auth.Launcher)):
		return protocol.TokenRequest{}, term.Misuse("--name must be the user's name, such as alice: all tokens of that name are the same user's")
	case name == "" && worker != "" && worker != auth.AnyWorker:
		name = worker
	case name == "":
		name = term.HostName()
	}
	return protocol.TokenRequest{Name: name, Scope: scope, Worker: worker, TTLSeconds: life.Seconds()}, nil
}

// tokenPlace is where a token is made: in a data folder, in a database, or, if
// neither is named, by the server.
type tokenPlace struct {
	data     string
	database databaseOptions
}

func createToken(ctx context.Context, flags *term.Flags, place tokenPlace, ask protocol.TokenRequest) (protocol.IssuedToken, error) {
	request, err := requestOf(ask)
	if err != nil {
		return protocol.IssuedToken{}, err
	}
	create := createTokenIn
	switch {
	case place.database.chosen():
	case place.data != "":
		// A server that is at work there makes it; else it is made in the folder itself.
		if issued, err := createTokenBeside(ctx, place.data, ask); !errors.Is(err, beside.ErrNone) {
			return issued, err
		}
		create = createTokenAt
	default:
		client, err := flags.Server.Open()
		if err != nil {
			return protocol.IssuedToken{}, err
		}
		if flags.Server.Token == "" && !flags.Server.Named {
			if issued, err := createTokenBeside(ctx, defaultData(), ask); !errors.Is(err, beside.ErrNone) {
				return issued, err
			}
		}
		return client.CreateToken(ctx, ask)
	}
	secret, token, err := create(ctx, place, request)
	if err != nil {
		return protocol.IssuedToken{}, err
	}
	return issuedOf(secret, token), nil
}

// createTokenAt makes the token in a data folder that no server has.
func createTokenAt(ctx context.Context, place tokenPlace, request auth.Request) (secret string, token auth.Token, err error) {
	path := filepath.Join(place.data, "tandem.db")
	if _, err := os.Stat(path); err != nil {
		return "", token, term.Misuse("--data: there is no server's data in %s: %w", place.data, err)
	}
	store, err := sqlite.Open(ctx, path, sqlite.Options{})
	if err != nil {
		return "", token, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	log, err := audit.Open(filepath.Join(place.data, auditFolder), audit.Options{})
	if err != nil {
		return "", token, err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	return issueLogged(ctx, store, log, request, maker{who: "the data folder's owner"})
}

// createTokenIn makes the token in the database itself, beside servers that may
// be at work. Their audit logs are elsewhere, and hear nothing of it.
func createTokenIn(ctx context.Context, place tokenPlace, request auth.Request) (string, auth.Token, error) {
	database, err := place.database.open(ctx)
	if err != nil {
		return "", auth.Token{}, err
	}
	defer database.Close()
	tokens, closeTokens := database.Guest()
	defer closeTokens()
	return auth.Issue(ctx, tokens, request)
}

func tokenListCommand(flags *term.Flags) *cobra.Command {
	return term.List[protocol.TokenView]{
		Short: "List the tokens; their secrets are not known any more", Example: `  tandem token list`, Key: "tokens",
		Get: (*rest.Client).Tokens, Print: printTokens,
	}.Command(flags)
}

func printTokens(out io.Writer, tokens []protocol.TokenView) error {
	heading := []string{"ID", "NAME", "SCOPE", "WORKER", "CREATED", "EXPIRES", "LAST USED"}
	return term.Rows(out, tokens, "There is no token", heading, func(token protocol.TokenView) []string {
		worker := format.Plain(token.Worker)
		switch {
		case token.Scope != string(auth.Worker):
			worker = "-"
		case token.Worker == "":
			worker = "the first that uses it"
		case token.Worker == auth.AnyWorker:
			worker = "any"
		}
		return []string{
			token.ID, format.Plain(token.Name), token.Scope, worker, term.FormatTime(&token.Created, ""), term.FormatTime(token.Expires, "never"), term.FormatTime(token.Used, "never"),
		}
	})
}

func tokenRevokeCommand(flags *term.Flags) *cobra.Command {
	return term.Removal{
		Use: "revoke ID", Short: "Revoke a token; whoever uses it is refused from now on", Example: `  tandem token revoke 3fX9kQ2mLp0a`,
		What: "the id of a token, as 'tandem token list' shows it",
		Do: func(client *rest.Client, ctx context.Context, id string) error {
			if strings.HasPrefix(id, "tandem_") {
				return term.Misuse("give the token's id, not the token: see 'tandem token list'")
			}
			return client.DeleteToken(ctx, id)
		}, Done: "revoked", Said: "Token %s was revoked",
	}.Command(flags)
}
