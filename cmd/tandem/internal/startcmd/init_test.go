package startcmd

import (
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/study/studyfile"
)

var update = flag.Bool("update", false, "write testdata/*.golden")

// execute runs a command line of tandem.
func execute(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	root := &cobra.Command{Use: "tandem"}
	root.AddCommand(InitCommand(), ExampleCommand(), VersionCommand())
	var out, errs strings.Builder
	code = term.Execute(t.Context(), root, args, &out, &errs)
	return code, out.String(), errs.String()
}

// TestInitWritesAStudyForAScript makes testdata/*.golden with -update: the study file,
// and the lines for the script, which Python reads.
func TestInitWritesAStudyForAScript(t *testing.T) {
	for _, name := range []string{"pytorch.py", "sklearn_click.py", "lightning_typer.py", "huggingface.py", "xgboost_trees.py", "config.yaml"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			output := filepath.Join(t.TempDir(), "study.yaml")
			code, stdout, stderr := execute(t, "init", filepath.Join("testdata", name), "--output", output, "--json")
			if code != term.ExitOK {
				t.Fatalf("exit code %d: %s", code, stderr)
			}
			var answer written
			if err := json.Unmarshal([]byte(stdout), &answer); err != nil {
				t.Fatal(err)
			}
			content, err := os.ReadFile(output)
			if err != nil {
				t.Fatal(err)
			}
			def, err := studyfile.Parse(content, studyfile.YAML)
			if err != nil || len(def.Space.Parameters) != len(answer.Tuned) {
				t.Errorf("the study has %d parameters of %v: %v", len(def.Space.Parameters), answer.Tuned, err)
			}
			uncommented := regexp.MustCompile(`(?m)^# ((inference|constraints): )`).ReplaceAll(content, []byte("$1"))
			edge, err := studyfile.Parse(uncommented, studyfile.YAML)
			if err != nil || edge.Inference == nil || !slices.Equal(edge.Inference.Names(), []string{"this-machine"}) || len(edge.Constraints) != 1 || def.Inference != nil {
				t.Errorf("with its comments about inference the study is %+v: %v", edge, err)
			}
			python := exec.CommandContext(t.Context(), "python3", "-c", "import ast, sys; ast.parse(sys.stdin.read())")
			python.Stdin = strings.NewReader(answer.Lines)
			if complaint, err := python.CombinedOutput(); err != nil {
				t.Errorf("Python does not read the lines: %s\n%s", complaint, answer.Lines)
			}
			folder, _ := filepath.Abs("testdata")
			relative, _ := filepath.Rel(filepath.Dir(output), folder)
			if isScript(name) && (len(def.Command) != 2 || def.Command[1] != filepath.ToSlash(filepath.Join(relative, name))) {
				t.Errorf("the command is %q", def.Command)
			}
			got := strings.ReplaceAll(string(content), filepath.ToSlash(relative)+"/", "") + "\n# " + answer.Library + "\n" + answer.Lines
			golden := filepath.Join("testdata", name+".golden")
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if want, err := os.ReadFile(golden); err != nil || string(want) != got {
				t.Errorf("not as in %s (%v): run go test -update and look at the difference:\n%s", golden, err, got)
			}
			if code, _, stderr := execute(t, "init", filepath.Join("testdata", name), "--output", output); code != term.ExitUsage || !strings.Contains(stderr, "--force") {
				t.Errorf("a file that is there: exit code %d, %s", code, stderr)
			}
		})
	}
}

// TestInitOfWhatHasNothingToTune writes nothing, and says what would help.
func TestInitOfWhatHasNothingToTune(t *testing.T) {
	folder := t.TempDir()
	for name, content := range map[string]string{"broken.py": "def f(:\n", "unclear.py": "import argparse\np = argparse.ArgumentParser()\np.add_argument('--foo', type=int, default=3)\n", "train.R": "lr <- 1"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	output := filepath.Join(folder, "study.yaml")
	for _, c := range []struct {
		says string
		args []string
	}{
		{"add_argument(", []string{"testdata/nothing.py"}},
		{"line 1: ", []string{filepath.Join(folder, "broken.py")}},
		{"none with a name of a hyperparameter: foo", []string{filepath.Join(folder, "unclear.py")}},
		{"neither a Python script", []string{filepath.Join(folder, "train.R")}},
		{"no such file", []string{filepath.Join(folder, "absent.py")}},
		{"--python", []string{"testdata/pytorch.py", "--python", filepath.Join(folder, "no-python")}},
	} {
		code, _, stderr := execute(t, append([]string{"init", "--output", output}, c.args...)...)
		if code != term.ExitUsage || !strings.Contains(stderr, c.says) {
			t.Errorf("init %v: exit code %d without %q: %s", c.args, code, c.says, stderr)
		}
	}
	if _, err := os.Stat(output); err == nil {
		t.Error("a study file was written")
	}
}

// TestTheExampleIsWrittenOnce and its study file is one.
func TestTheExampleIsWrittenOnce(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "new")
	if code, stdout, stderr := execute(t, "example", folder); code != term.ExitOK || !strings.Contains(stdout, "tandem run "+folder) {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
	content, err := os.ReadFile(filepath.Join(folder, "study.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := studyfile.Parse(content, studyfile.YAML); err != nil {
		t.Error(err)
	}
	if code, _, stderr := execute(t, "example", folder); code != term.ExitUsage || !strings.Contains(stderr, "exists already") {
		t.Errorf("again: exit code %d: %s", code, stderr)
	}
}
