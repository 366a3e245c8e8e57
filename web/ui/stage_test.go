package ui_test

import (
	"encoding/json"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/store/artifact"
	"github.com/tandem-tune/tandem/store/memory"
	"github.com/tandem-tune/tandem/study"
	"github.com/tandem-tune/tandem/study/studyfile"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/web/api"
	"github.com/tandem-tune/tandem/web/auth"
	"github.com/tandem-tune/tandem/web/guard"
	"github.com/tandem-tune/tandem/web/hooks"
	"github.com/tandem-tune/tandem/web/ui"
	"github.com/tandem-tune/tandem/web/usecases"
)

// clock is real time, except that a simulation may put it to a moment.
type clock struct {
	mutex  sync.Mutex
	pinned time.Time
}

func (c *clock) now() time.Time {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.pinned.IsZero() {
		return time.Now()
	}
	return c.pinned
}

// pin puts the clock to a moment; the zero moment lets it run again.
func (c *clock) pin(at time.Time) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.pinned = at
}

// stage is a whole server on a loopback port, as tandem assembles it: the real
// use cases, API and pages, on a store in memory.
type stage struct {
	t       *testing.T
	clock   *clock
	store   *memory.Store
	studies *study.Service
	hooks   *hooks.Service
	url     string
	tokens  map[auth.Scope]string

	server   *httptest.Server
	foreseen foreseen
	placed   atomic.Pointer[protocol.Pool]        // what GET /pool answers instead of what is so
	expected atomic.Pointer[protocol.GPUExpected] // what answers about a trial say beside what is so
	away     atomic.Bool                          // every connection is cut before an answer
}

// pages are the same on every stage; they are parsed once.
var pages = sync.OnceValue(ui.Handler)

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{t: t, clock: &clock{}, store: memory.New(), tokens: map[auth.Scope]string{}}
	random := rand.New(rand.NewPCG(20, 26))
	var mutex sync.Mutex
	s.studies = study.New(s.store, s.store, study.Options{Now: s.clock.now, Users: auth.NewAuthenticator(s.store, s.clock.now).Users, Random: func() uint64 {
		mutex.Lock()
		defer mutex.Unlock()
		return random.Uint64()
	}})
	if err := s.studies.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	var err error
	s.hooks, err = hooks.New(t.Context(), hooks.Options{Now: s.clock.now, Logger: slog.New(slog.DiscardHandler), Store: s.store, Newest: s.studies.Newest})
	if err != nil {
		t.Fatal(err)
	}
	for _, scope := range []auth.Scope{auth.Admin, auth.User, auth.Viewer} {
		secret, _, err := auth.Issue(t.Context(), s.store, auth.Request{Name: "browser", Scope: scope})
		if err != nil {
			t.Fatal(err)
		}
		s.tokens[scope] = secret
	}
	artifacts, err := artifact.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	handler := api.New(api.Config{
		Studies: usecases.New(s.studies), Artifacts: artifacts, Forecasts: &s.foreseen, Hooks: s.hooks,
		Config: guard.Config{Tokens: s.store, UI: pages(), Logger: slog.New(slog.DiscardHandler)},
	})
	s.server = httptest.NewUnstartedServer(s.breakable(handler))
	s.server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	s.server.Start()
	t.Cleanup(func() {
		s.server.CloseClientConnections()
		s.server.Close()
	})
	s.url = s.server.URL
	return s
}

func (s *stage) breakable(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.away.Load() {
			panic(http.ErrAbortHandler)
		}
		if pool := s.placed.Load(); pool != nil && r.URL.Path == "/api/v1/pool" {
			w.Header().Set("Content-Type", "application/json")
			json.NewEncoder(w).Encode(pool) //nolint:errcheck // the browser went away
			return
		}
		if expected := s.expected.Load(); expected != nil && aboutTrial.MatchString(r.URL.Path) {
			s.expecting(expected, next, w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

var aboutTrial = regexp.MustCompile(`^/api/v1/studies/[^/]+/trials/[0-9]+$`)

// expecting answers about a trial, with what it should use of GPUs, and a cost.
func (s *stage) expecting(expected *protocol.GPUExpected, next http.Handler, w http.ResponseWriter, r *http.Request) {
	r.Header.Del("Accept-Encoding")
	told := httptest.NewRecorder()
	next.ServeHTTP(told, r)
	if told.Code != http.StatusOK {
		w.Header().Set("Content-Type", told.Header().Get("Content-Type"))
		w.WriteHeader(told.Code)
		w.Write(told.Body.Bytes()) //nolint:errcheck // the browser went away
		return
	}
	var detail map[string]any
	if err := json.Unmarshal(told.Body.Bytes(), &detail); err != nil {
		s.t.Errorf("%s: %v", r.URL.Path, err)
	}
	detail["gpu_expected"] = expected
	detail["trial"].(map[string]any)["cost"] = map[string]any{"amount": 0.4213, "currency": "EUR", "co2_g": 12.5, "method": modelled}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(detail) //nolint:errcheck // the browser went away
}

// vanish cuts the server off from the browser, as a restart does.
func (s *stage) vanish() {
	s.away.Store(true)
	s.server.CloseClientConnections()
}

func (s *stage) comeBack() { s.away.Store(false) }

// create makes a study from a study file.
func (s *stage) create(file string) protocol.StudyView {
	s.t.Helper()
	def, err := studyfile.Parse([]byte(file), studyfile.YAML)
	if err != nil {
		s.t.Fatal(err)
	}
	view, err := s.studies.CreateWarm(s.t.Context(), def, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return view
}

// register makes a worker known.
func (s *stage) register(worker protocol.WorkerRegistration) {
	s.t.Helper()
	if _, err := s.studies.RegisterWorker(s.t.Context(), worker); err != nil {
		s.t.Fatal(err)
	}
}

const handID = "worker-hand"

// hand is a worker that a test moves step by step.
type hand struct{ *stage }

func (s *stage) hand() hand {
	s.t.Helper()
	s.register(protocol.WorkerRegistration{ID: handID, Name: "by-hand", Slots: 8, Machine: protocol.Machine{Host: "here", Cores: 2}})
	return hand{s}
}

// lease takes a trial of the study; there must be one.
func (h hand) lease(study string) protocol.Lease {
	h.t.Helper()
	reply, err := h.studies.Lease(h.t.Context(), protocol.LeaseRequest{Worker: handID, Study: study})
	if err != nil {
		h.t.Fatal(err)
	}
	if reply.Lease == nil {
		h.t.Fatalf("there is nothing to lease in study %s", study)
	}
	return *reply.Lease
}

// report reports one epoch with the study's objective.
func (h hand) report(lease protocol.Lease, epoch int, value float64) protocol.Directive {
	h.t.Helper()
	directive, err := h.studies.Report(h.t.Context(), lease.Trial, protocol.Report{
		LeaseEpoch: lease.LeaseEpoch, Epoch: epoch, Seconds: 2, Metrics: map[string]trial.Float{lease.Objectives[0]: trial.Float(value)},
		Energy: &trial.Energy{Joules: 15, Method: modelled},
		Profile: &trial.Profile{
			Level: "user mode only", RunFraction: 0.5, Events: map[string]trial.Float{"instructions": trial.Float(epoch) * 1e9, "major-faults": 0},
			Host: map[string]trial.Float{"tree.threads": 4},
		},
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return directive
}

// train reports every epoch of the lease with the value and finishes it.
func (h hand) train(lease protocol.Lease, value float64) {
	h.t.Helper()
	for epoch := lease.FirstEpoch; epoch <= lease.Budget.Epochs; epoch++ {
		h.report(lease, epoch, value)
	}
	h.finish(lease, protocol.BudgetReached, "")
}

func (h hand) finish(lease protocol.Lease, outcome protocol.Outcome, reason string) {
	h.t.Helper()
	_, err := h.studies.Finish(h.t.Context(), lease.Trial, protocol.FinishRequest{LeaseEpoch: lease.LeaseEpoch, Outcome: outcome, Reason: reason})
	if err != nil {
		h.t.Fatal(err)
	}
}

// print appends a line to the trial's log.
func (h hand) print(lease protocol.Lease, offset int64, line string) {
	h.t.Helper()
	err := h.studies.AppendLog(h.t.Context(), lease.Trial, protocol.LogChunk{LeaseEpoch: lease.LeaseEpoch, Offset: offset, Text: line + "\n"})
	if err != nil {
		h.t.Fatal(err)
	}
}

// fetch asks for a page or a resource without a browser.
func (s *stage) fetch(path, token string) *http.Response {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.url+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	if token != "" {
		request.AddCookie(s.session(token))
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { response.Body.Close() })
	return response
}

// session signs in and returns the cookie.
func (s *stage) session(token string) *http.Cookie {
	s.t.Helper()
	response, err := http.Post(s.url+"/api/v1/session", "application/json", strings.NewReader(`{"token":"`+token+`"}`))
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusNoContent || len(response.Cookies()) != 1 {
		s.t.Fatalf("sign in: %s", response.Status)
	}
	return response.Cookies()[0]
}
