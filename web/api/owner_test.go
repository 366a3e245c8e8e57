package api_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/inference_emu/graph"
	"github.com/tandem-tune/tandem/inference_emu/graph/graphtest"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/web/auth"
)

// issue makes a token that the stage keeps under its name.
func (s *stage) issue(request auth.Request) auth.Token {
	s.t.Helper()
	secret, token, err := auth.Issue(s.t.Context(), s.store, request)
	if err != nil {
		s.t.Fatal(err)
	}
	s.secrets[auth.Scope(request.Name)] = secret
	return token
}

// as is a client with the token of that name.
func (s *stage) as(name string) *rest.Client { return s.client(auth.Scope(name)) }

// property is something of alice's: a study with a trial that the worker "rack"
// holds and has a checkpoint of, and a worker of her own.
type property struct {
	study    protocol.StudyView
	lease    protocol.Lease
	artifact string
	worker   string
}

// alices sets the property up, and tokens of bob and of the worker "desk",
// which it does not belong to.
func (s *stage) alices() property {
	s.t.Helper()
	for _, request := range []auth.Request{
		{Name: "alice", Scope: auth.User}, {Name: "bob", Scope: auth.User},
		{Name: "rack", Scope: auth.Worker, Worker: "rack"}, {Name: "desk", Scope: auth.Worker, Worker: "desk"},
	} {
		s.issue(request)
	}
	ctx, alice, rack := s.t.Context(), s.as("alice"), s.as("rack")
	must := func(err error) {
		s.t.Helper()
		if err != nil {
			s.t.Fatal(err)
		}
	}
	study, err := alice.CreateStudy(ctx, []byte(smallStudy), "application/yaml")
	must(err)
	_, err = alice.Register(ctx, protocol.WorkerRegistration{ID: "worker-alice", Name: "alice's", Slots: 1})
	must(err)
	_, err = rack.Register(ctx, protocol.WorkerRegistration{ID: "worker-rack", Name: "rack", Slots: 1})
	must(err)
	reply, err := rack.Lease(ctx, protocol.LeaseRequest{Worker: "worker-rack"})
	must(err)
	if reply.Lease == nil {
		s.t.Fatal("there was nothing to lease")
	}
	_, err = rack.Report(ctx, reply.Lease.Trial, reportOf(*reply.Lease, 1, 0.5))
	must(err)
	weights := []byte("weights")
	must(rack.PutArtifact(ctx, hashOf(weights), int64(len(weights)), opener(weights)))
	must(rack.CommitCheckpoint(ctx, reply.Lease.Trial, protocol.CheckpointCommit{
		LeaseEpoch: reply.Lease.LeaseEpoch, Epoch: 1, Artifact: hashOf(weights), Bytes: int64(len(weights))}))
	must(rack.LogArtifact(ctx, reply.Lease.Trial, protocol.ArtifactLog{LeaseEpoch: reply.Lease.LeaseEpoch, Name: "a.png", Artifact: hashOf(weights), Bytes: int64(len(weights))}))
	return property{study: study, lease: *reply.Lease, artifact: hashOf(weights), worker: "worker-alice"}
}

// bodies returns, for each route that takes one, a body that names the property
// and that its owner could send.
func (p property) bodies(t *testing.T) map[string]string {
	t.Helper()
	b := graphtest.NewBuilder("network")
	b.Output(b.Linear(b.Flatten(b.Input("x", graph.Float32, 1, 28, 28)), 10))
	network, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	encode := func(value any) string {
		text, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	epoch := p.lease.LeaseEpoch
	return map[string]string{
		"POST /api/v1/studies/{study}/enqueue":                  `{"configurations":[{"rate":0.5}]}`,
		"POST /api/v1/studies/{study}/extend":                   `{"trials":1}`,
		"POST /api/v1/studies/{study}/set":                      `{"priority":1}`,
		"POST /api/v1/studies/{study}/annotate":                 `{"add_tags":["theirs"]}`,
		"POST /api/v1/studies/{study}/trials/{number}/annotate": `{"add_tags":["theirs"]}`,
		"PUT /api/v1/studies/{study}/groups":                    `{"groups":[]}`,
		"PUT /api/v1/studies/{study}/owner":                     `{"owner":"bob"}`,
		"POST /api/v1/studies/{study}/links":                    `{"name":"theirs","ttl_seconds":3600}`,
		"POST /api/v1/workers":                                  encode(protocol.WorkerRegistration{ID: p.worker, Name: "desk", Slots: 1}),
		"POST /api/v1/workers/{worker}/drain":                   `{"now":true}`,
		"POST /api/v1/workers/{worker}/heartbeat":               `{"leases":[]}`,
		"POST /api/v1/workers/{worker}/gone":                    `{"launch":"L1","cause":"failed"}`,
		"POST /api/v1/leases":                                   encode(protocol.LeaseRequest{Worker: p.worker}),
		"POST /api/v1/trials/{trial}/reports":                   encode(protocol.Report{LeaseEpoch: epoch, Epoch: 1, Metrics: map[string]trial.Float{"loss": 0}}),
		"POST /api/v1/trials/{trial}/checkpoint":                encode(protocol.CheckpointCommit{LeaseEpoch: epoch, Epoch: 1, Artifact: p.artifact, Bytes: 7}),
		"POST /api/v1/trials/{trial}/architecture":              encode(protocol.ArchitectureReport{LeaseEpoch: epoch, Key: "architecture", Graph: emu.Anonymous(network)}),
		"POST /api/v1/trials/{trial}/inferences":                encode(protocol.InferenceReport{LeaseEpoch: epoch, Key: "architecture", Runs: []emu.Run{}}),
		"POST /api/v1/trials/{trial}/finish":                    encode(protocol.FinishRequest{LeaseEpoch: epoch, Outcome: protocol.CommandFailed}),
		"POST /api/v1/trials/{trial}/log":                       encode(protocol.LogChunk{LeaseEpoch: epoch, Text: "mine"}),
		"POST /api/v1/trials/{trial}/artifacts":                 encode(protocol.ArtifactLog{LeaseEpoch: epoch, Name: "a.png", Artifact: p.artifact, Bytes: 7}),
		"POST /api/v1/trials/{trial}/samples":                   encode(batch(t, protocol.Lease{LeaseEpoch: epoch}, 2)),
	}
}

// harmless are the routes that name nothing that belongs to anybody: what they
// answer is looked at elsewhere.
var harmless = []string{
	"GET /healthz", "GET /readyz", "GET /metrics", "GET /api/v1/openapi.json", "GET /api/v1/session", "POST /api/v1/session", "DELETE /api/v1/session",
	"POST /api/v1/tokens", "GET /api/v1/tokens", "DELETE /api/v1/tokens/{token}", // the administrators'
	"GET /api/v1/session/provider", "POST /api/v1/session/provider", "POST /api/v1/session/provider/finish", "POST /api/v1/session/device", "POST /api/v1/session/device/token", // TestSpoiltSignIns
	"GET /api/v1/audit", "GET /api/v1/users", "DELETE /api/v1/users/{user}", // the administrators'
	"POST /api/v1/preview",
	"POST /api/v1/studies", "GET /api/v1/studies", "GET /api/v1/workers", "GET /api/v1/pool",
	"GET /api/v1/workers/{worker}/history",                                                                                                // of a machine, which all who see workers see
	"GET /api/v1/ground-truth", "GET /api/v1/ground-truth/machines", "GET /api/v1/ground-truth/runs", "GET /api/v1/ground-truth/clusters", // everybody's
	"POST /api/v1/ground-truth", "DELETE /api/v1/ground-truth", "GET /api/v1/architectures",
	"POST /api/v1/boards/ask", "POST /api/v1/boards/runs", "GET /api/v1/boards", // of machines, which all who see workers see
	"GET /api/v1/pool/wanted", "GET /api/v1/pool/forecast", "GET /api/v1/pool/advice", // of one's own, or the administrators'
	"GET /api/v1/quotas", "PUT /api/v1/quotas/{user}", "DELETE /api/v1/quotas/{user}", // the administrators', and one's own
	"GET /api/v1/groups", "PUT /api/v1/groups/{group}", "DELETE /api/v1/groups/{group}", // TestWhoSharesWithWhichGroup
	"GET /api/v1/backends", "PUT /api/v1/backends/{backend}", "DELETE /api/v1/backends/{backend}",
	"GET /api/v1/reservations", "POST /api/v1/reservations", "DELETE /api/v1/reservations/{reservation}",
	"POST /api/v1/hooks", "GET /api/v1/hooks", "DELETE /api/v1/hooks/{hook}", "POST /api/v1/hooks/{hook}/test", // web/hooks looks at them
	"PUT /api/v1/pool/launchers/{launcher}", "POST /api/v1/pool/launchers/{launcher}/try-again", "GET /api/v1/pool/launches", // TestWhatLaunchersStartIsShown
	"POST /api/v1/enrolments", "POST /api/v1/enrolments/exchange", // of one's own launches
	"POST /api/v1/datasets", "GET /api/v1/datasets", "DELETE /api/v1/datasets/{sha256}", // TestDatasetsAreTheirOwners
	"PUT /api/v1/artifacts/{sha256}", // bytes whose hash the sender knows
}

// TestNoRouteReachesWhatIsAnothers walks every route that is published, with
// tokens that open the route and do not own what it names. A new route has to
// be refused too, or to be named as harmless.
func TestNoRouteReachesWhatIsAnothers(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	p := s.alices()
	bodies := p.bodies(t)
	before := s.content(p)
	for path, operations := range s.published() {
		for method, described := range operations {
			name := strings.ToUpper(method) + " " + path
			if slices.Contains(harmless, name) {
				continue
			}
			for _, stranger := range []string{"bob", "desk"} {
				for _, ref := range []string{p.study.ID, "small", "alice:small", "alice%3Asmall"} {
					request := ask{method: strings.ToUpper(method), path: p.path(path, ref), body: bodies[name], token: s.secrets[auth.Scope(stranger)]}
					got := s.do(request)
					scope := string(auth.User)
					if stranger == "desk" {
						scope = string(auth.Worker)
					}
					want := refusalOf(name)
					if !slices.Contains(described.Scopes, scope) {
						want = http.StatusForbidden
					}
					if got.status != want {
						t.Errorf("%s of %s for %s: status %d, want %d: %s", name, ref, stranger, got.status, want, got.body)
					}
					if strings.Contains(path, "{study}") && want == http.StatusNotFound && request.method != http.MethodHead {
						request.path = p.path(path, "never-was")
						told := strings.ReplaceAll(string(s.do(request).body), "never-was", strings.ReplaceAll(ref, "%3A", ":"))
						if string(got.body) != told {
							t.Errorf("%s of %s is told from what never was: %s, not %s", name, ref, got.body, told)
						}
					}
				}
			}
		}
	}
	for _, path := range []string{"/api/v1/studies", "/api/v1/workers", "/api/v1/pool"} {
		got := s.do(ask{method: "GET", path: path, token: s.secrets["bob"]})
		if got.status != 200 || strings.Contains(string(got.body), p.study.ID) {
			t.Errorf("%s for bob: %d %s", path, got.status, got.body)
		}
	}
	if after := s.content(p); after != before {
		t.Errorf("strangers have changed\n%s\nto\n%s", before, after)
	}
}

// path is a path of the document with the property's names in it.
func (p property) path(path, ref string) string {
	return strings.NewReplacer("{study}", ref, "{number}", "0", "{worker}", p.worker, "{trial}", string(p.lease.Trial), "{sha256}", p.artifact, "{link}", "none", "{name}", "a.png").Replace(path)
}

// refusalOf is how a route refuses what is another's: as if it were not there.
func refusalOf(name string) int {
	switch {
	case strings.Contains(name, "{trial}"): // the lease is another's
		return http.StatusConflict
	case name == "DELETE /api/v1/workers/{worker}": // as of one that is not there
		return http.StatusNoContent
	case name == "POST /api/v1/workers": // the id is taken
		return http.StatusConflict
	default:
		return http.StatusNotFound
	}
}

// content is what the store holds of the property.
func (s *stage) content(p property) string {
	s.t.Helper()
	ctx := s.t.Context()
	kept, err := s.store.Study(ctx, p.study.ID)
	if err != nil {
		s.t.Fatal(err)
	}
	one, err := s.store.Trial(ctx, p.lease.Trial)
	if err != nil {
		s.t.Fatal(err)
	}
	events, err := s.store.Events(ctx, p.study.ID, 0, 1000)
	if err != nil {
		s.t.Fatal(err)
	}
	text, err := s.store.Log(ctx, p.lease.Trial)
	if err != nil {
		s.t.Fatal(err)
	}
	encoded, err := json.Marshal([]any{kept, one, events, text})
	if err != nil {
		s.t.Fatal(err)
	}
	return string(encoded)
}

// TestTheOwnerReachesEverything walks the same routes with alice's token, so
// that a refusal above is one of a stranger, not of a request that is wrong.
func TestTheOwnerReachesEverything(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	p := s.alices()
	ctx, alice := t.Context(), s.as("alice")
	for _, ref := range []string{p.study.ID, "small", "alice:small", "alice%3Asmall"} {
		for path, operations := range s.published() {
			if _, readable := operations["get"]; !readable || !strings.Contains(path, "{study}") || strings.HasSuffix(path, "/events") {
				continue
			}
			got := s.do(ask{method: "GET", path: p.path(path, ref), token: s.secrets["alice"]})
			if got.status != 200 && !strings.HasSuffix(path, "/deployments") && !strings.HasSuffix(path, "/backend") { // of which there are none
				t.Errorf("GET %s: %d %s", p.path(path, ref), got.status, got.body)
			}
		}
	}
	stream, err := alice.Artifact(ctx, p.artifact)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Close(); err != nil {
		t.Error(err)
	}
	if list, err := alice.Studies(ctx); err != nil || len(list) != 1 || list[0].Owner != "alice" {
		t.Errorf("%v: %v", list, err)
	}
	if workers, err := alice.Workers(ctx); err != nil || len(workers) != 2 || !slices.ContainsFunc(workers, func(w protocol.Worker) bool { return slices.Contains(w.Trials, p.lease.Trial) }) {
		t.Errorf("%+v: %v", workers, err)
	}
	// She can train her own study, with her own token.
	reply, err := alice.Lease(ctx, protocol.LeaseRequest{Worker: p.worker})
	if err != nil || reply.Lease == nil || reply.Lease.StudyID != p.study.ID {
		t.Fatalf("%+v: %v", reply, err)
	}
	s.train(alice, *reply.Lease, 0.25)
	for _, change := range []func() (protocol.StudyView, error){
		func() (protocol.StudyView, error) { return alice.PauseStudy(ctx, "small") },
		func() (protocol.StudyView, error) { return alice.ResumeStudy(ctx, "alice:small") },
		func() (protocol.StudyView, error) { return alice.StopStudy(ctx, p.study.ID) },
	} {
		if _, err := change(); err != nil {
			t.Error(err)
		}
	}
	if err := alice.DeleteStudy(ctx, "small"); err != nil {
		t.Error(err)
	}
}

func TestAllTokensOfANameAreOneUsers(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	p := s.alices()
	s.issue(auth.Request{Name: "alice", Scope: auth.User, Life: time.Hour})
	if view, err := s.as("alice").Study(t.Context(), "small"); err != nil || view.ID != p.study.ID {
		t.Errorf("%s: %v", view.ID, err)
	}
	cookie := s.signIn("alice")
	if got := s.do(withCookie("GET", "/api/v1/studies/small", cookie)); got.status != 200 {
		t.Errorf("in a browser: %d %s", got.status, got.body)
	}
	cookie = s.signIn("bob")
	s.do(withCookie("GET", "/api/v1/studies/small", cookie)).problem(t, 404, problem.NotFound)
	// A viewer, a worker or an administrator of that name is not that user.
	for _, scope := range []auth.Scope{auth.Viewer, auth.Worker, auth.Admin} {
		s.issue(auth.Request{Name: "bob", Scope: scope})
		if scope == auth.Worker {
			continue
		}
		if list, err := s.as("bob").Studies(t.Context()); err != nil || len(list) != 1 {
			t.Errorf("%s: %d studies, %v", scope, len(list), err)
		}
	}
}

// TestEveryMethodOfEveryPathIsClosed tries the methods that a path does not
// have, too: before it is told that, a request needs a token.
func TestEveryMethodOfEveryPathIsClosed(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	expired := s.issue(auth.Request{Name: "expired", Scope: auth.User, Life: time.Minute})
	s.pass(2 * time.Minute)
	revoked := s.issue(auth.Request{Name: "revoked", Scope: auth.User})
	if _, err := s.as("revoked").Studies(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.client(auth.Admin).DeleteToken(t.Context(), revoked.ID); err != nil {
		t.Fatal(err)
	}
	for path, operations := range s.published() {
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "INVENTED"} {
			described, declared := operations[strings.ToLower(method)]
			if declared && len(described.Security) == 0 {
				continue // public, as the table says
			}
			wrong := []string{""}
			if declared { // not all: wrong tokens are limited
				wrong = append(wrong, "expired", "revoked")
			}
			for _, name := range wrong {
				got := s.do(ask{method: method, path: concrete(path), token: s.secrets[auth.Scope(name)]})
				if got.status != http.StatusUnauthorized {
					t.Errorf("%s %s with the token %q: %d", method, path, name, got.status)
				}
			}
			if got := s.do(ask{method: method, path: concrete(path), token: s.secrets[auth.Admin]}); !declared && got.status != http.StatusMethodNotAllowed {
				t.Errorf("%s %s is not declared and answers %d", method, path, got.status)
			}
		}
	}
	if _, err := s.store.Token(t.Context(), expired.ID); err != nil {
		t.Errorf("an expired token is listed until it is revoked: %v", err)
	}
}

func TestTokensOfWorkersBelongToOneMachine(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	ctx := t.Context()
	for _, request := range []auth.Request{
		{Name: "open", Scope: auth.Worker}, {Name: "named", Scope: auth.Worker, Worker: "rack-1"}, {Name: "shared", Scope: auth.Worker, Worker: auth.AnyWorker},
	} {
		s.issue(request)
	}
	register := func(token, worker string) error {
		_, err := s.as(token).Register(ctx, protocol.WorkerRegistration{ID: "worker-" + token + "-" + worker, Name: worker, Slots: 1})
		return err
	}
	for _, c := range []struct {
		token, worker string
		fine          bool
	}{
		{"open", "rack-1", true}, {"open", "rack-1", true}, {"open", "rack-2", false}, {"open", "rack-1", true},
		{"named", "rack-2", false}, {"named", "rack-1", true},
		{"shared", "rack-1", true}, {"shared", "rack-2", true},
	} {
		err := register(c.token, c.worker)
		if c.fine && err != nil || !c.fine && (!problem.Is(err, problem.Forbidden) || !strings.Contains(err.Error(), "rack-1") || !strings.Contains(err.Error(), "--worker")) {
			t.Errorf("the token %s for the worker %s: %v", c.token, c.worker, err)
		}
	}
	bound := map[string]string{}
	tokens, err := s.client(auth.Admin).Tokens(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, token := range tokens {
		bound[token.Name] = token.Worker
		if (token.Name == "open" || token.Name == "shared") && (token.Used == nil || s.now().Sub(*token.Used) > time.Minute) {
			t.Errorf("the token %s was used %v", token.Name, token.Used)
		}
		if token.Name == "test" && token.Scope == "viewer" && token.Used != nil {
			t.Errorf("the viewer's token was never used, and yet at %v", token.Used)
		}
	}
	if bound["open"] != "rack-1" || bound["named"] != "rack-1" || bound["shared"] != auth.AnyWorker {
		t.Errorf("the tokens belong to %v", bound)
	}
	// The same machine may go on under another token of its own, and only it.
	s.create()
	reply, err := s.as("open").Lease(ctx, protocol.LeaseRequest{Worker: "worker-open-rack-1"})
	if err != nil || reply.Lease == nil {
		t.Fatalf("%+v: %v", reply, err)
	}
	if _, err := s.as("named").Report(ctx, reply.Lease.Trial, reportOf(*reply.Lease, 1, 0.5)); err != nil {
		t.Errorf("the same machine with another token: %v", err)
	}
	if _, err := s.as("shared").Report(ctx, reply.Lease.Trial, reportOf(*reply.Lease, 1, 0.5)); !problem.Is(err, problem.LeaseLost) {
		t.Errorf("a token of many machines: %v", err)
	}
}
