package simulator_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tandem-tune/tandem/bench/simulator"
	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/internal/effort"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/study/studyfile"
	"github.com/tandem-tune/tandem/trial"
)

// defaultFile is a study of three rungs: 1, 3 and 9 epochs of 1/9, 1/3 and all data.
const defaultFile = `
name: example
command: [train]
objective: [{metric: accuracy, direction: maximize}]
space: {x: {type: float, low: 0, high: 1}}
budget: {policy: multi, epochs: {min: 1, max: 9}, data_fraction: {min: 0.111111, max: 1}, eta: 3}
search: {method: bohb, seed: 7}
stop: {trials: 40}
`

func defined(t interface{ Fatal(...any) }, replace ...string) definition.Definition {
	def, err := studyfile.Parse([]byte(strings.NewReplacer(replace...).Replace(defaultFile)), studyfile.YAML)
	if err != nil {
		t.Fatal(err)
	}
	return def
}

// hill is best at x = 0.7; it takes 10 seconds to go over the whole data.
type hill struct{}

func (hill) Measure(c space.Configuration, epoch int, fraction float64) simulator.Measurement {
	x, _ := c["x"].Number()
	return simulator.Measurement{Value: (1 - (x-0.7)*(x-0.7)) * (1 - 0.5/float64(epoch+1)), Seconds: 10 * fraction}
}

// measure is a benchmark made of a function.
type measure func(c space.Configuration, epoch int, fraction float64) simulator.Measurement

func (m measure) Measure(c space.Configuration, epoch int, fraction float64) simulator.Measurement {
	return m(c, epoch, fraction)
}

func run(t *testing.T, def definition.Definition, benchmark simulator.Benchmark, options simulator.Options) simulator.Trace {
	t.Helper()
	trace, err := simulator.Run(t.Context(), def, benchmark, options)
	if err != nil {
		t.Fatal(err)
	}
	return trace
}

// troubled is a run in which everything goes wrong now and then.
func troubled(seed uint64, workers int) simulator.Options {
	return simulator.Options{
		Workers: workers, Seed: seed, Failures: 0.05, Vanishings: 0.05, Stragglers: 0.2, Slowdown: 20, CheckpointEvery: 2,
	}
}

func TestEqualRunsHaveEqualTraces(t *testing.T) {
	for name, options := range map[string]simulator.Options{
		"one worker": {}, "eight workers": {Workers: 8}, "eight workers in trouble": troubled(5, 8),
	} {
		t.Run(name, func(t *testing.T) {
			first, second := run(t, defined(t), hill{}, options), run(t, defined(t), hill{}, options)
			// NaN is not equal to itself; printed it is.
			if a, b := fmt.Sprintf("%#v", first.Points), fmt.Sprintf("%#v", second.Points); a != b {
				t.Error("two equal runs have different points")
			}
			if !reflect.DeepEqual(first.Study, second.Study) {
				t.Errorf("two equal runs end with different studies:\n%+v\n%+v", first.Study, second.Study)
			}
			options.Seed++
			other := run(t, defined(t, "seed: 7", "seed: 8"), hill{}, options)
			if reflect.DeepEqual(first.Points[len(first.Points)-1], other.Points[len(other.Points)-1]) {
				t.Error("another seed ends at the same point")
			}
		})
	}
}

func TestTheSeedOfTheOptionsSeedsTheSearch(t *testing.T) {
	unseeded := defined(t, ", seed: 7", "")
	first := run(t, unseeded, hill{}, simulator.Options{Seed: 1})
	same := run(t, unseeded, hill{}, simulator.Options{Seed: 1})
	other := run(t, unseeded, hill{}, simulator.Options{Seed: 2})
	if first.Recommendation.Best.Value != same.Recommendation.Best.Value {
		t.Error("the same seed found something else")
	}
	if first.Recommendation.Best.Value == other.Recommendation.Best.Value {
		t.Error("another seed found the same")
	}
}

func TestATraceAgreesWithItsStudy(t *testing.T) {
	for name, replace := range map[string][]string{
		"multi":   nil,
		"epochs":  {"policy: multi", "policy: epochs"},
		"dataset": {"policy: multi", "policy: dataset"},
		"random":  {"method: bohb", "method: random"},
	} {
		for _, workers := range []int{1, 8} {
			t.Run(fmt.Sprintf("%s, %d workers", name, workers), func(t *testing.T) {
				trace := run(t, defined(t, replace...), hill{}, simulator.Options{Workers: workers})
				progress := trace.Study.Progress
				if trace.Study.Status != protocol.StudyCompleted || progress.Created != 40 {
					t.Fatalf("the study is %s after %d trials", trace.Study.Status, progress.Created)
				}
				if len(trace.Points) != progress.Epochs {
					t.Errorf("%d points, and the service counts %d epochs", len(trace.Points), progress.Epochs)
				}
				if math.Abs(trace.Cost-progress.DataPasses) > 1e-9*trace.Cost {
					t.Errorf("the cost is %v, and the service counts %v data passes", trace.Cost, progress.DataPasses)
				}
				if math.Abs(10*trace.Cost-progress.TrialSeconds) > 1e-6 {
					t.Errorf("%v s of training for a cost of %v, at 10 s each", progress.TrialSeconds, trace.Cost)
				}
				if trace.Seconds != progress.ElapsedSeconds {
					t.Errorf("%v simulated seconds, and the service counts %v", trace.Seconds, progress.ElapsedSeconds)
				}
				if workers == 1 && math.Abs(trace.Seconds-progress.TrialSeconds) > 1e-6 {
					t.Errorf("one worker took %v s for %v s of training", trace.Seconds, progress.TrialSeconds)
				}
				if workers == 8 && (trace.Seconds < progress.TrialSeconds/8-1e-6 || trace.Seconds > progress.TrialSeconds/2) {
					t.Errorf("eight workers took %v s for %v s of training", trace.Seconds, progress.TrialSeconds)
				}
				last, best := trace.Points[len(trace.Points)-1], trace.Recommendation.Best
				if last.Incumbent != best.Number || last.Value != float64(best.Value) || !trace.Recommendation.FullBudget {
					t.Errorf("the last point %+v is not the recommendation %+v", last, best)
				}
				if last.True != last.Value {
					t.Errorf("measured %v at the full budget, truly %v", last.Value, last.True)
				}
				checkOrder(t, trace)
			})
		}
	}
}

// checkOrder checks that time and cost only grow, and that the incumbent's true
// value is what the benchmark says of it.
func checkOrder(t interface{ Errorf(string, ...any) }, trace simulator.Trace) {
	for i := 1; i < len(trace.Points); i++ {
		before, now := trace.Points[i-1], trace.Points[i]
		if now.Seconds < before.Seconds || now.Cost <= before.Cost {
			t.Errorf("point %d is %+v after %+v", i, now, before)
		}
		if (now.Incumbent < 0) != math.IsNaN(now.Value) || now.Incumbent >= 0 && now.Value > now.True {
			t.Errorf("point %d has incumbent %d with value %v, truly %v", i, now.Incumbent, now.Value, now.True)
		}
	}
}

// Before a trial was measured at the full budget there is nothing; from then on the
// best of what was.
func TestATraceHasTheBestThatWasMeasuredInFull(t *testing.T) {
	for direction, sign := range map[string]float64{"maximize": 1, "minimize": -1} {
		best := math.NaN()
		ascent := measure(func(c space.Configuration, epoch int, fraction float64) simulator.Measurement {
			m := hill{}.Measure(c, epoch, fraction)
			m.Value *= sign
			return m
		})
		trace := run(t, defined(t, "maximize", direction, "policy: multi", "policy: epochs"), ascent, simulator.Options{})
		values := map[float64]bool{}
		for i, point := range trace.Points {
			switch {
			case point.Epoch < 9 && i > 0 && !same(point.Full, trace.Points[i-1].Full):
				t.Fatalf("%s: after epoch %d of trial %d the best value is %v", direction, point.Epoch, point.Trial, point.Full)
			case point.Epoch == 9 && math.IsNaN(point.Full) || !math.IsNaN(best) && !(sign*point.Full >= sign*best):
				t.Fatalf("%s: after epoch %d of trial %d the best value is %v, before it %v", direction, point.Epoch, point.Trial, point.Full, best)
			}
			best = point.Full
			values[best] = true
		}
		if !math.IsNaN(trace.Points[0].Full) || len(values) < 3 || best != float64(trace.Recommendation.Best.Value) {
			t.Errorf("%s: %d values up to %v, and %v is recommended", direction, len(values), best, trace.Recommendation.Best.Value)
		}
	}
}

func same(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }

func TestLosersAreStopped(t *testing.T) {
	for rule, most := range map[string]float64{"median": 0.9, "{rule: percentile, percentile: 20}": 0.7, "halving": 0.7} {
		t.Run(rule, func(t *testing.T) {
			plain := []string{"policy: multi", "policy: epochs", "seed: 7}", "seed: 7, promotion: none}"}
			early := []string{plain[0], plain[1], plain[2], "seed: 7, promotion: none, early_stopping: " + rule + "}"}
			full := run(t, defined(t, plain...), hill{}, simulator.Options{Workers: 4})
			trace := run(t, defined(t, early...), hill{}, simulator.Options{Workers: 4, CheckpointEvery: 1})
			pruned := trace.Study.Progress.Trials[trial.Pruned]
			if trace.Stopped == 0 || pruned != trace.Stopped {
				t.Errorf("%d trials were stopped, %d are pruned", trace.Stopped, pruned)
			}
			if trace.Study.Progress.Created != 40 || trace.Cost > most*full.Cost {
				t.Errorf("%d trials with a cost of %v; without stopping it is %v", trace.Study.Progress.Created, trace.Cost, full.Cost)
			}
			if best := trace.Recommendation.Best; best == nil || float64(best.Value) < float64(full.Recommendation.Best.Value)-0.02 {
				t.Errorf("it recommends %+v, and %+v without stopping", best, full.Recommendation.Best)
			}
			checkOrder(t, trace)
		})
	}
}

// In this run both workers are excluded at once: the study waits until the first may
// work again, and is not stuck.
func TestAStudyWaitsForExcludedWorkers(t *testing.T) {
	options := troubled(0x3e046c07, 2)
	options.CheckpointEvery = 0
	trace := run(t, defined(t, "stop: {trials: 40}", "stop: {trials: 12}\nretry: {failures: 2}"), hill{}, options)
	if trace.Study.Status != protocol.StudyCompleted || trace.Seconds < 600 {
		t.Errorf("the study is %s after %v s", trace.Study.Status, trace.Seconds)
	}
}

func TestTroubleDoesNotStopAStudy(t *testing.T) {
	failed, vanished, straggled := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		options := troubled(rapid.Uint64().Draw(t, "seed"), rapid.IntRange(1, 12).Draw(t, "workers"))
		options.CheckpointEvery = rapid.IntRange(0, 3).Draw(t, "checkpoints")
		stopping := rapid.SampledFrom([]string{"", ", early_stopping: {rule: median, min_trials: 2}"}).Draw(t, "early stopping")
		def := defined(t, "stop: {trials: 40}", "stop: {trials: 12}\nretry: {failures: 2}", "seed: 7}", "seed: 7"+stopping+"}")
		trace, err := simulator.Run(context.Background(), def, hill{}, options)
		if err != nil {
			t.Fatal(err)
		}
		failed, vanished, straggled = failed+trace.Failed, vanished+trace.Vanished, straggled+trace.Straggled
		progress := trace.Study.Progress
		if trace.Study.Status != protocol.StudyCompleted || progress.Created != 12 {
			t.Fatalf("the study is %s after %d trials", trace.Study.Status, progress.Created)
		}
		if progress.Trials[trial.Completed] == 0 && progress.Trials[trial.Failed]+progress.Trials[trial.Lost]+progress.Trials[trial.Pruned] < 12 {
			t.Errorf("nobody was measured at the top: %v", progress.Trials)
		}
		if trace.Cost < progress.DataPasses-1e-9 {
			t.Errorf("the cost %v is less than the %v data passes the service counts", trace.Cost, progress.DataPasses)
		}
		if lost := len(trace.Points) - progress.Epochs; lost < trace.Failed+trace.Vanished {
			t.Errorf("%d failures and %d vanished workers cost only %d epochs", trace.Failed, trace.Vanished, lost)
		}
		checkOrder(t, trace)
	})
	if failed == 0 || vanished == 0 || straggled == 0 {
		t.Errorf("%d failures, %d vanished workers, %d stragglers: the test tests less than it says", failed, vanished, straggled)
	}
}

// One worker of eight that is slower by far must not hold up the others: with
// asynchronous promotions the rest of the study goes on without it.
func TestStragglersDoNotHoldUpTheOthers(t *testing.T) {
	quick := run(t, defined(t), hill{}, simulator.Options{Workers: 8})
	slow := run(t, defined(t), hill{}, simulator.Options{Workers: 8, Stragglers: 0.1, Slowdown: 10, Seed: 3})
	if slow.Straggled == 0 {
		t.Fatal("nobody straggled")
	}
	if extra := slow.Study.Progress.TrialSeconds - 10*slow.Cost; extra < 1 {
		t.Errorf("%d stragglers took only %v s more than the others", slow.Straggled, extra)
	}
	half := quick.Points[len(quick.Points)/2]
	point, _ := slow.AtSeconds(2 * half.Seconds)
	if point.Cost < half.Cost {
		t.Errorf("after %v s with stragglers the cost is %v; without it was %v after half the time", point.Seconds, point.Cost, half.Cost)
	}
}

// Who waits for a measurement goes on in the moment there is one, not at the
// next tick: how often the server ticks makes no difference.
func TestNobodyWaitsForATick(t *testing.T) {
	short := run(t, defined(t), hill{}, simulator.Options{Workers: 8})
	long := run(t, defined(t), hill{}, simulator.Options{Workers: 8, LeaseSeconds: 1e6})
	if short.Seconds != long.Seconds || len(short.Points) != len(long.Points) {
		t.Errorf("%v s and %d epochs with a tick every 15 s, %v s and %d epochs without one",
			short.Seconds, len(short.Points), long.Seconds, len(long.Points))
	}
}

func TestEventsOfOneMomentKeepTheirOrder(t *testing.T) {
	trace := run(t, defined(t, "policy: multi", "policy: epochs"), hill{}, simulator.Options{Workers: 3})
	for i, point := range trace.Points[:3] {
		if point.Seconds != 10 || point.Trial != i || point.Epoch != 1 {
			t.Errorf("point %d is %+v, want the first epoch of trial %d after 10 s", i, point, i)
		}
	}
}

func TestBoundsEndARun(t *testing.T) {
	endless := defined(t, "trials: 40", "trials: 10000")
	trace := run(t, endless, hill{}, simulator.Options{Workers: 3, MaxCost: 50})
	if trace.Cost < 50-1e-6 || trace.Cost >= 51 {
		t.Errorf("a cost of %v with a bound of 50", trace.Cost)
	}
	if trace.Study.Status != protocol.StudyRunning {
		t.Errorf("the study is %s", trace.Study.Status)
	}
	trace = run(t, endless, hill{}, simulator.Options{Workers: 3, MaxSeconds: 100})
	if trace.Seconds != 100 || trace.Points[len(trace.Points)-1].Seconds > 100 {
		t.Errorf("%v simulated seconds with a bound of 100", trace.Seconds)
	}
	trace = run(t, defined(t, "trials: 40", "trials: 10000, seconds: 200"), hill{}, simulator.Options{Workers: 3})
	if trace.Study.Status != protocol.StudyCompleted || trace.Seconds < 200 || trace.Seconds > 215 {
		t.Errorf("a study of 200 s is %s after %v s", trace.Study.Status, trace.Seconds)
	}
}

func TestAtFindsThePointWithinACost(t *testing.T) {
	trace := run(t, defined(t), hill{}, simulator.Options{})
	if _, found := trace.At(0.01); found {
		t.Error("there is a point before the first epoch")
	}
	for i, point := range trace.Points {
		if got, found := trace.At(point.Cost); !found || fmt.Sprint(got) != fmt.Sprint(point) { // NaN is not equal to itself
			t.Fatalf("the point at cost %v is %+v, want number %d: %+v", point.Cost, got, i, point)
		}
	}
	if last, _ := trace.At(1e9); last != trace.Points[len(trace.Points)-1] {
		t.Errorf("the last point is %+v", last)
	}
}

// lucky is a hill with noise that follows from the seed of a training.
type lucky struct{ hill }

func (l lucky) MeasureSeeded(c space.Configuration, epoch int, fraction float64, seed uint64) simulator.Measurement {
	measured := l.Measure(c, epoch, fraction)
	measured.Value += float64(seed%1000)/1000 - 0.5
	return measured
}

// Trainings of one configuration differ, and its mean lies nearer to the truth
// than the value it was chosen for.
func TestNoiseFollowsTheSeed(t *testing.T) {
	closer, studies := 0, effort.ByDay(t, 6, 20)
	for seed := range uint64(studies) {
		once := run(t, defined(t, "seed: 7", fmt.Sprintf("seed: %d", seed+1)), lucky{}, simulator.Options{})
		often := run(t, defined(t, "seed: 7", fmt.Sprintf("seed: %d, repeats: {trials: 2, times: 9}", seed+1)), lucky{}, simulator.Options{})
		best := often.Recommendation.Best
		if best.Repeated == nil || best.Repeated.Results != 9 || !(best.Repeated.StandardErrors[0] > 0) || often.Study.Progress.Repeats != 16 {
			t.Fatalf("seed %d: recommended is %+v after %d repeats", seed, best, often.Study.Progress.Repeats)
		}
		off := func(trace simulator.Trace) float64 {
			truth := hill{}.Measure(trace.Recommendation.Best.Params, 9, 1).Value
			return math.Abs(float64(trace.Recommendation.Best.Value) - truth)
		}
		if off(often) < off(once) {
			closer++
		}
	}
	if closer < studies*17/20 {
		t.Errorf("the mean is nearer to the truth in %d of %d studies", closer, studies)
	}
}

func TestDivergedTrialsNeverLead(t *testing.T) {
	cliff := measure(func(c space.Configuration, epoch int, fraction float64) simulator.Measurement {
		m := hill{}.Measure(c, epoch, fraction)
		if x, _ := c["x"].Number(); x > 0.5 {
			m.Value = math.NaN()
		}
		return m
	})
	trace := run(t, defined(t), cliff, simulator.Options{Workers: 4})
	best := trace.Recommendation.Best
	if x, _ := best.Params["x"].Number(); x > 0.5 || x < 0.3 {
		t.Errorf("recommended x = %v", x)
	}
}

func TestALongSimulationForgetsNoWorker(t *testing.T) {
	days := measure(func(c space.Configuration, epoch int, fraction float64) simulator.Measurement {
		return simulator.Measurement{Value: 1, Seconds: 3 * 24 * 3600}
	})
	trace := run(t, defined(t, "trials: 40", "trials: 3"), days, simulator.Options{Workers: 2, LeaseSeconds: 1e6})
	if trace.Study.Status != protocol.StudyCompleted || trace.Seconds < float64(3*24*3600) {
		t.Errorf("the study is %s after %v", trace.Study.Status, time.Duration(trace.Seconds*1e9))
	}
}

func TestWhatCannotBeSimulated(t *testing.T) {
	_, err := simulator.Run(t.Context(), defined(t), hill{}, simulator.Options{Workers: -1, Failures: 2, Slowdown: 0.5, MaxCost: math.NaN()})
	var wrong *problem.Error
	if !errors.As(err, &wrong) || len(wrong.Fields) != 4 {
		t.Errorf("four wrong options are answered with %v", err)
	}
	backwards := measure(func(space.Configuration, int, float64) simulator.Measurement {
		return simulator.Measurement{Seconds: -1}
	})
	if _, err := simulator.Run(t.Context(), defined(t), backwards, simulator.Options{}); !problem.Is(err, problem.Invalid) {
		t.Errorf("an epoch of -1 s is answered with %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := simulator.Run(ctx, defined(t), hill{}, simulator.Options{}); err == nil {
		t.Error("a cancelled run has no error")
	}
}

func BenchmarkRun(b *testing.B) {
	def := defined(b, "trials: 40", "trials: 200")
	for b.Loop() {
		trace, err := simulator.Run(b.Context(), def, hill{}, simulator.Options{Workers: 8})
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(trace.Seconds, "simulated-s/op")
	}
}

func TestBudgetsInSecondsAndJoulesSurviveTrouble(t *testing.T) {
	meter := measure(func(c space.Configuration, epoch int, fraction float64) simulator.Measurement {
		x, _ := c["x"].Number()
		m := hill{}.Measure(c, epoch, fraction)
		m.Seconds *= 0.5 + x // slow configurations get fewer epochs
		m.Joules = 3 * m.Seconds
		return m
	})
	for _, c := range []struct{ budget, promotion string }{
		{"seconds: {min: 20, max: 180}", "asynchronous"}, {"seconds: {min: 20, max: 180}", "synchronous"},
		{"joules: {min: 60, max: 540}", "asynchronous"}, {"seconds: {min: 2, max: 18}, epochs: 40", "asynchronous"},
		{"seconds: 60", "none"},
	} {
		for seed := range uint64(effort.ByDay(t, 2, 5)) {
			def := defined(t, "policy: multi, epochs: {min: 1, max: 9}, data_fraction: {min: 0.111111, max: 1}, eta: 3", c.budget,
				"seed: 7", "seed: 7, promotion: "+c.promotion, "stop: {trials: 40}", "stop: {trials: 40}\nretry: {failures: 20}")
			trace := run(t, def, meter, troubled(seed, 8))
			if trace.Study.Status != protocol.StudyCompleted || !trace.Recommendation.FullBudget {
				t.Fatalf("%s, %s: %s, %v", c.budget, c.promotion, trace.Study.Status, trace.Recommendation.Notes)
			}
			top := def.Ladder()[len(def.Ladder())-1].Budget
			if r := trace.Recommendation; float64(r.Seconds) < top.Seconds || float64(r.Energy.Joules) < top.Joules {
				t.Errorf("%s: the winner spent %v s and %v J of %+v", c.budget, r.Seconds, r.Energy, top)
			}
		}
	}
}

func TestTrueValuesAtAnotherBudget(t *testing.T) {
	def := defined(t, "policy: multi, epochs: {min: 1, max: 9}, data_fraction: {min: 0.111111, max: 1}, eta: 3", "policy: epochs, epochs: 1")
	trace := run(t, def, hill{}, simulator.Options{Full: budget.Budget{Epochs: 9, DataFraction: 1}})
	last := trace.Points[len(trace.Points)-1]
	// One epoch gives 3/4 of what the configuration is worth, nine 19/20.
	if got, want := last.True, last.Value/0.75*0.95; math.Abs(got-want) > 1e-9 {
		t.Errorf("the winner of one epoch is worth %v after nine, want %v", got, want)
	}
}

// A plan expects what studies train: one in eta would be too few, as asynchronous
// promotion keeps to trials that better ones overtake later.
func TestAPlanExpectsWhatIsTrained(t *testing.T) {
	t.Parallel()
	if plan := defined(t, "method: bohb", "method: tpe").Plan(); plan.DataPasses == 0 || plan.MostPasses != 0 {
		t.Errorf("a range of %v to %v passes is claimed for tpe, whose studies do not keep to it", plan.FewestPasses, plan.MostPasses)
	}
	for _, method := range []string{"random", "bohb"} {
		var costs []float64
		var plan budget.Plan
		for seed := range uint64(7) {
			def := defined(t, "method: bohb, seed: 7", fmt.Sprintf("method: %s, seed: %d", method, seed+1), "trials: 40", "trials: 60",
				"{x: {type: float, low: 0, high: 1}}", "{x: {type: float, low: 0, high: 1}, y: {type: float, low: 0, high: 1}, z: {type: float, low: 0, high: 1}}")
			plan = def.Plan()
			trace := run(t, def, measure(func(c space.Configuration, epoch int, fraction float64) simulator.Measurement {
				m := hill{}.Measure(c, epoch, fraction)
				for _, name := range []string{"y", "z"} {
					v, _ := c[name].Number()
					m.Value -= (v - 0.3) * (v - 0.3)
				}
				return m
			}), simulator.Options{Seed: seed, LeaseSeconds: 10_000})
			costs = append(costs, trace.Cost)
		}
		slices.Sort(costs)
		if median := costs[len(costs)/2]; median < plan.FewestPasses || median > plan.MostPasses {
			t.Errorf("%s: studies make %v passes, expected are %v to %v", method, costs, plan.FewestPasses, plan.MostPasses)
		}
	}
}
