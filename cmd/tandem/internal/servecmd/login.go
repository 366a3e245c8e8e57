package servecmd

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/internal/protocol"
)

// LoginCommand is "tandem login".
func LoginCommand() *cobra.Command {
	var flags term.Flags
	flags.Server.Token = "none" // so that no token comes over the network in plain text either
	command := &cobra.Command{
		Use:   "login",
		Short: "Sign in with the server's identity provider, in a browser on any device",
		Long: `Sign in with the server's identity provider, in a browser on any device. The
token is valid for a week. It is kept in your configuration folder, for you
alone, and used where TANDEM_TOKEN and --token-file name none.`,
		Example: `  tandem login --server https://tuning.example.org`,
		Args:    term.Arguments(0, "no arguments"),
		RunE: flags.Server.Run(func(ctx context.Context, client *rest.Client, _ []string, out io.Writer) error {
			begun, err := client.StartDeviceSignIn(ctx)
			if err != nil {
				return err
			}
			where := begun.Complete
			if where == "" {
				where = begun.Address
			}
			if !flags.JSON {
				fmt.Fprintf(out, "Open %s and enter %s if it asks for a code\n", format.Plain(where), format.Plain(begun.UserCode))
			}
			issued, err := awaitSignIn(ctx, client, begun)
			if err != nil {
				return err
			}
			path, err := flags.Server.Keep(issued.Token)
			if err != nil {
				return err
			}
			return term.SayAnswer(out, flags.JSON, issued.TokenView, "Signed in as %s until %s; the token is in %s\n", format.Plain(issued.Name), term.FormatTime(issued.Expires, "revoked"), path)
		}),
	}
	flags.Add(command)
	return command
}

// awaitSignIn asks until somebody has signed in, or the code is over.
func awaitSignIn(ctx context.Context, client *rest.Client, begun protocol.DeviceSignIn) (protocol.IssuedToken, error) {
	ctx, stop := context.WithTimeout(ctx, time.Duration(begun.Seconds*float64(time.Second)))
	defer stop()
	every := time.NewTicker(time.Duration(max(1, begun.Interval) * float64(time.Second)))
	defer every.Stop()
	for {
		select {
		case <-every.C:
		case <-ctx.Done():
			return protocol.IssuedToken{}, fmt.Errorf("nobody signed in with the code %s: begin again: %w", format.Plain(begun.UserCode), ctx.Err())
		}
		found, err := client.FinishDeviceSignIn(ctx, begun.DeviceCode)
		if err != nil || found.Issued != nil {
			return fromPointer(found.Issued), err
		}
	}
}

func fromPointer[T any](value *T) (nothing T) {
	if value == nil {
		return nothing
	}
	return *value
}

// UserCommand is "tandem user".
func UserCommand() *cobra.Command {
	var flags term.Flags
	command := term.Group(&cobra.Command{Use: "user", Short: "List and remove users", Long: `List and remove users. A user begins with a token of that name, or by signing in
with the identity provider.`})
	flags.Add(command)
	command.AddCommand(term.List[protocol.UserView]{
		Short: "List the users who have tokens or have signed in", Example: `  tandem user list`, Key: "users",
		Get: (*rest.Client).Users, Print: printUsers,
	}.Command(&flags), term.Removal{
		Use: "remove USER", Short: "End all tokens and sessions of a user; the studies stay",
		Long: `End all tokens and sessions of a user, and forget who it is at the identity
provider. Its studies stay. Whom the provider and --oidc-allow-... still let in
can sign in again.`, Example: `  tandem user remove alice`, What: "the name of a user",
		Offer: term.CompleteOne(&flags.Server, (*rest.Client).Users, func(one protocol.UserView) string { return one.Name }),
		Do:    (*rest.Client).RemoveUser, Done: "removed", Said: "User %s was removed",
	}.Command(&flags))
	return command
}

func printUsers(out io.Writer, users []protocol.UserView) error {
	return term.Rows(out, users, "There is no user", []string{"USER", "TOKENS", "LAST USED", "IDENTITY"}, func(one protocol.UserView) []string {
		identity := "-"
		if one.Issuer != "" {
			identity = format.Plain(one.Subject + " at " + one.Issuer)
		}
		return []string{format.Plain(one.Name), fmt.Sprint(one.Tokens), term.FormatTime(one.Used, "never"), identity}
	})
}
