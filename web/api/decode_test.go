package api_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/web/api"
	"github.com/tandem-tune/tandem/web/auth"
	"github.com/tandem-tune/tandem/web/usecases"
)

func TestBadBodiesAreToldWhatIsWrong(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.create()
	worker := s.worker()
	lease := s.lease(worker)
	reports := fmt.Sprintf("/api/v1/trials/%s/reports", lease.Trial)
	for _, c := range []struct {
		name, path, body string
		status           int
		at, says         string
	}{
		{"no body", reports, "", 400, "", ""},
		{"not JSON", reports, "{", 400, "body", "ends too early"},
		{"half a word", reports, `{"lease_epoch": tru}`, 400, "lease_epoch", "is not JSON"},
		{"something behind", reports, `{"lease_epoch":1,"epoch":1,"metrics":{"loss":1}} {}`, 400, "body", "behind its end"},
		{"a name twice", reports, `{"lease_epoch":1,"epoch":1,"epoch":2,"metrics":{"loss":1}}`, 400, "epoch", "twice"},
		{"a metric twice", reports, `{"lease_epoch":1,"epoch":1,"metrics":{"loss":1,"loss":2}}`, 400, "metrics.loss", "twice"},
		{"an escaped name twice", reports, `{"lease_epoch":1,"epoch":1,"metrics":{"loss":1,"\u006coss":2}}`, 400, "metrics.loss", "twice"},
		{"not UTF-8", reports, "{\"lease_epoch\":1,\"epoch\":1,\"metrics\":{\"lo\xffss\":1}}", 400, "body", "UTF-8"},
		{"too deep", reports, `{"lease_epoch":` + strings.Repeat("[", 40) + strings.Repeat("]", 40) + `}`, 400, "lease_epoch" + strings.Repeat("[0]", 31), "deeper"},
		{"half a character", reports, `{"lease_epoch":1,"epoch":1,"metrics":{"lo\ud83dss":1}}`, 400, "metrics.lo\uFFFDss", "surrogate"},
		{"the other half", "/api/v1/tokens", `{"name":"\ude00\ud83d","scope":"viewer"}`, 400, "name", "surrogate"},
		{"a half behind a backslash", "/api/v1/tokens", `{"name":"\\\\\ud83d\n","scope":"viewer"}`, 400, "name", "surrogate"},
		{"a NUL", "/api/v1/tokens", `{"name":"a\u0000b","scope":"viewer"}`, 400, "name", "NUL"},
		{"a NUL in a name", reports, `{"lease_epoch":1,"epoch":1,"metrics":{"lo\u0000ss":1}}`, 400, "metrics.lo\x00ss", "NUL"},
		{"bare NaN", reports, `{"lease_epoch":1,"epoch":1,"metrics":{"loss":NaN}}`, 400, "metrics.loss", "is not JSON"},
		{"beyond a float", reports, `{"lease_epoch":1,"epoch":1,"metrics":{"loss":1e999}}`, 400, "metrics.loss", "1e999"},
		{"a list", reports, `[]`, 422, "body", "must be an object"},
		{"unknown field", reports, `{"lease_epoch":1,"epoch":1,"metrics":{"loss":1},"speed":2}`, 422, "speed", "not a field"},
		{"wrong case", reports, `{"Lease_Epoch":1,"epoch":1,"metrics":{"loss":1}}`, 422, "Lease_Epoch", "write lease_epoch"},
		{"missing field", reports, `{"lease_epoch":1,"metrics":{"loss":1}}`, 422, "epoch", "is missing"},
		{"text for a number", reports, `{"lease_epoch":1,"epoch":"1","metrics":{"loss":1}}`, 422, "epoch", "must be an integer"},
		{"a fraction", reports, `{"lease_epoch":1,"epoch":1.5,"metrics":{"loss":1}}`, 422, "epoch", "must be an integer"},
		{"beyond an integer", reports, `{"lease_epoch":1e30,"epoch":1,"metrics":{"loss":1}}`, 422, "body", "lease_epoch"},
		{"too small", reports, `{"lease_epoch":0,"epoch":0,"metrics":{"loss":1}}`, 422, "epoch", "must be a number >= 1"},
		{"no metrics", reports, `{"lease_epoch":1,"epoch":1,"metrics":{}}`, 422, "metrics", "at least 1"},
		{"null metric", reports, `{"lease_epoch":1,"epoch":1,"metrics":{"loss":null}}`, 422, "metrics.loss", `"NaN"`},
		{"text metric", reports, `{"lease_epoch":1,"epoch":1,"metrics":{"loss":"nan"}}`, 422, "metrics.loss", `"NaN"`},
		{"object metric", reports, `{"lease_epoch":1,"epoch":1,"metrics":{"loss":{"v":1}}}`, 422, "metrics.loss", `"NaN"`},
		{"bad outcome", fmt.Sprintf("/api/v1/trials/%s/finish", lease.Trial), `{"lease_epoch":1,"outcome":"fine"}`, 422, "outcome", "one of"},
		{"bad hash", fmt.Sprintf("/api/v1/trials/%s/checkpoint", lease.Trial), `{"lease_epoch":1,"epoch":1,"artifact":"../../etc","bytes":1}`, 422, "artifact", "pattern"},
		{"bad worker id", "/api/v1/workers", `{"id":"a b","name":"x","slots":1,"machine":{"host":"h","cores":1}}`, 422, "id", "length"},
		{"nested field", "/api/v1/workers", `{"id":"aaaaaaaaaa","name":"x","slots":1,"machine":{"host":"h","cores":-1}}`, 422, "machine.cores", ">= 0"},
		{"field in a list", "/api/v1/workers/" + workerID + "/heartbeat", `{"leases":[{"trial_id":7,"lease_epoch":1}]}`, 422, "leases[0].trial_id", "must be a string"},
		{"wrong case in a list", "/api/v1/workers/" + workerID + "/heartbeat", `{"leases":[{"Trial_ID":"x","lease_epoch":1}]}`, 422, "leases[0].Trial_ID", "write trial_id"},
		{"too patient", "/api/v1/leases", `{"worker":"worker-0001","wait_seconds":61}`, 422, "wait_seconds", "<= 60"},
		{"unknown scope", "/api/v1/tokens", `{"name":"x","scope":"root"}`, 422, "scope", "one of"},
	} {
		t.Run(c.name, func(t *testing.T) {
			told := s.admin("POST", c.path, c.body).problem(t, c.status, problem.Invalid)
			if c.at != "" && !told.has(c.at, c.says) {
				t.Errorf("no fault at %s that says %q: %+v", c.at, c.says, told)
			}
			for i, field := range told.Errors {
				for _, other := range told.Errors[:i] {
					if other.Path == field.Path && other.Message == field.Message {
						t.Errorf("told twice: %+v", field)
					}
				}
			}
		})
	}
	detail, err := s.client(auth.Admin).Trial(t.Context(), "small", lease.Number)
	if err != nil || len(detail.Reports) != 0 {
		t.Fatalf("a refused report was kept: %+v, %v", detail.Reports, err)
	}
}

func TestBadQueriesAreToldWhatIsWrong(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.create()
	for query, at := range map[string]string{
		"trials?limit=0": "limit", "trials?limit=10001": "limit", "trials?limit=ten": "limit", "trials?sort=luck": "sort",
		"trials?query=luck+%3D+1": "query", "trials?query=" + strings.Repeat("x", 2001): "query",
		"trials?order=up": "order", "trials?state=running,asleep": "state[1]", "trials?offset=-1": "offset", "trials?rung=-2": "rung",
		"trials?colour=red": "colour", "trials/-1": "number", "trials/first": "number", "events?after=-1": "after",
		"events?after=yesterday": "after", "export?format=xml": "format",
	} {
		told := s.admin("GET", "/api/v1/studies/small/"+query, "").problem(t, 422, problem.Invalid)
		if !told.has(at, "") {
			t.Errorf("%s: no fault at %s: %+v", query, at, told)
		}
	}
	told := s.admin("GET", "/api/v1/studies/small/events", "", "Last-Event-ID", "x").problem(t, 422, problem.Invalid)
	if !told.has("Last-Event-ID", "") {
		t.Errorf("%+v", told)
	}
}

func TestBodiesAreBounded(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	const mebibyte = 1 << 20
	for _, c := range []struct{ path, kind string }{
		{"/api/v1/studies", "application/yaml"}, {"/api/v1/preview", "application/json"},
		{"/api/v1/leases", "application/json"}, {"/api/v1/session", "application/json"}, {"/api/v1/studies/x/stop", "application/json"},
	} {
		s.admin("POST", c.path, strings.Repeat(" ", mebibyte+1), "Content-Type", c.kind).problem(t, 413, problem.Exhausted)
	}
	// Without a length the limit is found while reading.
	endless := ask{method: "POST", path: "/api/v1/studies", token: s.secrets[auth.Admin], header: map[string]string{"Content-Type": "application/yaml"}}
	s.doChunked(endless, struct{ io.Reader }{strings.NewReader(strings.Repeat("#", 3*mebibyte))}).problem(t, 413, problem.Exhausted)
	exact := smallStudy + strings.Repeat("#", mebibyte-len(smallStudy))
	if got := s.admin("POST", "/api/v1/preview", exact, "Content-Type", "application/yaml"); got.status != 200 {
		t.Fatalf("a body at the limit: %d %.300s", got.status, got.body)
	}
}

func TestWrongContentTypeAndPaths(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.admin("POST", "/api/v1/leases", `{"worker":"worker-0001"}`, "Content-Type", "text/plain").problem(t, 415, problem.Invalid)
	s.admin("POST", "/api/v1/leases", `{"worker":"worker-0001"}`, "Content-Type", "application/problem+json").problem(t, 415, problem.Invalid)
	// A type that one parser takes for JSON and another does not must not slip a
	// body past the checks of JSON.
	for _, kind := range []string{"application/json;;", "x+application/json", "application/json; charset", "json", "text/json"} {
		s.admin("POST", "/api/v1/leases", `{"worker":"worker-0001","worker":"worker-0002"}`, "Content-Type", kind).problem(t, 415, problem.Invalid)
	}
	for _, kind := range []string{"application/json", "Application/JSON; charset=utf-8", ""} {
		s.admin("POST", "/api/v1/leases", `{"worker":"worker-0001","worker":"worker-0002"}`, "Content-Type", kind).problem(t, 400, problem.Invalid)
	}
	for _, path := range []string{"/api", "/api/", "/api/v1", "/api/v2/studies", "/api/v1/studies/", "/api/v1/nothing", "/api/v1/studies/a/b/c", "/api/v1/trials"} {
		s.admin("GET", path, "").problem(t, 404, problem.NotFound)
	}
	for _, c := range []struct{ method, path, allow string }{
		{"PATCH", "/api/v1/studies", "GET, POST"}, {"PUT", "/api/v1/studies/x", "GET, DELETE"}, {"GET", "/api/v1/leases", "POST"},
		{"OPTIONS", "/api/v1/studies", "GET, POST"}, {"TRACE", "/healthz", "GET"}, {"FUNNY", "/healthz", "GET"},
	} {
		got := s.admin(c.method, c.path, "")
		got.problem(t, 405, problem.Invalid)
		if got.header.Get("Allow") != c.allow {
			t.Errorf("%s %s allows %q, want %q", c.method, c.path, got.header.Get("Allow"), c.allow)
		}
	}
	s.admin("GET", "/api/v1/studies/no%2Fsuch%00study", "").problem(t, 404, problem.NotFound)
}

// brittle has use cases that go wrong in ways a caller can do nothing about.
type brittle struct {
	usecases.All
	err error
}

func (b brittle) Workers(context.Context) []protocol.Worker { panic("out of workers") }

func (b brittle) Studies(context.Context) ([]protocol.StudyView, error) { return nil, b.err }

func TestDefectsAreToldToTheLogAndNotToTheClient(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]error{
		"foreign": fmt.Errorf("disk /srv/secret-place is on fire"),
		"ours":    problem.New(problem.Internal, "disk /srv/secret-place is on fire"),
	} {
		s := newStage(t, func(c *api.Config) { c.Studies = useCases(brittle{c.Studies, err}) })
		got := s.admin("GET", "/api/v1/studies", "")
		got.problem(t, 500, problem.Internal)
		if strings.Contains(string(got.body), "secret-place") {
			t.Errorf("%s: the client learned %s", name, got.body)
		}
		got = s.admin("GET", "/api/v1/workers", "")
		got.problem(t, 500, problem.Internal)
		if strings.Contains(string(got.body), "out of workers") {
			t.Errorf("the client learned %s", got.body)
		}
	}
}

func TestHealth(t *testing.T) {
	t.Parallel()
	well := newStage(t)
	if err := well.client(auth.Viewer).Health(t.Context()); err != nil {
		t.Fatal(err)
	}
	ill := newStage(t, func(c *api.Config) { c.Healthy = func() error { return fmt.Errorf("fsync failed") } })
	got := ill.do(ask{method: "GET", path: "/healthz"})
	got.problem(t, 503, problem.Unavailable)
	if got.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
}
