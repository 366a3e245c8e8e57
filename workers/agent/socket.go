package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/trial"
)

const (
	headerPatience = 5 * time.Second
	largestBody    = 1 << 20
)

// socket serves one run's script: HTTP and JSON on a unix socket in a folder
// only this user can enter, so it asks for no token.
type socket struct {
	server *http.Server
	done   sync.WaitGroup
}

func listen(r *run) (*socket, error) {
	listener, err := net.Listen("unix", r.place.Socket)
	if err != nil {
		return nil, fmt.Errorf("open the script's socket: %w", err)
	}
	if err := os.Chmod(r.place.Socket, 0o600); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/trial", r.answer(r.getTrial))
	mux.HandleFunc("GET /v1/directive", r.answer(r.getDirective))
	mux.HandleFunc("POST /v1/begin", r.answer(r.postBegin))
	mux.HandleFunc("POST /v1/report", r.answer(r.postReport))
	mux.HandleFunc("POST /v1/checkpoint", r.answer(r.postCheckpoint))
	mux.HandleFunc("POST /v1/next", r.answer(r.postNext))
	mux.HandleFunc("PUT /v1/model", r.answerUpTo(maxModelBytes, r.putModel))
	mux.HandleFunc("/", r.answer(func(request *http.Request) (any, error) {
		return nil, problem.New(problem.NotFound, "there is no %s %s: see docs/training-scripts.md for the calls", request.Method, request.URL.Path)
	}))
	s := &socket{server: &http.Server{
		ConnContext: withPeer,
		Handler:     mux, ReadHeaderTimeout: headerPatience, MaxHeaderBytes: 16 << 10,
		ErrorLog: log.New(io.Discard, "", 0), // a script that hangs up is no news
	}}
	s.done.Go(func() { _ = s.server.Serve(listener) }) // returns when it is closed
	return s, nil
}

// close hangs up on everybody: the script has ended.
func (s *socket) close() {
	_ = s.server.Close() // nothing can be done about a socket that does not close
	s.done.Wait()
}

// answer writes what a call returns. The first call shows that the script has
// a client. After it has asked for another trial there is no other call.
func (r *run) answer(call func(*http.Request) (any, error)) http.HandlerFunc {
	return r.answerUpTo(largestBody, call)
}

// answerUpTo is answer for a body of at most so many bytes.
func (r *run) answerUpTo(most int64, call func(*http.Request) (any, error)) http.HandlerFunc {
	seat := r.seat
	return func(out http.ResponseWriter, request *http.Request) {
		if err := seat.admits(request.Context()); err != nil {
			respond(out, nil, err)
			return
		}
		r.mutex.Lock()
		r.client = true
		over := r.asking != nil
		r.mutex.Unlock()
		request.Body = http.MaxBytesReader(out, request.Body, most)
		if over {
			call = r.isOver
		}
		content, err := call(request)
		respond(out, content, err)
	}
}

// respond writes what a call returned.
func respond(out http.ResponseWriter, content any, err error) {
	status, kind := http.StatusOK, "application/json"
	if err != nil {
		document := newDocument(err)
		content, status, kind = document, document.Status, "application/problem+json"
	}
	body, err := json.Marshal(content)
	if err != nil {
		status, body = http.StatusInternalServerError, []byte(`{"title":"Internal Server Error","status":500,"code":"internal"}`)
	}
	out.Header().Set("Content-Type", kind)
	out.WriteHeader(status)
	_, _ = out.Write(body) // a script that hung up asks again
}

// trialAnswer is what GET /v1/trial answers.
type trialAnswer struct {
	Trial         trial.ID               `json:"trial_id"`
	Study         string                 `json:"study"`
	Number        int                    `json:"number"`
	Params        space.Configuration    `json:"params"`
	System        map[string]space.Value `json:"system"`
	Budget        budget.Budget          `json:"budget"`
	FirstEpoch    int                    `json:"first_epoch"`
	Rung          int                    `json:"rung"`
	Seed          uint64                 `json:"seed"`
	CheckpointDir string                 `json:"checkpoint_dir"`
	Objectives    []string               `json:"objectives"`
}

func (r *run) getTrial(*http.Request) (any, error) {
	return trialAnswer{
		Trial: r.lease.Trial, Study: r.lease.Study, Number: r.lease.Number,
		Params: orEmpty(r.lease.Params), System: orEmpty(r.settings.Wanted()),
		Budget: r.lease.Budget, FirstEpoch: r.lease.FirstEpoch, Rung: r.lease.Rung, Seed: r.lease.Seed,
		CheckpointDir: r.place.Checkpoint, Objectives: append([]string{}, r.lease.Objectives...),
	}, nil
}

func (r *run) getDirective(*http.Request) (any, error) {
	return r.tell(protocol.Directive{}), nil
}

func (r *run) postReport(request *http.Request) (any, error) {
	var body struct {
		Epoch   int                    `json:"epoch"`
		Metrics map[string]trial.Float `json:"metrics"`
		System  map[string]space.Value `json:"system"`
	}
	if err := decode(request, &body); err != nil {
		return nil, err
	}
	if err := checkSystem(body.System); err != nil {
		return nil, err
	}
	directive, err := r.report(outcome{epoch: body.Epoch, metrics: body.Metrics, system: body.System})
	if err != nil {
		return nil, err
	}
	return r.tell(directive), nil
}

// checkpointAnswer is what POST /v1/checkpoint answers.
type checkpointAnswer struct {
	Artifact string `json:"artifact"`
	Bytes    int64  `json:"bytes"`
}

func (r *run) postCheckpoint(request *http.Request) (any, error) {
	var body struct {
		Epoch int `json:"epoch"`
	}
	if err := decode(request, &body); err != nil {
		return nil, err
	}
	r.publishes.Store(true)
	packed, err := r.commit(body.Epoch)
	if err != nil {
		return nil, err
	}
	return checkpointAnswer{Artifact: packed.sha256, Bytes: packed.bytes}, nil
}

// decode reads one JSON document and nothing else.
func decode(request *http.Request, into any) error {
	content, err := io.ReadAll(request.Body)
	if tooLarge := new(http.MaxBytesError); errors.As(err, &tooLarge) {
		return problem.New(problem.Exhausted, "the request has more than %d bytes", tooLarge.Limit)
	}
	if err != nil {
		return problem.New(problem.Invalid, "read the request: %w", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return undecodable{problem.New(problem.Invalid, "the request is not the JSON this call takes: %w", err)}
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return undecodable{problem.New(problem.Invalid, "there is something behind the JSON document")}
	}
	return nil
}

// undecodable is an invalid request that could not even be read.
type undecodable struct{ problem error }

func (u undecodable) Error() string { return u.problem.Error() }

func (u undecodable) Unwrap() error { return u.problem }

// document is an error in the form of RFC 9457, as the server's are.
type document struct {
	Type   string          `json:"type"`
	Title  string          `json:"title"`
	Status int             `json:"status"`
	Detail string          `json:"detail"`
	Code   problem.Code    `json:"code"`
	Errors []problem.Field `json:"errors,omitempty"`
}

func newDocument(err error) document {
	code := problem.CodeOf(err)
	d := document{Type: "about:blank", Status: protocol.StatusOf(code), Detail: err.Error(), Code: code}
	switch {
	case errors.As(err, new(undecodable)):
		d.Status = http.StatusBadRequest
	case code == problem.Exhausted: // a checkpoint or a report beyond its bound
		d.Status = http.StatusRequestEntityTooLarge
	}
	d.Title = http.StatusText(d.Status)
	if detailed := new(problem.Error); errors.As(err, &detailed) {
		d.Errors = detailed.Fields
	}
	return d
}
