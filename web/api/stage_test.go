package api_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/store/artifact"
	"github.com/tandem-tune/tandem/store/memory"
	"github.com/tandem-tune/tandem/study"
	"github.com/tandem-tune/tandem/study/studyfile"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/web/api"
	"github.com/tandem-tune/tandem/web/auth"
	"github.com/tandem-tune/tandem/web/guard"
	"github.com/tandem-tune/tandem/web/usecases"
)

// stage is a whole server on a loopback port: real use cases, a store in
// memory, and a token of each scope.
type stage struct {
	t       testing.TB
	store   *memory.Store
	studies *study.Service
	handler http.Handler
	server  *httptest.Server
	secrets map[auth.Scope]string

	mutex sync.Mutex
	clock time.Time
}

// useCases are those of a service or of one that stands in for it.
func useCases[S interface {
	usecases.OfStudies
	usecases.OfAnalyses
	usecases.OfTrials
	usecases.OfCharts
	usecases.OfWorkers
	usecases.OfSharing
	usecases.OfGroups
	usecases.OfLeases
	usecases.OfKnowledge
	usecases.OfDatasets
	usecases.OfBoards
	usecases.OfBackends
	usecases.Receipts
}](s S) usecases.All {
	return usecases.All{
		OfStudies: s, OfAnalyses: s, OfTrials: s, OfCharts: s, OfWorkers: s,
		OfSharing: s, OfGroups: s, OfLeases: s, OfKnowledge: s, OfDatasets: s, OfBoards: s, OfBackends: s, Receipts: s,
	}
}

func newStage(t testing.TB, adapt ...func(*api.Config)) *stage {
	t.Helper()
	s := build(t, adapt...)
	s.server = httptest.NewUnstartedServer(s.handler)
	s.server.Config = api.NewHTTPServer("", s.handler, slog.New(slog.DiscardHandler))
	s.server.Start()
	t.Cleanup(func() {
		s.server.CloseClientConnections()
		s.server.Close()
	})
	return s
}

// build makes everything of a stage but the port.
func build(t testing.TB, adapt ...func(*api.Config)) *stage {
	t.Helper()
	s := &stage{t: t, store: memory.New(), secrets: map[auth.Scope]string{}, clock: time.Now()}
	artifacts, err := artifact.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	var mutex sync.Mutex
	s.studies = study.New(s.store, s.store, study.Options{Now: time.Now, Users: auth.NewAuthenticator(s.store, time.Now).Users, Random: func() uint64 {
		mutex.Lock()
		defer mutex.Unlock()
		return random.Uint64()
	}})
	parent := ""
	for _, scope := range auth.Scopes() {
		request := auth.Request{Name: "test", Scope: scope}
		if scope == auth.Link { // to a study that is not there
			request.Subject, request.Life = "none", 1000*time.Hour
		}
		if scope == auth.Enrolment { // with the admin's token
			request.Subject, request.Life, request.Parent = "none", 1000*time.Hour, parent
		}
		secret, token, err := auth.Issue(t.Context(), s.store, request)
		if err != nil {
			t.Fatal(err)
		}
		s.secrets[scope] = secret
		if scope == auth.Admin {
			parent = token.ID
		}
	}
	config := api.Config{
		Studies: useCases(s.studies), Artifacts: artifacts,
		Config: guard.Config{
			Tokens: s.store, Now: s.now, Logger: slog.New(slog.NewTextHandler(testWriter{t}, nil)),
			UI: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				io.WriteString(w, "page "+r.URL.Path)
			}),
		},
	}
	for _, change := range adapt {
		change(&config)
	}
	s.handler = api.New(config)
	return s
}

// another is a new token of the scope.
func (s *stage) another(scope auth.Scope) string {
	s.t.Helper()
	secret, _, err := auth.Issue(s.t.Context(), s.store, auth.Request{Name: "another", Scope: scope})
	if err != nil {
		s.t.Fatal(err)
	}
	return secret
}

// now is the clock of tokens; the tests move it.
func (s *stage) now() time.Time {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.clock
}

func (s *stage) pass(span time.Duration) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.clock = s.clock.Add(span)
}

type testWriter struct{ t testing.TB }

func (w testWriter) Write(data []byte) (int, error) {
	if w.t.Context().Err() == nil {
		w.t.Log(strings.TrimSpace(string(data)))
	}
	return len(data), nil
}

// client is a REST client with the scope's token.
func (s *stage) client(scope auth.Scope) *rest.Client {
	s.t.Helper()
	client, err := rest.New(rest.Options{URL: s.server.URL, Token: s.secrets[scope], Patience: -1})
	if err != nil {
		s.t.Fatal(err)
	}
	return client
}

// ask is one request as a client without manners could send it.
type ask struct {
	method, path, body string
	token              string
	header             map[string]string
}

type answer struct {
	status int
	header http.Header
	body   []byte
}

func (s *stage) do(a ask) answer {
	s.t.Helper()
	return s.doChunked(a, strings.NewReader(a.body))
}

// doChunked sends a body of another kind; one of unknown length goes in chunks.
func (s *stage) doChunked(a ask, body io.Reader) answer {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), a.method, s.server.URL+a.path, body)
	if err != nil {
		s.t.Fatal(err)
	}
	if a.body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if a.token != "" {
		r.Header.Set("Authorization", "Bearer "+a.token)
	}
	for name, value := range a.header {
		if name == "Host" {
			r.Host = value
		}
		r.Header.Set(name, value)
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	got := answer{response.StatusCode, response.Header, content}
	holdToDocument(s.t, a.method, a.path, got)
	return got
}

// hand gives the handler a request from an address, without a network.
func (s *stage) hand(method, target, secret, from, body string, headers ...string) answer {
	s.t.Helper()
	r := httptest.NewRequestWithContext(s.t.Context(), method, target, strings.NewReader(body))
	r.Host, r.RemoteAddr = "localhost", from
	if secret != "" {
		r.Header.Set("Authorization", "Bearer "+secret)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	recorder := httptest.NewRecorder()
	s.handler.ServeHTTP(recorder, r)
	got := answer{recorder.Code, recorder.Header(), recorder.Body.Bytes()}
	holdToDocument(s.t, method, target, got)
	return got
}

// onTheClock runs a test in a bubble, whose time only passes while all wait.
func onTheClock(t *testing.T, run func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, run)
}

// admin asks with the admin's token.
func (s *stage) admin(method, path, body string, headers ...string) answer {
	s.t.Helper()
	header := map[string]string{}
	for i := 0; i+1 < len(headers); i += 2 {
		header[headers[i]] = headers[i+1]
	}
	return s.do(ask{method: method, path: path, body: body, token: s.secrets[auth.Admin], header: header})
}

// arrived is what an answer has.
func arrived[T any](t testing.TB, got answer) (has T) {
	t.Helper()
	if err := json.Unmarshal(got.body, &has); err != nil || got.status/100 != 2 {
		t.Fatalf("status %d, %v: %s", got.status, err, got.body)
	}
	return has
}

// document is a problem document, decoded strictly.
type document struct {
	Type   string          `json:"type"`
	Title  string          `json:"title"`
	Status int             `json:"status"`
	Detail string          `json:"detail"`
	Code   problem.Code    `json:"code"`
	Errors []problem.Field `json:"errors"`
}

// problem checks that the answer is a whole problem document and returns it.
func (a answer) problem(t *testing.T, status int, code problem.Code) document {
	t.Helper()
	if a.status != status || a.header.Get("Content-Type") != "application/problem+json" {
		t.Fatalf("status %d, type %q, want a problem with %d: %s", a.status, a.header.Get("Content-Type"), status, a.body)
	}
	var told document
	decoder := json.NewDecoder(strings.NewReader(string(a.body)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&told); err != nil {
		t.Fatalf("%v in %s", err, a.body)
	}
	if told.Status != status || told.Code != code || told.Title != http.StatusText(status) || told.Detail == "" || told.Type == "" {
		t.Fatalf("want status %d and code %s: %s", status, code, a.body)
	}
	return told
}

// has reports whether the document tells a fault at the path that says so.
func (d document) has(path, says string) bool {
	for _, field := range d.Errors {
		if field.Path == path && strings.Contains(field.Message, says) {
			return true
		}
	}
	return false
}

const smallStudy = `
name: small
command: [train]
objective: {metric: loss, direction: minimize}
space:
  rate: {type: float, low: 0.001, high: 1.0, log: true}
  kind: {values: ["=plain", sgd]}
budget: {epochs: {min: 1, max: 3}, eta: 3}
search: {method: random, seed: 5}
stop: {trials: 4}
`

func (s *stage) create() protocol.StudyView {
	s.t.Helper()
	view, err := s.client(auth.Admin).CreateStudy(s.t.Context(), []byte(smallStudy), "application/yaml")
	if err != nil {
		s.t.Fatal(err)
	}
	return view
}

// stored creates the small study without a client and returns its id.
func (s *stage) stored() string {
	s.t.Helper()
	def, err := studyfile.Parse([]byte(smallStudy), studyfile.YAML)
	if err != nil {
		s.t.Fatal(err)
	}
	view, err := s.studies.CreateWarm(s.t.Context(), def, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return view.ID
}

const workerID = "worker-0001"

func registration() protocol.WorkerRegistration {
	return protocol.WorkerRegistration{ID: workerID, Name: "one", Slots: 2, Machine: protocol.Machine{Host: "here", Cores: 2}}
}

// introduce registers the worker without a client.
func (s *stage) introduce() {
	s.t.Helper()
	if _, err := s.studies.RegisterWorker(s.t.Context(), registration()); err != nil {
		s.t.Fatal(err)
	}
}

// worker registers a worker and returns its client.
func (s *stage) worker() *rest.Client {
	s.t.Helper()
	client := s.client(auth.Worker)
	if _, err := client.Register(s.t.Context(), registration()); err != nil {
		s.t.Fatal(err)
	}
	return client
}

// lease leases a trial; there must be one.
func (s *stage) lease(client *rest.Client) protocol.Lease {
	s.t.Helper()
	reply, err := client.Lease(s.t.Context(), protocol.LeaseRequest{Worker: workerID})
	if err != nil {
		s.t.Fatal(err)
	}
	if reply.Lease == nil {
		s.t.Fatal("there is nothing to lease")
	}
	return *reply.Lease
}

// train reports every epoch of the lease with the loss and finishes it.
func (s *stage) train(client *rest.Client, lease protocol.Lease, loss trial.Float) {
	s.t.Helper()
	for epoch := lease.FirstEpoch; epoch <= lease.Budget.Epochs; epoch++ {
		if _, err := client.Report(s.t.Context(), lease.Trial, reportOf(lease, epoch, loss)); err != nil {
			s.t.Fatal(err)
		}
	}
	if _, err := client.Finish(s.t.Context(), lease.Trial, protocol.FinishRequest{LeaseEpoch: lease.LeaseEpoch, Outcome: protocol.BudgetReached}); err != nil {
		s.t.Fatal(err)
	}
}

func reportOf(lease protocol.Lease, epoch int, loss trial.Float) protocol.Report {
	return protocol.Report{LeaseEpoch: lease.LeaseEpoch, Epoch: epoch, Metrics: map[string]trial.Float{"loss": loss}, Seconds: 1}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// eventually waits for a condition that another goroutine makes true.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	for !holds() {
		select {
		case <-ctx.Done():
			t.Fatal("never: " + what)
		case <-time.After(5 * time.Millisecond):
		}
	}
}
