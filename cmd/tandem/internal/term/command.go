// Package term is what the commands have in common: how they reach a server, what
// they say of a wrong command line, and how they write tables, listings and progress.
package term

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/internal/problem"
)

// Flags are shared by the commands of a group that talks to a server.
type Flags struct {
	// Server is how the server is reached.
	Server Connection
	// JSON asks for JSON in place of text.
	JSON bool
}

// Group is a [Group] of the commands, with these flags for all of them.
func (f *Flags) Group(command *cobra.Command, below ...*cobra.Command) *cobra.Command {
	f.Add(command)
	command.AddCommand(below...)
	return Group(command)
}

// Add adds them to the command, for all commands below it.
func (f *Flags) Add(command *cobra.Command) {
	AddConnectionFlags(command, &f.Server)
	command.PersistentFlags().BoolVar(&f.JSON, "json", false, "print JSON for scripts")
}

// Group is a command that only holds others: alone it helps, and what it does
// not know is an error.
func Group(command *cobra.Command) *cobra.Command {
	command.Args = cobra.ArbitraryArgs
	command.RunE = func(command *cobra.Command, args []string) error {
		if len(args) == 0 {
			return command.Help()
		}
		return noCommand(command, args[0])
	}
	return command
}

// noCommand says that the group has none of the name.
func noCommand(group *cobra.Command, name string) error {
	var names []string
	hint := ""
	for _, inner := range group.Commands() {
		names = append(names, inner.Name())
		for _, one := range inner.Commands() {
			if one.Name() == name && (hint == "" || inner.Name() == "study") { // most mean these
				hint = fmt.Sprintf("; did you mean %q?", one.CommandPath())
			}
		}
	}
	if meant := problem.Meant(name, names); meant != "" {
		hint = fmt.Sprintf("; did you mean %q?", group.CommandPath()+" "+meant)
	}
	return Misuse("there is no command %q%s\nSee '%s --help'", group.CommandPath()+" "+name, hint, group.CommandPath())
}

// Arguments checks the number of positional arguments and says what they are.
func Arguments(count int, what string) cobra.PositionalArgs {
	return func(command *cobra.Command, args []string) error {
		if len(args) == count {
			return nil
		}
		return Misuse("%s takes %s\nSee '%s --help'", command.CommandPath(), what, command.CommandPath())
	}
}

// release is the version that scripts/release gives to what it builds.
var release string

// Version is the release, or else the module version the binary was built from.
func Version() string {
	if release != "" {
		return release
	}
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "development build"
	}
	return info.Main.Version
}

// HostName is the name of this machine.
func HostName() string {
	name, err := os.Hostname()
	if err != nil {
		return "worker"
	}
	return name
}

// CompleteFlag offers words for a flag. The flag has to exist.
func CompleteFlag(command *cobra.Command, flag string, words Completion) {
	if err := command.RegisterFlagCompletionFunc(flag, words); err != nil {
		panic(fmt.Sprintf("%s --%s: %v", command.CommandPath(), flag, err)) // there is no such flag: a mistake of this program
	}
}

// Words completes with words that are always the same.
func Words(list ...string) Completion {
	return cobra.FixedCompletions(list, cobra.ShellCompDirectiveNoFileComp)
}

// Completion is what a shell calls for the words that may come next.
type Completion = func(command *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective)

// Confirm asks on a terminal; without one, nothing is deleted unasked.
func Confirm(command *cobra.Command, question string) error {
	file, ok := command.InOrStdin().(*os.File)
	if !ok || !IsTerminal(file) {
		return Misuse("%s asks before it deletes, and there is no terminal to ask on: give --yes", command.Name())
	}
	fmt.Fprintf(command.ErrOrStderr(), "%s [y/N] ", question)
	answer, err := ReadInput(command.Context(), func() (string, error) { return bufio.NewReader(file).ReadString('\n') })
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer != "y" && answer != "yes" {
		return errors.New("nothing was deleted")
	}
	return nil
}
