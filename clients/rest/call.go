package rest

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
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
	// once says that the call must not be made twice.
	once bool
	key  string
	last string // Last-Event-ID
}

func (r request) mutates() bool {
	return r.method != http.MethodGet && r.method != http.MethodHead
}

// call makes a call and decodes its answer into into, if that is not nil.
func (c *Client) call(ctx context.Context, r request, into any) error {
	answer, err := c.send(ctx, r)
	if err != nil {
		return err
	}
	defer answer.Close()
	if into == nil {
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

// exchange posts a document and decodes the answer.
func exchange[T any](ctx context.Context, c *Client, path string, document any) (T, error) {
	var answer T
	r, err := post(path, document)
	if err != nil {
		return answer, err
	}
	err = c.call(ctx, r, &answer)
	return answer, err
}

// get fetches a document.
func get[T any](ctx context.Context, c *Client, path, query string) (T, error) {
	var answer T
	err := c.call(ctx, request{method: http.MethodGet, path: path, query: query}, &answer)
	return answer, err
}
