// Package policycmd writes and explains policies of confidential machines, and appraises
// reports by them, offline: "tandem policy".
package policycmd

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/internal/sealed"
	"github.com/tandem-tune/tandem/workers/confidential/evidence"
	"github.com/tandem-tune/tandem/workers/confidential/policy"
)

// Command is "tandem policy".
func Command() *cobra.Command {
	command := term.Group(&cobra.Command{
		Use:   "policy",
		Short: "Say which confidential machines may get keys, and check their reports",
		Long: `Say which confidential machines may get keys, and check the reports that their
processors signed: docs/confidential.md. No command here asks the network.`,
	})
	command.AddCommand(explainCommand(), evidenceCommand(), learnCommand(), verifyCommand(), signCommand())
	return command
}

// most bounds each file that is read.
const most = 1 << 20

// open reads a policy, signed or not.
func open(path, owner string, stdin io.Reader) (*policy.Policy, string, error) {
	data, err := term.ReadBounded(path, stdin, most)
	if err != nil {
		return nil, "", err
	}
	var looks struct{ Signature, Signer any }
	if owner != "" || json.Unmarshal(data, &looks) == nil && looks.Signature != nil {
		found, signed, err := policy.Open(data, owner)
		return found, signed.Signer, wrong(path, err)
	}
	found, err := policy.Parse(data)
	return found, "", wrong(path, err)
}

// wrong says which file is wrong, with the code of a wrong file.
func wrong(path string, err error) error {
	var refused *evidence.Refusal
	if err == nil || errors.As(err, &refused) {
		return err
	}
	return term.WithCode(term.ExitUsage, fmt.Errorf("%s: %w", path, err))
}

func explainCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "explain FILE",
		Short:   "Say in sentences what a policy trusts, and what it does not",
		Example: `  tandem policy explain policy.yaml`,
		Args:    term.Arguments(1, "a policy file"),
		RunE: func(command *cobra.Command, args []string) error {
			found, signer, err := open(args[0], "", command.InOrStdin())
			if err != nil {
				return err
			}
			trusted, limits, warnings := found.Explain()
			if signer == "" {
				warnings = append(warnings, "The policy is not signed: 'tandem policy sign' signs it.")
			} else {
				trusted = append(trusted, "Signed by "+signer+".")
			}
			var text strings.Builder
			fmt.Fprintf(&text, "Policy %s\n", found.ID())
			for _, part := range []struct {
				title string
				lines []string
			}{{"Trusted", trusted}, {"Not trusted", limits}, {"Not protected from", policy.Unprotected()}, {"Warnings", warnings}} {
				if len(part.lines) > 0 {
					fmt.Fprintf(&text, "\n%s:\n  - %s\n", part.title, strings.Join(part.lines, "\n  - "))
				}
			}
			_, err = io.WriteString(command.OutOrStdout(), text.String())
			return err
		},
	}
}

func evidenceCommand() *cobra.Command {
	var certificate, gpus string
	var collateral, chains map[string]string
	command := &cobra.Command{
		Use:   "evidence REPORT",
		Short: "Put a report, its certificate and collateral into one file",
		Long: `Put a report, its certificate and collateral into one file. REPORT is what Linux
hands out as outblob below /sys/kernel/config/tsm/report: a report of AMD SEV-SNP
or a quote of Intel TDX. Collateral is amd_crl, or tcb_info, qe_identity, pck_crl
and root_crl, as AMD and Intel publish them; gpu_root_crl and gpu_crl are NVIDIA's.`,
		Example: `  tandem policy evidence outblob --certificate auxblob --collateral amd_crl=genoa.crl > machine.json
  tandem policy evidence quote --collateral tcb_info=tcb.json,qe_identity=qe.json,pck_crl=pck.der,root_crl=root.der --chain tcb_info=tcb.pem,qe_identity=tcb.pem,pck_crl=pck.pem > machine.json`,
		Args: term.Arguments(1, "the file of a report"),
		RunE: func(command *cobra.Command, args []string) error {
			report, err := term.ReadBounded(args[0], command.InOrStdin(), most)
			if err != nil {
				return err
			}
			documents := map[string]evidence.Document{}
			read := func(path string) (content []byte) {
				if path != "" && err == nil {
					content, err = term.ReadBounded(path, command.InOrStdin(), most)
				}
				return content
			}
			for name := range chains {
				if collateral[name] == "" {
					return term.Misuse("--chain %s: there is no --collateral %s: name its file too", name, name)
				}
			}
			for name, path := range collateral {
				documents[name] = evidence.Document{Body: read(path), Chain: read(chains[name])}
			}
			one, shown := read(certificate), read(gpus)
			if err != nil {
				return err
			}
			made, err := evidence.Pack(report, one, documents)
			if err == nil {
				made.GPU, err = collected(shown)
			}
			if err != nil {
				return err
			}
			return json.NewEncoder(command.OutOrStdout()).Encode(made)
		},
	}
	command.Flags().StringVar(&certificate, "certificate", "", "file of the VCEK or VLEK, or Linux' auxblob; SEV-SNP only")
	command.Flags().StringVar(&gpus, "gpus", "", "file of the machine's GPUs, which 'nvattest collect-evidence --device gpu --format json' of NVIDIA writes")
	command.Flags().StringToStringVar(&collateral, "collateral", nil, "files of collateral, each NAME=FILE")
	command.Flags().StringToStringVar(&chains, "chain", nil, "files of its signers' certificates as PEM, each NAME=FILE; TDX only")
	return command
}

// collected are the GPUs of a file of NVIDIA's nvattest; none without a file.
func collected(text []byte) (list []evidence.GPU, err error) {
	var file struct {
		Evidences []struct{ Evidence, Certificate []byte }
	}
	if len(text) == 0 {
		return nil, nil
	}
	if err := json.Unmarshal(text, &file); err != nil || len(file.Evidences) == 0 {
		return nil, term.Misuse("--gpus: it has no evidences (%v): 'nvattest collect-evidence --device gpu --format json' writes such a file", err)
	}
	for _, one := range file.Evidences {
		list = append(list, evidence.GPU{Report: one.Evidence, Chain: one.Certificate})
	}
	return list, nil
}

// claimed reads evidence and checks its signatures at the time.
func claimed(path, at string, stdin io.Reader) (*evidence.Claims, time.Time, error) {
	now := time.Now()
	if at != "" {
		var err error
		if now, err = time.Parse(time.RFC3339, at); err != nil {
			return nil, now, term.Misuse("--at %q must be a time such as 2027-03-01T00:00:00Z", at)
		}
	}
	data, err := term.ReadBounded(path, stdin, most)
	if err != nil {
		return nil, now, err
	}
	found, err := evidence.Parse(data)
	if err != nil {
		return nil, now, err
	}
	roots, err := evidence.Pinned()
	if err != nil {
		return nil, now, err
	}
	claims, err := found.Verify(roots, now)
	return claims, now, err
}

func learnCommand() *cobra.Command {
	var at string
	command := &cobra.Command{
		Use:   "from-evidence FILE",
		Short: "Write a policy for machines like the one that made the evidence",
		Long: `Write a policy for machines like the one that made the evidence. Its signatures are
checked; what the machine runs is not, so use one that you have in front of you, and
compare the hashes with those that you build. Lines to check are marked so.`,
		Example: `  tandem policy from-evidence machine.json > policy.yaml`,
		Args:    term.Arguments(1, "a file of 'tandem policy evidence'"),
		RunE: func(command *cobra.Command, args []string) error {
			claims, now, err := claimed(args[0], at, command.InOrStdin())
			if err != nil {
				return err
			}
			_, err = io.WriteString(command.OutOrStdout(), policy.Learned(claims, now))
			return err
		},
	}
	command.Flags().StringVar(&at, "at", "", "time at which certificates must be valid (default: now)")
	return command
}

func verifyCommand() *cobra.Command {
	var at, owner, data string
	command := &cobra.Command{
		Use:   "verify POLICY EVIDENCE",
		Short: "Say whether a machine may get keys by a policy",
		Long: `Say whether a machine may get keys by a policy, and else why not, with a code that
does not change. A report says nothing of when it was made, unless --report-data names
what the machine had to have signed.`,
		Example: `  tandem policy verify policy.yaml machine.json
  tandem policy verify policy.json machine.json --owner ed25519:Fh0... --at 2026-10-01T12:00:00Z`,
		Args: term.Arguments(2, "a policy, and a file of 'tandem policy evidence'"),
		RunE: func(command *cobra.Command, args []string) error {
			var want []byte
			if data != "" {
				var err error
				if want, err = hex.DecodeString(data); err != nil || len(want) != 64 {
					return term.Misuse("--report-data %q must have 128 hexadecimal digits", data)
				}
			}
			rules, _, err := open(args[0], owner, command.InOrStdin())
			if err != nil {
				return err
			}
			claims, now, err := claimed(args[1], at, command.InOrStdin())
			if err == nil {
				err = rules.Appraise(claims, want, now)
			}
			if err != nil {
				return fmt.Errorf("refused: %w", err)
			}
			fresh := "when it was made is not known"
			if want != nil {
				fresh = "it was made for this request"
			}
			_, err = fmt.Fprintf(command.OutOrStdout(), "Allowed: the report matches policy %s; %s\n", rules.ID(), fresh)
			return err
		},
	}
	command.Flags().StringVar(&owner, "owner", "", "public key that must have signed the policy (default: it need not be signed)")
	command.Flags().StringVar(&data, "report-data", "", "what the machine had to have signed, in hexadecimal")
	command.Flags().StringVar(&at, "at", "", "time of the appraisal (default: now)")
	return command
}

func signCommand() *cobra.Command {
	var identity string
	command := &cobra.Command{
		Use:   "sign FILE",
		Short: "Sign a policy with a key of yours",
		Long: `Sign a policy with a key of yours, and print it. The key is made from the identity
that 'tandem keys create' wrote: take one that no worker holds, since whoever holds it
can sign policies in your name. The public key is printed besides.`,
		Example: `  tandem keys create --out owner.key
  tandem policy sign policy.yaml --identity owner.key > policy.json`,
		Args: term.Arguments(1, "a policy file"),
		RunE: func(command *cobra.Command, args []string) error {
			if identity == "" {
				return term.Misuse("--identity is missing: name a file of 'tandem keys create'")
			}
			keys, err := sealed.Read(identity, nil)
			if err != nil {
				return term.Misuse("%w", err)
			}
			rules, _, err := open(args[0], "", command.InOrStdin())
			if err != nil {
				return err
			}
			signed := rules.Sign(keys.Signer())
			fmt.Fprintf(os.Stderr, "Signed policy %s by %s\n", rules.ID(), signed.Signer)
			return json.NewEncoder(command.OutOrStdout()).Encode(signed)
		},
	}
	command.Flags().StringVar(&identity, "identity", "", "file of your key ('tandem keys create' makes one)")
	return command
}
