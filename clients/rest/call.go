package rest

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
)

// request is one logical call.
type request struct {
	method, path, query string
	contentType         string
	body                []byte
	// open, instead of body, gives size bytes anew for each attempt.
	open func() (io.ReadCloser, error)
	size int64
	// wait is how much longer than usual an attempt may take.
	wait time.Duration
	// stream says that the answer is read by the caller and may last.
	stream bool
	// linked says that the server may answer with a link, which is followed without the token.
	linked bool
	// once says that the call must not be made twice.
	once bool
	key  string
	// features are those that a worker knows; nil: it does not say.
	features []protocol.Feature
}

func (r request) mutates() bool {
	return r.method != http.MethodGet && r.method != http.MethodHead
}

// none is an answer without a body.
type none struct{}

// call makes a call and decodes its answer into into, if that is not nil or none.
func (c *caller) call(ctx context.Context, r request, into any) error {
	answer, err := c.send(ctx, r)
	if err != nil {
		return err
	}
	defer answer.Close()
	if _, empty := into.(*none); empty || into == nil {
		return nil
	}
	data, err := io.ReadAll(answer)
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		return problem.New(problem.Internal, "%s %s: the answer is not what this client understands: %w", r.method, r.path, err)
	}
	return nil
}

// post sends a JSON document.
func post(path string, document any) (request, error) {
	body, err := json.Marshal(document)
	if err != nil {
		return request{}, problem.New(problem.Invalid, "encode the request: %w", err)
	}
	return request{method: http.MethodPost, path: path, contentType: "application/json", body: body}, nil
}

// exchange posts a document and decodes the answer. Adjust changes the request before.
func exchange[T any](ctx context.Context, c *caller, path string, document any, adjust ...func(*request)) (answer T, err error) {
	r, err := post(path, document)
	if err != nil {
		return answer, err
	}
	for _, change := range adjust {
		change(&r)
	}
	return fetch[T](ctx, c, r)
}

// once has the call made once only.
func once(r *request) { r.once = true }

// fetch makes a call and decodes its answer.
func fetch[T any](ctx context.Context, c *caller, r request) (answer T, err error) {
	err = c.call(ctx, r, &answer)
	return answer, err
}

// get fetches a document.
func get[T any](ctx context.Context, c *caller, path, query string) (T, error) {
	return fetch[T](ctx, c, request{method: http.MethodGet, path: path, query: query})
}

// list fetches the list that an answer has under the key.
func list[T any](ctx context.Context, c *caller, key, where string) (found []T, err error) {
	answer, err := get[map[string]json.RawMessage](ctx, c, where, "")
	if document, has := answer[key]; err == nil && has {
		if err = json.Unmarshal(document, &found); err != nil {
			err = problem.New(problem.Internal, "GET %s: the answer is not what this client understands: %w", where, err)
		}
	}
	return found, err
}
