package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/web/answer"
	"github.com/tandem-tune/tandem/web/guard"
	"github.com/tandem-tune/tandem/web/strict"
)

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
	var value any
	if json.Unmarshal(guard.BodyOf(ctx.Context()), &value) != nil {
		return nil // reported already
	}
	var faults []error
	for _, one := range strict.FindMisspelt(reflect.TypeFor[T](), value, "body") {
		faults = append(faults, &huma.ErrorDetail{Location: one.Path, Message: one.Message})
	}
	return faults
}

// maxFaults bounds the faults of one answer.
const maxFaults = 100

// rewordFaults turns huma's own errors, of decoding and validation, into documents.
func (s *server) rewordFaults(ctx huma.Context, _ string, output any) (any, error) {
	theirs, ok := output.(*huma.ErrorModel)
	if !ok {
		return output, nil
	}
	if theirs.Status >= http.StatusInternalServerError {
		return answer.Failed(ctx.Context(), theirs, s.Logger, guard.NameOf(ctx.Context())), nil
	}
	fields := fieldsOf(theirs.Errors)
	text := theirs.Detail
	switch len(fields) {
	case 0:
	case 1:
		text = "the request has a fault"
	default:
		text = fmt.Sprintf("the request has %d faults", len(fields))
	}
	return s.Dated(ctx.Context(), answer.New(theirs.Status, problem.Invalid, text, fields)), nil
}

// fieldsOf returns the faults that huma found in our words, each once.
func fieldsOf(details []*huma.ErrorDetail) []problem.Field {
	var fields []problem.Field
	for _, detail := range details {
		if detail == nil {
			continue
		}
		field := answer.Field(detail.Location, detail.Message, detail.Value)
		known := slices.ContainsFunc(fields, func(other problem.Field) bool {
			return other.Path == field.Path && other.Message == field.Message
		})
		if !known && len(fields) < maxFaults {
			fields = append(fields, field)
		}
	}
	return fields
}
