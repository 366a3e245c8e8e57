package keyscmd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/sealed"
	"github.com/tandem-tune/tandem/web/certificate"
	"github.com/tandem-tune/tandem/workers/confidential/broker"
	"github.com/tandem-tune/tandem/workers/confidential/evidence"
	"github.com/tandem-tune/tandem/workers/confidential/policy"
	"github.com/tandem-tune/tandem/workers/confidential/release"
)

type serveOptions struct {
	folder, listen, rules, owner, identity, testRoot string
	tlsCertificate, tlsKey                           string
	verifier, verifierKey, verifierCA                string
	leases                                           bool
	server                                           term.Connection
}

func serveCommand() *cobra.Command {
	var o serveOptions
	command := &cobra.Command{
		Use:   "serve",
		Short: "Release a key to confidential machines that a policy allows",
		Long: `Release a key to confidential machines that a policy allows, each time to a key pair
made in the machine. Run it where you trust the machine, apart from the study server.
It makes two secrets in its folder: the key of its signatures, and the token that
machines show. With --check-leases it asks the study server who holds a lease, and with
--verifier a site's own verifier whether it allows a machine too (docs/confidential.md).`,
		Example: `  tandem keys serve --data broker --identity workers.key --policy policy.json --owner ed25519:9UbGEKxY...
  tandem keys serve --data broker --identity workers.key --policy policy.json --owner ed25519:9UbGEKxY... --listen :7172 --tls-cert broker.pem --tls-key broker.key --check-leases --server https://tune.example.org --token-file viewer.token`,
		Args: term.Arguments(0, "no arguments"),
		RunE: func(command *cobra.Command, _ []string) error {
			return o.serve(command.Context(), command.OutOrStdout(), command.ErrOrStderr())
		},
	}
	flags := command.Flags()
	flags.StringVar(&o.folder, "data", "", "folder of the broker")
	flags.StringVar(&o.listen, "listen", "127.0.0.1:7172", "address to answer on")
	flags.StringVar(&o.rules, "policy", "", "policy that 'tandem policy sign' signed")
	flags.StringVar(&o.owner, "owner", "", "public key that must have signed it")
	flags.StringVar(&o.identity, "identity", "", "file of the workers' key, which is released")
	flags.StringVar(&o.tlsCertificate, "tls-cert", "", "answer over TLS with the certificate in this PEM file; needs --tls-key")
	flags.StringVar(&o.tlsKey, "tls-key", "", "PEM file with the key of --tls-cert")
	flags.BoolVar(&o.leases, "check-leases", false, "ask the study server whether the worker holds the lease")
	flags.StringVar(&o.verifier, "verifier", "", "URL of your own verifier, which must allow a machine besides the policy")
	flags.StringVar(&o.verifierKey, "verifier-key", "", "public key of its answers, ed25519:...")
	flags.StringVar(&o.verifierCA, "verifier-ca", "", "PEM file of the authority of its certificate (default: those of the system)")
	flags.StringVar(&o.testRoot, "test-root", "", "believe these roots of processors that do not exist, a Genoa's, Intel's or NVIDIA's: for trying it out, never with data")
	term.AddConnectionFlags(command, &o.server)
	return command
}

// check refuses flags that are missing or contradict each other.
func (o *serveOptions) check() error {
	if o.folder == "" || o.rules == "" || o.owner == "" || o.identity == "" {
		return term.Misuse("--data, --policy, --owner and --identity are needed: see 'tandem keys serve --help'")
	}
	if (o.tlsCertificate == "") != (o.tlsKey == "") {
		return term.Misuse("--tls-cert and --tls-key belong together: give both")
	}
	if (o.verifier == "") != (o.verifierKey == "") || o.verifier == "" && o.verifierCA != "" {
		return term.Misuse("--verifier and --verifier-key belong together: give both")
	}
	host, _, err := net.SplitHostPort(o.listen)
	if err != nil {
		return term.Misuse("--listen %q: %w: write it as 127.0.0.1:7172", o.listen, err)
	}
	if address, err := netip.ParseAddr(host); o.tlsCertificate == "" && (err != nil || !address.IsLoopback()) {
		return term.Misuse("other machines can reach --listen %s, and the token would cross the network in plain text: add --tls-cert and --tls-key", o.listen)
	}
	return nil
}

// most bounds each file that is read.
const most = 1 << 20

func (o *serveOptions) open(logger *slog.Logger) (*broker.Broker, *policy.Policy, error) {
	options := broker.Options{Folder: o.folder, Build: "tandem " + term.Version(), Now: time.Now, Logger: logger}
	text, err := term.ReadBounded(o.rules, nil, most)
	if err == nil {
		options.Policy, _, err = policy.Open(text, o.owner)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("--policy %s: %w", o.rules, err)
	}
	if _, err := sealed.Read(o.identity, nil); err != nil {
		return nil, nil, err
	}
	if options.Key, err = term.ReadBounded(o.identity, nil, most); err != nil {
		return nil, nil, err
	}
	if options.Roots, err = evidence.Pinned(); err != nil {
		return nil, nil, err
	}
	if options.Test = o.testRoot != ""; options.Test {
		chain, err := term.ReadBounded(o.testRoot, nil, most)
		if err = errors.Join(err, options.Roots.Try(chain)); err != nil {
			return nil, nil, fmt.Errorf("--test-root %s: %w", o.testRoot, err)
		}
		logger.Warn("TEST: a root that is none of the makers' is believed, so every result is marked and proves nothing", "root", o.testRoot)
	}
	if o.leases {
		client, err := o.server.Open()
		if err != nil {
			return nil, nil, err
		}
		options.Current = current(client)
	}
	if options.Verifier, err = o.asked(); err != nil {
		return nil, nil, err
	}
	opened, err := broker.Open(options)
	return opened, options.Policy, err
}

// asked is the site's own verifier; nil: there is none.
func (o *serveOptions) asked() (*broker.Verifier, error) {
	if o.verifier == "" {
		return nil, nil
	}
	key, err := policy.ReadSigner(o.verifierKey)
	if err != nil {
		return nil, term.Misuse("--verifier-key: %w", err)
	}
	authorities, err := term.ReadAuthorities(o.verifierCA)
	if err != nil {
		return nil, fmt.Errorf("--verifier-ca: %w", err)
	}
	client, err := broker.Reach("--verifier", o.verifier, authorities)
	if err != nil {
		return nil, term.Misuse("%w", err)
	}
	return &broker.Verifier{URL: o.verifier, Key: key, Client: client, Patience: 10 * time.Second}, nil
}

// current asks the study server who holds a lease.
func current(client *rest.Client) func(context.Context, release.Request) error {
	return func(ctx context.Context, request release.Request) error {
		ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
		defer cancel()
		found, err := client.Trial(ctx, request.Study, request.Trial)
		if problem.Is(err, problem.NotFound) {
			return evidence.Refuse("stale_lease", "the study server says: %v", err)
		}
		if err != nil {
			return fmt.Errorf("ask the study server for the lease: %w", err)
		}
		if one := found.Trial; !one.State.Held() || int64(one.LeaseEpoch) != request.Lease || one.Worker != request.Worker {
			return evidence.Refuse("stale_lease", "the study server says: lease %d, of worker %q, %s", one.LeaseEpoch, one.Worker, one.State)
		}
		return nil
	}
}

func (o *serveOptions) serve(ctx context.Context, out, errout io.Writer) error {
	if err := o.check(); err != nil {
		return err
	}
	logger := slog.New(slog.NewTextHandler(errout, nil))
	opened, rules, err := o.open(logger)
	if err != nil {
		return err
	}
	defer opened.Close()
	listener, err := net.Listen("tcp", o.listen)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	scheme := "http"
	if o.tlsCertificate != "" {
		files, err := certificate.OpenFiles(o.tlsCertificate, o.tlsKey, time.Now, logger)
		if err != nil {
			return errors.Join(err, listener.Close())
		}
		scheme, listener = "https", tls.NewListener(listener, certificate.Config(files))
	}
	if _, err := fmt.Fprintf(out, "Broker on %s://%s\npolicy %s, until %s\nits signatures: %s\nmachines show the token in %s\n", scheme, listener.Addr(), rules.ID(), rules.Expires.Format(time.DateOnly), policy.Signer(opened.Public()), o.folder); err != nil {
		return err
	}
	if o.verifier != "" {
		logger.Info("a verifier must allow each machine too", "verifier", o.verifier)
	}
	server := &http.Server{Handler: opened, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 30 * time.Second, WriteTimeout: time.Minute, MaxHeaderBytes: 16 << 10}
	stop := context.AfterFunc(ctx, func() { _ = server.Shutdown(context.WithoutCancel(ctx)) })
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func auditCommand() *cobra.Command {
	var folder, key string
	var asJSON bool
	command := &cobra.Command{
		Use:   "audit",
		Short: "Check a broker's log, and list which machines got the key and which did not",
		Long: `Check a broker's log, and list which machines got the key and which did not. Each
line names the hash of the one before and is signed: one that was changed or taken
out is found, but for the last ones.`,
		Example: `  tandem keys audit --data broker
  tandem keys audit --data copy --broker ed25519:Fh0... --json`,
		Args: term.Arguments(0, "no arguments"),
		RunE: func(command *cobra.Command, _ []string) error {
			if folder == "" {
				return term.Misuse("--data is missing: name the broker's folder")
			}
			public, err := policy.ReadSigner(key)
			if key == "" {
				public, err = broker.Public(folder)
			}
			if err != nil {
				return term.Misuse("%w", err)
			}
			results := []release.Result{}
			rows := [][]string{}
			if _, _, err := broker.ReadLog(folder, public, func(line broker.Line, one release.Result) {
				results = append(results, one)
				rows = append(rows, []string{term.FormatTime(&line.Time, ""), one.Request.Worker, fmt.Sprintf("%s %d", one.Request.Study, one.Request.Trial), fmt.Sprint(one.Request.Lease), outcome(one), one.Evidence[:min(12, len(one.Evidence))], gpus(one.GPUs)})
			}); err != nil {
				return err
			}
			if asJSON {
				return term.WriteJSON(command.OutOrStdout(), results)
			}
			return term.Table(command.OutOrStdout(), []string{"TIME", "WORKER", "TRIAL", "LEASE", "KEY", "EVIDENCE", "GPUS"}, rows)
		},
	}
	command.Flags().StringVar(&folder, "data", "", "folder of the broker")
	command.Flags().StringVar(&key, "broker", "", "public key of the broker (default: that of the folder)")
	command.Flags().BoolVar(&asJSON, "json", false, "print JSON for scripts")
	return command
}

// gpus are their number, and each kind of them.
func gpus(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return fmt.Sprintf("%d: %s", len(list), strings.Join(slices.Compact(slices.Sorted(slices.Values(list))), "; "))
}

func outcome(one release.Result) string {
	what, by := "released", " by the policy and "
	if one.Code != "" {
		what, by = "refused: "+one.Code, " by "
	}
	if one.Asked != "" {
		what += by + one.Asked
	}
	if one.Test {
		what = "TEST " + what
	}
	return what
}
