// Package logincmd has "tandem login" and "tandem logout".
package logincmd

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/internal/problem"
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

// LogoutCommand is "tandem logout".
func LogoutCommand() *cobra.Command {
	var flags term.Flags
	command := &cobra.Command{
		Use:     "logout",
		Short:   "End the token that 'tandem login' got, here and on the server",
		Example: `  tandem logout --server https://tuning.example.org`,
		Args:    term.Arguments(0, "no arguments"),
		RunE: func(command *cobra.Command, _ []string) error {
			path, err := flags.Server.UseKept()
			if err != nil {
				return err
			}
			client, err := flags.Server.Open()
			if err == nil {
				err = client.SignOut(command.Context())
			}
			if err != nil && !problem.Is(err, problem.Unauthorized) { // else it is over already
				return fmt.Errorf("the token in %s was not ended: %w", path, err)
			}
			if err := os.Remove(path); err != nil {
				return err
			}
			return term.SayAnswer(command.OutOrStdout(), flags.JSON, map[string]string{"removed": path}, "Signed out of %s\n", flags.Server.URL)
		},
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
