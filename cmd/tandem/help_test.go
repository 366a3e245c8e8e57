package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
)

// TestEveryCommandHasAnExample that is a command line of it.
func TestEveryCommandHasAnExample(t *testing.T) {
	t.Parallel()
	var check func(command *cobra.Command)
	check = func(command *cobra.Command) {
		for _, below := range command.Commands() {
			check(below)
		}
		if command.HasSubCommands() || command.Hidden {
			return
		}
		if !strings.Contains(command.Example, command.CommandPath()) {
			t.Errorf("%s --help has no example of it:\n%s", command.CommandPath(), command.Example)
		}
		for line := range strings.Lines(command.Example) {
			if !strings.HasPrefix(line, "  ") {
				t.Errorf("%s --help: an example is indented by two spaces: %q", command.CommandPath(), line)
			}
		}
	}
	check(rootCommand())
}

// TestShellsCanComplete: the scripts that cobra writes call the words of this
// program, and flags with few values offer them.
func TestShellsCanComplete(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		has  string
	}{
		{[]string{"completion", "bash"}, "__start_tandem"},
		{[]string{"completion", "zsh"}, "#compdef tandem"},
		{[]string{"completion", "fish"}, "complete -c tandem"},
		{[]string{"__complete", "study", "ex"}, "export\t"},
		{[]string{"__complete", "study", "export", "--format", ""}, "csv\njson\nopenmetrics\n"},
		{[]string{"__complete", "token", "create", "--scope", ""}, "worker"},
	} {
		var out, errs strings.Builder
		if code := term.Execute(t.Context(), rootCommand(), c.args, &out, &errs); code != term.ExitOK || !strings.Contains(out.String(), c.has) {
			t.Errorf("tandem %s: exit code %d without %q:\n%.300s%s", strings.Join(c.args, " "), code, c.has, out.String(), errs.String())
		}
	}
}
