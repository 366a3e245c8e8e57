package study

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/study/studyfile"
	"github.com/tandem-tune/tandem/trial"
)

// crowd is a service with so many workers of four types that wait, and so many trials
// that are ready, of so many studies with models of all types.
func crowd(t testing.TB, workers, trials, studies int) *Service {
	t.Helper()
	now := time.Now()
	s := New(nil, nil, Options{Now: func() time.Time { return now }})
	for i := range workers {
		id := fmt.Sprintf("worker-%04d", i)
		machine := protocol.Machine{CPUModel: fmt.Sprint("model ", i%4), Cores: 8}
		if _, err := s.RegisterWorker(t.Context(), protocol.WorkerRegistration{ID: id, Name: id, Slots: 1, Machine: machine}); err != nil {
			t.Fatal(err)
		}
		enqueue(t, s, Caller{}, id)
	}
	def, err := studyfile.Parse([]byte(`
name: crowd
command: [train]
objective: {metric: accuracy, direction: maximize}
space: {x: {type: float, low: 0, high: 1}, y: {type: float, low: 0, high: 1}, z: {values: [a, b, c]}}
placement: {energy: 0.5}
`), studyfile.YAML)
	if err != nil {
		t.Fatal(err)
	}
	for i := range studies {
		r := &session{id: fmt.Sprint("study-", i), ladder: def.Budget.Ladder(), waiting: true, use: use{}}
		r.study = Study{ID: r.id, Definition: def, Status: protocol.StudyRunning, Created: now}
		r.outlook = newOutlook(def.Space)
		for number := range trials / studies {
			x := float64(number) / float64(trials/studies)
			r.trials = append(r.trials, trial.Trial{
				ID: trialID(r.id, number), Number: number, State: trial.Queued, Budget: r.ladder[0].Budget,
				Configuration: space.Configuration{"x": space.Float(x), "y": space.Float(1 - x), "z": space.String("b")},
			})
			r.queue = append(r.queue, number)
			r.outlook.learn(r.trials[number], trial.Report{
				Epoch: 1, LeaseEpoch: 1, Seconds: trial.Float(1 + x), Energy: trial.Energy{Joules: trial.Float(5 - x), Method: "rapl"}, Machine: protocol.Machine{CPUModel: fmt.Sprint("model ", number%4), Cores: 8}.Type(),
			})
		}
		s.sessions[r.id] = r
	}
	return s
}

func TestACrowdIsPlaced(t *testing.T) {
	s := crowd(t, 200, 200, 10)
	p := s.newPlan(t.Context(), "")
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
	s := crowd(b, workers, trials, studies)
	s.newPlan(b.Context(), "")
	before, at := cpu(b), 0
	for b.Loop() {
		r := s.sessions[fmt.Sprint("study-", at%studies)]
		r.outlook.learn(r.trials[0], trial.Report{Epoch: at + 2, LeaseEpoch: 1, Seconds: trial.Float(1 + at%7), Machine: protocol.Machine{CPUModel: "model 1", Cores: 8}.Type()})
		r.queue = append(r.queue[1:], r.queue[0])
		id := fmt.Sprintf("worker-%04d", at%workers)
		if _, err := s.RegisterWorker(b.Context(), protocol.WorkerRegistration{ID: id, Name: id, Slots: 1, Machine: protocol.Machine{CPUModel: fmt.Sprint("model ", at%workers%4), Cores: 8}}); err != nil {
			b.Fatal(err)
		}
		if p := s.newPlan(b.Context(), ""); len(p.offers) != min(workers, trials) {
			b.Fatal("not all are placed")
		}
		at++
	}
	b.ReportMetric(float64((cpu(b)-before).Microseconds())/1000/float64(b.N), "cpu-ms/op")
}
