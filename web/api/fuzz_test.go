package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/web/api"
	"github.com/tandem-tune/tandem/web/auth"
)

// fuzzed is a stage without a port that has a study, a worker and a lease.
func fuzzed(f *testing.F) (s *stage, lease string) {
	f.Helper()
	s = build(f, func(c *api.Config) { c.Logger = slog.New(slog.DiscardHandler) })
	study := s.stored()
	s.introduce()
	got := s.direct(f, &http.Request{
		Method: "POST", URL: &url.URL{Path: "/api/v1/leases"}, Header: http.Header{"Authorization": {"Bearer " + s.secrets[auth.Worker]}},
		Body: io.NopCloser(strings.NewReader(`{"worker":"worker-0001"}`)), ContentLength: 24,
	})
	if got.status != 200 {
		f.Fatalf("%d %s", got.status, got.body)
	}
	return s, study + "-0"
}

// direct calls the handler without a network, and checks what holds for every
// answer: no failure of ours, and every refusal is a problem document.
func (s *stage) direct(t testing.TB, r *http.Request) answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond) // for long polls and event streams
	defer cancel()
	if r.Host == "" {
		r.Host = "localhost"
	}
	recorder := httptest.NewRecorder()
	s.handler.ServeHTTP(recorder, r.WithContext(ctx))
	got := answer{recorder.Code, recorder.Header(), recorder.Body.Bytes()}
	if got.status >= 500 && ctx.Err() == nil {
		t.Fatalf("%s %s: %d %s", r.Method, r.URL, got.status, got.body)
	}
	if got.status >= 400 && r.Method != http.MethodHead {
		var told document
		if got.header.Get("Content-Type") != "application/problem+json" || json.Unmarshal(got.body, &told) != nil || told.Status != got.status || told.Code == "" {
			t.Fatalf("%s %s is refused without a problem: %d %s", r.Method, r.URL, got.status, got.body)
		}
	}
	return got
}

// FuzzClosed looks for a way in without a token.
func FuzzClosed(f *testing.F) {
	s, _ := fuzzed(f)
	for path, operations := range s.publishedBy(f) {
		for method := range operations {
			f.Add(strings.ToUpper(method), concrete(path), "", "localhost")
		}
	}
	for _, path := range []string{"/", "/login", "/assets/../studies", "/api/v1//studies", "/api/v1/studies/%2e%2e", "/API/v1/studies", "/healthz/../api/v1/studies", "/assets/%2e%2e/x"} {
		f.Add("GET", path, "tandem_session=x", "127.0.0.1:7171")
	}
	f.Fuzz(func(t *testing.T, method, target, cookie, host string) {
		at, err := url.ParseRequestURI(target)
		if err != nil || at.Host != "" {
			t.Skip()
		}
		got := s.direct(t, &http.Request{Method: method, URL: at, Host: host, Header: http.Header{"Cookie": {cookie}}, Body: http.NoBody})
		public := at.Path == "/login" || strings.HasPrefix(at.Path, "/assets/") || at.Path == "/healthz" || at.Path == "/readyz" || at.Path == "/api/v1/openapi.json" || at.Path == "/api/v1/session/provider"
		if got.status < 300 && !public {
			t.Fatalf("%s %q is answered with %d to anybody", method, target, got.status)
		}
	})
}

func (s *stage) publishedBy(f *testing.F) map[string]map[string]operation {
	f.Helper()
	got := s.direct(f, &http.Request{Method: "GET", URL: &url.URL{Path: "/api/v1/openapi.json"}, Header: http.Header{}, Body: http.NoBody})
	var document struct {
		Paths map[string]map[string]operation `json:"paths"`
	}
	if err := json.Unmarshal(got.body, &document); err != nil {
		f.Fatal(err)
	}
	return document.Paths
}

// FuzzBody sends bodies to the calls that take one. What is accepted must mean
// the same to a strict parser.
func FuzzBody(f *testing.F) {
	s, lease := fuzzed(f)
	paths := []string{
		"/api/v1/trials/" + lease + "/reports", "/api/v1/trials/" + lease + "/checkpoint", "/api/v1/trials/" + lease + "/finish",
		"/api/v1/trials/" + lease + "/architecture", "/api/v1/trials/" + lease + "/inferences",
		"/api/v1/trials/" + lease + "/log", "/api/v1/workers", "/api/v1/workers/" + workerID + "/heartbeat", "/api/v1/leases", "/api/v1/tokens", "/api/v1/session",
	}
	for i, body := range []string{
		`{"lease_epoch":1,"epoch":1,"metrics":{"loss":"NaN"},"seconds":1,"energy":{"joules":1,"method":"rapl"}}`,
		`{"lease_epoch":1,"epoch":1,"artifact":"` + strings.Repeat("0", 64) + `","bytes":1}`, `{"lease_epoch":1,"outcome":"failed","reason":"x"}`,
		`{"lease_epoch":1,"offset":0,"text":"line\n"}`, `{"id":"worker-0001","name":"x","slots":1,"machine":{"host":"h","cores":1}}`,
		`{"leases":[{"trial_id":"x-1","lease_epoch":1}]}`, `{"worker":"worker-0001"}`, `{"name":"x","scope":"viewer"}`, `{"token":"x"}`,
	} {
		f.Add(uint8(i), body, "application/json", "")
	}
	f.Add(uint8(0), `{"Lease_epoch":1,"lease_epoch":2}`, "x+application/json", "key")
	f.Add(uint8(6), "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", "", "two words")
	f.Fuzz(func(t *testing.T, which uint8, body, kind, key string) {
		path := paths[int(which)%len(paths)]
		header := http.Header{"Authorization": {"Bearer " + s.secrets[auth.Admin]}, "Content-Type": {kind}}
		if key != "" {
			header.Set("Idempotency-Key", key)
		}
		got := s.direct(t, &http.Request{
			Method: "POST", URL: &url.URL{Path: path}, Header: header,
			Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
		})
		if got.status >= 300 {
			return
		}
		var value map[string]any
		if err := json.Unmarshal([]byte(body), &value); err != nil {
			t.Fatalf("%s accepts %q: %v", path, body, err)
		}
		if kept, written := members(value), names(t, body); kept != written {
			t.Fatalf("%s accepts %q with %d names, of which %d are different", path, body, written, kept)
		}
	})
}

// members counts the members of all objects in a value.
func members(value any) int {
	count := 0
	switch value := value.(type) {
	case []any:
		for _, element := range value {
			count += members(element)
		}
	case map[string]any:
		for _, element := range value {
			count += 1 + members(element)
		}
	}
	return count
}

// names counts the names that are written in a JSON text: the strings that a
// colon follows.
func names(t *testing.T, text string) int {
	t.Helper()
	count := 0
	decoder := json.NewDecoder(strings.NewReader(text))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return count
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := token.(string); ok && strings.HasPrefix(strings.TrimLeft(text[decoder.InputOffset():], " \t\r\n"), ":") {
			count++
		}
	}
}

// FuzzQuery sends queries and headers to the calls that read.
func FuzzQuery(f *testing.F) {
	s, _ := fuzzed(f)
	for _, query := range []string{"state=running,paused&rung=1&sort=value&order=desc&limit=5&offset=1", "format=csv", "format=json", "after=1", "limit=%zz", "sort=rank;x", "a=1&a=2"} {
		f.Add(query, "small", "0", "1")
	}
	f.Fuzz(func(t *testing.T, query, study, number, last string) {
		for _, path := range []string{"", "/trials", "/trials/" + number, "/trials/" + number + "/log", "/export", "/recommendation"} {
			at := &url.URL{Path: "/api/v1/studies/" + study + path, RawQuery: query}
			if strings.Contains(at.Path, "/events") {
				continue
			}
			header := http.Header{"Authorization": {"Bearer " + s.secrets[auth.Viewer]}, "Last-Event-Id": {last}}
			s.direct(t, &http.Request{Method: "GET", URL: at, Header: header, Body: http.NoBody})
		}
	})
}
