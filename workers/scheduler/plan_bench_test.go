package scheduler

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/access"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/allocator"
)

// crowd is a service with so many workers of four types that wait, and so many trials
// that are ready, of so many studies with models of all types.
func crowd(t testing.TB, workers, trials, of int) (*Scheduler, *allocator.Allocator, studies) {
	t.Helper()
	now := time.Now()
	clock := func() time.Time { return now }
	a, all := allocator.New(allocator.Options{Now: clock, Term: time.Minute}), studies{}
	for i := range workers {
		register(t, a, i)
		enqueue(t, a, access.Caller{}, workerID(i))
	}
	for i := range of {
		e := newEntry(t, fmt.Sprint("study-", i), `
name: crowd
command: [train]
objective: {metric: accuracy, direction: maximize}
space: {x: {type: float, low: 0, high: 1}, y: {type: float, low: 0, high: 1}, z: {values: [a, b, c]}}
placement: {energy: 0.5}
`)
		e.created = now
		for number := range trials / of {
			x := float64(number) / float64(trials/of)
			e.queue(e.ladder[0].Budget, space.Configuration{"x": space.Float(x), "y": space.Float(1 - x), "z": space.String("b")})
			e.costs.Learn(e.Trials[number], trial.Report{
				Epoch: 1, LeaseEpoch: 1, Seconds: trial.Float(1 + x), Energy: trial.Energy{Joules: trial.Float(5 - x), Method: "rapl"}, Machine: protocol.Machine{CPUModel: fmt.Sprint("model ", number%4), Cores: 8}.Type(),
			})
		}
		all[e.ID] = e
	}
	return New(all, a, clock), a, all
}

func workerID(i int) string { return fmt.Sprintf("worker-%04d", i) }

func register(t testing.TB, a *allocator.Allocator, i int) {
	t.Helper()
	machine := protocol.Machine{CPUModel: fmt.Sprint("model ", i%4), Cores: 8}
	if err := a.Register(access.Caller{}, protocol.WorkerRegistration{ID: workerID(i), Name: workerID(i), Slots: 1, Machine: machine}); err != nil {
		t.Fatal(err)
	}
}

func TestACrowdIsPlaced(t *testing.T) {
	s, _, _ := crowd(t, 200, 200, 10)
	p := s.newPlan(t.Context(), access.Caller{}, "")
	if p == nil || len(p.offers) != 200 {
		t.Fatalf("%+v", p)
	}
	taken := map[string]bool{}
	for _, one := range p.offers {
		if one.worker == "" || taken[one.worker] || len(one.scores) != 4 {
			t.Fatalf("trial %d of %s is on %q, scores %v", one.number, one.study, one.worker, one.scores)
		}
		taken[one.worker] = true
	}
}

// cpu is how much time of processors the process has used.
func cpu(b *testing.B) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// BenchmarkPlan prints how a plan grows with workers, studies and trials. Between two
// plans a study learns from an epoch, a trial starts, another one is queued, and a
// worker registers again.
func BenchmarkPlan(b *testing.B) {
	for _, workers := range []int{1000, 2000, 5000} {
		for _, studies := range []int{10, 100, 1000} {
			for _, trials := range []int{1000, 10_000} {
				b.Run(fmt.Sprintf("workers=%d/studies=%d/trials=%d", workers, studies, trials), func(b *testing.B) {
					benchmarkPlan(b, workers, trials, studies)
				})
			}
		}
	}
}

func benchmarkPlan(b *testing.B, workers, trials, studies int) {
	s, a, all := crowd(b, workers, trials, studies)
	s.newPlan(b.Context(), access.Caller{}, "")
	before, at := cpu(b), 0
	for b.Loop() {
		e := all[fmt.Sprint("study-", at%studies)]
		e.costs.Learn(e.Trials[0], trial.Report{Epoch: at + 2, LeaseEpoch: 1, Seconds: trial.Float(1 + at%7), Machine: protocol.Machine{CPUModel: "model 1", Cores: 8}.Type()})
		e.Queue = append(e.Queue[1:], e.Queue[0])
		register(b, a, at%workers)
		if p := s.newPlan(b.Context(), access.Caller{}, ""); len(p.offers) != min(workers, trials) {
			b.Fatal("not all are placed")
		}
		at++
	}
	b.ReportMetric(float64((cpu(b)-before).Microseconds())/1000/float64(b.N), "cpu-ms/op")
}
