// Package attestcmd is "tandem study attestations": it checks what a broker signed.
package attestcmd

import (
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/confidential/policy"
	"github.com/tandem-tune/tandem/workers/confidential/release"
)

// exported is what of an export says to which machines a study's key went.
type exported struct {
	Study  protocol.StudyView `json:"study"`
	Events []struct {
		Kind   string          `json:"kind"`
		Number int             `json:"number"`
		Data   json.RawMessage `json:"data"`
	} `json:"events"`
}

// attested is a lease under which epochs were reported, and what is wrong with it.
type attested struct {
	Trial  int              `json:"trial"`
	Lease  trial.LeaseEpoch `json:"lease"`
	Worker string           `json:"worker"`
	Issued int64            `json:"issued,omitempty"`
	Test   bool             `json:"test,omitempty"`
	Wrong  string           `json:"wrong,omitempty"`

	token string
}

// Command is "tandem study attestations".
func Command(flags *term.Flags) *cobra.Command {
	var key, file string
	command := &cobra.Command{
		Use:   "attestations STUDY",
		Short: "Check what the broker signed of each lease of a confidential study",
		Long: `Check what the broker signed of each lease of a confidential study under which epochs
were reported: that the key went to a machine of the study's policy for this lease, once.
With --export no server is asked. It ends with 1 if something is wrong.`,
		Example: `  tandem study attestations scans --verify ed25519:Fh0...
  tandem study attestations scans --verify ed25519:Fh0... --export study.json`,
		Args: term.Arguments(1, "the name or the id of a study"),
		RunE: func(command *cobra.Command, args []string) error {
			public, err := policy.ReadSigner(key)
			if err != nil {
				return term.Misuse("--verify: %w; 'tandem keys serve' prints the broker's", err)
			}
			var from io.ReadCloser
			if file != "" {
				from, err = os.Open(file)
			} else if client, failed := flags.Server.Open(); failed != nil {
				err = failed
			} else {
				from, err = client.Export(command.Context(), args[0], "json")
			}
			if err != nil {
				return err
			}
			defer from.Close()
			var found exported
			if err := json.NewDecoder(from).Decode(&found); err != nil {
				return fmt.Errorf("read the export: %w", err)
			}
			if view := found.Study; view.Definition.PolicyOf() == "" || args[0] != view.ID && args[0] != view.Definition.Name && file != "" {
				return fmt.Errorf("study %s is not confidential, or not the one of the export", format.Plain(args[0]))
			}
			list, err := found.leases()
			if err != nil {
				return err
			}
			if err := term.PrintAnswer(command.OutOrStdout(), flags.JSON, found.verify(list, public), printAttested); err != nil {
				return err
			}
			if wrong := slices.IndexFunc(list, func(one attested) bool { return one.Wrong != "" }); wrong >= 0 {
				return fmt.Errorf("trial %d, lease %d: %s", list[wrong].Trial, list[wrong].Lease, list[wrong].Wrong)
			}
			return nil
		},
	}
	command.Flags().StringVar(&key, "verify", "", "public key of the broker")
	command.Flags().StringVar(&file, "export", "", "file of 'tandem study export --format json' (default: the server is asked)")
	return command
}

// leases are those that have reports, in their order, with the token of one of these.
func (e exported) leases() (list []attested, err error) {
	for _, event := range e.Events {
		if event.Kind != string(journal.Reported) {
			continue
		}
		var report trial.Report
		if err := json.Unmarshal(event.Data, &report); err != nil {
			return nil, fmt.Errorf("read the export: %w", err)
		}
		at := slices.IndexFunc(list, func(one attested) bool { return one.Trial == event.Number && one.Lease == report.LeaseEpoch })
		if at < 0 {
			at, list = len(list), append(list, attested{Trial: event.Number, Lease: report.LeaseEpoch, Worker: report.Worker})
		}
		if report.Attestation != "" {
			list[at].token = report.Attestation
		}
	}
	return list, nil
}

// verify notes what is wrong with each.
func (e exported) verify(list []attested, key ed25519.PublicKey) []attested {
	nonces := map[string]bool{}
	for i := range list {
		one := &list[i]
		found, err := release.Read(one.token, key)
		wanted := release.Request{Worker: one.Worker, Study: e.Study.ID, Trial: one.Trial, Lease: int64(one.Lease), Policy: e.Study.Definition.PolicyOf()}
		switch {
		case one.token == "":
			one.Wrong = "no broker's word came with its reports"
		case err != nil:
			one.Wrong = err.Error()
		case found.Code != "":
			one.Wrong = "the broker refused the key: " + found.Code
		case found.Request != wanted:
			one.Wrong = fmt.Sprintf("the key was released for %+v, not for %+v", found.Request, wanted)
		case nonces[string(found.Nonce)]:
			one.Wrong = "its challenge was answered before"
		}
		nonces[string(found.Nonce)] = true
		one.Issued, one.Test = found.Issued, found.Test
	}
	return list
}

func printAttested(out io.Writer, list []attested) error {
	rows := make([][]string, 0, len(list))
	for _, one := range list {
		said, at := "released to a machine of the policy", time.Unix(one.Issued, 0)
		if one.Test {
			said = "TEST: the processor does not exist"
		}
		if one.Wrong != "" {
			said = "WRONG: " + one.Wrong
		}
		rows = append(rows, []string{term.FormatTime(&at, ""), fmt.Sprint(one.Trial), fmt.Sprint(one.Lease), format.Plain(one.Worker), format.Plain(strings.ToValidUTF8(said, ""))})
	}
	return term.Table(out, []string{"TIME", "TRIAL", "LEASE", "WORKER", "KEY"}, rows)
}
