package guard_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/store/memory"
	"github.com/tandem-tune/tandem/web/auth"
	"github.com/tandem-tune/tandem/web/guard"
)

// backend serves GET /open and GET /closed, and counts what reaches it.
type backend struct{ served []string }

func (b *backend) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	b.served = append(b.served, r.URL.Path)
}

func (b *backend) Find(method, path string) string {
	if method == "GET" && (path == "/api/open" || path == "/api/closed") {
		return path
	}
	return ""
}

func (b *backend) Receipt(context.Context, string, string) (json.RawMessage, bool, error) {
	return nil, false, nil
}

func (b *backend) RenewLeases(context.Context, string) {}

func TestRequestsReachTheRoutesThatAreOpenToThem(t *testing.T) {
	t.Parallel()
	store, served := memory.New(), &backend{}
	viewer, _, err := auth.Issue(t.Context(), store, auth.Request{Name: "v", Scope: auth.Viewer})
	if err != nil {
		t.Fatal(err)
	}
	handler := guard.New(guard.Config{Tokens: store}).Protect(served, []guard.Route{
		{Method: "GET", Path: "/api/open", Access: guard.Everybody}, {Method: "GET", Path: "/api/closed", Access: guard.Admins},
	})
	for _, c := range []struct {
		method, path, token string
		status              int
	}{
		{"GET", "/api/open", "", 200}, {"GET", "/api/closed", "", 401}, {"GET", "/api/closed", viewer, 403},
		{"GET", "/api/nothing", "", 401}, {"GET", "/api/nothing", viewer, 404}, {"POST", "/api/open", viewer, 405}, {"GET", "/page", "", 404},
	} {
		r := httptest.NewRequest(c.method, "http://localhost"+c.path, nil)
		if c.token != "" {
			r.Header.Set("Authorization", "Bearer "+c.token)
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code != c.status {
			t.Errorf("%s %s: %d, want %d: %s", c.method, c.path, w.Code, c.status, w.Body)
		}
	}
	if len(served.served) != 1 || served.served[0] != "/api/open" {
		t.Errorf("the backend served %v", served.served)
	}
}

func TestARouteThatNobodyMayUsePreventsTheStart(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("the guard took a route that is open to nobody")
		}
	}()
	guard.New(guard.Config{Tokens: memory.New()}).Protect(&backend{}, []guard.Route{{Method: "GET", Path: "/api/forgotten"}})
}

// cut answers with so many bytes, and breaks off.
type cut struct {
	backend
	size int
}

func (c *cut) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain")
	_, _ = io.WriteString(w, strings.Repeat("x", c.size))
	panic(http.ErrAbortHandler)
}

func TestACompressedAnswerThatIsCutShortEndsInAnError(t *testing.T) {
	t.Parallel()
	for _, size := range []int{70, 35_000, 3_500_000} {
		served := &cut{size: size}
		server := httptest.NewServer(guard.New(guard.Config{Tokens: memory.New()}).Protect(served, []guard.Route{{Method: "GET", Path: "/api/open", Access: guard.Everybody}}))
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/api/open", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.AddCookie(auth.NewCookie("secret", false))
		response, err := server.Client().Do(r)
		if err == nil { // the beginning came
			_, err = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
		}
		if err == nil {
			t.Errorf("a part of %d bytes looks like the whole", size)
		}
		server.Close()
	}
}
