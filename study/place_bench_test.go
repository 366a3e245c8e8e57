package study

import (
	"fmt"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/protocol"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/trial"
)

// crowd is a service with as many workers of four types that wait, and as many
// trials that are ready, of ten studies with models of all types.
func crowd(t testing.TB, count int) *Service {
	t.Helper()
	now := time.Now()
	s := New(nil, nil, Options{Now: func() time.Time { return now }})
	for i := range count {
		id := fmt.Sprintf("worker-%04d", i)
		machine := protocol.Machine{CPUModel: fmt.Sprint("model ", i%4), Cores: 8}
		if _, err := s.RegisterWorker(t.Context(), protocol.WorkerRegistration{ID: id, Name: id, Slots: 1, Machine: machine}); err != nil {
			t.Fatal(err)
		}
		s.standInLine(t.Context(), protocol.LeaseRequest{Worker: id, WaitSeconds: 20})
	}
	def, err := definition.Parse([]byte(`
name: crowd
command: [train]
objective: {metric: accuracy, direction: maximize}
space: {x: {type: float, low: 0, high: 1}, y: {type: float, low: 0, high: 1}, z: {values: [a, b, c]}}
placement: {energy: 0.5}
`), definition.YAML)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		r := &runtime{id: fmt.Sprint("study-", i), ladder: def.Budget.Ladder(), waiting: true, use: use{}}
		r.study = Study{ID: r.id, Definition: def, Status: protocol.StudyRunning, Created: now}
		r.outlook = newOutlook(def.Space)
		for number := range count / 10 {
			x := float64(number) / float64(count/10)
			r.trials = append(r.trials, trial.Trial{
				ID: trialID(r.id, number), Number: number, State: trial.Queued, Budget: r.ladder[0].Budget,
				Configuration: space.Configuration{"x": space.Float(x), "y": space.Float(1 - x), "z": space.String("b")},
			})
			r.queue = append(r.queue, number)
			r.outlook.learn(r.trials[number], trial.Report{
				Epoch: 1, LeaseEpoch: 1, Seconds: trial.Float(1 + x), Energy: trial.Energy{Joules: trial.Float(5 - x), Method: "rapl"}, Machine: protocol.Machine{CPUModel: fmt.Sprint("model ", number%4), Cores: 8}.Type(),
			})
		}
		s.runtimes[r.id] = r
	}
	return s
}

func TestACrowdIsPlaced(t *testing.T) {
	s := crowd(t, 200)
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

func BenchmarkPlan(b *testing.B) {
	s := crowd(b, 1000)
	for b.Loop() {
		if p := s.newPlan(b.Context(), ""); len(p.offers) != 1000 {
			b.Fatal("not all are placed")
		}
	}
}
