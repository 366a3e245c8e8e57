package rest_test

import (
	"crypto/x509"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/internal/problem"
)

// encrypted is a server with TLS, or without, that counts what reaches it.
func encrypted(t *testing.T, withTLS bool) (*httptest.Server, *atomic.Int64) {
	t.Helper()
	var reached atomic.Int64
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		reached.Add(1)
		io.WriteString(w, `{"status":"ok"}`)
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // it says that nobody believes it
	if withTLS {
		server.StartTLS()
	} else {
		server.Start()
	}
	t.Cleanup(server.Close)
	return server, &reached
}

func TestOnlyTheGivenAuthorityIsTrusted(t *testing.T) {
	t.Parallel()
	server, reached := encrypted(t, true)
	trusted, other := x509.NewCertPool(), x509.NewCertPool()
	trusted.AddCert(server.Certificate())
	call := func(options rest.Options) error {
		t.Helper()
		options.Token, options.Patience = "secret", time.Minute
		client, err := rest.New(options)
		if err != nil {
			t.Fatal(err)
		}
		return client.Health(t.Context())
	}
	if err := call(rest.Options{URL: server.URL, Authorities: trusted}); err != nil || reached.Load() != 1 {
		t.Fatalf("with its authority: %v, reached %d times", err, reached.Load())
	}
	began := time.Now()
	for name, c := range map[string]struct {
		options rest.Options
		says    string
	}{
		"with another authority": {rest.Options{URL: server.URL, Authorities: other, AuthorityFile: "old.pem"}, "no authority in old.pem"},
		"with the machine's":     {rest.Options{URL: server.URL}, "--ca FILE"},
		"by another name":        {rest.Options{URL: strings.Replace(server.URL, "127.0.0.1", "localhost", 1), Authorities: trusted}, "another name"},
		"in plain text":          {rest.Options{URL: strings.Replace(server.URL, "https", "http", 1)}, "use https://"},
	} {
		if err := call(c.options); !problem.Is(err, problem.Unavailable) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	plain, _ := encrypted(t, false)
	if err := call(rest.Options{URL: strings.Replace(plain.URL, "http", "https", 1)}); !problem.Is(err, problem.Unavailable) || !strings.Contains(err.Error(), "does not speak TLS") {
		t.Errorf("TLS to a server without: %v", err)
	}
	if reached.Load() != 1 {
		t.Errorf("a call reached a server that is not believed")
	}
	if took := time.Since(began); took > 50*time.Second {
		t.Errorf("what no further attempt can change was tried again for %v", took)
	}
}

// TestAuthoritiesAreReadAgain: a client that runs for long meets a server with another
// authority, and trusts it as soon as its file does.
func TestAuthoritiesAreReadAgain(t *testing.T) {
	t.Parallel()
	server, reached := encrypted(t, true)
	other, trusted := x509.NewCertPool(), x509.NewCertPool()
	trusted.AddCert(server.Certificate())
	file, unread := other, error(nil)
	client, err := rest.New(rest.Options{URL: server.URL, Token: "secret", Authorities: other, Patience: -1,
		Reread: func() (*x509.CertPool, error) { return file, unread }})
	if err != nil {
		t.Fatal(err)
	}
	call := func(believed bool, of string) {
		t.Helper()
		if err := client.Health(t.Context()); (err == nil) != believed {
			t.Errorf("%s: %v", of, err)
		}
	}
	call(false, "with another authority")
	file, unread = nil, problem.New(problem.Invalid, "half written")
	call(false, "while the file cannot be read")
	if err := client.Health(t.Context()); err == nil || !strings.Contains(err.Error(), "read again, it cannot be used: half written") {
		t.Errorf("while the file cannot be read: %v", err)
	}
	file, unread = trusted, nil
	call(false, "in the attempt that reads the file")
	call(true, "in the next")
	file = other // read only when a certificate is refused
	call(true, "in the one after it")
	if reached.Load() != 2 {
		t.Errorf("%d calls reached the server", reached.Load())
	}
}
