package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

// studyFlags are shared by the commands of a group that talks to a server.
type studyFlags struct {
	// server is how the server is reached.
	server connection
	// json asks for JSON in place of text.
	json bool
}

// group is a command that only holds others: alone it helps, and what it does
// not know is an error.
func group(command *cobra.Command) *cobra.Command {
	command.Args = cobra.ArbitraryArgs
	command.SuggestionsMinimumDistance = 2
	command.RunE = func(command *cobra.Command, args []string) error {
		if len(args) == 0 {
			return command.Help()
		}
		hint := ""
		if similar := command.SuggestionsFor(args[0]); len(similar) > 0 {
			hint = fmt.Sprintf("; did you mean %q?", command.CommandPath()+" "+similar[0])
		}
		return misuse("there is no command %q%s\nSee '%s --help'", command.CommandPath()+" "+args[0], hint, command.CommandPath())
	}
	return command
}

// arguments checks the number of positional arguments and says what they are.
func arguments(count int, what string) cobra.PositionalArgs {
	return func(command *cobra.Command, args []string) error {
		if len(args) == count {
			return nil
		}
		return misuse("%s takes %s\nSee '%s --help'", command.CommandPath(), what, command.CommandPath())
	}
}

// version is the module version the binary was built from.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "development build"
	}
	return info.Main.Version
}

// hostName is the name of this machine.
func hostName() string {
	name, err := os.Hostname()
	if err != nil {
		return "worker"
	}
	return name
}

// flagWords says what a flag may be set to.
func flagWords(command *cobra.Command, flag string, words completion) {
	if err := command.RegisterFlagCompletionFunc(flag, words); err != nil {
		panic(fmt.Sprintf("%s --%s: %v", command.CommandPath(), flag, err)) // there is no such flag: a mistake of this program
	}
}

// words are those that a flag may be set to, always the same.
func words(list ...string) completion {
	return cobra.FixedCompletions(list, cobra.ShellCompDirectiveNoFileComp)
}

// completion is what a shell calls for the words that may come next.
type completion = func(command *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective)

// confirm asks on a terminal; without one, nothing is deleted unasked.
func confirm(command *cobra.Command, question string) error {
	file, ok := command.InOrStdin().(*os.File)
	if !ok || !isTerminal(file) {
		return misuse("%s asks before it deletes, and there is no terminal to ask on: give --yes", command.Name())
	}
	fmt.Fprintf(command.ErrOrStderr(), "%s [y/N] ", question)
	answer, err := input(command.Context(), func() (string, error) { return bufio.NewReader(file).ReadString('\n') })
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer != "y" && answer != "yes" {
		return errors.New("nothing was deleted")
	}
	return nil
}
