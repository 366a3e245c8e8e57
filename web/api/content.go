package api

import (
	"context"
	"encoding/json"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"
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
	raw, ok := ctx.Context().Value(bodyKey{}).([]byte)
	if !ok {
		return nil
	}
	var value any
	if json.Unmarshal(raw, &value) != nil {
		return nil // reported already
	}
	var faults []error
	for _, one := range strict.FindMisspelt(reflect.TypeFor[T](), value, "body") {
		faults = append(faults, &huma.ErrorDetail{Location: one.Path, Message: one.Message})
	}
	return faults
}

// bodyKey is the context key of the request's body.
type bodyKey struct{}

func withBody(ctx context.Context, body []byte) context.Context {
	return context.WithValue(ctx, bodyKey{}, body)
}

// checkBody refuses a body that parsers disagree about, with the status for it.
func checkBody(body []byte) error {
	if err := strict.Check(body); err != nil {
		return withStatus{problem: err, status: http.StatusBadRequest}
	}
	return nil
}
