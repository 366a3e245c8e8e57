// Package strict refuses JSON that parsers disagree about, so that a body means the same to
// everything that reads it.
package strict

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/tandem-tune/tandem/internal/problem"
)

// maxDepth bounds how deep a JSON body may nest.
const maxDepth = 32

// Check refuses what parsers disagree about: text that is not UTF-8, a
// name that comes twice in one object, half of a surrogate pair, and anything
// behind the value; and NUL, which ends texts in other languages and which not
// every database keeps. Only the text of a log may have it: there it is replaced.
func Check(data []byte) *problem.Error {
	if !utf8.Valid(data) {
		return undecodable(data, 0, "body", "is not UTF-8 text")
	}
	walker := jsonWalker{decoder: json.NewDecoder(bytes.NewReader(data)), data: data}
	walker.decoder.UseNumber()
	if err := walker.value("", 0); err != nil {
		return err
	}
	if _, err := walker.decoder.Token(); !errors.Is(err, io.EOF) {
		return undecodable(data, walker.decoder.InputOffset(), "body", "has something behind its end")
	}
	return nil
}

func undecodable(data []byte, offset int64, path, message string) *problem.Error {
	offset = min(offset, int64(len(data)))
	field := problem.Field{Path: path, Message: message, Line: 1 + bytes.Count(data[:offset], []byte("\n"))}
	return problem.WithFields("the body cannot be read as JSON", []problem.Field{field})
}

type jsonWalker struct {
	decoder *json.Decoder
	data    []byte
}

func (j jsonWalker) fail(path, message string) *problem.Error {
	if path == "" {
		path = "body"
	}
	return undecodable(j.data, j.decoder.InputOffset(), path, message)
}

func (j jsonWalker) value(path string, depth int) *problem.Error {
	start := j.decoder.InputOffset()
	token, err := j.decoder.Token()
	if err != nil {
		return j.fail(path, syntaxMessage(err))
	}
	if words, ok := token.(string); ok {
		return j.words(path, words, start)
	}
	open, ok := token.(json.Delim)
	if !ok {
		return j.number(path, token)
	}
	if depth == maxDepth {
		return j.fail(path, fmt.Sprintf("nests deeper than %d levels", maxDepth))
	}
	if open == '[' {
		return j.list(path, depth)
	}
	return j.object(path, depth)
}

// number refuses a number that no float can hold: some parsers make an infinity
// of it, and others an error.
func (j jsonWalker) number(path string, token json.Token) *problem.Error {
	number, ok := token.(json.Number)
	if !ok {
		return nil
	}
	if _, err := number.Float64(); err != nil {
		return j.fail(path, fmt.Sprintf("%.40s is beyond what a number can hold: where values may be infinite, send \"Infinity\" or \"-Infinity\"", number))
	}
	return nil
}

// words refuses what is text to one parser and not to another, or not the same.
// The string was read from start on.
func (j jsonWalker) words(path, words string, start int64) *problem.Error {
	switch {
	case halved(j.data[start:j.decoder.InputOffset()]):
		return j.fail(path, "has half of a surrogate pair: it must be Unicode text")
	case path != logText && strings.ContainsRune(words, 0):
		return j.fail(path, "contains a NUL character: remove it")
	}
	return nil
}

// logText is where a piece of a log stands in its body.
const logText = "text"

// halved reports whether a JSON string, as it is written, has an escaped half of
// a surrogate pair without the other.
func halved(written []byte) bool {
	for i := 0; i < len(written); i++ {
		if written[i] != '\\' {
			continue
		}
		unit, escaped := codeUnit(written[i:])
		switch {
		case !escaped:
			i++ // the escaped character, which may be a backslash
		case unit >= 0xdc00 && unit < 0xe000:
			return true
		case unit >= 0xd800 && unit < 0xdc00:
			low, paired := codeUnit(written[min(i+6, len(written)):])
			if !paired || low < 0xdc00 || low >= 0xe000 {
				return true
			}
			i += 11
		default:
			i += 5
		}
	}
	return false
}

// codeUnit reads what begins with \uXXXX.
func codeUnit(written []byte) (unit uint64, ok bool) {
	if len(written) < 6 || written[0] != '\\' || written[1] != 'u' {
		return 0, false
	}
	unit, err := strconv.ParseUint(string(written[2:6]), 16, 16)
	return unit, err == nil
}

func syntaxMessage(err error) string {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return "ends too early"
	}
	return "is not JSON: " + strings.TrimPrefix(err.Error(), "json: ")
}

func (j jsonWalker) list(path string, depth int) *problem.Error {
	for i := 0; j.decoder.More(); i++ {
		if err := j.value(fmt.Sprintf("%s[%d]", path, i), depth+1); err != nil {
			return err
		}
	}
	return j.end(path)
}

func (j jsonWalker) object(path string, depth int) *problem.Error {
	seen := make(map[string]bool)
	for j.decoder.More() {
		start := j.decoder.InputOffset()
		token, err := j.decoder.Token()
		if err != nil {
			return j.fail(path, syntaxMessage(err))
		}
		name, _ := token.(string) // the decoder allows nothing else here
		inside := Below(path, name)
		if err := j.words(inside, name, start); err != nil {
			return err
		}
		if seen[name] {
			return j.fail(inside, "comes twice")
		}
		seen[name] = true
		if err := j.value(inside, depth+1); err != nil {
			return err
		}
	}
	return j.end(path)
}

func (j jsonWalker) end(path string) *problem.Error {
	if _, err := j.decoder.Token(); err != nil {
		return j.fail(path, syntaxMessage(err))
	}
	return nil
}

// Below is the path of a member of the object at the path; the root has none.
func Below(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// Unmarshal is encoding/json's, with errors for people.
func Unmarshal(data []byte, into any) error {
	err := json.Unmarshal(data, into)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("%s cannot hold this %s", strings.TrimPrefix(wrong.Field, "."), wrong.Value)
	}
	return err
}

// FindMisspelt walks a decoded value along the type it is meant for.
func FindMisspelt(t reflect.Type, value any, path string) []problem.Field {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return nil
	}
	var faults []problem.Field
	switch value := value.(type) {
	case []any:
		if t.Kind() == reflect.Slice {
			for i, element := range value {
				faults = append(faults, FindMisspelt(t.Elem(), element, fmt.Sprintf("%s[%d]", path, i))...)
			}
		}
	case map[string]any:
		for name, element := range value {
			inside := path + "." + name
			switch t.Kind() {
			case reflect.Map:
				faults = append(faults, FindMisspelt(t.Elem(), element, inside)...)
			case reflect.Struct:
				field, right := memberOf(t, name)
				if right != "" && right != name {
					faults = append(faults, problem.Field{Path: inside, Message: "is not a field of this request: write " + right})
				} else if right != "" {
					faults = append(faults, FindMisspelt(field, element, inside)...)
				}
			}
		}
	}
	return faults
}

// members has the fields of each type of struct that was read into.
var members sync.Map

// memberOf finds the field of a struct that JSON would put the name's value in.
func memberOf(t reflect.Type, name string) (field reflect.Type, right string) {
	known, found := members.Load(t)
	if !found {
		known, _ = members.LoadOrStore(t, reflect.VisibleFields(t))
	}
	for _, candidate := range known.([]reflect.StructField) { //nolint:forcetypeassert // there is nothing else in it
		tag, _, _ := strings.Cut(candidate.Tag.Get("json"), ",")
		if tag != "" && strings.EqualFold(tag, name) {
			return candidate.Type, tag
		}
	}
	return nil, ""
}
