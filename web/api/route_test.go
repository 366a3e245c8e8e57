package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/web/api"
	"github.com/tandem-tune/tandem/web/auth"
	"github.com/tandem-tune/tandem/web/limit"
)

// TestRoutesFuzzed reads our own OpenAPI document and sends each operation what
// it asks for, what is at its bounds, and what it says it refuses: wrong types,
// missing, further and huge fields, injections, broken Unicode and JSON. Then
// it holds the server to the document:
//
//   - nothing is answered with a failure of ours, and every refusal is a problem;
//   - who has no token, or one of another scope, is refused, whatever is sent;
//   - what the document calls invalid is never accepted;
//   - what comes back is what the document says;
//   - a call that is repeated with its key gets the same answer again.
//
// It runs for 3 seconds, or for TANDEM_FUZZ_TIME (10m), from the seed in
// TANDEM_FUZZ_SEED. A failure names the seed and shows the request.
func TestRoutesFuzzed(t *testing.T) {
	t.Parallel()
	span, seed := 3*time.Second, uint64(1)
	var err error
	if given := os.Getenv("TANDEM_FUZZ_TIME"); given != "" {
		if span, err = time.ParseDuration(given); err != nil {
			t.Fatal(err)
		}
	}
	if given := os.Getenv("TANDEM_FUZZ_SEED"); given != "" {
		if seed, err = strconv.ParseUint(given, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	const visits = 300 // of one server: later ones meet what earlier ones did
	began, sent := time.Now(), 0
	for round := uint64(0); !t.Failed() && (round == 0 || time.Since(began) < span); round++ {
		f := newRouteFuzzer(t, seed, round)
		for i := range visits {
			if t.Failed() || round > 0 && time.Since(began) >= span {
				break
			}
			f.visit(f.operations[(i+int(round)*visits)%len(f.operations)])
		}
		sent += f.sent
	}
	t.Logf("%d requests from seed %d", sent, seed)
}

// routeFuzzer is one server with what was learned of it.
type routeFuzzer struct {
	t          testing.TB
	seed       uint64
	random     *rand.Rand
	stage      *stage
	contract   contract
	operations []*described
	// known are values that mean something to this server, by the name of the
	// field or parameter.
	known map[string][]any
	sent  int
}

func newRouteFuzzer(t *testing.T, seed, round uint64) *routeFuzzer {
	t.Helper()
	s := build(t, func(c *api.Config) {
		c.Logger, c.Limits = slog.New(slog.DiscardHandler), limit.PerSecond{Requests: -1, Points: -1}
	})
	f := &routeFuzzer{t: t, seed: seed, random: rand.New(rand.NewPCG(seed, round)), stage: s}
	study := s.stored()
	s.introduce()
	blob := "weights"
	f.known = map[string][]any{
		"study": {study, "small"}, "worker": {workerID}, "id": {workerID}, "trial": {study + "-0", study + "-1"}, "trial_id": {study + "-0"},
		"number": {0.0, 1.0}, "lease_epoch": {1.0, 2.0}, "epoch": {1.0, 2.0, 3.0}, "sha256": {hashOf([]byte(blob))}, "artifact": {hashOf([]byte(blob))},
		"bytes": {float64(len(blob))}, "wait_seconds": {0.0, 0.01}, "scope": {"worker", "viewer"}, "link": {"none"}, "add_tags": {[]any{"baseline"}}, "token": {"none", s.secrets[auth.Viewer]},
		"metrics": {map[string]any{"loss": 0.5}, map[string]any{"loss": "NaN"}}, "outcome": {"budget_reached", "failed", "given_back"},
		"offset": {0.0, 7.0}, "limit": {1.0, 10.0, 1000.0}, "configurations": {[]any{map[string]any{"rate": 0.1, "kind": "sgd"}}},
	}
	f.read()
	put := f.send(&described{method: "PUT", path: "/api/v1/artifacts/" + hashOf([]byte(blob))}, "/api/v1/artifacts/"+hashOf([]byte(blob)), http.Header{"Authorization": {"Bearer " + s.secrets[auth.Worker]}}, []byte(blob))
	lease, err := s.studies.Lease(t.Context(), protocol.LeaseRequest{Worker: workerID})
	if put.status != 204 || err != nil || lease.Lease == nil {
		t.Fatalf("%d %s, %+v: %v", put.status, put.body, lease, err)
	}
	return f
}

// read reads the document from the server itself.
func (f *routeFuzzer) read() {
	f.t.Helper()
	got := f.send(&described{method: "GET", path: "/api/v1/openapi.json"}, "/api/v1/openapi.json", http.Header{}, nil)
	if err := json.Unmarshal(got.body, &f.contract); err != nil {
		f.t.Fatal(err)
	}
	for _, path := range slices.Sorted(maps.Keys(f.contract.Paths)) {
		for _, method := range slices.Sorted(maps.Keys(f.contract.Paths[path])) {
			one := f.contract.Paths[path][method]
			one.method, one.path = strings.ToUpper(method), path
			f.operations = append(f.operations, one)
		}
	}
	if len(f.operations) < 40 {
		f.t.Fatalf("the document has %d operations", len(f.operations))
	}
}

// visit sends an operation one request, valid or not, and judges the answer.
func (f *routeFuzzer) visit(one *described) {
	request := f.compose(one)
	secret, allowed := f.credential(one)
	header := request.header.Clone()
	if secret != "" {
		header.Set("Authorization", "Bearer "+secret)
	}
	got := f.send(one, request.target, header, request.body)
	if f.t.Failed() {
		return
	}
	public := len(one.Scopes) == 0
	switch {
	case got.status == 503: // it waited longer than we do
	case !public && secret == "" && got.status != 401:
		f.fail(one, request, got, "needs a token")
	case !public && secret != "" && !allowed && got.status != 403:
		f.fail(one, request, got, "is not for this token")
	case one.path == "/api/v1/preview" && got.status == 200 && bytes.HasPrefix(got.body, []byte(`{"faults":[{`)): // it answers with what it refuses
		f.conforms(one, request, got)
	case got.status < 300 && len(request.faults) > 0:
		f.fail(one, request, got, "accepts what the document calls invalid: %v", request.faults)
	case got.status < 300:
		f.conforms(one, request, got)
		f.repeat(one, request, header, got)
	}
}

// credential draws a token, and says whether it opens the operation.
func (f *routeFuzzer) credential(one *described) (secret string, allowed bool) {
	if f.random.IntN(8) == 0 {
		return "", false
	}
	scopes := auth.Scopes()
	scope := scopes[f.random.IntN(len(scopes))]
	if len(one.Scopes) > 0 && f.random.IntN(8) != 0 {
		scope = auth.Scope(one.Scopes[f.random.IntN(len(one.Scopes))])
	}
	if one.method == "DELETE" && one.path == "/api/v1/session" && scope == auth.User { // it ends the token
		return f.stage.another(scope), true
	}
	return f.stage.secrets[scope], slices.Contains(one.Scopes, string(scope))
}

// conforms holds a success to the document.
func (f *routeFuzzer) conforms(one *described, request composed, got answer) {
	described, known := one.Responses[strconv.Itoa(got.status)]
	if !known && !(one.path == "/api/v1/studies" && got.status == 200) { // the plan of a dry run
		f.fail(one, request, got, "the document does not say that it may be answered so")
		return
	}
	content, isJSON := described.Content["application/json"]
	if !isJSON || content.Schema == nil || got.header.Get("Content-Type") != "application/json" {
		return
	}
	var value any
	if err := json.Unmarshal(got.body, &value); err != nil {
		f.fail(one, request, got, "the answer is no JSON: %v", err)
		return
	}
	if faults := f.faults(content.Schema, value, "answer"); len(faults) > 0 {
		f.fail(one, request, got, "the answer is not what the document says: %v", faults)
	}
}

// repeat sends a call that was accepted again, if it had a key.
func (f *routeFuzzer) repeat(one *described, request composed, header http.Header, first answer) {
	if header.Get("Idempotency-Key") == "" || one.method == "GET" || !one.takes("Idempotency-Key") {
		return
	}
	again := f.send(one, request.target, header, request.body)
	if again.status != first.status && !(one.path == "/api/v1/studies" && first.status == 200) || !equalJSON(again.body, first.body) {
		f.fail(one, request, again, "a repetition is answered otherwise than %d %s", first.status, first.body)
	}
}

func (d *described) takes(parameter string) bool {
	for _, one := range d.Parameters {
		if one.Name == parameter {
			return true
		}
	}
	return false
}

func equalJSON(a, b []byte) bool {
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return bytes.Equal(a, b)
	}
	one, errOne := json.Marshal(x)
	other, errOther := json.Marshal(y)
	return errOne == nil && errOther == nil && bytes.Equal(one, other)
}

// send calls the handler, and checks what holds for every answer.
func (f *routeFuzzer) send(one *described, target string, header http.Header, body []byte) answer {
	f.t.Helper()
	patience := 20 * time.Second
	if strings.HasSuffix(one.path, "/events") || one.path == "/api/v1/leases" {
		patience = 20 * time.Millisecond // they wait for what may never come
	}
	ctx, cancel := context.WithTimeout(f.t.Context(), patience)
	defer cancel()
	at, err := url.ParseRequestURI(target)
	if err != nil {
		f.t.Fatalf("%s: %v", target, err)
	}
	r := &http.Request{Method: one.method, URL: at, Host: "localhost", Header: header, Body: http.NoBody, ContentLength: int64(len(body)), RemoteAddr: "127.0.0.1:1"}
	if len(body) > 0 {
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	recorder := httptest.NewRecorder()
	f.stage.handler.ServeHTTP(recorder, r.WithContext(ctx))
	f.sent++
	got := answer{recorder.Code, recorder.Header(), recorder.Body.Bytes()}
	request := composed{target: target, header: header, body: body}
	var told document
	switch {
	case got.status >= 500 && (got.status != 503 || ctx.Err() == nil):
		f.fail(one, request, got, "fails")
	case got.status >= 400 && one.method != "HEAD" && (got.header.Get("Content-Type") != "application/problem+json" || json.Unmarshal(got.body, &told) != nil || told.Status != got.status || told.Code == "" || told.Detail == ""):
		f.fail(one, request, got, "is refused without a problem")
	case got.header.Get("X-Content-Type-Options") != "nosniff" || got.header.Get("Content-Security-Policy") == "":
		f.fail(one, request, got, "is answered without the headers that keep browsers safe")
	}
	return got
}

func (f *routeFuzzer) fail(one *described, request composed, got answer, format string, args ...any) {
	f.t.Helper()
	f.t.Errorf("seed %d: %s %s\n%s %s\nheader %q\nbody %.2000q\nanswer %d %.1000s", f.seed, one, fmt.Sprintf(format, args...),
		one.method, request.target, request.header, request.body, got.status, got.body)
}
