package poolcmd

import (
	"context"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/internal/protocol"
)

// GroupCommand is "tandem group".
func GroupCommand() *cobra.Command {
	var flags term.Flags
	return flags.Group(&cobra.Command{
		Use:   "group",
		Short: "Put users into groups that studies are shared with",
		Long: `Put users into groups that studies are shared with. A viewer sees such a study
with its checkpoints; an editor also stops, pauses, extends, enqueues and
annotates. 'tandem study share' shares a study.`,
	}, groupSetCommand(&flags), term.List[protocol.UserGroup]{
		Short: "List the groups: a user's own, or all with an admin's token", Example: `  tandem group list`, Key: "groups",
		Get: (*rest.Client).Groups, Print: printGroups,
	}.Command(&flags), groupRemoveCommand(&flags))
}

func groupSetCommand(flags *term.Flags) *cobra.Command {
	var members []string
	var provided string
	command := &cobra.Command{
		Use:   "set GROUP",
		Short: "Make a group, or replace the one of that name",
		Example: `  tandem group set ml --member alice:editor --member bob:viewer
  tandem group set vision --provided viewer`,
		Args: term.Arguments(1, "the name of a group"),
		RunE: flags.Server.Run(func(ctx context.Context, client *rest.Client, args []string, out io.Writer) error {
			ask := protocol.UserGroupRequest{Members: map[string]string{}, Provided: provided}
			for _, one := range members {
				user, role, ok := strings.Cut(one, ":")
				if !ok {
					return term.Misuse("--member %s: write USER:ROLE, such as alice:editor; roles are viewer and editor", format.Plain(one))
				}
				ask.Members[user] = role
			}
			group, err := client.SetGroup(ctx, args[0], ask)
			if err != nil {
				return err
			}
			users, err := client.Users(ctx)
			if err != nil {
				return err
			}
			return term.SayAnswer(out, flags.JSON, group, "Group %s: %s\n%s", format.Plain(group.Name), shownMembers(group), absentMembers(group, users))
		}),
	}
	command.Flags().StringSliceVar(&members, "member", nil, "USER:ROLE, with the role viewer or editor (repeatable)")
	command.Flags().StringVar(&provided, "provided", "", "role of users whom the identity provider puts into a group of this name: viewer or editor (default none)")
	term.CompleteFlag(command, "provided", term.Words("viewer", "editor"))
	return command
}

// absentMembers says which members nobody is, a line for each.
func absentMembers(group protocol.UserGroup, users []protocol.UserView) (said string) {
	for _, member := range slices.Sorted(maps.Keys(group.Members)) {
		if !slices.ContainsFunc(users, func(one protocol.UserView) bool { return one.Name == member }) {
			said += absentUser(member)
		}
	}
	return said
}

// shownMembers are the members of a group in words.
func shownMembers(group protocol.UserGroup) string {
	var parts []string
	for _, user := range slices.Sorted(maps.Keys(group.Members)) {
		parts = append(parts, format.Plain(user)+" ("+group.Members[user]+")")
	}
	if group.Provided != "" {
		parts = append(parts, "the identity provider's ("+group.Provided+")")
	}
	if len(parts) == 0 {
		return "no members"
	}
	return strings.Join(parts, ", ")
}

func printGroups(out io.Writer, groups []protocol.UserGroup) error {
	return term.Rows(out, groups, "There are no groups, or you are in none", []string{"GROUP", "MEMBERS"}, func(one protocol.UserGroup) []string {
		return []string{format.Plain(one.Name), shownMembers(one)}
	})
}

func groupRemoveCommand(flags *term.Flags) *cobra.Command {
	return term.Removal{
		Use: "remove GROUP", Short: "Remove a group; what was shared with it is so no longer", Example: `  tandem group remove ml`,
		What: "the name of a group",
		Do:   (*rest.Client).RemoveGroup, Done: "removed", Said: "Group %s was removed",
	}.Command(flags)
}
