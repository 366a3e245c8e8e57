// Package studyfile reads study files: [Parse] turns YAML or JSON into a checked
// definition, or into one error that names every fault with its path, its line and
// the fix.
//
// Each section of the file has a function that reads it, checks it and fills in its
// defaults. Package tree reads the file itself.
package studyfile

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/studyfile/tree"
)

// Format is how a study file is written.
type Format string

// The formats. Both have the same fields.
const (
	YAML Format = "yaml"
	JSON Format = "json"
)

// Parse reads a study file. The error is [problem.Invalid] and names every
// fault at once, in the order of their lines, each with its path, its line
// (unless the file is JSON in one line), the value given and what would be
// right; of more than a hundred the rest is counted. A Definition without an
// error has all defaults filled in, but for a seed that is drawn later.
//
// A file that cannot be read as YAML or JSON at all, or is beyond the bounds
// of 1 MiB, 30,000 values and 32 levels, has one fault, and [Unreadable] tells
// it from the others.
//
// The JSON of a Definition is itself a study file in JSON, with the same
// meaning: what the server shows of a study can be edited and sent again.
func Parse(data []byte, format Format) (definition.Definition, error) {
	root, faults, err := readTree(data, format)
	if err != nil {
		return definition.Definition{}, err
	}
	d := &tree.Decoder{Faults: faults}
	def := readStudy(d, root)
	if len(d.Faults) > 0 {
		tree.Suggest(d.Faults)
		return definition.Definition{}, inOrder(d.Faults)
	}
	return def, nil
}

// Unreadable reports whether the error is of [Parse] and says that the file
// has no readable structure, in contrast to faults in its fields.
func Unreadable(err error) bool {
	var e *problem.Error
	return errors.As(err, &e) && e.Code == problem.Invalid && len(e.Fields) == 1 && e.Fields[0].Path == tree.WholeFile
}

// readTree reads the file's structure, within bounds, and the faults of its keys
// and texts.
func readTree(data []byte, format Format) (*tree.Node, []problem.Field, error) {
	if len(data) > tree.MaxBytes {
		return nil, nil, tree.FileFault(0, "has %d bytes: a study file has at most %d", len(data), tree.MaxBytes)
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff")) // the mark some editors write
	if at := firstInvalid(data); at >= 0 {
		return nil, nil, tree.FileFault(lineAt(data, at), "is not UTF-8 text: byte %d is %#02x", at, data[at])
	}
	if at := bytes.IndexByte(data, 0); at >= 0 {
		return nil, nil, tree.FileFault(lineAt(data, at), "contains a NUL byte: it must be text")
	}
	switch format {
	case YAML:
		return tree.ParseYAML(data)
	case JSON:
		return tree.ParseJSON(data)
	}
	return nil, nil, tree.FileFault(0, "has the format %q: it must be %s or %s", format, YAML, JSON)
}

// firstInvalid is the place of the first byte that is not UTF-8, or -1.
func firstInvalid(data []byte) int {
	for at := 0; at < len(data); {
		r, size := utf8.DecodeRune(data[at:])
		if r == utf8.RuneError && size == 1 {
			return at
		}
		at += size
	}
	return -1
}

func lineAt(data []byte, at int) int { return 1 + bytes.Count(data[:at], []byte("\n")) }

// maxFaults bounds the faults reported at once: the answer to a file that is wrong
// throughout stays readable.
const maxFaults = 100

// inOrder makes one error of all faults.
func inOrder(faults []problem.Field) error {
	slices.SortStableFunc(faults, func(a, b problem.Field) int { return a.Line - b.Line })
	detail := fmt.Sprintf("the study file has %d faults", len(faults))
	if len(faults) == 1 {
		detail = "the study file has a fault"
	}
	if rest := len(faults) - maxFaults; rest > 0 {
		faults = append(faults[:maxFaults:maxFaults], problem.Field{
			Path: tree.WholeFile, Message: fmt.Sprintf("has %d more faults: correct these first", rest),
		})
	}
	return problem.WithFields(detail, faults)
}
