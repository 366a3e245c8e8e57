package workercmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/profiler"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/workers/agent"
	"github.com/tandem-tune/tandem/workers/confidential/enclave"
	"github.com/tandem-tune/tandem/workers/confidential/evidence"
	"github.com/tandem-tune/tandem/workers/sandbox"
)

// confidential are the flags of a worker in a confidential machine.
type confidential struct {
	mode, broker, tokenFile, ca, policy string
	collateral, chains, metrics         map[string]string
}

func (c *confidential) add(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&c.mode, "confidential", "off", "auto: this is a confidential machine, which gets the key of each lease from --broker and runs confidential studies only (docs/confidential.md)")
	flags.StringVar(&c.broker, "broker", "", "URL of the broker ('tandem keys serve') that releases keys to this machine")
	flags.StringVar(&c.tokenFile, "broker-token", "", "file with the broker's token")
	flags.StringVar(&c.ca, "broker-ca", "", "PEM file of the authority of the broker's certificate (default: those of the system)")
	flags.StringVar(&c.policy, "policy", "", "id of the broker's policy, as confidential.policy of studies has it")
	flags.StringToStringVar(&c.metrics, "allow-metric", nil, "metric that studies may declare, NAME=LOW:HIGH:ROUND (repeatable; default: all)")
	flags.StringToStringVar(&c.collateral, "collateral", nil, "files of collateral for the reports, each NAME=FILE, as for 'tandem policy evidence'")
	flags.StringToStringVar(&c.chains, "chain", nil, "files of its signers' certificates as PEM, each NAME=FILE; TDX only")
}

// allowed are the metrics that studies may declare.
func (c *confidential) allowed() (map[string]definition.Told, error) {
	list := make(map[string]definition.Told, len(c.metrics))
	for name, text := range c.metrics {
		var one definition.Told
		if n, err := fmt.Sscanf(text, "%g:%g:%g", &one.Low, &one.High, &one.Round); n != 3 || err != nil {
			return nil, term.Misuse("--allow-metric %s=%s must be NAME=LOW:HIGH:ROUND, such as accuracy=0:1:0.001", name, text)
		}
		list[name] = one
	}
	return list, nil
}

// most bounds each file that is read.
const most = 1 << 20

// open makes the agent one of a confidential machine, if the flags say so, or says why it
// cannot be.
func (c *confidential) open(ctx context.Context, made *agent.Options, o *Options, logger *slog.Logger) error {
	switch {
	case (c.mode == "" || c.mode == "off") && c.broker+c.tokenFile+c.ca+c.policy == "":
		return nil
	case c.mode != "auto":
		return term.Misuse("--confidential %s: with --broker and --policy it must be auto", c.mode)
	case c.broker == "" || c.tokenFile == "" || c.policy == "":
		return term.Misuse("--confidential auto needs --broker, --broker-token and --policy: see 'tandem worker --help'")
	case o.identity != "":
		return term.Misuse("--identity is a key on a disk, and --confidential gets it from the broker: leave one out")
	case o.Sandbox == SandboxMode(sandbox.Off):
		return term.Misuse("--confidential needs the sandbox: leave --sandbox off out")
	}
	metrics, err := c.allowed()
	if err != nil {
		return err
	}
	if len(metrics) == 0 || len(o.commands) == 0 {
		logger.Warn("the study server chooses what runs here and which metrics are told: name yours with --allow-command, --allow-directory and --allow-metric, or trust it")
	}
	made.Scratch = cmp.Or(made.Scratch, enclave.Scratch())
	if err := enclave.Harden("/", made.Scratch); err != nil {
		return err
	}
	options := enclave.Options{Broker: c.broker, Policy: c.policy, Metrics: metrics, Trusted: o.recipients, Root: "/", Logger: logger, Collateral: map[string]evidence.Document{}}
	token, err := term.ReadBounded(c.tokenFile, nil, most)
	if err != nil {
		return fmt.Errorf("--broker-token: %w", err)
	}
	options.Token = strings.TrimSpace(string(token))
	if c.ca != "" {
		if options.Authorities, err = term.ReadAuthorities(c.ca); err != nil {
			return fmt.Errorf("--broker-ca: %w", err)
		}
	}
	for name, path := range c.collateral {
		var one evidence.Document
		one.Body, err = term.ReadBounded(path, nil, most)
		if chain := c.chains[name]; err == nil && chain != "" {
			one.Chain, err = term.ReadBounded(chain, nil, most)
		}
		if err != nil {
			return fmt.Errorf("--collateral %s: %w", name, err)
		}
		options.Collateral[name] = one
	}
	if made.Enclave, err = enclave.Open(ctx, options); err != nil {
		return fmt.Errorf("--confidential auto: %w", err)
	}
	// What a script does to the machine, and its models, would tell of its data.
	made.NoProfile, made.Models = true, nil
	made.Sandbox.Mode, made.Sandbox.Protected = sandbox.Strict, append(made.Sandbox.Protected, c.tokenFile)
	return nil
}

// confidentialCapability says whether this machine can show what it is, and what it shows.
func confidentialCapability(root string) profiler.Capability {
	one := profiler.Capability{Name: "confidential machine"}
	sign, tee, err := enclave.Find(root)
	if one.Available = err == nil; err != nil {
		one.Reason, one.Remedy = err.Error(), "docs/confidential.md says what the worker needs; without it --confidential does not start"
		return one
	}
	one.Detail = "signs reports (" + tee + ")"
	if claims, err := shown(sign([64]byte{})); err != nil {
		one.Reason = "what they say was not checked here, but by 'tandem policy': " + err.Error()
	} else {
		one.Detail += fmt.Sprintf(": %s firmware %v, %v", claims.Product, claims.TCB, claims.Measurements)
	}
	return one
}

// gpuCapability says which GPUs can show what they are.
func gpuCapability() profiler.Capability {
	one := profiler.Capability{Name: "confidential GPUs"}
	list, err := enclave.GPUs(func(int) (none [32]byte) { return none })
	roots, failed := evidence.Pinned()
	if err = errors.Join(err, failed); err != nil {
		one.Reason, one.Remedy = err.Error(), "a policy with gpu.required refuses this machine, others do not: docs/confidential.md"
		return one
	}
	one.Available = true
	for i, gpu := range list {
		said := "its report is not believed here"
		if claims, _, err := gpu.Verify(roots, time.Now()); err != nil {
			one.Reason = err.Error()
		} else {
			said = claims.String()
		}
		one.Detail += fmt.Sprintf("GPU %d: %s, developers' tools %v. ", i, said, gpu.DevTools)
	}
	return one
}

// shown is what a report says whose signature is good; nobody looks what was revoked.
func shown(report, certificates []byte, err error) (*evidence.Claims, error) {
	if err != nil {
		return nil, err
	}
	packed, err := evidence.Pack(report, certificates, nil)
	if err != nil {
		return nil, err
	}
	roots, err := evidence.Pinned()
	if err != nil {
		return nil, err
	}
	return packed.Verify(roots, time.Now())
}

// printConfidential prints what a worker in a confidential machine needs and has here. The
// error says that something is missing.
func printConfidential(command *cobra.Command, asJSON bool) error {
	needed := func(name, has string, err error, remedy string) profiler.Capability {
		if err != nil {
			return profiler.Capability{Name: name, Reason: err.Error(), Remedy: remedy}
		}
		return profiler.Capability{Name: name, Available: true, Detail: has}
	}
	var lacks error
	if whole := sandbox.Detect(command.Context())[0]; whole.Reason != "" {
		lacks = errors.New(strings.TrimSpace(whole.Detail + ": " + whole.Reason))
	}
	found := []profiler.Capability{
		confidentialCapability("/"),
		needed("folder in memory", "/dev/shm is one", enclave.InMemory("/dev/shm"), "mount -t tmpfs tmpfs /dev/shm, or name one with --scratch"),
		needed("no swap", "memory stays in memory", enclave.Unswapped("/"), "swapoff -a, and take the swap out of /etc/fstab"),
		needed("strict sandbox", "all layers are there", lacks, "'tandem doctor' says of each layer how it can be had"),
	}
	missing := missingOf(found)
	if err := term.PrintAnswer(command.OutOrStdout(), asJSON, append(found, gpuCapability()), printEach); err != nil || missing == 0 {
		return err
	}
	return fmt.Errorf("%d of %d are missing: 'tandem worker --confidential auto' does not start here", missing, len(found))
}
