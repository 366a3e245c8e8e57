package definition

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"

	"github.com/tandem-tune/tandem/internal/problem"
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
func Parse(data []byte, format Format) (Definition, error) {
	var b builder
	root, err := tree(data, format, &b)
	if err != nil {
		return Definition{}, err
	}
	d := decoder{faults: b.faults}
	def := d.study(root)
	if len(d.faults) > 0 {
		return Definition{}, inOrder(d.faults)
	}
	return def, nil
}

// Unreadable reports whether the error is of [Parse] and says that the file
// has no readable structure, in contrast to faults in its fields.
func Unreadable(err error) bool {
	var e *problem.Error
	return errors.As(err, &e) && e.Code == problem.Invalid && len(e.Fields) == 1 && e.Fields[0].Path == wholeFile
}

// Stored reads a Definition from the JSON that a store kept of it. Anything
// unknown or behind it is an error: the store was written by another version,
// or is damaged.
func Stored(data []byte) (Definition, error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	var def Definition
	if err := decoder.Decode(&def); err != nil {
		return Definition{}, problem.New(problem.Internal, "read a stored study: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return Definition{}, problem.New(problem.Internal, "read a stored study: something follows the definition")
	}
	return def, nil
}

// tree reads the file's structure, within bounds.
func tree(data []byte, format Format, b *builder) (*node, error) {
	if len(data) > maxBytes {
		return nil, fileFault(0, "has %d bytes: a study file has at most %d", len(data), maxBytes)
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff")) // the mark some editors write
	if at := firstInvalid(data); at >= 0 {
		return nil, fileFault(lineAt(data, at), "is not UTF-8 text: byte %d is %#02x", at, data[at])
	}
	if at := bytes.IndexByte(data, 0); at >= 0 {
		return nil, fileFault(lineAt(data, at), "contains a NUL byte: it must be text")
	}
	switch format {
	case YAML:
		return parseYAML(data, b)
	case JSON:
		return parseJSON(data, b)
	}
	return nil, fileFault(0, "has the format %q: it must be %s or %s", format, YAML, JSON)
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

// inOrder makes one error of all faults.
func inOrder(faults []problem.Field) error {
	slices.SortStableFunc(faults, func(a, b problem.Field) int { return a.Line - b.Line })
	detail := fmt.Sprintf("the study file has %d faults", len(faults))
	if len(faults) == 1 {
		detail = "the study file has a fault"
	}
	if rest := len(faults) - maxFaults; rest > 0 {
		faults = append(faults[:maxFaults:maxFaults], problem.Field{
			Path: wholeFile, Message: fmt.Sprintf("has %d more faults: correct these first", rest),
		})
	}
	return problem.WithFields(detail, faults)
}
