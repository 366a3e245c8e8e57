package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/clients/rest"
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
		return nil, usageError{fmt.Errorf("%s: set TANDEM_TOKEN to one, or name a file that holds one with --token-file; 'tandem token create' makes one", purpose)}
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
