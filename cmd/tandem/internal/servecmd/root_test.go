package servecmd

import "github.com/spf13/cobra"

func root() *cobra.Command {
	root := &cobra.Command{Use: "tandem"}
	root.AddCommand(Command(), TokenCommand(), AuditCommand())
	return root
}
