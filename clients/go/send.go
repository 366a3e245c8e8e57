package tandem

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"
)

const (
	attemptTime  = 30 * time.Second
	firstPause   = 100 * time.Millisecond
	longestPause = 5 * time.Second
	longestAsked = 30 * time.Second
	maxAnswer    = 256 << 20
)

// transport sends calls to one place. One logical call carries one Idempotency-Key
// through all its attempts, so that a lost answer never makes anything happen twice.
type transport struct {
	base, prefix, token string
	http                *http.Client
	patience            time.Duration
}

// call is one logical call.
type call struct {
	doing        string // starts the message of an error
	method, path string
	document     any // sent as JSON
	body         []byte
	kind         string // of the body
	// open, instead of body, gives size bytes anew for each attempt.
	open func() (io.ReadCloser, error)
	size int64
	// wait is how much longer than usual an attempt may take; patience, if set,
	// replaces the transport's.
	wait, patience time.Duration
	// receive, instead of decoding JSON, reads the answer.
	receive func(io.Reader) error
	key     string
}

// send makes attempts until the server has answered, for good or ill, or the patience
// or the context ends.
func (t *transport) send(ctx context.Context, one call, into any) error {
	if one.method == "" {
		one.method = http.MethodGet
	}
	if one.document != nil {
		body, err := json.Marshal(one.document)
		if err != nil {
			return fmt.Errorf("tandem: %s: %w", one.doing, err)
		}
		one.body, one.kind = body, "application/json"
	}
	if one.method != http.MethodGet && one.key == "" {
		one.key = rand.Text()
	}
	patience := t.patience
	if one.patience != 0 {
		patience = one.patience
	}
	deadline := time.Now().Add(patience)
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		asked, err := t.attempt(ctx, one, into)
		if err == nil || asked == never || patience < 0 {
			return err
		}
		if ctx.Err() != nil {
			return fmt.Errorf("tandem: %s: %w (%w)", one.doing, context.Cause(ctx), err)
		}
		// Many clients that lost one server must not come back all at once.
		base := max(pause/2, asked)
		wait := base + mathrand.N(base)
		if time.Now().Add(wait).After(deadline) {
			return err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return fmt.Errorf("tandem: %s: %w (%w)", one.doing, context.Cause(ctx), err)
		}
	}
}

// never says that another attempt would end the same.
const never time.Duration = -1

// attempt makes one attempt, and returns how long the server asks to wait before the
// next one, or never.
func (t *transport) attempt(ctx context.Context, one call, into any) (time.Duration, error) {
	limited, cancel := context.WithTimeout(ctx, attemptTime+one.wait)
	defer cancel()
	request, err := t.build(limited, one)
	if err != nil {
		return never, fmt.Errorf("tandem: %s: %w", one.doing, err)
	}
	response, err := t.http.Do(request)
	if err != nil {
		return t.unanswered(one, err)
	}
	defer response.Body.Close()
	if response.StatusCode/100 != 2 {
		return again(response), problemOf(one.doing, response)
	}
	if one.receive != nil {
		err = one.receive(response.Body)
		if err == nil {
			return 0, nil
		}
		if err = fmt.Errorf("tandem: %s: %w", one.doing, err); errors.Is(err, errDamaged) {
			return never, err
		}
		return 0, err
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return t.unanswered(one, err)
	}
	if into == nil {
		return 0, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber() // an int of a space may need all its digits
	if err := decoder.Decode(into); err != nil {
		return never, fmt.Errorf("tandem: %s: the answer is not what this client understands: %w", one.doing, err)
	}
	return 0, nil
}

func (t *transport) unanswered(one call, err error) (time.Duration, error) {
	advice, wait := "", time.Duration(0)
	var untrusted *tls.CertificateVerificationError
	switch {
	case errors.As(err, &untrusted):
		advice, wait = ": copy authority.pem from the folder tls of the server's data folder, and name it with Options.CA or TANDEM_CA", never
	case errors.Is(err, http.ErrSchemeMismatch):
		advice, wait = ": it does not speak TLS; use http:// if it is on this machine, or start the server with --tls", never
	}
	return wait, &Error{Code: Unavailable, Doing: one.doing, Detail: fmt.Sprintf("%s cannot be reached: %v%s", t.base, err, advice), cause: err}
}

func (t *transport) build(ctx context.Context, one call) (*http.Request, error) {
	var content io.Reader = bytes.NewReader(one.body)
	size := int64(len(one.body))
	if one.open != nil {
		opened, err := one.open()
		if err != nil {
			return nil, err
		}
		content, size = opened, one.size
	}
	request, err := http.NewRequestWithContext(ctx, one.method, t.base+t.prefix+one.path, content)
	if err != nil {
		return nil, err
	}
	request.ContentLength = size
	if size == 0 {
		request.Body = http.NoBody
	}
	request.Header.Set("User-Agent", "tandem-go")
	for name, value := range map[string]string{"Content-Type": one.kind, "Idempotency-Key": one.key} {
		if value != "" {
			request.Header.Set(name, value)
		}
	}
	if t.token != "" {
		request.Header.Set("Authorization", "Bearer "+t.token)
	}
	return request, nil
}

// again is how long to wait before another attempt, or never if the answer was for good.
func again(response *http.Response) time.Duration {
	switch response.StatusCode {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusBadGateway, http.StatusGatewayTimeout, http.StatusInsufficientStorage:
		seconds, err := strconv.Atoi(strings.TrimSpace(response.Header.Get("Retry-After")))
		if err != nil || seconds < 0 {
			return 0
		}
		return min(time.Duration(seconds)*time.Second, longestAsked)
	}
	return never
}

// newSender is a copy of the given client, or one that trusts the authority. A redirect
// would take the token somewhere else: none is followed.
func newSender(given *http.Client, authority string) (*http.Client, error) {
	sender := http.Client{}
	if given != nil {
		sender = *given
	} else if authority != "" {
		pem, err := os.ReadFile(authority)
		if err != nil {
			return nil, fmt.Errorf("tandem: CA (or TANDEM_CA): %w; it is a copy of the file authority.pem in the folder tls of the server's data folder", err)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("tandem: CA (or TANDEM_CA) %s has no certificate: it is a copy of the file authority.pem in the folder tls of the server's data folder", authority)
		}
		sender.Transport = &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, MaxIdleConnsPerHost: 16}
	}
	sender.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &sender, nil
}

func loopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	address, err := netip.ParseAddr(host)
	return err == nil && address.Unmap().IsLoopback()
}
