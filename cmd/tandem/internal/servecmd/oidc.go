package servecmd

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/web/api"
	"github.com/tandem-tune/tandem/web/auth"
	"github.com/tandem-tune/tandem/web/oidc"
)

// oidcOptions say who else signs people in.
type oidcOptions struct {
	oidc.Rules
	secretFile string
}

func oidcFlags(command *cobra.Command, options *oidcOptions) {
	flags := command.Flags()
	flags.StringVar(&options.Issuer, "oidc-issuer", "", "OpenID provider that signs users in: its https address, or an http one of this machine (docs/users.md)")
	flags.StringVar(&options.Client, "oidc-client", "", "id by which the provider knows this server; its redirect address is this server's, with /login")
	flags.StringVar(&options.secretFile, "oidc-secret-file", "", "file with the client's secret, if it has one")
	flags.StringVar(&options.UserClaim, "oidc-user-claim", "email", "claim that names the user, such as preferred_username; of email the part before the @")
	flags.StringVar(&options.GroupsClaim, "oidc-groups-claim", "groups", "claim that lists the user's groups")
	flags.StringSliceVar(&options.Domains, "oidc-allow-domain", nil, "let users in whose verified e-mail address is in this domain (repeatable)")
	flags.StringSliceVar(&options.Groups, "oidc-allow-group", nil, "let users of this group of the provider in (repeatable)")
}

// provider returns who signs people in; nil: nobody. The error is about flags that cannot
// be meant.
func (o oidcOptions) provider() (api.SignIn, error) {
	if o.Issuer == "" {
		if o.Client != "" || o.secretFile != "" || len(o.Domains)+len(o.Groups) > 0 {
			return nil, term.Misuse("--oidc-client, --oidc-secret-file and --oidc-allow-... take --oidc-issuer")
		}
		return nil, nil
	}
	if err := o.Check(); err != nil {
		return nil, term.Misuse("%w", err)
	}
	if o.secretFile != "" {
		content, err := os.ReadFile(o.secretFile)
		if err != nil {
			return nil, fmt.Errorf("--oidc-secret-file: %w", err)
		}
		o.Secret = auth.Secret(strings.TrimSpace(string(content)))
	}
	return oidc.New(o.Rules, nil, time.Now), nil
}
