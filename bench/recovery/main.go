// Command recovery kills things that cannot say goodbye and measures how long
// a study takes to go on.
//
//	go run ./bench/recovery                     # 5 studies at once, leases of 60 s
//	go run ./bench/recovery -lease-seconds 10
//
// Each run has a server, two workers with one slot, and one long trial that
// checkpoints every epoch. First the server is killed (SIGKILL) and started
// again; then the worker that holds the trial is killed, and the other one
// takes over. The runs only wait, so they share the machine.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/tandem-tune/tandem/bench/program"
	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/e2e/launch"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

// studyFile is one trial of many short epochs, in shell.
const studyFile = `
name: recovery
command:
  - sh
  - -c
  - |
    epoch=$TANDEM_FIRST_EPOCH
    while [ "$epoch" -le "$TANDEM_EPOCHS" ]; do
      sleep 0.3
      echo "$epoch" > "$TANDEM_CHECKPOINT_DIR/state"
      echo "{\"epoch\": $epoch, \"loss\": 1, \"checkpoint\": true}"
      epoch=$((epoch + 1))
    done
objective: {metric: loss, direction: minimize}
space: {x: {type: float, low: 0, high: 1}}
budget: {policy: epochs, epochs: {min: 100000, max: 100000}}
stop: {trials: 1}
`

// result is one run.
type result struct {
	LeaseSeconds float64 `json:"lease_seconds"`
	// ServerSeconds is from the start of the new server to the first epoch it
	// acknowledged.
	ServerSeconds float64 `json:"server_back_seconds"`
	// WorkerSeconds is from the worker's death to the next worker's lease.
	WorkerSeconds float64 `json:"worker_replaced_seconds"`
	// Checkpoint is the epoch the dead worker committed last, FirstEpoch the
	// one the next worker began with.
	Checkpoint int `json:"checkpoint_epoch"`
	FirstEpoch int `json:"first_epoch"`
}

func main() {
	runs := flag.Int("runs", 5, "studies at once")
	lease := flag.Float64("lease-seconds", 60, "how long a lease lives without a heartbeat")
	flag.Parse()
	program.Run("bench/recovery", func(ctx context.Context) error { return measure(ctx, *runs, *lease) })
}

func measure(ctx context.Context, runs int, lease float64) error {
	folder, err := os.MkdirTemp("", "tandem-recovery-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	binary, err := launch.Build(ctx, folder)
	if err != nil {
		return err
	}
	type answer struct {
		result
		err error
	}
	answers := make(chan answer, runs)
	for i := range runs {
		go func() {
			s := &site{binary: binary, folder: filepath.Join(folder, fmt.Sprint(i)), lease: lease}
			measured, err := s.run(ctx)
			answers <- answer{measured, errors.Join(err, s.close())}
		}()
	}
	var servers, workers []float64
	for range runs {
		got := <-answers
		err = errors.Join(err, got.err)
		line, marshal := json.Marshal(got.result)
		if marshal != nil {
			return marshal
		}
		fmt.Println(string(line))
		servers, workers = append(servers, got.ServerSeconds), append(workers, got.WorkerSeconds)
	}
	fmt.Printf("\nserver back   %s s after its start\nworker lost   %s s until the next one has the trial (lease %g s)\n", spread(servers), spread(workers), lease)
	return err
}

func spread(values []float64) string {
	slices.Sort(values)
	return fmt.Sprintf("%.2f (%.2f to %.2f)", values[len(values)/2], values[0], values[len(values)-1])
}

// site is one run's server and workers.
type site struct {
	binary, folder, listen, token string
	lease                         float64
	server                        *launch.Server
	client                        *rest.Client
	workers                       map[string]*launch.Process
}

func (s *site) run(ctx context.Context) (result, error) {
	measured := result{LeaseSeconds: s.lease}
	if err := s.open(ctx); err != nil {
		return measured, err
	}
	if _, err := s.epochs(ctx, 5); err != nil {
		return measured, err
	}
	s.server.Kill()
	if err := s.serve(); err != nil {
		return measured, err
	}
	started := time.Now()
	before, err := s.trial(ctx)
	if err != nil {
		return measured, err
	}
	if _, err := s.epochs(ctx, before.Epochs+1); err != nil {
		return measured, err
	}
	measured.ServerSeconds = time.Since(started).Seconds()
	return s.loseWorker(ctx, before.Epochs+5, measured)
}

// loseWorker kills the worker that holds the trial once the trial has the
// epochs, and waits for the other one.
func (s *site) loseWorker(ctx context.Context, epochs int, measured result) (result, error) {
	held, err := s.epochs(ctx, epochs)
	if err != nil {
		return measured, err
	}
	for name, worker := range s.workers {
		if len(held.Worker) > len(name) && held.Worker[:len(name)] == name {
			worker.Kill()
		}
	}
	died := time.Now()
	last, err := s.trial(ctx)
	if err != nil {
		return measured, err
	}
	for last.LeaseEpoch == held.LeaseEpoch {
		if last.Checkpoint != nil {
			measured.Checkpoint = last.Checkpoint.Epoch
		}
		if time.Since(died).Seconds() > s.lease+60 {
			return measured, fmt.Errorf("the trial was not taken over: it is %s", last.State)
		}
		time.Sleep(50 * time.Millisecond)
		if last, err = s.trial(ctx); err != nil {
			return measured, err
		}
	}
	measured.WorkerSeconds = time.Since(died).Seconds()
	view, err := s.client.Study(ctx, "recovery")
	if err != nil {
		return measured, err
	}
	measured.FirstEpoch = last.NextEpoch(view.Rungs[0])
	return measured, nil
}

func (s *site) open(ctx context.Context) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s.listen = listener.Addr().String()
	if err := listener.Close(); err != nil {
		return err
	}
	if err := s.serve(); err != nil {
		return err
	}
	s.token = s.server.Token
	if s.client, err = rest.New(rest.Options{URL: s.server.URL, Token: s.token}); err != nil {
		return err
	}
	s.workers = map[string]*launch.Process{}
	for _, name := range []string{"first", "second"} {
		environment := []string{"TANDEM_SERVER=" + s.server.URL, "TANDEM_TOKEN=" + s.token}
		worker, err := launch.Start(s.binary, environment, "worker", "--probe", "never", "--name", name, "--scratch", filepath.Join(s.folder, name))
		if err != nil {
			return err
		}
		s.workers[name] = worker
	}
	_, err = s.client.CreateStudy(ctx, []byte(studyFile), "application/yaml")
	return err
}

func (s *site) serve() (err error) {
	s.server, err = launch.Serve(s.binary, filepath.Join(s.folder, "data"), "--listen", s.listen, "--lease-seconds", fmt.Sprint(s.lease), "--heartbeat-seconds", fmt.Sprint(s.lease/6))
	return err
}

func (s *site) trial(ctx context.Context) (trial.Trial, error) {
	page, err := s.client.Trials(ctx, "recovery", protocol.TrialQuery{})
	if err != nil || len(page.Trials) == 0 {
		return trial.Trial{}, err
	}
	return page.Trials[0].Trial, nil
}

// epochs waits until the trial has that many.
func (s *site) epochs(ctx context.Context, wanted int) (trial.Trial, error) {
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		now, err := s.trial(ctx)
		if err != nil || now.Epochs >= wanted {
			return now, err
		}
		if time.Now().After(deadline) {
			return now, fmt.Errorf("two minutes passed without %d epochs: the trial is %s with %d", wanted, now.State, now.Epochs)
		}
	}
}

func (s *site) close() error {
	for _, worker := range s.workers {
		worker.Kill()
	}
	if s.server == nil {
		return nil
	}
	return s.server.Stop()
}
