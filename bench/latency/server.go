package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/e2e/launch"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

// served times the lease requests of a client of a real server, each answered
// with a new configuration that is on the disk by then.
func served(ctx context.Context, o options) (err error) {
	folder, err := os.MkdirTemp("", "tandem-latency-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	binary, err := launch.Build(ctx, folder)
	if err != nil {
		return err
	}
	server, err := launch.Serve(binary, folder+"/data")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	client, err := rest.New(rest.Options{URL: server.URL, Token: server.Token})
	if err != nil {
		return err
	}
	created, err := client.CreateStudy(ctx, studyFile(o, o.sizes[len(o.sizes)-1]+o.pending+1), "application/yaml")
	if err != nil {
		return err
	}
	if _, err := client.Register(ctx, protocol.WorkerRegistration{ID: worker, Name: worker, Slots: o.pending + 1}); err != nil {
		return err
	}
	return follow(ctx, o, server.PID(), client, created.ID)
}

const worker = "latency-worker"

// follow trains nothing, trial after trial, until the largest size.
func follow(ctx context.Context, o options, pid int, client *rest.Client, study string) error {
	before, err := resident(pid)
	if err != nil {
		return err
	}
	most := o.sizes[len(o.sizes)-1]
	var out []*protocol.Lease
	var times []time.Duration
	for done := 0; done < most; {
		started := time.Now()
		reply, err := client.Lease(ctx, protocol.LeaseRequest{Worker: worker, Study: study, WaitSeconds: 10})
		took := time.Since(started)
		if err != nil {
			return err
		}
		if reply.Lease == nil {
			return fmt.Errorf("no lease with %d trials done", done)
		}
		times = append(times, took)
		if out = append(out, reply.Lease); len(out) <= o.pending {
			continue
		}
		if err := end(ctx, client, out[0]); err != nil {
			return err
		}
		out = out[1:]
		if done++; slices.Contains(o.sizes, done) {
			now, err := resident(pid)
			if err != nil {
				return err
			}
			show("through the server (resident bytes)", done, times[len(times)-o.samples:], (now-before)/int64(done))
		}
	}
	return nil
}

// end reports the trial's only epoch and finishes it.
func end(ctx context.Context, client *rest.Client, lease *protocol.Lease) error {
	_, err := client.Report(ctx, lease.Trial, protocol.Report{
		LeaseEpoch: lease.LeaseEpoch, Epoch: 1, Metrics: map[string]trial.Float{"loss": trial.Float(loss(lease.Params))},
	})
	if err != nil {
		return err
	}
	_, err = client.Finish(ctx, lease.Trial, protocol.FinishRequest{LeaseEpoch: lease.LeaseEpoch, Outcome: protocol.BudgetReached})
	return err
}

func studyFile(o options, trials int) []byte {
	var text strings.Builder
	fmt.Fprintf(&text, "name: latency\ncommand: [nothing]\nobjective: [{metric: loss, direction: minimize}]\nspace:\n")
	for i := range o.parameters {
		fmt.Fprintf(&text, "  %s: {type: float, low: -5, high: 5}\n", name(i))
	}
	fmt.Fprintf(&text, "budget: {policy: epochs, epochs: {min: 1, max: 1}, eta: 3}\nsearch: {method: %s, seed: 7}\nstop: {trials: %d}\n", o.method, trials)
	return []byte(text.String())
}

// resident is the memory of a process, in bytes: the heap, and what the
// collector and SQLite keep besides.
func resident(pid int) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "VmRSS:" {
			kilobytes, err := strconv.ParseInt(fields[1], 10, 64)
			return kilobytes * 1024, err
		}
	}
	return 0, fmt.Errorf("the memory of process %d is not known", pid)
}
