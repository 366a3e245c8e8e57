package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/e2e/launch"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

// finishedBefore is how many trials are finished before a suggestion's latency
// counts.
const finishedBefore = 1000

// result is one run. Latencies are in milliseconds, as the client sees them.
type result struct {
	Tool            string  `json:"tool"`
	Trials          int     `json:"trials"`
	Workers         int     `json:"workers"`
	Seconds         float64 `json:"seconds"`
	TrialsPerSecond float64 `json:"trials_per_second"`
	SuggestP50      float64 `json:"suggest_p50_ms"`
	SuggestP99      float64 `json:"suggest_p99_ms"`
	ReportP50       float64 `json:"report_p50_ms"`
}

type bench struct {
	binary   string
	database *launch.Database // nil without PostgreSQL
}

func newBench(ctx context.Context, folder string) (*bench, error) {
	binary, err := launch.Build(ctx, folder)
	return &bench{binary: binary}, err
}

// studyFile has one rung, so that every trial is a new configuration.
const studyFile = `
name: nothing-to-train
command: [nothing]
objective: [{metric: loss, direction: minimize}]
space:
  x: {type: float, low: -5, high: 5}
  y: {type: float, low: 1e-5, high: 1, log: true}
  z: {type: int, low: 1, high: 64}
  c: {type: categorical, values: [a, b, c]}
budget: {policy: epochs, epochs: {min: 1, max: 1}, eta: 3}
search: {method: %s, seed: 7}
stop: {trials: %d}
`

// runOnPostgreSQL is a run whose server has a new database there.
func (b *bench) runOnPostgreSQL(ctx context.Context, data string, number int, o options) (measured result, err error) {
	address, err := b.database.Create(ctx, fmt.Sprintf("run_%d", number))
	if err != nil {
		return result{}, err
	}
	measured, err = b.run(ctx, data, o, "--database", address)
	measured.Tool = "tandem on PostgreSQL"
	return measured, err
}

func (b *bench) run(ctx context.Context, data string, o options, args ...string) (measured result, err error) {
	server, err := launch.Serve(b.binary, data, args...)
	if err != nil {
		return result{}, err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	client, err := rest.New(rest.Options{URL: server.URL, Token: server.Token})
	if err != nil {
		return result{}, err
	}
	study, err := client.CreateStudy(ctx, fmt.Appendf(nil, studyFile, o.method, o.trials), "application/yaml")
	if err != nil {
		return result{}, err
	}
	fleet := &workers{client: client, study: study.ID}
	start := time.Now()
	if err := fleet.work(ctx, o.workers); err != nil {
		return result{}, err
	}
	seconds := time.Since(start).Seconds()
	view, err := client.Study(ctx, study.ID)
	if err != nil {
		return result{}, err
	}
	if done := view.Progress.Trials[trial.Completed]; done != o.trials || view.Status != protocol.StudyCompleted {
		return result{}, fmt.Errorf("the study is %s with %d of %d trials completed", view.Status, done, o.trials)
	}
	slices.Sort(fleet.suggests)
	slices.Sort(fleet.reports)
	return result{
		Tool: "tandem", Trials: o.trials, Workers: o.workers, Seconds: seconds, TrialsPerSecond: float64(o.trials) / seconds,
		SuggestP50: quantile(fleet.suggests, 0.5), SuggestP99: quantile(fleet.suggests, 0.99), ReportP50: quantile(fleet.reports, 0.5),
	}, nil
}

// workers are clients that train nothing.
type workers struct {
	client *rest.Client
	study  string

	mutex             sync.Mutex
	finished          int
	suggests, reports []float64 // milliseconds
}

func (w *workers) work(ctx context.Context, count int) error {
	failures := make(chan error, count)
	for i := range count {
		go func() { failures <- w.worker(ctx, fmt.Sprintf("bench-worker-%d", i)) }()
	}
	var err error
	for range count {
		err = errors.Join(err, <-failures)
	}
	return err
}

func (w *workers) worker(ctx context.Context, id string) error {
	if _, err := w.client.Register(ctx, protocol.WorkerRegistration{ID: id, Name: id, Slots: 1}); err != nil {
		return err
	}
	for {
		asked := time.Now()
		reply, err := w.client.Lease(ctx, protocol.LeaseRequest{Worker: id, Study: w.study, WaitSeconds: 10})
		suggest := time.Since(asked)
		if err != nil || reply.StudyFinished {
			return err
		}
		if reply.Lease == nil {
			continue
		}
		report, err := w.train(ctx, reply.Lease)
		if err != nil {
			return err
		}
		w.note(suggest, report)
	}
}

func (w *workers) train(ctx context.Context, lease *protocol.Lease) (time.Duration, error) {
	x, _ := lease.Params["x"].Number()
	sent := time.Now()
	_, err := w.client.Report(ctx, lease.Trial, protocol.Report{
		LeaseEpoch: lease.LeaseEpoch, Epoch: 1, Metrics: map[string]trial.Float{"loss": trial.Float(x * x)},
	})
	took := time.Since(sent)
	if err != nil {
		return took, err
	}
	_, err = w.client.Finish(ctx, lease.Trial, protocol.FinishRequest{LeaseEpoch: lease.LeaseEpoch, Outcome: protocol.BudgetReached})
	return took, err
}

func (w *workers) note(suggest, report time.Duration) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.finished++; w.finished > finishedBefore {
		w.suggests = append(w.suggests, suggest.Seconds()*1000)
		w.reports = append(w.reports, report.Seconds()*1000)
	}
}

// optunaResult is one run of bench/server/optuna_sqlite.py.
type optunaResult struct {
	Tool            string  `json:"tool"`
	Version         string  `json:"version"`
	Trials          int     `json:"trials"`
	Workers         int     `json:"workers"`
	Seconds         float64 `json:"seconds"`
	TrialsPerSecond float64 `json:"trials_per_second"`
}

func runOptuna(ctx context.Context, o options, database string) (optunaResult, error) {
	command := exec.CommandContext(ctx, o.optuna, "bench/server/optuna_sqlite.py",
		"--database", database, "--trials", fmt.Sprint(o.optunaTrials), "--workers", fmt.Sprint(o.workers))
	output, err := command.Output()
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			err = fmt.Errorf("%w: %s", err, exit.Stderr)
		}
		return optunaResult{}, fmt.Errorf("optuna: %w", err)
	}
	return readOptuna(strings.TrimSpace(string(output)))
}

func readOptuna(line string) (optunaResult, error) {
	var measured optunaResult
	if err := json.Unmarshal([]byte(line), &measured); err != nil {
		return measured, fmt.Errorf("optuna printed %q: %w", line, err)
	}
	return measured, nil
}
