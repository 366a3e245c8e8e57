package servecmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"time"

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
		Short: "Read and check the server's log of who did what",
		Long: `Read and check the log of who did what on a server, in its data folder.

It has a line for each token that was made or revoked, each study that was created, stopped
or deleted, each download of results, and each request that was refused. The
server may be running.`,
	})
	command.PersistentFlags().StringVar(&data, "data", defaultData(), "the server's data folder")
	command.PersistentFlags().BoolVar(&asJSON, "json", false, "print JSON for scripts")
	command.AddCommand(auditListCommand(&data, &asJSON), auditVerifyCommand(&data, &asJSON))
	return command
}

func auditListCommand(data *string, asJSON *bool) *cobra.Command {
	var since string
	command := &cobra.Command{
		Use:   "list",
		Short: "List what was done and refused, the oldest first",
		Long: `List what was done and refused, the oldest first.

An action that was "asked" was done, unless a later line says that it "failed".`,
		Example: `  tandem audit list --since 24h
  tandem audit list --since 2026-03-01 --json | jq 'select(.outcome == "refused")'`,
		Args: term.Arguments(0, "no arguments"),
		RunE: func(command *cobra.Command, _ []string) error {
			from, err := sinceTime(since, time.Now())
			if err != nil {
				return err
			}
			return listAudit(filepath.Join(*data, auditFolder), from, *asJSON, command.OutOrStdout())
		},
	}
	command.Flags().StringVar(&since, "since", "", "only lines from then on: a duration such as 24h, or a date or time such as 2026-03-01 or 2026-03-01T08:00:00Z")
	return command
}

// sinceTime reads --since: a span before now, a day, or a time.
func sinceTime(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if span, err := time.ParseDuration(text); err == nil && span >= 0 {
		return now.Add(-span), nil
	}
	if day, err := time.ParseInLocation(time.DateOnly, text, time.Local); err == nil {
		return day, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, term.Misuse("--since (%s) must be a duration such as 24h, a date such as 2026-03-01, or a time such as 2026-03-01T08:00:00Z", text)
	}
	return at, nil
}

// listAudit prints lines as they are read, since a log may be long: JSON as
// one object a line, else a table whose columns have fixed widths.
func listAudit(folder string, from time.Time, asJSON bool, out io.Writer) error {
	const layout = "%-19s  %-8s  %-22s  %-24s  %-40s  %s\n"
	empty := true
	err := audit.Read(folder, func(entry audit.Entry) error {
		if entry.At.Before(from) {
			return nil
		}
		if asJSON {
			line, err := json.Marshal(entry)
			if err == nil {
				_, err = fmt.Fprintln(out, format.JSON(string(line)))
			}
			return err
		}
		if empty {
			fmt.Fprintf(out, layout, "TIME", "OUTCOME", "ACTION", "WHO", "ON", "MORE")
		}
		empty = false
		who := entry.Who
		if who == "" {
			who = entry.From
		}
		more := entry.Detail
		if entry.Count > 1 {
			more = strings.TrimSpace(more + ", " + strconv.Itoa(entry.Count) + " times")
		}
		if _, agent, is := strings.Cut(entry.Program, "(agent "); is {
			more = strings.TrimPrefix(more+", by agent "+strings.TrimSuffix(agent, ")"), ", ")
		}
		_, err := fmt.Fprintf(out, layout, entry.At.Local().Format(time.DateTime), string(entry.Outcome), format.Plain(entry.Action), format.Plain(who), format.Plain(entry.On), format.Plain(more))
		return err
	})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return term.Misuse("there is no audit log in %s: name the data folder of a server that has started once with --data", filepath.Dir(folder))
	case err == nil && empty && !asJSON:
		_, err = fmt.Fprintln(out, "No line of the log is of that time.")
	}
	return err
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
