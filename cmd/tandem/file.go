package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/definition"
)

// maxFileBytes bounds a study file; the parser's own bound is below it.
const maxFileBytes = 2 << 20

// readStudyFile reads and checks a study file; "-" is standard input. Its
// command starts in the file's own folder unless the file says otherwise.
func readStudyFile(ctx context.Context, path string, stdin io.Reader) (definition.Definition, error) {
	data, err := input(ctx, func() ([]byte, error) { return readFile(path, stdin) })
	if ctx.Err() != nil {
		return definition.Definition{}, ctx.Err()
	}
	if err != nil {
		return definition.Definition{}, usageError{err}
	}
	format := definition.YAML
	if strings.EqualFold(filepath.Ext(path), ".json") {
		format = definition.JSON
	}
	def, err := definition.Parse(data, format)
	if err != nil {
		return def, usageError{fmt.Errorf("%s: %w", path, err)}
	}
	return def, nil
}

// input reads what somebody may still be typing; the context ends the wait.
func input[T any](ctx context.Context, read func() (T, error)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	done := make(chan outcome, 1)
	go func() {
		value, err := read()
		done <- outcome{value, err}
	}()
	select {
	case got := <-done:
		return got.value, got.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

func readFile(path string, stdin io.Reader) ([]byte, error) {
	data, err := readBounded(path, stdin, maxFileBytes)
	if errors.Is(err, errTooLarge) {
		return nil, problem.New(problem.Invalid, "%s is larger than a study file can be", path)
	}
	return data, err
}

var errTooLarge = errors.New("is larger than such a file can be")

// readBounded reads a file of at most so many bytes; "-" is standard input.
func readBounded(path string, stdin io.Reader, most int64) ([]byte, error) {
	source := stdin
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		source = file
	}
	data, err := io.ReadAll(io.LimitReader(source, most+1))
	if err == nil && int64(len(data)) > most {
		return nil, fmt.Errorf("%s %w", path, errTooLarge)
	}
	return data, err
}

// inFolderOf makes a study's command start in the folder of its file: a
// directory the file gives is taken relative to it.
func inFolderOf(path string, def definition.Definition) (definition.Definition, error) {
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
	return def, nil
}

// document is the definition as it is sent to a server.
func document(def definition.Definition) ([]byte, string, error) {
	data, err := json.Marshal(def)
	return data, "application/json", err
}
