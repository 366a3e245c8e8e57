package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/e2e/launch"
)

// longestRun bounds one training.
const longestRun = 10 * time.Minute

// training is LeNet-5 under a worker, for which one server runs all the time.
type training struct {
	python         string
	images, epochs int

	folder, binary string
	server         *launch.Server
	client         *rest.Client
	runs           int
}

func (t *training) workload() workload {
	return workload{"lenet", fmt.Sprintf("an epoch of examples/lenet-fashion-mnist under a worker, %d images", t.images), t.run}
}

// studyFile is one trial whose parameters are given.
func (t *training) studyFile(name string) []byte {
	return fmt.Appendf(nil, `
name: %s
command: [%q, train.py]
objective: {metric: accuracy, direction: maximize}
space:
  learning_rate: {type: float, low: 3e-4, high: 3e-2, log: true}
  learning_rate_decay: {type: float, low: 0.7, high: 1.0}
  batch_size: {type: ordinal, values: [16, 32, 64, 128]}
  dropout: {type: float, low: 0.0, high: 0.5}
  conv_channels: {type: int, low: 4, high: 24, log: true}
system: off
search:
  method: random
  seed: 1
  initial: [{learning_rate: 0.002, learning_rate_decay: 0.85, batch_size: 32, dropout: 0.15, conv_channels: 12}]
budget: {policy: epochs, epochs: {min: %d, max: %d}}
stop: {trials: 1}
`, name, t.python, t.epochs, t.epochs)
}

func (t *training) open(ctx context.Context) error {
	if t.server != nil {
		return nil
	}
	if t.epochs < 2 {
		return errors.New("at least 2 epochs: the first one is not timed")
	}
	if text, err := exec.CommandContext(ctx, t.python, "-c", "import torch, numpy").CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s needs PyTorch: %s", errSkip, t.python, lastLine(text))
	}
	var err error
	if t.folder, err = os.MkdirTemp("", "tandem-profiler-"); err != nil {
		return err
	}
	if t.binary, err = launch.Build(ctx, t.folder); err != nil {
		return err
	}
	if t.server, err = launch.Serve(t.binary, filepath.Join(t.folder, "data")); err != nil {
		return err
	}
	t.client, err = rest.New(rest.Options{URL: t.server.URL, Token: t.server.Token})
	return err
}

func (t *training) close() error {
	var err error
	if t.server != nil {
		err = t.server.Stop()
	}
	if t.folder != "" {
		err = errors.Join(err, os.RemoveAll(t.folder))
	}
	return err
}

func (t *training) run(ctx context.Context, profiled bool) (run, error) {
	if err := t.open(ctx); err != nil {
		return run{}, err
	}
	t.runs++
	name := fmt.Sprintf("run-%d", t.runs)
	if _, err := t.client.CreateStudy(ctx, t.studyFile(name), "application/yaml"); err != nil {
		return run{}, err
	}
	python, err := filepath.Abs("clients/python")
	if err != nil {
		return run{}, err
	}
	environment := []string{
		"TANDEM_SERVER=" + t.server.URL, "TANDEM_TOKEN=" + t.server.Token, "PYTHONPATH=" + python, fmt.Sprintf("FASHION_MNIST_IMAGES=%d", t.images),
	}
	arguments := []string{"worker", "--probe", "never", "--study", name, "--directory", "examples/lenet-fashion-mnist", "--scratch", filepath.Join(t.folder, name), "--pass-env", "FASHION_MNIST_*"}
	if !profiled {
		arguments = append(arguments, "--no-profile")
	}
	worker, err := launch.Start(t.binary, environment, arguments...)
	if err != nil {
		return run{}, err
	}
	defer worker.Kill()
	if err := worker.Wait(longestRun); err != nil {
		return run{}, fmt.Errorf("the worker: %w\n%s", err, worker.Output())
	}
	return t.result(ctx, name, worker)
}

// result is what the server says of the study's one trial.
func (t *training) result(ctx context.Context, name string, worker *launch.Process) (run, error) {
	ctx, stop := context.WithTimeout(ctx, time.Minute)
	defer stop()
	detail, err := t.client.Trial(ctx, name, 0)
	if err != nil {
		return run{}, err
	}
	reports := detail.Reports
	if len(reports) != t.epochs {
		return run{}, fmt.Errorf("the training reported %d of %d epochs:\n%s", len(reports), t.epochs, worker.Output())
	}
	got := run{Seconds: reports[t.epochs-1].At.Sub(reports[0].At).Seconds() / float64(t.epochs-1)}
	if profile := reports[t.epochs-1].Profile; profile != nil {
		got.Events, got.Level = len(profile.Events), profile.Level
	}
	return got, nil
}
