package gather_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tandem-tune/tandem/bench/edgetune/gather"
	"github.com/tandem-tune/tandem/inference_emu/batching"
	"github.com/tandem-tune/tandem/internal/problem"
)

// sleeper takes the time of the curve for a batch, and remembers the batches.
type sleeper struct {
	seconds func(batch int) float64
	begin   time.Time

	mutex   sync.Mutex
	batches []string
	fails   error
}

func (s *sleeper) Run(batch []int) error {
	s.mutex.Lock()
	s.batches = append(s.batches, fmt.Sprintf("%v at %v", batch, time.Since(s.begin).Round(time.Microsecond)))
	s.mutex.Unlock()
	time.Sleep(time.Duration(s.seconds(len(batch)) * float64(time.Second)))
	return s.fails
}

// served lets the requests come at their seconds and returns their response
// times.
func served(t *testing.T, settings gather.Settings, runner *sleeper, times []float64) []float64 {
	t.Helper()
	g, err := gather.New(settings, runner)
	if err != nil {
		t.Fatal(err)
	}
	runner.begin = time.Now()
	responses := make([]float64, len(times))
	var group sync.WaitGroup
	for i, at := range times {
		time.Sleep(time.Until(runner.begin.Add(time.Duration(at * float64(time.Second)))))
		synctest.Wait()
		group.Go(func() {
			came := time.Now()
			if err := g.Do(t.Context(), i); !errors.Is(err, runner.fails) {
				t.Errorf("request %d: %v", i, err)
			}
			responses[i] = time.Since(came).Seconds()
		})
		synctest.Wait()
	}
	if !settings.Policy.UntilFull {
		group.Wait() // nobody fills up the last batch, but all are answered
	}
	g.Close()
	group.Wait()
	return responses
}

// recorded is requests that came once, at these seconds.
type recorded []float64

func (r recorded) PerSecond() float64 { return float64(len(r)-1) / (r[len(r)-1] - r[0]) }

func (r recorded) Times(requests int, _ uint64) []float64 { return r[:min(requests, len(r))] }

func tenMilliseconds(int) float64 { return 0.010 }

func TestBatchesLeaveByThePolicy(t *testing.T) {
	times := []float64{0, 0.001, 0.002, 0.003, 0.030, 0.031}
	for name, one := range map[string]struct {
		policy batching.Policy
		want   []string
	}{
		"single":  {batching.Single(), []string{"[0] at 0s", "[1] at 10ms", "[2] at 20ms", "[3] at 30ms", "[4] at 40ms", "[5] at 50ms"}},
		"greedy":  {batching.Greedy(8), []string{"[0] at 0s", "[1 2 3] at 10ms", "[4] at 30ms", "[5] at 40ms"}},
		"at most": {batching.Greedy(2), []string{"[0] at 0s", "[1 2] at 10ms", "[3] at 20ms", "[4] at 30ms", "[5] at 40ms"}},
		"wait":    {batching.Policy{MaxBatch: 3, WaitSeconds: 0.005}, []string{"[0 1 2] at 2ms", "[3] at 12ms", "[4 5] at 35ms"}},
		"fixed":   {batching.Fixed(4), []string{"[0 1 2 3] at 3ms", "[4 5] at 31ms"}}, // the last two when it is closed
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				runner := &sleeper{seconds: tenMilliseconds}
				served(t, gather.Settings{Policy: one.policy}, runner, times)
				if !slices.Equal(runner.batches, one.want) {
					t.Errorf("batches %q, want %q", runner.batches, one.want)
				}
			})
		})
	}
}

func TestTwoInstancesRunAtTheSameTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runner := &sleeper{seconds: tenMilliseconds}
		served(t, gather.Settings{Policy: batching.Greedy(4), Instances: 2}, runner, []float64{0, 0.001, 0.002, 0.003})
		want := []string{"[0] at 0s", "[1] at 1ms", "[2 3] at 10ms"}
		if !slices.Equal(runner.batches, want) {
			t.Errorf("batches %q, want %q", runner.batches, want)
		}
	})
}

// The real thing and the simulation answer every request at the same time.
func TestItDoesWhatTheSimulationDoes(t *testing.T) {
	curve, err := batching.NewCurve([]batching.Point{{Batch: 1, Seconds: 0.010}, {Batch: 8, Seconds: 0.024}})
	if err != nil {
		t.Fatal(err)
	}
	times := batching.Poisson{Rate: 150}.Times(300, 5)
	for i := range times { // timers have nanoseconds
		times[i] = math.Round(times[i]*1e6) / 1e6
	}
	for _, policy := range []batching.Policy{batching.Greedy(8), batching.Greedy(3), {MaxBatch: 8, WaitSeconds: 0.007}, batching.Fixed(5)} {
		t.Run(fmt.Sprintf("%+v", policy), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				want := batching.Simulate(batching.Server{Curve: curve}, policy, batching.Run{Arrivals: recorded(times)})
				runner := &sleeper{seconds: func(batch int) float64 { return curve.At(batch).Seconds }}
				responses := served(t, gather.Settings{Policy: policy}, runner, times)
				sum := 0.0
				for _, seconds := range responses {
					sum += seconds
				}
				if mean := sum / float64(len(responses)); math.Abs(mean-want.Mean) > 1e-6 {
					t.Errorf("mean response %g s, simulated %g s", mean, want.Mean)
				}
				if got := float64(len(times)) / float64(len(runner.batches)); math.Abs(got-want.MeanBatch) > 1e-9 {
					t.Errorf("mean batch %g, simulated %g", got, want.MeanBatch)
				}
			})
		})
	}
}

func TestErrorsReachEveryRequestOfTheBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runner := &sleeper{seconds: tenMilliseconds, fails: errors.New("out of memory")}
		served(t, gather.Settings{Policy: batching.Fixed(2)}, runner, []float64{0, 0.001, 0.002})
	})
}

func TestRequestsThatGiveUpAreNotRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runner := &sleeper{seconds: tenMilliseconds, begin: time.Now()}
		g, err := gather.New(gather.Settings{Policy: batching.Fixed(2), MostWaiting: 2}, runner)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		defer cancel()
		if err := g.Do(ctx, 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a request that gave up: %v", err)
		}
		go func() { _ = g.Do(t.Context(), 2) }()
		synctest.Wait()
		g.Close()
		if want := []string{"[2] at 5ms"}; !slices.Equal(runner.batches, want) {
			t.Errorf("batches %q, want %q", runner.batches, want)
		}
		if err := g.Do(t.Context(), 3); !problem.Is(err, problem.Unavailable) {
			t.Errorf("a request after the end: %v", err)
		}
	})
}

func TestTooManyWaitingAreTurnedAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, err := gather.New(gather.Settings{Policy: batching.Single(), MostWaiting: 1}, &sleeper{seconds: tenMilliseconds, begin: time.Now()})
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close()
		for range 2 { // one is run, one waits
			go func() { _ = g.Do(t.Context(), 1) }()
			synctest.Wait()
		}
		if err := g.Do(t.Context(), 1); !problem.Is(err, problem.Exhausted) {
			t.Errorf("a second one that waits: %v", err)
		}
	})
	if _, err := gather.New(gather.Settings{}, &sleeper{}); !problem.Is(err, problem.Invalid) {
		t.Errorf("a policy without batches: %v", err)
	}
}
