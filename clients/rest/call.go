package rest

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/tandem-tune/tandem/problem"
)

const (
	// attemptTime bounds one attempt of a small call.
	attemptTime  = 30 * time.Second
	firstPause   = 100 * time.Millisecond
	longestPause = 5 * time.Second
	// longestAsked bounds how long a server may ask us to stay away.
	longestAsked = 30 * time.Second
	maxAnswer    = 256 << 20
	maxProblem   = 1 << 20
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
	data, err := io.ReadAll(io.LimitReader(answer, maxAnswer+1))
	if err != nil {
		return c.away(err)
	}
	if len(data) > maxAnswer {
		return problem.New(problem.Exhausted, "%s %s: the answer has more than %d bytes", r.method, r.path, maxAnswer)
	}
	if err := json.Unmarshal(data, into); err != nil {
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

// send makes attempts until the server has answered, for good or ill, or the
// patience or the context ends. The key stays the same.
func (c *Client) send(ctx context.Context, r request) (io.ReadCloser, error) {
	if r.mutates() && !r.once && r.key == "" {
		r.key = rand.Text()
	}
	deadline := time.Now().Add(c.patience)
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		answer, again, err := c.attempt(ctx, r)
		if err == nil {
			return answer, nil
		}
		if ended := c.ended(ctx, err); ended != nil {
			return nil, ended
		}
		if again == never || r.once {
			return nil, err
		}
		// Many clients that lost one server must not come back all at once.
		wait := max(pause/2+mathrand.N(pause/2), again)
		if c.patience < 0 || time.Now().Add(wait).After(deadline) {
			return nil, err
		}
		if sleep(ctx, wait) != nil {
			return nil, c.ended(ctx, err)
		}
	}
}

// ended is the error of a call whose context is over: the last attempt's, if
// it is known why there is no answer.
func (c *Client) ended(ctx context.Context, last error) error {
	switch {
	case ctx.Err() == nil:
		return nil
	case errors.Is(ctx.Err(), context.Canceled), !problem.Is(last, problem.Unavailable):
		return ctx.Err()
	default:
		return problem.New(problem.Unavailable, "%w: %v", ctx.Err(), last)
	}
}

func sleep(ctx context.Context, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// never says that another attempt would end the same.
const never time.Duration = -1

// attempt makes one attempt. again is how long the server asks us to wait
// before the next one, or never.
func (c *Client) attempt(ctx context.Context, r request) (answer io.ReadCloser, again time.Duration, err error) {
	cancel := func() {}
	if !r.stream {
		ctx, cancel = context.WithTimeout(ctx, attemptTime+r.wait)
	}
	sent, err := c.build(ctx, r)
	if err != nil {
		cancel()
		return nil, never, err
	}
	response, err := c.http.Do(sent)
	if err != nil {
		cancel()
		var certificate *tls.CertificateVerificationError
		if errors.As(err, &certificate) {
			return nil, never, problem.New(problem.Unavailable, "%s has no certificate that this machine trusts: %w", c.base, certificate.Err)
		}
		return nil, 0, c.away(err)
	}
	if response.StatusCode/100 == 2 {
		return &body{ReadCloser: response.Body, cancel: cancel}, 0, nil
	}
	defer cancel()
	defer response.Body.Close()
	again = never
	switch response.StatusCode {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusBadGateway, http.StatusGatewayTimeout:
		again = retryAfter(response.Header)
	}
	return nil, again, problemOf(r, response)
}

// body ends the attempt's time when it is closed.
type body struct {
	io.ReadCloser
	cancel func()
}

// Close closes the answer.
func (b *body) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close()
}

func (c *Client) build(ctx context.Context, r request) (*http.Request, error) {
	content, size, err := r.content()
	if err != nil {
		return nil, err
	}
	sent, err := http.NewRequestWithContext(ctx, r.method, c.base.String()+r.path, content)
	if err != nil {
		return nil, problem.New(problem.Invalid, "%s %s: %w", r.method, r.path, err)
	}
	sent.URL.RawQuery = r.query
	sent.ContentLength = size
	for name, value := range map[string]string{
		"Content-Type": r.contentType, "User-Agent": c.agent, "Idempotency-Key": r.key, "Last-Event-ID": r.last,
	} {
		if value != "" {
			sent.Header.Set(name, value)
		}
	}
	if c.token != "" {
		sent.Header.Set("Authorization", "Bearer "+c.token.Reveal())
	}
	return sent, nil
}

func (r request) content() (io.Reader, int64, error) {
	switch {
	case r.open != nil && r.size > 0:
		opened, err := r.open()
		if err != nil {
			return nil, 0, fmt.Errorf("%s %s: %w", r.method, r.path, err)
		}
		return opened, r.size, nil
	case len(r.body) > 0:
		return bytes.NewReader(r.body), int64(len(r.body)), nil
	default:
		return http.NoBody, 0, nil
	}
}

// away is the error of an attempt that found no server.
func (c *Client) away(err error) error {
	return problem.New(problem.Unavailable, "the server at %s cannot be reached: %w", c.base, err)
}

func retryAfter(header http.Header) time.Duration {
	seconds, err := strconv.Atoi(strings.TrimSpace(header.Get("Retry-After")))
	if err != nil || seconds < 0 {
		return 0
	}
	return min(time.Duration(seconds)*time.Second, longestAsked)
}

// problemOf decodes an answer that is no success.
func problemOf(r request, response *http.Response) error {
	var document struct {
		Code   problem.Code    `json:"code"`
		Detail string          `json:"detail"`
		Errors []problem.Field `json:"errors"`
	}
	data, _ := io.ReadAll(io.LimitReader(response.Body, maxProblem)) // what came is all there is
	if json.Unmarshal(data, &document) == nil && document.Code != "" {
		return &problem.Error{Code: document.Code, Detail: document.Detail, Fields: document.Errors}
	}
	if response.StatusCode/100 == 3 {
		return problem.New(problem.Invalid, "%s %s is answered at %s: use that address", r.method, r.path, response.Header.Get("Location"))
	}
	return problem.New(codeOf(response.StatusCode), "%s %s: the server answered %s", r.method, r.path, response.Status)
}

// codeOf is the code of an answer without a document: from a proxy, say, or to
// a HEAD.
func codeOf(status int) problem.Code {
	switch status {
	case http.StatusUnauthorized:
		return problem.Unauthorized
	case http.StatusForbidden:
		return problem.Forbidden
	case http.StatusNotFound:
		return problem.NotFound
	case http.StatusConflict:
		return problem.Conflict
	case http.StatusTooManyRequests, http.StatusRequestEntityTooLarge:
		return problem.Exhausted
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout, http.StatusRequestTimeout:
		return problem.Unavailable
	}
	if status >= http.StatusInternalServerError {
		return problem.Internal
	}
	return problem.Invalid
}
