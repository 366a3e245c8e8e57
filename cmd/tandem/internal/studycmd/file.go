package studycmd

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"path/filepath"
	"strings"

	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/studyfile"
)

// maxFileBytes bounds a study file; the parser's own bound is below it.
const maxFileBytes = 2 << 20

// ReadFile reads and checks a study file; "-" is standard input. Its
// command starts in the file's own folder unless the file says otherwise.
func ReadFile(ctx context.Context, path string, stdin io.Reader) (definition.Definition, error) {
	data, err := term.ReadInput(ctx, func() ([]byte, error) { return readContent(path, stdin) })
	if ctx.Err() != nil {
		return definition.Definition{}, ctx.Err()
	}
	if err != nil {
		return definition.Definition{}, term.Misuse("%w", err)
	}
	format := studyfile.YAML
	if strings.EqualFold(filepath.Ext(path), ".json") {
		format = studyfile.JSON
	}
	def, err := studyfile.Parse(data, format)
	if err != nil {
		return def, term.Misuse("%s: %w", path, err)
	}
	return def, nil
}

func readContent(path string, stdin io.Reader) ([]byte, error) {
	data, err := term.ReadBounded(path, stdin, maxFileBytes)
	if errors.Is(err, term.ErrTooLarge) {
		return nil, problem.New(problem.Invalid, "%s is larger than a study file can be", path)
	}
	return data, err
}

// InFolderOf makes a study's command start in the folder of its file: a
// directory the file gives is taken relative to it. The files that the command names
// are hashed.
func InFolderOf(path string, def definition.Definition) (definition.Definition, error) {
	if path == "-" {
		path = "stdin"
	}
	folder, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return def, err
	}
	if !filepath.IsAbs(def.Directory) {
		def.Directory = filepath.Join(folder, def.Directory)
	}
	if def.Code == "" {
		def.Code = codeOf(def.Directory, def.Programs())
	}
	return def, nil
}

// document is the definition as it is sent to a server.
func document(def definition.Definition) ([]byte, string, error) {
	data, err := json.Marshal(def)
	return data, "application/json", err
}
