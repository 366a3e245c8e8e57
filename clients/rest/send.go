package rest

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net/http"
	"net/netip"
	"strings"
	"syscall"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/web/certificate"
)

const (
	// attemptTime bounds one attempt of a small call.
	attemptTime  = 30 * time.Second
	firstPause   = 100 * time.Millisecond
	longestPause = 5 * time.Second
	// longFrom is the pause, after a second or so, with which people begin to wonder.
	longFrom  = 8 * firstPause
	maxAnswer = 256 << 20
	// askFirst is the size from which an upload asks whether it is wanted
	// before it sends its bytes.
	askFirst = 64 << 10
)

// send makes attempts until the server has answered, for good or ill, or the
// patience or the context ends. The key stays the same.
func (c *caller) send(ctx context.Context, r request) (io.ReadCloser, error) {
	if r.mutates() && !r.once && r.key == "" {
		r.key = rand.Text()
	}
	deadline, told := time.Now().Add(c.patience), false
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		answer, again, err := c.attempt(ctx, r)
		if err == nil {
			return answer, nil
		}
		if ended := c.ended(ctx, err); ended != nil {
			return nil, ended
		}
		if again == never || r.once || c.patience < 0 {
			return nil, err
		}
		// Many clients that lost one server must not come back all at once.
		base := max(pause/2, again)
		wait := base + mathrand.N(base)
		if time.Now().Add(wait).After(deadline) {
			return nil, err
		}
		if !told && c.waits != nil && (pause >= longFrom || again > time.Second) {
			told = true
			c.waits(err, c.patience)
		}
		if sleep(ctx, wait) != nil {
			return nil, c.ended(ctx, err)
		}
	}
}

// ended is the error of a call whose context is over: the last attempt's, if
// it is known why there is no answer.
func (c *caller) ended(ctx context.Context, last error) error {
	var kept protocol.Kept
	switch {
	case ctx.Err() == nil:
		return nil
	case errors.As(last, &kept):
		return kept
	case errors.Is(ctx.Err(), context.Canceled), !problem.Is(last, problem.Unavailable):
		return ctx.Err()
	default:
		return problem.New(problem.Unavailable, "%w: %w", ctx.Err(), last)
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
func (c *caller) attempt(ctx context.Context, r request) (answer io.ReadCloser, again time.Duration, err error) {
	ctx, w := watched(ctx, r.patience())
	sent, err := c.build(ctx, r)
	if err != nil {
		w.end()
		return nil, never, err
	}
	local := w.sending(sent, r.stream)
	response, err := c.http.Do(sent)
	if err == nil && response.StatusCode == http.StatusTemporaryRedirect && r.linked {
		if response, err = c.follow(ctx, response); err != nil {
			w.end()
			return nil, 0, err
		}
	}
	if err != nil {
		w.end()
		return nil, whether(err, local), c.unanswered(ctx, err, local)
	}
	if response.StatusCode/100 == 2 && r.stream {
		return w.receiving(response), 0, nil
	}
	defer w.end()
	defer response.Body.Close()
	if response.StatusCode/100 != 2 {
		err := problemOf(r, response, c.agent)
		if response.Header.Get(protocol.LeasesHeader) == protocol.LeasesKept {
			err = protocol.Kept{Refusal: err}
		}
		return nil, againAfter(response), err
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	if err != nil {
		return nil, 0, c.unanswered(ctx, err, local)
	}
	if len(data) > maxAnswer {
		return nil, never, problem.New(problem.Exhausted, "%s %s: the answer has more than %d bytes", r.method, r.path, maxAnswer)
	}
	return io.NopCloser(bytes.NewReader(data)), 0, nil
}

// patience is how long an attempt may take; that of a stream, how long it may
// stand still.
func (r request) patience() time.Duration {
	if r.stream {
		return silence
	}
	return attemptTime + r.wait
}

func (c *caller) build(ctx context.Context, r request) (*http.Request, error) {
	content, size, err := r.content()
	if err != nil {
		return nil, err
	}
	sent, err := http.NewRequestWithContext(ctx, r.method, c.base.String()+r.path, content)
	if err != nil {
		return nil, problem.New(problem.Invalid, "%s %s: %w", r.method, r.path, err)
	}
	sent.URL.RawQuery = r.query
	if r.linked && !c.unlinked.Load() {
		sent.URL.RawQuery = "direct=true"
	}
	sent.ContentLength = size
	for name, value := range map[string]string{
		"Content-Type": r.contentType, "User-Agent": c.agent, "Idempotency-Key": r.key,
	} {
		if value != "" {
			sent.Header.Set(name, value)
		}
	}
	if r.features != nil {
		sent.Header.Set(protocol.FeaturesHeader, strings.Trim(fmt.Sprint(r.features), "[]"))
	}
	if size >= askFirst {
		sent.Header.Set("Expect", "100-continue")
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

// whether says if another attempt could find what this one did not.
func whether(err error, local *source) time.Duration {
	var refused *tls.CertificateVerificationError
	if local.err() != nil || errors.As(err, &refused) || errors.Is(err, http.ErrSchemeMismatch) {
		return never
	}
	return 0
}

// unanswered is the error of an attempt without an answer: what went wrong on
// our side, or that there is no server.
func (c *caller) unanswered(ctx context.Context, err error, local *source) error {
	if told, refused := certificate.Explain(err, c.base.String(), c.given); refused {
		if unread, ok := errors.AsType[*problem.Error](err); ok {
			told += "; read again, it cannot be used: " + unread.Detail
		}
		return problem.New(problem.Unavailable, "%s", told)
	}
	switch {
	case local.err() != nil:
		return fmt.Errorf("read what is to be uploaded: %w", local.err())
	case errors.Is(err, http.ErrSchemeMismatch):
		return problem.New(problem.Unavailable, "%s does not speak TLS: use http://%s if it is on this machine, or start the server with --tls", c.base, c.base.Host)
	case errors.Is(context.Cause(ctx), errSilent):
		err = errSilent
	}
	return c.away(err)
}

// away is the error of an attempt that found no server.
func (c *caller) away(err error) error {
	hint := ""
	if address, _ := netip.ParseAddr(c.base.Hostname()); address.IsLoopback() && errors.Is(err, syscall.ECONNREFUSED) {
		hint = " (nothing listens there: \"tandem serve\" starts a server)"
	}
	return problem.New(problem.Unavailable, "the server at %s cannot be reached%s: %w", c.base, hint, err)
}
