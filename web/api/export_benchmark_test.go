package api_test

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/studyfile"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/web/auth"
)

// BenchmarkExport downloads all trials of a study in each format. peak-MB/op is
// by how much the heap grew above what it was before, at the most, with a
// collector that runs often; kept-MB is what the server needs for the study
// anyway, the in-memory store included; file-MB/op what was downloaded.
func BenchmarkExport(b *testing.B) {
	defer debug.SetGCPercent(debug.SetGCPercent(10))
	for _, trials := range []int{10_000, 100_000} {
		empty := liveBytes()
		s := measured(b, trials)
		kept := liveBytes() - empty
		for _, format := range []string{"csv", "json"} {
			b.Run(fmt.Sprintf("%d/%s", trials, format), func(b *testing.B) {
				var peak, size uint64
				for range b.N {
					before := liveBytes()
					highest := watchHeap()
					stream, err := s.client(auth.Viewer).Export(b.Context(), "many", format)
					if err != nil {
						b.Fatal(err)
					}
					count, err := io.Copy(io.Discard, stream)
					if err != nil {
						b.Fatal(err)
					}
					if err := stream.Close(); err != nil {
						b.Fatal(err)
					}
					peak, size = max(peak, highest()-before), uint64(count)
				}
				b.ReportMetric(float64(peak)/1e6, "peak-MB/op")
				b.ReportMetric(float64(size)/1e6, "file-MB/op")
				b.ReportMetric(float64(kept)/1e6, "kept-MB")
			})
		}
		runtime.KeepAlive(s)
	}
}

// measured is a stage with a study of so many finished trials of ten parameters.
func measured(b *testing.B, trials int) *stage {
	b.Helper()
	s := newStage(b)
	text := "name: many\nobjective: {metric: loss, direction: minimize}\nspace:\n"
	for i := range 10 {
		text += fmt.Sprintf("  x%d: {type: float, low: -5, high: 5}\n", i)
	}
	text += fmt.Sprintf("budget: {policy: epochs, epochs: {min: 1, max: 1}, eta: 3}\nsearch: {method: random, seed: 7}\nstop: {trials: %d}\n", trials)
	parsed, err := studyfile.Parse([]byte(text), studyfile.YAML)
	if err != nil {
		b.Fatal(err)
	}
	ctx := b.Context()
	view, err := s.studies.CreateWarm(ctx, parsed, nil)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := s.studies.RegisterWorker(ctx, protocol.WorkerRegistration{ID: "w", Name: "w", Slots: 1}); err != nil {
		b.Fatal(err)
	}
	for range trials {
		if err := s.finishOne(ctx, view.ID); err != nil {
			b.Fatal(err)
		}
	}
	return s
}

// finishOne leases, reports and ends a trial, past the network.
func (s *stage) finishOne(ctx context.Context, study string) error {
	reply, err := s.studies.Lease(ctx, protocol.LeaseRequest{Worker: "w", Study: study})
	if err != nil || reply.Lease == nil {
		return fmt.Errorf("no lease: %w", err)
	}
	lease := reply.Lease
	x, _ := lease.Params["x0"].Number()
	if _, err := s.studies.Report(ctx, lease.Trial, protocol.Report{LeaseEpoch: lease.LeaseEpoch, Epoch: 1, Metrics: map[string]trial.Float{"loss": trial.Float(x * x)}}); err != nil {
		return err
	}
	_, err = s.studies.Finish(ctx, lease.Trial, protocol.FinishRequest{LeaseEpoch: lease.LeaseEpoch, Outcome: protocol.BudgetReached})
	return err
}

// liveBytes is what the heap holds after it was collected.
func liveBytes() uint64 {
	runtime.GC()
	var now runtime.MemStats
	runtime.ReadMemStats(&now)
	return now.HeapAlloc
}

// watchHeap looks at the heap until it is asked for the most that it held.
func watchHeap() func() uint64 {
	stop, most := make(chan struct{}), make(chan uint64)
	go func() {
		var highest uint64
		ticker := time.NewTicker(5 * time.Millisecond)
		defer ticker.Stop()
		for {
			var now runtime.MemStats
			runtime.ReadMemStats(&now)
			highest = max(highest, now.HeapAlloc)
			select {
			case <-stop:
				most <- highest
				return
			case <-ticker.C:
			}
		}
	}()
	return func() uint64 {
		close(stop)
		return <-most
	}
}
