package script

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/agent/clock"
)

// handler serves a script's calls over HTTP.
type handler struct{ calls Calls }

func (h handler) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/trial", h.answer(func(*http.Request) (any, error) { return h.calls.Trial(), nil }))
	mux.HandleFunc("GET /v1/directive", h.answer(func(*http.Request) (any, error) { return h.calls.Directive(), nil }))
	mux.HandleFunc("POST /v1/begin", h.answer(h.postBegin))
	mux.HandleFunc("POST /v1/report", h.answer(h.postReport))
	mux.HandleFunc("POST /v1/checkpoint", h.answer(h.postCheckpoint))
	mux.HandleFunc("POST /v1/next", h.answer(h.postNext))
	mux.HandleFunc("PUT /v1/model", h.answerUpTo(largestModel, h.putModel))
	mux.HandleFunc("PUT /v1/artifacts/{name}", h.answerUpTo(trial.LargestModel, func(request *http.Request) (any, error) {
		return struct{}{}, h.calls.Artifact(request.PathValue("name"), request.Body)
	}))
	mux.HandleFunc("/", h.answer(func(request *http.Request) (any, error) {
		return nil, problem.New(problem.NotFound, "there is no %s %s: see docs/training-scripts.md for the calls", request.Method, request.URL.Path)
	}))
	return mux
}

// answer writes what a call returns.
func (h handler) answer(call func(*http.Request) (any, error)) http.HandlerFunc {
	return h.answerUpTo(largestBody, call)
}

// answerUpTo is answer for a body of at most so many bytes.
func (h handler) answerUpTo(most int64, call func(*http.Request) (any, error)) http.HandlerFunc {
	return func(out http.ResponseWriter, request *http.Request) {
		pid, _ := request.Context().Value(peer{}).(int)
		err := h.calls.Admit(request.Context(), pid)
		if err == nil {
			err = h.calls.Called()
		}
		var content any
		if err == nil {
			request.Body = http.MaxBytesReader(out, request.Body, most)
			content, err = call(request)
		}
		respond(out, content, err)
	}
}

func (h handler) postBegin(request *http.Request) (any, error) {
	var body struct {
		Epoch int `json:"epoch"`
	}
	if err := decode(request, &body); err != nil {
		return nil, err
	}
	return struct{}{}, h.calls.Begin(body.Epoch)
}

func (h handler) postReport(request *http.Request) (any, error) {
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
	return h.calls.Report(Outcome{Epoch: body.Epoch, Metrics: body.Metrics, System: body.System})
}

func (h handler) postCheckpoint(request *http.Request) (any, error) {
	var body struct {
		Epoch int `json:"epoch"`
	}
	if err := decode(request, &body); err != nil {
		return nil, err
	}
	return h.calls.Checkpoint(body.Epoch, request.URL.Query().Get("wait") != "false")
}

// putModel takes what the script trains, or what it trained in a precision.
func (h handler) putModel(request *http.Request) (any, error) {
	query := request.URL.Query()
	if !query.Has("precision") {
		return struct{}{}, h.calls.Model(request.Body)
	}
	value, err := strconv.ParseFloat(query.Get("value"), 64)
	if err != nil {
		return nil, problem.WithFields("the precision is not valid", []problem.Field{{Path: "value", Value: query.Get("value"), Message: "must be what the model is worth, a number such as 0.91"}})
	}
	samples, err := strconv.Atoi(query.Get("samples"))
	if err != nil {
		return nil, problem.WithFields("the precision is not valid", []problem.Field{{Path: "samples", Value: query.Get("samples"), Message: "must be on how many samples that was measured, such as 1000"}})
	}
	said := trial.Precision{Name: query.Get("precision"), Value: trial.Float(value), Samples: samples}
	if faults := said.Faults(); len(faults) > 0 {
		return nil, problem.WithFields("the precision is not valid", faults)
	}
	return struct{}{}, h.calls.ModelIn(request.Body, said, query.Get("more") == "true")
}

// postNext ends the run as if the script had ended with code 0, and waits for
// another one.
func (h handler) postNext(request *http.Request) (any, error) {
	if err := decode(request, &struct{}{}); err != nil {
		return nil, err
	}
	call := h.calls.Next()
	if call == nil {
		return Next{}, nil
	}
	defer close(call.gone)
	select {
	case answer := <-call.answer:
		return answer, nil
	case <-request.Context().Done():
		return nil, problem.New(problem.Conflict, "the script has hung up")
	}
}

// Asking is a script's call for its next trial, which is held open.
type Asking struct {
	answer chan Next     // has room for all answers there can be
	gone   chan struct{} // closed when nobody waits for them any more
	at     clock.Moment
}

// NewAsking is a call that was made at the moment.
func NewAsking(at clock.Moment) *Asking {
	return &Asking{answer: make(chan Next, 1), gone: make(chan struct{}), at: at}
}

// Answer ends the call. It is called once.
func (a *Asking) Answer(answer Next) { a.answer <- answer }

// Gone is closed when the script has its answer or has hung up.
func (a *Asking) Gone() <-chan struct{} { return a.gone }

// At is when the call was made.
func (a *Asking) At() clock.Moment { return a.at }

// Next is what POST /v1/next answers: the variables of the next trial. Without
// Next there is none for this process, which is to end.
type Next struct {
	Next        bool              `json:"next"`
	Environment map[string]string `json:"environment,omitempty"`
}

// Checkpoint is what POST /v1/checkpoint answers.
type Checkpoint struct {
	Artifact string `json:"artifact"`
	Bytes    int64  `json:"bytes"`
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
		for _, field := range d.Errors { // which clients say themselves
			d.Detail = strings.Replace(d.Detail, "\n  "+field.String(), "", 1)
		}
	}
	return d
}
