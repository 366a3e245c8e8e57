//go:build !linux || client

package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"
)

// first is what a user of this build runs first, before a study.
const first = `Servers and workers run on Linux. Name the server in the variables TANDEM_SERVER
and TANDEM_TOKEN, then:
`

func subprocess() {}

// ofMachines are the commands of servers, workers and boards, which say why this build
// does not have them.
func ofMachines() (list []*cobra.Command) {
	for _, name := range []string{"run", "edge", "backend", "profile", "serve", "token", "audit", "backup", "restore", "verify", "worker", "doctor", "launch", "keys"} {
		list = append(list, &cobra.Command{
			Use: name, Short: "Runs on Linux only", Hidden: true, DisableFlagParsing: true,
			RunE: func(*cobra.Command, []string) error {
				return fmt.Errorf("this build for %s is a client, and \"tandem %s\" runs on Linux only: start it there, and set TANDEM_SERVER and TANDEM_TOKEN here", runtime.GOOS, name)
			},
		})
	}
	return list
}
