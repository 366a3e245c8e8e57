package main

import (
	"context"
	"crypto/x509"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/web/certificate"
)

// connection is how a command reaches its server.
type connection struct {
	url       string
	token     string
	tokenFile string
	insecure  bool
	ca        string
	// named says that the address is not the default one.
	named bool
}

// connectionFlags are the flags of every command that talks to a server.
func connectionFlags(command *cobra.Command, c *connection) {
	url := os.Getenv("TANDEM_SERVER")
	if url == "" {
		url = "http://" + defaultListen
	}
	flags := command.PersistentFlags()
	flags.StringVar(&c.url, "server", url, "address of the server (or TANDEM_SERVER)")
	flags.StringVar(&c.tokenFile, "token-file", "", "file that holds the token (or TANDEM_TOKEN in the environment)")
	flags.StringVar(&c.ca, "ca", os.Getenv("TANDEM_CA"), "PEM file with the authority that signed the server's certificate; nobody else is trusted then (or TANDEM_CA)")
	flags.BoolVar(&c.insecure, "insecure", false, "send the token over plain HTTP to another machine")
}

// openWith returns the client, if there is a token.
func (c *connection) openWith(purpose string) (*rest.Client, error) {
	client, err := c.open()
	if err == nil && c.token == "" {
		return nil, misuse("%s: set TANDEM_TOKEN to one, or name a file that holds one with --token-file; 'tandem token create' makes one", purpose)
	}
	return client, err
}

// open returns the client. The token is never taken from the command line,
// where every user of the machine could read it.
func (c *connection) open() (*rest.Client, error) {
	token := c.token
	if token == "" {
		token = os.Getenv("TANDEM_TOKEN")
	}
	if c.tokenFile != "" {
		content, err := os.ReadFile(c.tokenFile)
		if err != nil {
			return nil, err
		}
		token = strings.TrimSpace(string(content))
	}
	c.token = token
	authorities, err := readAuthorities(c.ca)
	if err != nil {
		return nil, err
	}
	return rest.New(rest.Options{URL: c.url, Token: token, Insecure: c.insecure, Authorities: authorities, UserAgent: "tandem/" + version()})
}

// readAuthorities reads whom the client trusts; nil: whom the machine trusts.
func readAuthorities(path string) (*x509.CertPool, error) {
	if path == "" {
		return nil, nil
	}
	authorities, err := certificate.ReadAuthorities(path)
	if err != nil {
		return nil, misuse("%w", err)
	}
	return authorities, nil
}

const defaultListen = "127.0.0.1:7171"

// completionTime is how long a shell waits for a server's names: somebody has
// pressed a key and looks at it.
const completionTime = 2 * time.Second

// offer asks the server for words. A server that does not answer, or does not
// let the token see them, offers nothing: a shell is no place for errors.
func (c *connection) offer(command *cobra.Command, words func(ctx context.Context, client *rest.Client) ([]string, error)) ([]string, cobra.ShellCompDirective) {
	client, err := c.open()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	ctx, cancel := context.WithTimeout(command.Context(), completionTime)
	defer cancel()
	list, err := words(ctx, client)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return list, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// completeOne offers words for the only argument.
func (c *connection) completeOne(words func(ctx context.Context, client *rest.Client) ([]string, error)) completion {
	return func(command *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return c.offer(command, words)
	}
}
