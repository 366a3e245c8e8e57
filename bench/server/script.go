package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/e2e/launch"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

// scriptFile is the same study with a command that does nothing but report.
const scriptFile = `
name: nothing-to-train
command: [sh, -c, 'echo "{\"epoch\": 1, \"loss\": 0.5}"']
objective: [{metric: loss, direction: minimize}]
space: {x: {type: float, low: -5, high: 5}}
budget: {policy: epochs, epochs: {min: 1, max: 1}, eta: 3}
search: {method: bohb, seed: 7}
stop: {trials: %d}
`

// runScripts measures real worker processes, which start a shell for each
// trial, read its line, and ship its log.
func (b *bench) runScripts(ctx context.Context, folder string, o options) (measured result, err error) {
	server, err := launch.Serve(b.binary, filepath.Join(folder, "data"))
	if err != nil {
		return result{}, err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	client, err := rest.New(rest.Options{URL: server.URL, Token: server.Token})
	if err != nil {
		return result{}, err
	}
	for i := range o.workers {
		worker, err := launch.Start(b.binary, []string{"TANDEM_SERVER=" + server.URL, "TANDEM_TOKEN=" + server.Token},
			"worker", "--probe", "never", "--scratch", filepath.Join(folder, fmt.Sprintf("worker-%d", i)))
		if err != nil {
			return result{}, err
		}
		defer worker.Kill()
	}
	if err := waitForWorkers(ctx, client, o.workers); err != nil {
		return result{}, err
	}
	start := time.Now()
	study, err := client.CreateStudy(ctx, fmt.Appendf(nil, scriptFile, o.scripts), "application/yaml")
	if err != nil {
		return result{}, err
	}
	for study.Status == protocol.StudyRunning {
		time.Sleep(20 * time.Millisecond)
		if study, err = client.Study(ctx, study.ID); err != nil {
			return result{}, err
		}
	}
	seconds := time.Since(start).Seconds()
	if done := study.Progress.Trials[trial.Completed]; done != o.scripts {
		return result{}, fmt.Errorf("the study is %s with %d of %d trials completed", study.Status, done, o.scripts)
	}
	return result{Tool: "tandem, with a script", Trials: o.scripts, Workers: o.workers, Seconds: seconds, TrialsPerSecond: float64(o.scripts) / seconds}, nil
}

func waitForWorkers(ctx context.Context, client *rest.Client, count int) error {
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		workers, err := client.Workers(ctx)
		if err != nil || len(workers) == count {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%d of %d workers registered within a minute", len(workers), count)
		}
	}
}
