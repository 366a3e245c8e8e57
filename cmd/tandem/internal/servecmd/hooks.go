package servecmd

import (
	"cmp"
	"context"
	"fmt"
	"net/mail"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/web/hooks"
)

// hookOptions are what hooks may do on the server's behalf.
type hookOptions struct {
	networks []string
	programs []string
	mail     mailOptions
}

// mailOptions say which mail server takes e-mail, and to whom.
type mailOptions struct {
	server, from, passwordFile string
	domains                    []string
}

func hookFlags(command *cobra.Command, options *hookOptions) {
	flags := command.Flags()
	flags.StringSliceVar(&options.networks, "allow-hook-address", nil, "network that hooks may reach though it is not public, also by http, such as 10.1.2.0/24 or 127.0.0.1/32 (repeatable)")
	flags.StringArrayVar(&options.programs, "allow-hook-program", nil, "program that administrators' hooks may run as the server's user, by its whole path (repeatable)")
	flags.StringVar(&options.mail.server, "mail-server", "", "mail server for hooks: smtp://[USER@]HOST[:587] with STARTTLS, or smtps://[USER@]HOST[:465]; on this machine STARTTLS may lack")
	flags.StringVar(&options.mail.passwordFile, "mail-password-file", "", "file with the password of --mail-server's user")
	flags.StringVar(&options.mail.from, "mail-from", "", "sender of e-mail, such as tandem@example.org")
	flags.StringSliceVar(&options.mail.domains, "allow-mail-to", nil, "domain that receivers of e-mail may be in, such as example.org (repeatable)")
}

// allowed are the networks. The error is about flags that cannot be meant.
func (o hookOptions) allowed() (list []netip.Prefix, err error) {
	for _, text := range o.networks {
		network, err := netip.ParsePrefix(text)
		if err != nil || network.Addr().Is4In6() {
			return nil, term.Misuse("--allow-hook-address (%s) must be a network, such as 10.1.2.0/24 or fd00::/8", text)
		}
		list = append(list, network.Masked())
	}
	for _, program := range o.programs {
		if !filepath.IsAbs(program) {
			return nil, term.Misuse("--allow-hook-program (%s) must be the whole path of a program, such as /usr/local/bin/notify", program)
		}
	}
	return list, nil
}

// read is the mail server. The error is about flags that cannot be meant, or a file that
// cannot be read.
func (o mailOptions) read() (m hooks.Mail, err error) {
	if o.server == "" {
		if o.from != "" || o.passwordFile != "" || len(o.domains) > 0 {
			return m, term.Misuse("--mail-from, --mail-password-file and --allow-mail-to are of --mail-server, which is missing")
		}
		return m, nil
	}
	ports := map[string]string{"smtp": "587", "smtps": "465"}
	address, err := url.Parse(o.server)
	if err != nil || ports[address.Scheme] == "" || address.Hostname() == "" || strings.Trim(address.Path, "/") != "" {
		return m, term.Misuse("--mail-server (%s) must be smtp://[USER@]HOST[:PORT] or smtps://[USER@]HOST[:PORT]", o.server)
	}
	port, err := strconv.ParseUint(cmp.Or(address.Port(), ports[address.Scheme]), 10, 16)
	if err != nil {
		return m, term.Misuse("--mail-server (%s) must name a port of 1 to 65535", o.server)
	}
	m = hooks.Mail{Host: address.Hostname(), Port: int(port), Implicit: address.Scheme == "smtps", User: address.User.Username(), From: o.from, Domains: o.domains}
	if _, inURL := address.User.Password(); inURL || (m.User == "") != (o.passwordFile == "") {
		return m, term.Misuse("--mail-server's user needs --mail-password-file, and a password needs a user; the URL has no password, which others would see")
	}
	if sender, err := mail.ParseAddress(o.from); err != nil || sender.Address != o.from {
		return m, term.Misuse("--mail-from (%s) must be an address alone, such as tandem@example.org", o.from)
	}
	if len(o.domains) == 0 {
		return m, term.Misuse("--allow-mail-to must name the domains that receivers may be in, such as example.org")
	}
	if m.User != "" {
		password, err := os.ReadFile(o.passwordFile)
		if err != nil {
			return m, fmt.Errorf("--mail-password-file: %w", err)
		}
		m.Password = strings.TrimRight(string(password), "\r\n")
	}
	return m, nil
}

// openHooks makes what tells hooks.
func (s *server) openHooks(ctx context.Context) (err error) {
	options := s.process.options
	allowed, _ := options.hooks.allowed() // which were checked
	relay, err := options.hooks.mail.read()
	if err != nil {
		return err
	}
	s.hooks, err = hooks.New(ctx, hooks.Options{
		Now: time.Now, Logger: options.Logger, Store: s.store, Newest: s.studies.Newest, Allowed: allowed, Programs: options.hooks.programs, Mail: relay,
	})
	return err
}
