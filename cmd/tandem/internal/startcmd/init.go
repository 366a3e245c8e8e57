package startcmd

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/study/studyfile"
)

// most bounds the scripts and configurations that are read, in bytes.
const most = 1 << 20

// initFlags are the flags of "tandem init".
type initFlags struct {
	output, python string
	force, json    bool
}

// written is what "tandem init" did, as JSON.
type written struct {
	File    string   `json:"file"`
	Library string   `json:"library"`
	Lines   string   `json:"lines"`
	Tuned   []string `json:"tuned"`
	// Left are options that the file shows in comments only.
	Left []string `json:"left"`
}

// InitCommand is "tandem init".
func InitCommand() *cobra.Command {
	var flags initFlags
	command := &cobra.Command{
		Use:   "init FILE",
		Short: "Write a study file for a script, and say which lines the script needs",
		Long: `Write a study file for a script, and say which lines the script needs. FILE is a
Python script with options (argparse, click, typer, dataclasses), or a
configuration in YAML or JSON.

Options with a name that says what they are are tuned around their defaults:
learning rates on a logarithmic scale, batch sizes in powers of two. Others are
in the file as comments. The script is read, never run.`,
		Example: `  tandem init train.py
  tandem init config.yaml --output study.yaml
  tandem init train.py --json | jq -r .lines`,
		Args: term.Arguments(1, "the path of a script or of a configuration"),
		RunE: func(command *cobra.Command, args []string) error { return flags.run(command, args[0]) },
	}
	command.Flags().StringVarP(&flags.output, "output", "o", "", "the study file to write (default study.yaml beside FILE)")
	command.Flags().StringVar(&flags.python, "python", "python3", "the Python that reads the script")
	command.Flags().BoolVar(&flags.force, "force", false, "replace the study file if it exists")
	command.Flags().BoolVar(&flags.json, "json", false, "print JSON for scripts")
	return command
}

func (f *initFlags) run(command *cobra.Command, path string) error {
	output := f.output
	if output == "" {
		output = filepath.Join(filepath.Dir(path), "study.yaml")
	}
	found, err := f.look(command.Context(), path)
	if err != nil {
		return err
	}
	made := suggest(found)
	if len(made.tuned) == 0 {
		return term.Misuse("%s", made.nothing(path))
	}
	ran := commandOf(path, output)
	wrapped := found.wrapped(made, ran)
	content := made.text(nameOf(path), ran+wrapped)
	if _, err := studyfile.Parse([]byte(content), studyfile.YAML); err != nil {
		return fmt.Errorf("the study file for %s would be wrong, which is a defect of tandem init: %w", path, err)
	}
	if err := f.write(output, content); err != nil {
		return err
	}
	answer := written{File: output, Library: found.library(), Lines: found.lines(made), Tuned: made.tuned, Left: made.left}
	unchanged := ""
	if wrapped != "" {
		unchanged = "Or leave the script as it is: the other command in the file has tandem.wrap read its output.\n\n"
	}
	return term.SayAnswer(command.OutOrStdout(), f.json, answer, `Wrote %[1]s: it tunes %[2]s. Look at the ranges.
Add to the script (%[3]s):

%[4]s
%[5]sThen:

    tandem study plan %[1]s
    %[6]s
`, format.Plain(output), strings.Join(made.tuned, ", "), answer.Library, indented(answer.Lines), unchanged, tune(format.Plain(output)))
}

// tune is the command that tunes a study file with this build.
func tune(file string) string {
	if term.Client {
		return "tandem study create " + file + " --watch"
	}
	return "tandem run " + file
}

// write writes the study file; one that is there stays, unless it is to be replaced.
func (f *initFlags) write(path, content string) error {
	how := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	if f.force {
		how = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	}
	file, err := os.OpenFile(filepath.Clean(path), how, 0o644) //nolint:gosec // a file of the user's project
	if errors.Is(err, fs.ErrExist) {
		return term.Misuse("%s exists already: name another file with --output, or replace it with --force", path)
	}
	if err != nil {
		return err
	}
	_, err = file.WriteString(content)
	return errors.Join(err, file.Close())
}

var unfit = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// nameOf is a study's name: the script's, or its folder's where the script's says nothing.
func nameOf(path string) string {
	name := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	if absolute, err := filepath.Abs(path); err == nil && slices.Contains([]string{"train", "main", "run", "config"}, name) {
		name = filepath.Base(filepath.Dir(absolute))
	}
	if name = strings.Trim(unfit.ReplaceAllString(name, "-"), "._-"); name == "" {
		name = "study"
	}
	return name[:min(len(name), 100)]
}

// commandOf is the study's command as the file has it; which script reads a
// configuration is guessed.
func commandOf(path, output string) string {
	if !isScript(path) {
		return `[python3, "train.py"] # name the script that reads ` + format.Plain(filepath.Base(path))
	}
	from, err := filepath.Abs(filepath.Dir(output))
	to, further := filepath.Abs(path)
	if relative, wrong := filepath.Rel(from, to); errors.Join(err, further, wrong) == nil {
		path = relative
	}
	return "[python3, " + yaml(filepath.ToSlash(path)) + "]"
}

func indented(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		if line != "\n" {
			line = "    " + line
		}
		out.WriteString(line)
	}
	return out.String()
}
