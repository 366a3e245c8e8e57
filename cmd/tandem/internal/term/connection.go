package term

import (
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/internal/files"
	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/web/certificate"
)

// Connection is how a command reaches its server.
type Connection struct {
	// URL is the server's address.
	URL string
	// Token is what the last Open found; empty: none.
	Token string
	// TokenFile is the file that holds the token, if one was named.
	TokenFile string
	insecure  bool
	ca        string
	// For says for whom the command calls, where that is not who typed it.
	For string
	// Named says that the address is not the default one.
	Named bool
	waits func(why error, patience time.Duration)
}

// AddConnectionFlags adds the flags of every command that talks to a server.
func AddConnectionFlags(command *cobra.Command, c *Connection) {
	server := os.Getenv("TANDEM_SERVER")
	if server == "" {
		server = "http://" + DefaultListen
	}
	flags := command.PersistentFlags()
	flags.StringVar(&c.URL, "server", server, "address of the server (or TANDEM_SERVER)")
	flags.StringVar(&c.TokenFile, "token-file", "", "file that holds the token (or TANDEM_TOKEN in the environment)")
	flags.StringVar(&c.ca, "ca", os.Getenv("TANDEM_CA"), "PEM file with the authority that signed the server's certificate; nobody else is trusted then (or TANDEM_CA)")
	flags.BoolVar(&c.insecure, "insecure", false, "send the token over plain HTTP to another machine")
}

// Arguments are the flags with which another command reaches the same server, but for
// the token.
func (c *Connection) Arguments() []string {
	list := []string{"--server", c.URL}
	if path, err := filepath.Abs(c.ca); c.ca != "" && err == nil {
		list = append(list, "--ca", path)
	}
	if c.insecure {
		list = append(list, "--insecure")
	}
	return list
}

// OpenWithToken returns the client, if there is a token.
func (c *Connection) OpenWithToken(purpose string) (*rest.Client, error) {
	client, err := c.Open()
	if err == nil && c.Token == "" {
		return nil, Misuse("%s: set TANDEM_TOKEN to one, or name a file that holds one with --token-file; 'tandem token create' makes one", purpose)
	}
	return client, err
}

// Enrols reports whether the token is one that a launcher left for a worker.
func (c *Connection) Enrols() bool { return strings.HasPrefix(c.Token, "tandem_enrolment_") }

// Open returns the client. The token is never taken from the command line,
// where every user of the machine could read it.
func (c *Connection) Open() (*rest.Client, error) {
	token := c.Token
	if token == "" {
		token = os.Getenv("TANDEM_TOKEN")
	}
	if token == "" && c.TokenFile == "" {
		if path, err := c.kept(); err == nil {
			content, _ := os.ReadFile(path) //nolint:errcheck // there is mostly none
			token = strings.TrimSpace(string(content))
		}
	}
	if c.TokenFile != "" {
		content, err := os.ReadFile(c.TokenFile)
		if err != nil {
			return nil, fmt.Errorf("--token-file: %w", err)
		}
		token = strings.TrimSpace(string(content))
	}
	c.Token = token
	authorities, err := ReadAuthorities(c.ca)
	if err != nil {
		return nil, err
	}
	program := "tandem/" + Version()
	if c.For != "" {
		program += " (" + format.Plain(c.For) + ")"
	}
	options := rest.Options{URL: c.URL, Token: token, Insecure: c.insecure, Authorities: authorities, AuthorityFile: c.ca, UserAgent: program, Waits: c.waits}
	if c.ca != "" {
		options.Reread = func() (*x509.CertPool, error) { return ReadAuthorities(c.ca) }
	}
	return rest.New(options)
}

// kept is the file with the token that 'tandem login' had for this server.
func (c *Connection) kept() (string, error) {
	folder, err := os.UserConfigDir()
	return filepath.Join(folder, "tandem", "tokens", url.PathEscape(strings.TrimSuffix(c.URL, "/"))), err
}

// Keep keeps a token for this server, for the user alone.
func (c *Connection) Keep(token string) (path string, err error) {
	if path, err = c.kept(); err != nil {
		return "", fmt.Errorf("keep the token: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	return path, files.Write(path, strings.NewReader(token+"\n"), 0o600)
}

// UseKept has Open take the kept token, whatever else there is, and returns its file.
func (c *Connection) UseKept() (path string, err error) {
	if path, err = c.kept(); err != nil {
		return "", err
	}
	if _, err := os.Stat(path); err != nil {
		return "", Misuse("you are not signed in to %s: there is no token in %s", c.URL, path)
	}
	c.TokenFile = path
	return path, nil
}

// Run is what a command runs that asks the server something.
func (c *Connection) Run(ask func(ctx context.Context, client *rest.Client, args []string, out io.Writer) error) func(*cobra.Command, []string) error {
	return func(command *cobra.Command, args []string) error {
		c.waits = func(why error, patience time.Duration) {
			fmt.Fprintf(command.ErrOrStderr(), "%v; trying for %.0f s, Ctrl-C ends it\n", why, patience.Seconds())
		}
		client, err := c.Open()
		if err != nil {
			return err
		}
		return ask(command.Context(), client, args, command.OutOrStdout())
	}
}

// ReadAuthorities reads whom the client trusts; nil: whom the machine trusts.
func ReadAuthorities(path string) (*x509.CertPool, error) {
	if path == "" {
		return nil, nil
	}
	authorities, err := certificate.ReadAuthorities(path)
	if err != nil {
		return nil, Misuse("%w", err)
	}
	return authorities, nil
}

// DefaultListen is where a server answers unless it is told another address.
const DefaultListen = "127.0.0.1:7171"
