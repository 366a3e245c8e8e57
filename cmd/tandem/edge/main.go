// Command edge is a tandem for boards: it has "tandem edge" alone, and is a third
// of the size. It is installed under the name tandem.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/cmd/tandem/internal/edgecmd"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := term.Group(&cobra.Command{
		Use:     "tandem",
		Short:   "Measure models on this board",
		Long:    "This tandem is for boards: it measures models and has no server and no worker.",
		Version: term.Version(),
	})
	root.AddCommand(edgecmd.Command())
	os.Exit(term.Execute(ctx, root, os.Args[1:], os.Stdout, os.Stderr))
}
