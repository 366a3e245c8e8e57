package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"github.com/tandem-tune/tandem/problem"
)

// maxDepth bounds how deep a JSON body may nest.
const maxDepth = 32

// checkJSON refuses what parsers disagree about: text that is not UTF-8, a
// name that comes twice in one object, and anything behind the value.
func checkJSON(data []byte) error {
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

func undecodable(data []byte, offset int64, path, message string) error {
	offset = min(offset, int64(len(data)))
	field := problem.Field{Path: path, Message: message, Line: 1 + bytes.Count(data[:offset], []byte("\n"))}
	return withStatus{problem: problem.WithFields("the body cannot be read as JSON", []problem.Field{field}), status: http.StatusBadRequest}
}

type jsonWalker struct {
	decoder *json.Decoder
	data    []byte
}

func (j jsonWalker) fail(path, message string) error {
	if path == "" {
		path = "body"
	}
	return undecodable(j.data, j.decoder.InputOffset(), path, message)
}

func (j jsonWalker) value(path string, depth int) error {
	token, err := j.decoder.Token()
	if err != nil {
		return j.fail(path, syntaxMessage(err))
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
func (j jsonWalker) number(path string, token json.Token) error {
	number, ok := token.(json.Number)
	if !ok {
		return nil
	}
	if _, err := number.Float64(); err != nil {
		return j.fail(path, fmt.Sprintf("%.40s is beyond what a number can hold: where values may be infinite, send \"Infinity\" or \"-Infinity\"", number))
	}
	return nil
}

func syntaxMessage(err error) string {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return "ends too early"
	}
	return "is not JSON: " + strings.TrimPrefix(err.Error(), "json: ")
}

func (j jsonWalker) list(path string, depth int) error {
	for i := 0; j.decoder.More(); i++ {
		if err := j.value(fmt.Sprintf("%s[%d]", path, i), depth+1); err != nil {
			return err
		}
	}
	return j.end(path)
}

func (j jsonWalker) object(path string, depth int) error {
	seen := make(map[string]bool)
	for j.decoder.More() {
		token, err := j.decoder.Token()
		if err != nil {
			return j.fail(path, syntaxMessage(err))
		}
		name, _ := token.(string) // the decoder allows nothing else here
		inside := below(path, name)
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

func (j jsonWalker) end(path string) error {
	if _, err := j.decoder.Token(); err != nil {
		return j.fail(path, syntaxMessage(err))
	}
	return nil
}

func below(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// unmarshal is encoding/json's, with errors for people.
func unmarshal(data []byte, into any) error {
	err := json.Unmarshal(data, into)
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return fmt.Errorf("%s cannot hold this %s", strings.TrimPrefix(wrong.Field, "."), wrong.Value)
	}
	return err
}

// Content is the JSON body of a request. Both huma and encoding/json take
// names in any case; we do not, so that a body means the same to every parser.
//
// It and the types named ...Ref are exported because huma looks for exported
// fields only; they are of no use outside.
type Content[T any] struct {
	Body T
}

// Resolve reports the names in the body that are a field's but for their case.
func (Content[T]) Resolve(ctx huma.Context) []error {
	raw, ok := ctx.Context().Value(bodyKey{}).([]byte)
	if !ok {
		return nil
	}
	var value any
	if json.Unmarshal(raw, &value) != nil {
		return nil // reported already
	}
	return misspelt(reflect.TypeFor[T](), value, "body")
}

// bodyKey is the context key of the request's body.
type bodyKey struct{}

func withBody(ctx context.Context, body []byte) context.Context {
	return context.WithValue(ctx, bodyKey{}, body)
}

// misspelt walks a decoded value along the type it is meant for.
func misspelt(t reflect.Type, value any, path string) []error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return nil
	}
	var faults []error
	switch value := value.(type) {
	case []any:
		if t.Kind() == reflect.Slice {
			for i, element := range value {
				faults = append(faults, misspelt(t.Elem(), element, fmt.Sprintf("%s[%d]", path, i))...)
			}
		}
	case map[string]any:
		for name, element := range value {
			inside := path + "." + name
			switch t.Kind() {
			case reflect.Map:
				faults = append(faults, misspelt(t.Elem(), element, inside)...)
			case reflect.Struct:
				field, right := memberOf(t, name)
				if right != "" && right != name {
					faults = append(faults, &huma.ErrorDetail{Location: inside, Message: "is not a field of this request: write " + right})
				} else if right != "" {
					faults = append(faults, misspelt(field, element, inside)...)
				}
			}
		}
	}
	return faults
}

// memberOf finds the field of a struct that JSON would put the name's value in.
func memberOf(t reflect.Type, name string) (field reflect.Type, right string) {
	for _, candidate := range reflect.VisibleFields(t) {
		tag, _, _ := strings.Cut(candidate.Tag.Get("json"), ",")
		if tag != "" && strings.EqualFold(tag, name) {
			return candidate.Type, tag
		}
	}
	return nil, ""
}
