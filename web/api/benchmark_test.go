package api_test

import (
	"fmt"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/store/sqlite"
	"github.com/tandem-tune/tandem/study"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/web/api"
	"github.com/tandem-tune/tandem/web/auth"
)

// BenchmarkCycle is a lease with a new configuration, one report and the end of
// the trial, as 16 clients of one study in the same process send them: REST,
// the search and SQLite with every commit synced. cpu-ms/op is what a cycle
// costs all processors together, client included; unlike the time it says
// something on a machine that does other things as well.
func BenchmarkCycle(b *testing.B) {
	store, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "tandem.db"), sqlite.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	var id atomic.Uint64
	studies := study.New(store, store, study.Options{Now: time.Now, Random: func() uint64 { return id.Add(1) }})
	s := newStage(b, func(c *api.Config) { c.Studies = useCases(studies) })
	client := s.client(auth.Admin)
	created, err := client.CreateStudy(b.Context(), fmt.Appendf(nil, `
name: cycle
objective: {metric: loss, direction: minimize}
space:
  x: {type: float, low: -5, high: 5}
  y: {type: float, low: 1e-5, high: 1, log: true}
  z: {type: int, low: 1, high: 64}
  c: {type: categorical, values: [a, b, c]}
budget: {policy: epochs, epochs: {min: 1, max: 1}, eta: 3}
search: {method: bohb, seed: 7}
stop: {trials: %d}`, b.N), "application/yaml")
	if err != nil {
		b.Fatal(err)
	}
	b.SetParallelism(8)
	before := processorTime(b)
	b.ResetTimer()
	var workers atomic.Int64
	b.RunParallel(func(pb *testing.PB) {
		worker := fmt.Sprintf("worker-%d", workers.Add(1))
		if _, err := client.Register(b.Context(), protocol.WorkerRegistration{ID: worker, Name: worker, Slots: 1}); err != nil {
			b.Error(err)
		}
		for pb.Next() {
			if err := cycle(b, client, worker, created.ID); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.StopTimer()
	b.ReportMetric((processorTime(b)-before)*1000/float64(b.N), "cpu-ms/op")
}

func cycle(b *testing.B, client *rest.Client, worker, study string) error {
	ctx := b.Context()
	reply, err := client.Lease(ctx, protocol.LeaseRequest{Worker: worker, Study: study, WaitSeconds: 10})
	if err != nil || reply.Lease == nil {
		return err
	}
	lease := reply.Lease
	x, _ := lease.Params["x"].Number()
	if _, err := client.Report(ctx, lease.Trial, protocol.Report{
		LeaseEpoch: lease.LeaseEpoch, Epoch: 1, Metrics: map[string]trial.Float{"loss": trial.Float(x * x)},
	}); err != nil {
		return err
	}
	_, err = client.Finish(ctx, lease.Trial, protocol.FinishRequest{LeaseEpoch: lease.LeaseEpoch, Outcome: protocol.BudgetReached})
	return err
}

// processorTime is what this process has used so far, in seconds.
func processorTime(b *testing.B) float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	seconds := func(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }
	return seconds(usage.Utime) + seconds(usage.Stime)
}
