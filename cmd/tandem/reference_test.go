package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var update = flag.Bool("update", false, "write docs/reference/cli.md")

const reference = "../../docs/reference/cli.md"

// TestTheReferenceIsThatOfTheCommands writes docs/reference/cli.md with -update.
func TestTheReferenceIsThatOfTheCommands(t *testing.T) {
	t.Setenv("HOME", "/home/you") // defaults are shown as of somebody's machine
	for _, name := range []string{"TANDEM_SERVER", "TANDEM_CA", "TANDEM_DATABASE", "XDG_DATA_HOME", "XDG_STATE_HOME"} {
		t.Setenv(name, "")
	}
	var got bytes.Buffer
	got.WriteString("# The command line\n\nWhat `tandem COMMAND --help` says, of every command. Made from the commands themselves: `go test ./cmd/tandem -run Reference -update`.\n")
	refer(&got, rootCommand())
	if *update {
		if err := os.WriteFile(reference, got.Bytes(), 0o644); err != nil { //nolint:gosec // a document
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(reference)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("docs/reference/cli.md is not of these commands: run go test ./cmd/tandem -run Reference -update, and look at the difference")
	}
}

// refer writes a section for a command and each of those below it.
func refer(out *bytes.Buffer, command *cobra.Command) {
	if command.Hidden || command.Name() == "help" {
		return
	}
	command.InitDefaultHelpFlag()
	about := command.Long
	if about == "" {
		about = command.Short + "."
	}
	fmt.Fprintf(out, "\n## `%s`\n\n%s\n", command.CommandPath(), escaped(about))
	if command.Runnable() {
		fmt.Fprintf(out, "\n```\n%s\n```\n", command.UseLine())
	}
	if command.Example != "" {
		fmt.Fprintf(out, "\nExamples:\n\n```sh\n%s\n```\n", unindented(command.Example))
	}
	var rows []string
	command.NonInheritedFlags().VisitAll(func(one *pflag.Flag) {
		if one.Hidden || one.Name == "help" {
			return
		}
		name, usage := pflag.UnquoteUsage(one)
		text := "`--" + one.Name + "`"
		if one.Shorthand != "" {
			text = "`-" + one.Shorthand + "`, " + text
		}
		if name != "" {
			text += " " + name
		}
		value := ""
		if !map[string]bool{"": true, "false": true, "[]": true, "0": true, "0s": true}[one.DefValue] {
			value = "`" + one.DefValue + "`"
		}
		rows = append(rows, fmt.Sprintf("| %s | %s | %s |", text, strings.ReplaceAll(escaped(usage), "|", "\\|"), value))
	})
	if len(rows) > 0 {
		fmt.Fprintf(out, "\n| flag | | default |\n|---|---|---|\n%s\n", strings.Join(rows, "\n"))
	}
	for _, below := range command.Commands() {
		refer(out, below)
	}
}

// escaped is plain text as Markdown shows it.
func escaped(text string) string {
	return strings.NewReplacer("<", "&lt;", "*", "\\*").Replace(text)
}

func unindented(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimPrefix(line, "  ")
	}
	return strings.Join(lines, "\n")
}
