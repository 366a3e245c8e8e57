package servecmd

import (
	"context"
	"net/netip"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/web/hooks"
)

// hookOptions are what hooks may do on the server's behalf.
type hookOptions struct {
	networks []string
	programs []string
}

func hookFlags(command *cobra.Command, options *hookOptions) {
	flags := command.Flags()
	flags.StringSliceVar(&options.networks, "allow-hook-address", nil, "network that hooks may reach though it is not public, also by http, such as 10.1.2.0/24 or 127.0.0.1/32 (repeatable)")
	flags.StringArrayVar(&options.programs, "allow-hook-program", nil, "program that administrators' hooks may run as the server's user, by its whole path (repeatable)")
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

// openHooks makes what tells hooks.
func (s *server) openHooks(ctx context.Context) (err error) {
	options := s.process.options
	allowed, _ := options.hooks.allowed() // which were checked
	s.hooks, err = hooks.New(ctx, hooks.Options{
		Now: time.Now, Logger: options.Logger, Store: s.store, Newest: s.studies.Newest, Allowed: allowed, Programs: options.hooks.programs,
	})
	return err
}
