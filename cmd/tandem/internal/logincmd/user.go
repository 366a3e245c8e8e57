package logincmd

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/internal/protocol"
)

// UserCommand is "tandem user".
func UserCommand() *cobra.Command {
	var flags term.Flags
	return flags.Group(&cobra.Command{Use: "user", Short: "List and remove users", Long: `List and remove users. A user begins with a token of that name, or by signing in
with the identity provider.`}, term.List[protocol.UserView]{
		Short: "List the users who have tokens or have signed in", Example: `  tandem user list`, Key: "users",
		Get: (*rest.Client).Users, Print: printUsers,
	}.Command(&flags), term.Removal{
		Use: "remove USER", Short: "End all tokens and sessions of a user; the studies stay",
		Long: `End all tokens and sessions of a user, and forget who it is at the identity
provider. Its studies stay, and 'tandem study transfer' gives one to another user.
Whom the provider and --oidc-allow-... still let in can sign in again.`, Example: `  tandem user remove alice`, What: "the name of a user",
		Do: (*rest.Client).RemoveUser, Done: "removed", Said: "User %s was removed; the studies stay, and go on ('tandem study transfer')",
	}.Command(&flags))
}

func printUsers(out io.Writer, users []protocol.UserView) error {
	return term.Rows(out, users, "There is no user", []string{"USER", "TOKENS", "LAST USED", "IDENTITY"}, func(one protocol.UserView) []string {
		identity := "-"
		if one.Issuer != "" {
			identity = format.Plain(one.Subject + " at " + one.Issuer)
		}
		return []string{format.Plain(one.Name), fmt.Sprint(one.Tokens), term.FormatTime(one.Used, "never"), identity}
	})
}
