package api_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/web/api"
	"github.com/tandem-tune/tandem/web/auth"
	"github.com/tandem-tune/tandem/web/standby"
)

const peerSecret = "between servers"

// withStandby is a stage that is reached through a server that stands by, and
// that server.
func withStandby(t *testing.T) (*stage, *standby.Server) {
	t.Helper()
	s := newStage(t, func(c *api.Config) { c.PeerSecret = peerSecret })
	owner := s.server
	t.Cleanup(func() {
		owner.CloseClientConnections()
		owner.Close()
	})
	second := standby.New(standby.Config{})
	second.Follow(standby.Owner{URL: owner.URL, Secret: peerSecret})
	front := httptest.NewUnstartedServer(second)
	front.Config = api.NewHTTPServer("", second, slog.New(slog.DiscardHandler))
	front.Start()
	t.Cleanup(func() {
		front.CloseClientConnections()
		front.Close()
	})
	s.server = front
	return s, second
}

func TestEverythingGoesThroughAServerThatStandsBy(t *testing.T) {
	t.Parallel()
	s, _ := withStandby(t)
	view := s.create()
	worker := s.worker()
	lease := s.lease(worker)
	events := make(chan protocol.Event, 100)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() {
		for event, err := range s.events(ctx, auth.Viewer, view.ID, 0) {
			if err != nil {
				return
			}
			events <- event
		}
	}()
	<-events // the stream is open
	s.train(worker, lease, 0.5)
	for kind := ""; kind != "report"; {
		select {
		case event := <-events:
			kind = event.Kind
		case <-time.After(5 * time.Minute):
			t.Fatal("no report comes through")
		}
	}
	for _, size := range []int{0, 10, 100 << 10, 3 << 20} {
		data := bytes.Repeat([]byte("w"), size)
		for range 2 { // the second time it is there
			if err := worker.PutArtifact(t.Context(), hashOf(data), int64(size), opener(data)); err != nil {
				t.Fatal(err)
			}
		}
		stream, err := s.client(auth.Admin).Artifact(t.Context(), hashOf(data)) // of no trial: a worker does not see it
		if err != nil {
			t.Fatal(err)
		}
		if back, err := io.ReadAll(stream); err != nil || !bytes.Equal(back, data) {
			t.Errorf("%d bytes came back as %d others, %v", size, len(back), err)
		}
		stream.Close()
	}
	page := s.do(withCookie("GET", "/studies", s.signIn(auth.Viewer)))
	if page.status != 200 || string(page.body) != "page /studies" || len(page.header.Values("Content-Security-Policy")) != 1 {
		t.Errorf("a page is %d %s, with the policies %v", page.status, page.body, page.header.Values("Content-Security-Policy"))
	}
	for _, a := range []ask{{path: "/api/v1/studies"}, {path: "/api/v1/studies", token: s.secrets[auth.Worker]}, {path: "/nothing"}} {
		a.method = "GET"
		if got := s.do(a); got.status != 401 && got.status != 403 && got.status != 303 {
			t.Errorf("%s with token %q: %d %s", a.path, a.token, got.status, got.body)
		}
	}
}

// TestAKeyHoldsWhicheverServerIsAsked repeats a call at the other server.
func TestAKeyHoldsWhicheverServerIsAsked(t *testing.T) {
	t.Parallel()
	s, _ := withStandby(t)
	s.create()
	front := s.server
	first := s.admin("POST", "/api/v1/studies/small/pause", "", "Idempotency-Key", "k1")
	s.server = &httptest.Server{URL: "http://" + ownerOf(t, s)}
	second := s.admin("POST", "/api/v1/studies/small/pause", "", "Idempotency-Key", "k1")
	s.server = front
	third := s.admin("POST", "/api/v1/studies/small/pause", "", "Idempotency-Key", "k2")
	if first.status != 200 || second.status != 200 || second.header.Get("Idempotency-Replayed") != "true" || string(first.body) != string(second.body) {
		t.Errorf("%d %s, then %d %s", first.status, first.body, second.status, second.body)
	}
	third.problem(t, 409, problem.Conflict)
}

// ownerOf starts a second listener for the stage's own handler.
func ownerOf(t *testing.T, s *stage) string {
	t.Helper()
	direct := httptest.NewServer(s.handler)
	t.Cleanup(direct.Close)
	return direct.Listener.Addr().String()
}

func TestAServerThatStandsByRefusesWhatItsOwnerCouldNotSee(t *testing.T) {
	t.Parallel()
	s, _ := withStandby(t)
	s.admin("GET", "/api/v1/studies", "", "Host", "evil.test").problem(t, 403, problem.Forbidden)
	s.admin("POST", "/api/v1/studies/x/stop", "", "Origin", "http://evil.test", "Sec-Fetch-Site", "cross-site").problem(t, 403, problem.Forbidden)
	// A page of the server that was asked is no stranger, though the owner has another name.
	s.admin("POST", "/api/v1/studies/x/stop", "", "Origin", s.server.URL, "Sec-Fetch-Site", "same-origin").problem(t, 404, problem.NotFound)
}

func TestWithoutAnOwnerCallersAreToldToComeBack(t *testing.T) {
	t.Parallel()
	s, second := withStandby(t)
	owner := ownerOf(t, s)
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for name, url := range map[string]string{"nobody": "", "one that is dead": gone.URL, "no address": "here"} {
		second.Follow(standby.Owner{URL: url, Secret: peerSecret})
		got := s.admin("GET", "/api/v1/studies", "")
		got.problem(t, 503, problem.Unavailable)
		if got.header.Get("Retry-After") != "1" || got.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: the headers are %v", name, got.header)
		}
	}
	second.Follow(standby.Owner{URL: "http://" + owner, Secret: peerSecret})
	if got := s.admin("GET", "/api/v1/studies", ""); got.status != 200 {
		t.Errorf("with an owner again: %d %s", got.status, got.body)
	}
	// Two servers that take each other for the owner do not pass a request on for ever.
	second.Follow(standby.Owner{URL: s.server.URL, Secret: peerSecret})
	s.admin("GET", "/api/v1/studies", "").problem(t, 503, problem.Unavailable)
}

// TestCallsUnderWayEndWithTheirOwner replaces the owner while a worker waits
// for a trial.
func TestCallsUnderWayEndWithTheirOwner(t *testing.T) {
	t.Parallel()
	s, second := withStandby(t)
	s.introduce()
	ended := make(chan error, 1)
	began := make(chan struct{})
	client, err := rest.New(rest.Options{URL: s.server.URL, Token: s.secrets[auth.Worker], Patience: -1, HTTPClient: &http.Client{Transport: told{began}}})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		_, err := client.Lease(t.Context(), protocol.LeaseRequest{Worker: workerID, WaitSeconds: 60})
		ended <- err
	}()
	<-began
	asked := time.Now()
	owner := "http://" + ownerOf(t, s)
	for round, done := 0, false; !done; round++ { // until the call has got to an owner and ended with it
		second.Follow(standby.Owner{URL: owner, Secret: fmt.Sprint(round)})
		select {
		case err := <-ended:
			done = true
			if !problem.Is(err, problem.Unavailable) {
				t.Errorf("the call ended with %v", err)
			}
		case <-time.After(20 * time.Millisecond):
		}
	}
	if took := time.Since(asked); took > 50*time.Second {
		t.Errorf("it ended after %v, which is when it would have ended by itself", took)
	}
}

// told says when a request is sent.
type told struct{ began chan struct{} }

func (s told) RoundTrip(r *http.Request) (*http.Response, error) {
	close(s.began)
	return http.DefaultTransport.RoundTrip(r)
}

// TestOnlyAnotherServerIsBelievedWhereARequestComesFrom counts wrong tokens by
// who sent them.
func TestOnlyAnotherServerIsBelievedWhereARequestComesFrom(t *testing.T) {
	t.Parallel()
	s := newStage(t, func(c *api.Config) { c.PeerSecret = peerSecret })
	attempt := func(secret, from string) int {
		return s.do(ask{
			method: "POST", path: "/api/v1/session", body: `{"token":"tandem_admin_x_y_z"}`,
			header: map[string]string{"Tandem-Peer": secret, "Tandem-Peer-For": from},
		}).status
	}
	for range 10 {
		attempt(peerSecret, "192.0.2.1:9")
	}
	for _, c := range []struct {
		secret, from string
		want         int
	}{
		{peerSecret, "192.0.2.1:1", 429}, {peerSecret, "192.0.2.2:1", 401}, {"a guess", "192.0.2.1:1", 401}, {"", "192.0.2.1:1", 401},
	} {
		if got := attempt(c.secret, c.from); got != c.want {
			t.Errorf("from %s, shown %q: %d, want %d", c.from, c.secret, got, c.want)
		}
	}
	for i := range 10 {
		attempt("a guess", fmt.Sprintf("192.0.2.%d:1", i))
	}
	if got := attempt("a guess", "192.0.2.99:1"); got != 429 {
		t.Errorf("who claims to be somebody else each time is told %d", got)
	}
	alone := newStage(t)
	for range 11 {
		alone.do(ask{method: "POST", path: "/api/v1/session", body: `{"token":"x"}`, header: map[string]string{"Tandem-Peer": "", "Tandem-Peer-For": "192.0.2.1:1"}})
	}
	if got := alone.do(ask{method: "POST", path: "/api/v1/session", body: `{"token":"x"}`}); got.status != 429 {
		t.Errorf("a server without peers believes an empty secret: %d", got.status)
	}
}
