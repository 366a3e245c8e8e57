package main

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/tandem-tune/tandem/study/space"
)

//go:embed peers/*.py
var scripts embed.FS

// peer is another tool, run by a script, or in this process where it has none.
type peer struct {
	name, script string
	arguments    []string
}

// run returns the jobs that the peer finished, even when it fails in between or its
// time is up.
func (p peer) run(ctx context.Context, python string, jobs []*session, limit time.Duration) ([]finished, error) {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if p.script == "" {
		return runGoptuna(limited, jobs)
	}
	python, err := exec.LookPath(python)
	if err == nil {
		python, err = filepath.Abs(python) // the scripts run in a folder of their own
	}
	if err != nil {
		return nil, fmt.Errorf("%s: there is no interpreter with it (-python): %w", p.name, err)
	}
	return runPeer(limited, python, p, jobs)
}

// peers in the order in which they are started, the slow ones first.
func peers() []peer {
	return []peer{
		{name: "hpbandster", script: "hpbandster_bohb.py"},
		{name: "smac", script: "smac_peer.py"},
		{name: "optuna-gp", script: "optuna_peer.py", arguments: []string{"--sampler", "gp"}},
		{name: "optuna-auto", script: "optuna_peer.py", arguments: []string{"--sampler", "auto"}},
		{name: "optuna-tpe", script: "optuna_peer.py"},
		{name: "optuna-independent", script: "optuna_peer.py", arguments: []string{"--sampler", "independent"}},
		{name: "goptuna"},
		{name: "dehb", script: "dehb_peer.py"},
		{name: "random-full", script: "random_full.py"},
	}
}

// job is what a script is told about the run it has to do.
type job struct {
	Parameters []space.Parameter `json:"parameters"`
	MinEpochs  int               `json:"min_epochs"`
	MaxEpochs  int               `json:"max_epochs"`
	Eta        int               `json:"eta"`
	Seed       uint64            `json:"seed"`
}

// host serves one script: its jobs one after the other, and the oracle.
type host struct {
	mutex   sync.Mutex
	waiting []*session
	current *session
	done    []finished
}

func (h *host) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	var answer any
	var err error
	switch r.URL.Path {
	case "/next":
		answer, err = h.next()
	case "/train":
		var asked training
		if err = json.NewDecoder(r.Body).Decode(&asked); err == nil {
			answer, err = h.train(asked)
		}
	default:
		err = fmt.Errorf("there is no %s", r.URL.Path)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	//nolint:errcheck // a script that is gone gets no answer
	json.NewEncoder(w).Encode(answer)
}

// next is the next job, or nil when there is none.
func (h *host) next() (*job, error) {
	if h.current != nil && !h.current.spent() {
		return nil, fmt.Errorf("the job before has spent only %v of %v", h.current.cost, h.current.budget)
	}
	if h.current = nil; len(h.waiting) == 0 {
		return nil, nil
	}
	h.current, h.waiting = h.waiting[0], h.waiting[1:]
	def := h.current.table.definition
	return &job{
		Parameters: def.Space.Parameters, MinEpochs: def.Budget.Epochs.Min, MaxEpochs: def.Budget.Epochs.Max,
		Eta: def.Budget.Eta, Seed: h.current.seed,
	}, nil
}

// trained answers a training. A loss of null is NaN; done says that the budget
// is spent and the job over.
type trained struct {
	Losses []*float64 `json:"losses"`
	Done   bool       `json:"done"`
}

func (h *host) train(asked training) (trained, error) {
	if h.current == nil {
		return trained{}, errors.New("no job was asked for")
	}
	wasSpent := h.current.spent()
	losses, err := h.current.train(asked)
	if err != nil {
		return trained{}, err
	}
	answer := trained{Losses: []*float64{}, Done: h.current.spent()}
	for _, loss := range losses {
		var number *float64
		if !math.IsNaN(loss) {
			number = &loss
		}
		answer.Losses = append(answer.Losses, number)
	}
	if answer.Done && !wasSpent {
		h.done = append(h.done, h.current.finished)
	}
	return answer, nil
}

// runPeer starts the peer's script with the jobs. That its time is up is no error.
func runPeer(ctx context.Context, python string, one peer, jobs []*session) ([]finished, error) {
	folder, err := os.MkdirTemp("", "tandem-peer-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	if err := os.CopyFS(folder, scripts); err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	served := &host{waiting: jobs}
	server := &http.Server{Handler: served, ReadHeaderTimeout: time.Minute}
	go server.Serve(listener) //nolint:errcheck // ends with Close
	defer server.Close()

	arguments := append([]string{filepath.Join(folder, "peers", one.script), "--oracle", "http://" + listener.Addr().String()}, one.arguments...)
	command := exec.CommandContext(ctx, python, arguments...)
	command.Dir, command.WaitDelay = folder, 5*time.Second
	// One thread each: the machine is shared by two peers at a time.
	command.Env = append(os.Environ(), "OMP_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1", "PYTHONHASHSEED=0")
	output, err := command.CombinedOutput()
	served.mutex.Lock()
	defer served.mutex.Unlock()
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = nil // what it finished counts
	}
	if err != nil {
		err = fmt.Errorf("%s: %w: %s", one.name, err, lastLine(string(output)))
	}
	return served.done, err
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}
