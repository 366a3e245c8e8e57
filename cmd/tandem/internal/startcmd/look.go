package startcmd

import (
	"bytes"
	"context"
	_ "embed" // for options.py
	"encoding/json"
	"errors"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/study/studyfile/tree"
)

// reader is the program that reads a script's options.
//
//go:embed options.py
var reader []byte

// option is one that a script or a configuration has.
type option struct {
	Name string `json:"name"`
	// Kind is float, int, bool or text.
	Kind    string `json:"kind"`
	Default any    `json:"default"`
	Choices []any  `json:"choices"`
	// Flag is what takes its value on the script's command line; empty: nothing does.
	Flag string `json:"flag"`
}

// number is the default, and whether it is a number.
func (o option) number() (float64, bool) {
	if o.Kind != "int" && o.Kind != "float" {
		return 0, false
	}
	value, ok := o.Default.(float64)
	return value, ok
}

// seen is what was read of a script or of a configuration.
type seen struct {
	Options []option `json:"options"`
	// Libraries are what the script imports, and Words its names and texts.
	Libraries []string `json:"libraries"`
	Words     []string `json:"words"`
	// Clicked says that functions get the options as arguments (click, typer).
	Clicked bool `json:"clicked"`
	// configuration says that no script was read.
	configuration bool
}

func isScript(path string) bool { return strings.EqualFold(filepath.Ext(path), ".py") }

// look reads the options of the file.
func (f *initFlags) look(ctx context.Context, path string) (seen, error) {
	content, err := term.ReadBounded(path, nil, most)
	if err != nil {
		return seen{}, term.Misuse("%w", err)
	}
	if isScript(path) {
		return f.ofScript(ctx, path)
	}
	var root *tree.Node
	switch strings.ToLower(filepath.Ext(path)) {
	case ".yaml", ".yml":
		root, _, err = tree.ParseYAML(content)
	case ".json":
		root, _, err = tree.ParseJSON(content)
	default:
		return seen{}, term.Misuse("%s is neither a Python script (.py) nor a configuration (.yaml, .yml, .json): of other programs no options can be read; write the study file by hand (docs/study-file.md)", path)
	}
	if err != nil {
		return seen{}, term.Misuse("%s: %w", path, err)
	}
	found := seen{configuration: true}
	found.add("", root)
	return found, nil
}

// add takes what a configuration's mapping holds; parts of a name are divided by dots.
func (s *seen) add(at string, node *tree.Node) {
	if node == nil {
		return
	}
	for _, entry := range node.Entries {
		one, value := option{Name: tree.Join(at, entry.Key), Kind: "text"}, entry.Value
		switch {
		case value.Kind == tree.Mapping:
			s.add(one.Name, value)
			continue
		case value.Kind == tree.Boolean:
			one.Kind, one.Default = "bool", strings.EqualFold(value.Raw, "true")
		case value.Kind == tree.Number:
			number, err := strconv.ParseFloat(value.Raw, 64)
			if err != nil {
				continue
			}
			one.Kind, one.Default = "int", number
			if strings.ContainsAny(value.Raw, ".eE") {
				one.Kind = "float"
			}
		case value.Kind == tree.Text:
			one.Default = value.Raw
		default:
			continue
		}
		s.Options = append(s.Options, one)
	}
}

// ofScript lets Python read the script, which is not run.
func (f *initFlags) ofScript(ctx context.Context, path string) (seen, error) {
	var found seen
	command := exec.CommandContext(ctx, f.python, "-I", "-", path)
	command.Stdin = bytes.NewReader(reader)
	output, err := command.Output()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		return found, term.Misuse("%s cannot be read as Python: %s", path, bytes.TrimSpace(exit.Stderr))
	case err != nil:
		return found, term.Misuse("Python is needed to read %s: name one with --python (%w)", path, err)
	}
	return found, json.Unmarshal(output, &found)
}

// library is what the script trains with.
func (s seen) library() string {
	if s.configuration {
		return "configuration"
	}
	for _, known := range [][2]string{
		{"transformers", "Hugging Face"}, {"lightning", "Lightning"}, {"pytorch_lightning", "Lightning"}, {"xgboost", "XGBoost"},
		{"keras", "Keras"}, {"tensorflow", "Keras"}, {"torch", "PyTorch"}, {"sklearn", "scikit-learn"},
	} {
		if slices.Contains(s.Libraries, known[0]) {
			return known[1]
		}
	}
	return "plain Python"
}
