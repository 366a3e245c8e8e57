package rest_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

func TestAddresses(t *testing.T) {
	t.Parallel()
	for _, wrong := range []string{"", "127.0.0.1:7171", "ftp://x", "http://", "http://x?y", "http://x#y", "http://me:pw@x", "://", "unix:///x"} {
		if _, err := rest.New(rest.Options{URL: wrong}); !problem.Is(err, problem.Invalid) {
			t.Errorf("%q: %v", wrong, err)
		}
	}
	for address, open := range map[string]bool{
		"http://10.0.0.1:7171": false, "http://tuning.example.org": false, "http://localhost.evil.test": false, "http://0.0.0.0": false,
		"https://tuning.example.org": true, "http://localhost:1": true, "http://127.0.0.9": true, "http://[::1]:7171": true, "http://LOCALHOST": true,
	} {
		_, err := rest.New(rest.Options{URL: address, Token: "secret"})
		if (err == nil) != open || err != nil && !problem.Is(err, problem.Invalid) {
			t.Errorf("a token to %s: %v", address, err)
		}
		for _, options := range []rest.Options{{URL: address}, {URL: address, Token: "secret", Insecure: true}} {
			if _, err := rest.New(options); err != nil {
				t.Errorf("%s: %v", address, err)
			}
		}
	}
	behind := &server{t: t, answer: always(200, "{}")}
	client := behind.client(func(o *rest.Options) { o.URL = "https://example.org/tandem/" })
	if _, err := client.Study(t.Context(), "x"); err != nil || behind.requests()[0].target != "/tandem/api/v1/studies/x" || client.URL() != "https://example.org/tandem" {
		t.Errorf("%s: %v, %+v", client.URL(), err, behind.requests())
	}
}

// TestCallsAreThoseOfTheInterface says for each call what it asks for.
func TestCallsAreThoseOfTheInterface(t *testing.T) {
	t.Parallel()
	ctx, rung := t.Context(), 2
	for want, call := range map[string]func(c *rest.Client) error{
		"GET /healthz":                                      func(c *rest.Client) error { return c.Health(ctx) },
		"POST /api/v1/studies":                              func(c *rest.Client) error { return failure(c.CreateStudy(ctx, []byte("{}"), "application/json")) },
		"GET /api/v1/studies":                               func(c *rest.Client) error { return failure(c.Studies(ctx)) },
		"GET /api/v1/studies/a%20b%2Fc":                     func(c *rest.Client) error { return failure(c.Study(ctx, "a b/c")) },
		"POST /api/v1/studies/x/enqueue":                    func(c *rest.Client) error { return failure(c.Enqueue(ctx, "x", protocol.EnqueueRequest{})) },
		"POST /api/v1/studies/x/pause":                      func(c *rest.Client) error { return failure(c.PauseStudy(ctx, "x")) },
		"POST /api/v1/studies/x/resume":                     func(c *rest.Client) error { return failure(c.ResumeStudy(ctx, "x")) },
		"POST /api/v1/studies/x/stop":                       func(c *rest.Client) error { return failure(c.StopStudy(ctx, "x")) },
		"POST /api/v1/studies/x/set":                        func(c *rest.Client) error { return failure(c.SetStudy(ctx, "x", protocol.SetRequest{})) },
		"POST /api/v1/studies/x/extend":                     func(c *rest.Client) error { return failure(c.ExtendStudy(ctx, "x", protocol.ExtendRequest{})) },
		"DELETE /api/v1/studies/x":                          func(c *rest.Client) error { return c.DeleteStudy(ctx, "x") },
		"GET /api/v1/studies/x/recommendation":              func(c *rest.Client) error { return failure(c.Recommendation(ctx, "x")) },
		"GET /api/v1/studies/x/trials":                      func(c *rest.Client) error { return failure(c.Trials(ctx, "x", protocol.TrialQuery{})) },
		"GET /api/v1/studies/x/trials/7":                    func(c *rest.Client) error { return failure(c.Trial(ctx, "x", 7)) },
		"GET /api/v1/studies/x/trials/7/log":                func(c *rest.Client) error { return failure(c.TrialLog(ctx, "x", 7)) },
		"POST /api/v1/trials/x-1/samples":                   func(c *rest.Client) error { return c.KeepSamples(ctx, "x-1", protocol.SampleBatch{}) },
		"POST /api/v1/trials/x-1/artifacts":                 func(c *rest.Client) error { return c.LogArtifact(ctx, "x-1", protocol.ArtifactLog{}) },
		"GET /api/v1/studies/x/trials/7/artifacts/a.png":    func(c *rest.Client) error { return failure(c.TrialArtifact(ctx, "x", 7, "a.png")) },
		"GET /api/v1/studies/x/trials/7/samples?format=csv": func(c *rest.Client) error { return failure(c.TrialSamples(ctx, "x", 7, "csv")) },
		"POST /api/v1/workers":                              func(c *rest.Client) error { return failure(c.Register(ctx, protocol.WorkerRegistration{})) },
		"GET /api/v1/workers":                               func(c *rest.Client) error { return failure(c.Workers(ctx)) },
		"POST /api/v1/workers/w/heartbeat":                  func(c *rest.Client) error { return failure(c.Heartbeat(ctx, "w", protocol.Heartbeat{})) },
		"DELETE /api/v1/workers/w":                          func(c *rest.Client) error { return c.Unregister(ctx, "w") },
		"POST /api/v1/leases":                               func(c *rest.Client) error { return failure(c.Lease(ctx, protocol.LeaseRequest{Worker: "w"})) },
		"POST /api/v1/trials/x-1/reports":                   func(c *rest.Client) error { return failure(c.Report(ctx, "x-1", protocol.Report{})) },
		"POST /api/v1/trials/x-1/checkpoint":                func(c *rest.Client) error { return c.CommitCheckpoint(ctx, "x-1", protocol.CheckpointCommit{}) },
		"POST /api/v1/trials/x-1/finish":                    func(c *rest.Client) error { return failure(c.Finish(ctx, "x-1", protocol.FinishRequest{})) },
		"POST /api/v1/trials/x-1/log":                       func(c *rest.Client) error { return c.AppendLog(ctx, "x-1", protocol.LogChunk{}) },
		"GET /api/v1/tokens":                                func(c *rest.Client) error { return failure(c.Tokens(ctx)) },
		"POST /api/v1/tokens":                               func(c *rest.Client) error { return failure(c.CreateToken(ctx, protocol.TokenRequest{})) },
		"DELETE /api/v1/tokens/..%2Fstudies":                func(c *rest.Client) error { return c.DeleteToken(ctx, "../studies") },
		"GET /api/v1/artifacts/" + hash + "?direct=true":    func(c *rest.Client) error { return failure(c.Artifact(ctx, hash)) },
		"GET /api/v1/studies/x/export?format=csv":           func(c *rest.Client) error { return failure(c.Export(ctx, "x", "csv")) },
		"GET /api/v1/ground-truth":                          func(c *rest.Client) error { return failure(c.GroundTruth(ctx, "")) },
		"GET /api/v1/ground-truth?machine=a%26b+c":          func(c *rest.Client) error { return failure(c.GroundTruth(ctx, "a&b c")) },
		"GET /api/v1/ground-truth/machines":                 func(c *rest.Client) error { return failure(c.GroundTruthMachines(ctx)) },
		"POST /api/v1/ground-truth":                         func(c *rest.Client) error { return failure(c.ImportGroundTruth(ctx, protocol.GroundTruth{})) },
		"DELETE /api/v1/ground-truth?machine=x":             func(c *rest.Client) error { return failure(c.ForgetGroundTruth(ctx, "x")) },
		"DELETE /api/v1/ground-truth?all=true":              func(c *rest.Client) error { return failure(c.ForgetGroundTruth(ctx, "")) },
		"GET /api/v1/studies/x/trials?limit=5&offset=9&order=desc&query=adam&rung=2&sort=value&state=paused%2Crunning": func(c *rest.Client) error {
			return failure(c.Trials(ctx, "x", protocol.TrialQuery{
				States: []trial.State{trial.Paused, trial.Running}, Rung: &rung, Sort: "value", Query: "adam", Descending: true, Limit: 5, Offset: 9}))
		},
	} {
		s := &server{t: t, answer: always(200, "{}")}
		if err := call(s.client()); err != nil {
			t.Errorf("%s: %v", want, err)
		}
		if seen := s.requests(); len(seen) != 1 || seen[0].method+" "+seen[0].target != want || seen[0].header.Get("Authorization") != "Bearer secret" {
			t.Errorf("%s: %+v", want, seen)
		}
	}
	beat := &server{t: t, answer: always(200, `{"lost":[]}`)}
	if _, err := beat.client().Heartbeat(ctx, "w", protocol.Heartbeat{}); err != nil || beat.requests()[0].body != `{"leases":[]}` {
		t.Errorf("a heartbeat without leases: %v, %+v", err, beat.requests())
	}
}

func failure[T any](_ T, err error) error { return err }

func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	for _, code := range []int{301, 302, 303, 307, 308} {
		s := &server{t: t, answer: func(attempt int, r *http.Request) (*http.Response, error) {
			if r.URL.Host != "127.0.0.1:7171" {
				t.Errorf("%s saw the token %q", r.URL.Host, r.Header.Get("Authorization"))
			}
			return respond(code, "", "Location", "http://evil.test/api/v1/studies"), nil
		}}
		_, err := s.client().Studies(t.Context())
		if !problem.Is(err, problem.Invalid) || !strings.Contains(err.Error(), "http://evil.test/api/v1/studies") || len(s.requests()) != 1 {
			t.Errorf("%d: %v", code, err)
		}
	}
}

func TestProblemsComeBackAsThemselves(t *testing.T) {
	t.Parallel()
	document := encode(t, map[string]any{
		"type": "about:blank", "title": "Unprocessable Entity", "status": 422, "detail": "the study file has a fault", "code": "invalid",
		"errors": []any{map[string]any{"path": "space.x.low", "message": "must be less than high", "value": 3, "line": 7}},
	})
	s := &server{t: t, answer: always(422, document, "Content-Type", "application/problem+json")}
	_, err := s.client().CreateStudy(t.Context(), nil, "application/yaml")
	var told *problem.Error
	if !errors.As(err, &told) || told.Code != problem.Invalid || told.Detail != "the study file has a fault" || len(told.Fields) != 1 {
		t.Fatalf("%#v", err)
	}
	if field := told.Fields[0]; field.Path != "space.x.low" || field.Line != 7 || fmt.Sprint(field.Value) != "3" || field.Message != "must be less than high" {
		t.Errorf("%+v", field)
	}
	for _, code := range []problem.Code{problem.LeaseLost, problem.Conflict, problem.NotFound, problem.KeyReused, problem.Internal} {
		s := &server{t: t, answer: always(409, fmt.Sprintf(`{"detail":"x","code":%q}`, code))}
		if _, err := s.client().Report(t.Context(), "x-1", protocol.Report{}); !problem.Is(err, code) {
			t.Errorf("%s came back as %v", code, err)
		}
	}
}

// TestAnswersOfOthersHaveACodeToo: a proxy's answer is no document of ours.
func TestAnswersOfOthersHaveACodeToo(t *testing.T) {
	t.Parallel()
	for status, code := range map[int]problem.Code{
		400: problem.Invalid, 401: problem.Unauthorized, 403: problem.Forbidden, 404: problem.NotFound, 408: problem.Unavailable, 409: problem.Conflict,
		413: problem.Exhausted, 429: problem.Exhausted, 500: problem.Internal, 501: problem.Internal, 502: problem.Unavailable, 503: problem.Unavailable, 504: problem.Unavailable, 507: problem.Unavailable,
	} {
		for _, body := range []string{"", "<html>no</html>", `{"code":7}`, `[]`, `{"detail":"no code"}`, strings.Repeat("x", 2<<20)} {
			s := &server{t: t, answer: always(status, body)}
			_, err := s.client(impatient).Studies(t.Context())
			if !problem.Is(err, code) || len(err.Error()) > 200 || !strings.Contains(err.Error(), fmt.Sprint(status)) {
				t.Errorf("%d %.20q: %v", status, body, err)
			}
		}
	}
	for _, body := range []string{"", "null and void", `{"studies":7}`, "<html>yes</html>"} {
		s := &server{t: t, answer: always(200, body)}
		if _, err := s.client().Studies(t.Context()); !problem.Is(err, problem.Internal) {
			t.Errorf("%q is understood: %v", body, err)
		}
	}
}
