package servecmd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/web/audit"
	"github.com/tandem-tune/tandem/web/auth"
)

// auditFolder is where the audit log is in the data folder.
const auditFolder = "audit"

// AuditCommand is "tandem audit".
func AuditCommand() *cobra.Command {
	var data string
	var asJSON bool
	command := term.Group(&cobra.Command{
		Use:   "audit",
		Short: "Check the server's log of who did what",
		Long: `Check the log of who did what on a server, in its data folder.

It has a line of JSON for each token that was made or revoked, each study that was created, stopped
or deleted, each download of results, and each request that was refused; an action that was
"asked" was done, unless a later line says that it "failed". The page Access shows the
newest lines. The server may be running.`,
	})
	command.PersistentFlags().StringVar(&data, "data", defaultData(), "the server's data folder")
	command.PersistentFlags().BoolVar(&asJSON, "json", false, "print JSON for scripts")
	command.AddCommand(auditVerifyCommand(&data, &asJSON))
	return command
}

func auditVerifyCommand(data *string, asJSON *bool) *cobra.Command {
	var expect string
	command := &cobra.Command{
		Use:   "verify",
		Short: "Check that no line was changed, removed or put in",
		Long: `Check that no line of the log was changed, removed or put in.

Whoever may write the files can make them anew, or cut off their end. Against
that, note the hash that this command prints where they cannot write (the server
logs it at each start), and give it with --expect later.`,
		Example: `  tandem audit verify
  tandem audit verify --expect 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08`,
		Args: term.Arguments(0, "no arguments"),
		RunE: func(command *cobra.Command, _ []string) error {
			report, err := audit.Verify(filepath.Join(*data, auditFolder), strings.ToLower(expect))
			if *asJSON {
				return errors.Join(term.WriteJSON(command.OutOrStdout(), verdict(report, err)), err)
			}
			if errors.Is(err, fs.ErrNotExist) {
				return err
			}
			if err != nil {
				return fmt.Errorf("the audit log is not as it was written: %w", err)
			}
			_, err = fmt.Fprintf(command.OutOrStdout(), "%s, as they were written: %d to %d, in %s of %s\nHash of the last: %s\n",
				format.Count(int(report.Lines), "line"), report.First, report.Last, format.Count(report.Files, "file"), filepath.Join(*data, auditFolder), report.Head)
			return err
		},
	}
	command.Flags().StringVar(&expect, "expect", "", "a hash that was noted earlier and must be among the lines")
	return command
}

// verdict is what a check found, for scripts.
func verdict(report audit.Report, err error) any {
	var fault *audit.Fault
	errors.As(err, &fault)
	return struct {
		audit.Report
		Fault *audit.Fault `json:"fault,omitempty"`
	}{report, fault}
}

// maker is who makes a token without one, and where that comes from.
type maker struct{ who, from string }

// issueLogged makes a token, with a line in the audit log: a token that cannot
// be logged is not made.
func issueLogged(ctx context.Context, store auth.Store, log *audit.Log, request auth.Request, by maker) (string, auth.Token, error) {
	secret, token, err := auth.Issue(ctx, store, request)
	if err != nil {
		return "", token, err
	}
	err = log.Append(audit.Entry{
		Action: "create-token", Outcome: audit.Done, Who: by.who, From: by.from, On: "token " + token.ID, Detail: string(token.Scope) + ":" + token.Name,
	})
	if err != nil {
		return "", token, errors.Join(err, store.DeleteToken(ctx, token.ID))
	}
	return secret, token, nil
}

// issue makes a token that no request has asked for.
func (s *server) issue(ctx context.Context, request auth.Request) (string, auth.Token, error) {
	return issueLogged(ctx, s.store, s.audit, request, maker{who: "the data folder's owner"})
}

// closeAudit ends the audit log, if it was opened.
func (s *server) closeAudit() error {
	if s.audit == nil {
		return nil
	}
	return s.audit.Close()
}
