//go:build linux && !client

package main

import (
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/cmd/tandem/internal/edgecmd"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/keyscmd"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/launchcmd"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/profilecmd"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/runcmd"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/servecmd"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/workercmd"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/workers/ranks"
	"github.com/tandem-tune/tandem/workers/sandbox"
	"github.com/tandem-tune/tandem/workers/service"
)

// first is what a user of this build runs first, before a study.
const first = `Try it on one machine:     tandem run study.yaml
Or with several machines:  tandem serve                        (on the server)
                           tandem worker --server URL          (on each machine)`

// subprocess does what this program is started for by itself, and ends.
func subprocess() {
	if slices.Equal(os.Args[1:], sandbox.Subcommand()) {
		os.Exit(sandbox.Process())
	}
	if definition.IsService(append([]string{"tandem"}, os.Args[1:]...)) {
		os.Exit(service.Process(os.Args[2]))
	}
	if len(os.Args) > 1 && os.Args[1] == ranks.Subcommand {
		os.Exit(ranks.Process(os.Args[2:]))
	}
}

// ofMachines are the commands of servers, workers and boards, which run on Linux only.
func ofMachines() []*cobra.Command {
	return []*cobra.Command{
		runcmd.Command(), edgecmd.Command(), edgecmd.BackendCommand(), profilecmd.Command(), servecmd.Command(), servecmd.TokenCommand(), servecmd.AuditCommand(),
		servecmd.BackupCommand(), servecmd.RestoreCommand(), servecmd.VerifyCommand(), workercmd.Command(), workercmd.DoctorCommand(), launchcmd.Command(), keyscmd.Command(),
	}
}
