package autoscale_test

import (
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/store/memory"
	"github.com/tandem-tune/tandem/study"
	"github.com/tandem-tune/tandem/study/studyfile"
	"github.com/tandem-tune/tandem/web/autoscale"
	"github.com/tandem-tune/tandem/web/forecasting"
	"github.com/tandem-tune/tandem/workers/demand"
	"github.com/tandem-tune/tandem/workers/forecast"
)

// night is a server of studies whose workers are drained by its own forecast, in
// simulated time.
type night struct {
	*yard
	mutex    sync.Mutex
	studies  *study.Service
	forecast *forecasting.Service
	workers  []string
}

func newNight(t *testing.T, workers ...string) *night {
	n := &night{yard: newYard(t, protocol.AutoscaleOn), workers: workers}
	kept := memory.New()
	n.studies = study.New(kept, kept, study.Options{Now: n.now, Random: rand.Uint64, LeaseSeconds: 90})
	if err := n.studies.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, id := range workers {
		if _, err := n.studies.RegisterWorker(t.Context(), protocol.WorkerRegistration{ID: id, Name: id, Slots: 4}); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	n.forecast, err = forecasting.New(t.Context(), forecasting.Options{
		Now: n.now, Logger: slog.New(slog.DiscardHandler), Log: forecasting.NewRecord(kept), Look: n.studies.Demand,
		Power: forecast.Power{AwakeWatts: 50, AsleepWatts: 10, DelayMinutes: 1}, Performance: 0.98, Windows: 64, Hidden: 2,
	})
	if err != nil {
		t.Fatal(err)
	}
	n.service, err = autoscale.New(autoscale.Options{
		Now: n.now, Logger: slog.New(slog.DiscardHandler), Audit: n, Studies: n.studies, Advice: n.forecast.Advice, Settings: settings(protocol.AutoscaleOn),
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func (n *night) now() time.Time {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	return n.clock
}

// minute lets one pass in which all workers are heard of, and decides at its end.
func (n *night) minute() {
	n.t.Helper()
	n.mutex.Lock()
	n.clock = n.clock.Add(time.Minute)
	n.mutex.Unlock()
	for _, id := range n.workers {
		if _, err := n.studies.Heartbeat(n.t.Context(), id, protocol.Heartbeat{}); err != nil {
			n.t.Fatal(err)
		}
	}
	n.forecast.Observe(n.t.Context())
	if err := n.service.Step(n.t.Context()); err != nil {
		n.t.Fatal(err)
	}
}

// awake is how many slots take trials.
func (n *night) awake() float64 { return demand.Look{Hosts: n.studies.Situation().Hosts}.Capacity() }

func (n *night) create(lines ...string) string {
	n.t.Helper()
	def, err := studyfile.Parse([]byte("command: [train]\nobjective: {metric: accuracy, direction: maximize}\nspace: {x: {type: float, low: 0, high: 1}}\n"+strings.Join(lines, "\n")), studyfile.YAML)
	if err != nil {
		n.t.Fatal(err)
	}
	view, err := n.studies.CreateWarm(n.t.Context(), def, nil)
	if err != nil {
		n.t.Fatal(err)
	}
	return view.ID
}

// drained lets nothing happen until the pool is drained to one worker.
func (n *night) drained() {
	n.t.Helper()
	for range 300 {
		n.minute()
	}
	for began := time.Now(); time.Since(began) < 2*time.Minute; time.Sleep(5 * time.Millisecond) { // it learns in the background
		if n.minute(); n.awake() == 4 {
			return
		}
	}
	n.t.Fatalf("%g slots are awake: %+v", n.awake(), n.studies.Situation().Hosts)
}

// TestAStudyThatStartsHasThePoolBackAtOnce: what it could start now is wanted now, and
// not a trial more with every decision.
func TestAStudyThatStartsHasThePoolBackAtOnce(t *testing.T) {
	workers := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
	n := newNight(t, workers...)
	small := n.create("name: small", "stop: {trials: 2}", "parallel: 1")
	n.drained()
	wide := n.create("name: wide", "stop: {trials: 100}", "parallel: 30")
	n.minute()
	if n.awake() != 32 {
		t.Errorf("after one decision %g of 32 slots take trials", n.awake())
	}
	for range 3 { // what it holds counts as much as what it waited for
		if reply, err := n.studies.Lease(t.Context(), protocol.LeaseRequest{Worker: "a", Study: wide}); err != nil || reply.Lease == nil {
			t.Fatal(reply, err)
		}
	}
	n.minute()
	if n.awake() != 32 {
		t.Errorf("with three trials %g of 32 slots take trials", n.awake())
	}
	for _, id := range []string{wide, small} {
		if _, err := n.studies.Stop(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	if want := n.studies.Demand().Want(); want.Waiting != 0 {
		t.Errorf("stopped studies want %+v", want)
	}
}

// TestAStudyThatEndsWakesNoMoreThanItNeeds: two trials are left of it.
func TestAStudyThatEndsWakesNoMoreThanItNeeds(t *testing.T) {
	n := newNight(t, "a", "b", "c", "d")
	n.create("name: small", "stop: {trials: 2}", "parallel: 1")
	n.drained()
	n.create("name: short", "stop: {trials: 2}", "parallel: 30")
	n.minute()
	if n.awake() != 4 {
		t.Errorf("%g slots take trials where three are wanted, and a worker has four", n.awake())
	}
}
