// Package servecmd is the server: "tandem serve", and the commands about what a server
// keeps, its tokens, its audit log and its backups.
package servecmd

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/similarity"
)

// Command is "tandem serve".
func Command() *cobra.Command {
	var options Options
	var log term.Logging
	var whileUsed bool
	command := &cobra.Command{
		Use:   "serve",
		Short: "Run the study server",
		Long: `Run the study server: the REST API, the web page and the search.

Everything it knows is in the data folder (an SQLite file and the checkpoints),
which belongs to one server at a time. The first start prints an admin token
once; only its hash is kept. Every later start says how to make another.

With --database everything is in a PostgreSQL database instead, and several
servers may share it: one of them owns it, the others pass requests on to that
one, and one of those takes over when it is gone (docs/postgresql.md).

On an address that other machines can reach it takes TLS: --tls makes an
authority and certificates in the data folder, and clients are given the
authority's file (--ca); --tls-cert and --tls-key bring a certificate.`,
		Example: `  tandem serve
  tandem serve --data /srv/tandem --listen 127.0.0.1:8080
  tandem serve --listen 10.0.0.5:7171 --tls
  tandem serve --listen 10.0.0.5:7171 --tls-cert cert.pem --tls-key key.pem --allow-host tuning.example.org
  tandem serve --allow-host tuning.example.org --trusted-proxy 127.0.0.1   # behind a TLS proxy on this machine
  AWS_ACCESS_KEY_ID=... AWS_SECRET_ACCESS_KEY=... tandem serve --artifacts s3://checkpoints/tandem --artifacts-endpoint https://minio.example.org
  PGPASSWORD=... tandem serve --database postgres://tandem@db.example.org/tandem --listen 10.0.0.5:7171 --tls-cert cert.pem --tls-key key.pem`,
		Args: term.Arguments(0, "no arguments"),
		RunE: func(command *cobra.Command, _ []string) error {
			var err error
			if options.Logger, err = log.Logger(command.ErrOrStderr()); err != nil {
				return err
			}
			return serve(command, options, whileUsed)
		},
	}
	AddFlags(command, &options)
	poolFlags(command, &options.pool)
	databaseFlags(command, &options.database,
		"keep everything in this PostgreSQL database, which several servers may share: postgres://USER@HOST/DATABASE (or TANDEM_DATABASE)")
	command.Flags().StringVar(&options.database.advertise, "advertise", "", "with --database: the URL by which the other servers reach this one (default its own address)")
	bucketFlags(command, &options.bucket)
	tlsFlags(command, &options.tls)
	oidcFlags(command, &options.oidc)
	command.Flags().StringSliceVar(&options.trustedProxies, "trusted-proxy", nil, "address or network of a proxy whose X-Forwarded-For or Forwarded says who asks, e.g. 127.0.0.1 or 10.0.0.0/24 (repeatable)")
	command.Flags().BoolVar(&whileUsed, "while-used", false, "end when no program on this machine uses it any more: for TANDEM_SERVER=local (docs/python-client.md)")
	term.AddLogFlags(command, &log)
	return command
}

// serve opens the server and serves until the command ends, or nobody uses it any more.
func serve(command *cobra.Command, options Options, whileUsed bool) error {
	options.database.resolve()
	if whileUsed && options.database.chosen() {
		return term.Misuse("--while-used is for a server with a data folder, which alone has sessions: leave out --database")
	}
	opened, err := Open(command.Context(), options)
	if err != nil {
		return err
	}
	if whileUsed {
		return opened.Serve(opened.users.WhileUsed(command.Context()))
	}
	token, err := opened.firstToken(command.Context())
	if err != nil {
		return err
	}
	greet(command.OutOrStdout(), opened, token)
	return opened.Serve(command.Context())
}

// AddFlags adds the flags of every command that opens a server.
func AddFlags(command *cobra.Command, options *Options) {
	options.pool = usualPool()
	flags := command.Flags()
	flags.StringVar(&options.Listen, "listen", term.DefaultListen, "address to answer on; loopback unless you say otherwise")
	flags.StringVar(&options.Data, "data", defaultData(), "folder that holds everything the server knows")
	flags.Float64Var(&options.leaseSeconds, "lease-seconds", 60, "how long a silent worker keeps its trials")
	flags.Float64Var(&options.heartbeatSeconds, "heartbeat-seconds", 10, "how often workers say that they are alive")
	flags.StringSliceVar(&options.allowedHosts, "allow-host", nil, "further host name the server may be addressed by (repeatable)")
	flags.BoolVar(&options.tls.plain, "plain-http", false, "answer without TLS on an address that other machines can reach, for a TLS proxy")
	flags.StringVar(&options.similarity, "similarity", similarity.MethodAverageLinkage, "how runs are grouped into workloads for PipeTune, unless a study says: average-linkage, k-means (as many clusters as fit best), or k-means:N")
	flags.StringVar(&options.prices, "prices", "", "file of prices of energy and of hours of machines, with times (docs/costs.md)")
	flags.StringVar(&options.carbon, "carbon", "", "file of carbon intensities of the power grid, with times (docs/costs.md)")
	limitFlags(command, options)
	hookFlags(command, &options.hooks)
	flags.BoolVar(&options.allowNetworkDisk, "allow-network-filesystem", false, "open the data folder on NFS or SMB, where SQLite's locks may not hold")
}

// defaultData is the user's data folder.
func defaultData() string {
	if base := os.Getenv("XDG_DATA_HOME"); base != "" {
		return filepath.Join(base, "tandem")
	}
	if home, err := os.UserHomeDir(); err == nil {
		return filepath.Join(home, ".local", "share", "tandem")
	}
	return "tandem-data"
}

// signIn says how who has no token gets one.
func (p *Process) signIn() string {
	how := ""
	switch s := p.server.Load(); {
	case s != nil && s.local != nil:
		how = "tandem token create --scope admin --data " + shellWord(p.options.Data)
	case p.database != nil:
		how = "tandem token create --scope admin --database ..."
	default:
		how = "tandem token create --scope admin --data " + shellWord(p.options.Data) + " while the server is stopped"
	}
	return fmt.Sprintf("Sign in at %s/login with a token. For a new one, on this machine as the server's user: %s\n", p.URL(), how)
}

// shellWord is a text as one word of a shell's line.
func shellWord(text string) string {
	if strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+") == "" {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// greet says where the server is, how to sign in, and the first token. It is one write: who
// reads it from a pipe gets all of it or nothing.
func greet(out io.Writer, opened *Process, token string) {
	text := fmt.Sprintf("Tandem answers at %s, with its data in %s\n", opened.URL(), opened.place())
	trust := ""
	if opened.own != nil {
		trust = " --ca authority.pem"
		text += fmt.Sprintf("Clients trust it with --ca authority.pem (or TANDEM_CA), a copy of %s\nIts SHA-256 fingerprint: %s\n", opened.own.File(), opened.own.Fingerprint())
	}
	if token != "" {
		text += fmt.Sprintf(`
This is the admin token. It is shown this once and stored only as a hash:

  export TANDEM_TOKEN=%s

Web page:   %s/login#token=%s
A worker:   TANDEM_TOKEN=... tandem worker --server %s%s
More tokens (for workers, for viewers): tandem token create --scope worker

`, token, opened.URL(), token, opened.URL(), trust)
	}
	if token == "" {
		text += opened.signIn()
	}
	io.WriteString(out, text) //nolint:errcheck // nobody may be reading
}
