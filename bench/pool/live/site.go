package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/e2e/launch"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

// site is the server and the workers of one run.
type site struct {
	options
	arm
	seed    int
	folder  string
	server  *launch.Server
	client  *rest.Client
	workers []*launch.Process
}

func (s *site) open(ctx context.Context) (err error) {
	if s.server, err = launch.Serve(s.tandem, filepath.Join(s.folder, "data")); err != nil {
		return err
	}
	if s.client, err = rest.New(rest.Options{URL: s.server.URL, Token: s.server.Token}); err != nil {
		return err
	}
	for i := range workers {
		name := fmt.Sprintf("worker-%d", i)
		worker, err := launch.Start(s.tandem, []string{"TANDEM_SERVER=" + s.server.URL, "TANDEM_TOKEN=" + s.server.Token},
			"worker", "--name", name, "--slots", fmt.Sprint(slots), "--probe", "never", "--no-models", "--no-profile", "--sandbox", "off", "--scratch", filepath.Join(s.folder, name))
		if err != nil {
			return err
		}
		s.workers = append(s.workers, worker)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		there, err := s.client.Workers(ctx)
		if err != nil || len(there) == workers {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%d of %d workers came:\n%s", len(there), workers, s.workers[0].Output())
		}
	}
}

// close ends a site that was opened, as far as it was.
func (s *site) close() error {
	for _, worker := range s.workers {
		worker.Kill()
	}
	if s.server == nil {
		return nil
	}
	return s.server.Stop()
}

// run creates the studies when they are due, waits until all are over, and reads what
// became of them.
func (s *site) run(ctx context.Context) (result, error) {
	began, list := time.Now(), s.arrivals(s.seed)
	for i, one := range list {
		time.Sleep(time.Until(began.Add(time.Duration(one.at * float64(time.Second)))))
		file, err := s.study(i, one.class)
		if err != nil {
			return result{}, err
		}
		if _, err := s.client.CreateStudy(ctx, file, "application/json"); err != nil {
			return result{}, err
		}
	}
	for {
		all, err := s.client.Studies(ctx)
		if err != nil {
			return result{}, err
		}
		if !slices.ContainsFunc(all, func(v protocol.StudyView) bool { return !v.Status.Over() }) {
			return s.met(ctx, all)
		}
		time.Sleep(time.Second)
	}
}

// study is the file of the i-th study, of a class.
func (s *site) study(i int, c class) ([]byte, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	environment := map[string]string{variableLedger: filepath.Join(s.folder, "ledger")}
	if s.keeps {
		environment[variableKeeps] = "yes"
	}
	definition := map[string]any{
		"name": fmt.Sprintf("%s-%d", c.name, i), "command": []string{self}, "environment": environment, "priority": c.priority,
		"objective": map[string]any{"metric": "loss", "direction": "minimize"},
		"space":     map[string]any{"rate": map[string]any{"type": "float", "low": 0, "high": 1}},
		"budget":    map[string]any{"policy": "epochs", "epochs": map[string]any{"min": c.epochs, "max": c.epochs}, "data_fraction": map[string]any{"min": 1, "max": 1}},
		"search":    map[string]any{"method": "random", "seed": i + 1}, "stop": map[string]any{"trials": c.trials},
		"parallel": c.parallel, "retry": map[string]any{"failures": 0}, "system": "off",
	}
	switch {
	case c == high && s.evicts:
		definition["preempt"] = true
	case c == high && s.leavesOut > 0:
		definition["response_seconds"] = map[string]any{"mean": s.leavesOut * s.limit}
	case c == low && s.leavesOut > 0:
		definition["approximation"] = map[string]any{"most_drop": most}
	}
	return json.Marshal(definition)
}

// met is what became of the studies, all of which are over.
func (s *site) met(ctx context.Context, all []protocol.StudyView) (result, error) {
	r, epochs := result{Arm: s.name, Seed: s.seed}, 0
	responses := map[int][]float64{} // by priority
	minutes := map[int64][]float64{}
	var slept, took, out, trials float64
	var ended []float64
	for _, view := range all {
		page, err := s.client.Trials(ctx, view.ID, protocol.TrialQuery{Sort: "number"})
		if err != nil {
			return r, err
		}
		if done := view.Progress.Trials[trial.Completed]; done != len(page.Trials) || view.Finished == nil {
			return r, fmt.Errorf("study %s is %s with %d of %d trials completed: %s", view.Name, view.Status, done, len(page.Trials), view.Reason)
		}
		priority := view.Definition.Priority
		responses[priority] = append(responses[priority], view.Finished.Sub(view.Created).Seconds())
		slept, took, epochs = slept+second.Seconds()*view.Progress.DataPasses, took+view.Progress.TrialSeconds, epochs+view.Progress.Epochs
		before := view.Created // a high study trains one trial after the other
		for _, one := range page.Trials {
			at := *one.Results[0].At
			r.Evictions += float64(one.Preemptions)
			if priority == high.priority {
				ended = append(ended, at.Sub(before).Seconds())
				minutes[at.Unix()/60], before = append(minutes[at.Unix()/60], at.Sub(before).Seconds()), at
				continue
			}
			trials++
			if left := one.Results[0].Deflation; left != nil {
				out += left.Drop
			}
		}
	}
	r.Low, r.LowTail = spread(responses[low.priority])
	r.High, r.HighTail = spread(responses[high.priority])
	r.Trial, _ = spread(ended)
	for _, list := range minutes {
		if mean, _ := spread(list); mean <= s.limit {
			r.Kept += 1 / float64(len(minutes))
		}
	}
	r.LeftOut, r.Slower = out/max(1, trials), took/slept
	lines := launch.Lines(filepath.Join(s.folder, "ledger"))
	r.Again = float64(len(lines)-epochs) / float64(epochs)
	if len(lines) < epochs {
		return r, errors.New("the server has epochs that no script trained")
	}
	return r, nil
}

// spread is the mean of some values, and their 95th percentile.
func spread(values []float64) (mean, tail float64) {
	slices.Sort(values)
	for _, one := range values {
		mean += one / float64(len(values))
	}
	if len(values) > 0 {
		tail = values[int(math.Ceil(0.95*float64(len(values))))-1]
	}
	return mean, tail
}
