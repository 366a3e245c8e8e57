package goptunatandem_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/c-bata/goptuna"
	"github.com/c-bata/goptuna/medianstopping"
	"github.com/c-bata/goptuna/successivehalving"
	tandem "github.com/tandem-tune/tandem/clients/go"
	"github.com/tandem-tune/tandem/clients/go/goptunatandem"
	"github.com/tandem-tune/tandem/clients/go/internal/servertest"
)

// server is one for all tests: each has a study of its own.
var server *servertest.Server

const second = "GO_TEST_SECOND_PROCESS"

func TestMain(m *testing.M) {
	if name := os.Getenv(second); name != "" {
		os.Exit(another(name))
	}
	servertest.Main(m, func(one *servertest.Server) { server = one })
}

// named is a name that no other test has, nor this one when it ran before.
func named(t *testing.T) string { return t.Name() + "-" + rand.Text() }

func bridged(t *testing.T, options goptunatandem.Options) *goptunatandem.Bridge {
	t.Helper()
	bridge, err := goptunatandem.New(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(bridge.Close)
	return bridge
}

var quiet = goptuna.StudyOptionLogger(&goptuna.StdLogger{})

func opened(t *testing.T, bridge *goptunatandem.Bridge, name string, more ...goptuna.StudyOption) *goptuna.Study {
	t.Helper()
	study, err := goptuna.CreateStudy(name, bridge.StudyOptions(append(more, quiet)...)...)
	if err != nil {
		t.Fatal(err)
	}
	return study
}

// quadratic is an objective as goptuna's documentation has it.
func quadratic(trial goptuna.Trial) (float64, error) {
	x1, err := trial.SuggestFloat("x1", -10, 10)
	if err != nil {
		return 0, err
	}
	x2, err := trial.SuggestFloat("x2", -10, 10)
	return math.Pow(x1-2, 2) + math.Pow(x2+5, 2), err
}

// every asks for each kind of parameter, for one only beside a choice, and reports.
func every(trial goptuna.Trial) (float64, error) {
	rate, err1 := trial.SuggestLogFloat("rate", 1e-5, 1)
	keep, err2 := trial.SuggestDiscreteFloat("keep/share", 0.1, 0.9, 0.1)
	layers, err3 := trial.SuggestInt("layers", 1, 3)
	width, err4 := trial.SuggestStepInt("width", 16, 70, 16)
	kind, err5 := trial.SuggestCategorical("kind", []string{"sgd", "adam", "none"})
	_, err6 := trial.SuggestInt("fixed", 7, 7)
	if err := errors.Join(err1, err2, err3, err4, err5, err6); err != nil {
		return 0, err
	}
	if steps := (keep - 0.1) / 0.1; math.Abs(steps-math.Round(steps)) > 1e-6 || keep < 0.1 || keep > 0.9001 || width%16 != 0 || width < 16 || width > 70 || layers < 1 || layers > 3 || rate < 1e-5 || rate > 1 {
		return 0, fmt.Errorf("%v is off its steps", []any{rate, keep, layers, width})
	}
	loss := math.Abs(math.Log10(rate)+2) + math.Abs(keep-0.5) + float64(layers)/10 + float64(width)/1000
	if kind == "sgd" {
		momentum, err := trial.SuggestFloat("momentum", 0, 0.99)
		if err != nil {
			return 0, err
		}
		loss += 0.9 - momentum
	}
	for step := range 4 {
		if err := trial.ShouldPrune(step, loss+1/float64(step+1)); err != nil {
			return 0, err
		}
	}
	return loss, nil
}

func best(t *testing.T, study *goptuna.Study) float64 {
	t.Helper()
	value, err := study.GetBestValue()
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// The same objective, by goptuna's random sampler alone and with the bridge. In 40 runs
// each, 16 to 22 of 60 trials with the bridge were below 10, and 1 to 9 without it.
func TestAnObjectiveIsTunedUnchanged(t *testing.T) {
	const trials, low, most = 60, 10.0, 12
	good := func(study *goptuna.Study) int {
		if err := study.Optimize(quadratic, trials); err != nil {
			t.Fatal(err)
		}
		ran, err := study.GetTrials()
		if err != nil || len(ran) != trials {
			t.Fatalf("%d trials, %v", len(ran), err)
		}
		return len(slices.DeleteFunc(ran, func(one goptuna.FrozenTrial) bool { return one.Value >= low }))
	}
	alone, err := goptuna.CreateStudy("alone", quiet, goptuna.StudyOptionSampler(goptuna.NewRandomSampler(goptuna.RandomSamplerOptionSeed(1))))
	if err != nil {
		t.Fatal(err)
	}
	if count := good(alone); count > most {
		t.Errorf("%d random trials are below %v", count, low)
	}
	bridge := bridged(t, goptunatandem.Options{})
	study := opened(t, bridge, named(t))
	if count := good(study); count <= most {
		t.Errorf("%d trials of the server are below %v, as may be at random", count, low)
	}
	theirs, err := bridge.Study().Trials(t.Context())
	if err != nil || len(theirs) != trials {
		t.Errorf("the server has %d trials: %v", len(theirs), err)
	}
	recommended, err := bridge.Study().Best(t.Context())
	if err != nil || recommended.Value != best(t, study) {
		t.Errorf("%+v, %v", recommended, err)
	}
	params, err := study.GetBestParams()
	if err != nil || params["x1"] != recommended.Params["x1"] {
		t.Errorf("%v, %v", params, err)
	}
}

func TestEveryKindOfParameter(t *testing.T) {
	bridge := bridged(t, goptunatandem.Options{})
	study := opened(t, bridge, named(t))
	if err := study.Optimize(every, 40); err != nil {
		t.Fatal(err)
	}
	trials, err := bridge.Study().Trials(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	conditional := 0
	for _, one := range trials {
		_, has := one.Params["momentum"]
		if has != (one.Params["kind"] == "sgd") || len(one.Params) != map[bool]int{true: 6, false: 5}[has] {
			t.Errorf("trial %d: %v", one.Number, one.Params)
		}
		if has {
			conditional++
		}
		if one.State != "completed" && one.State != "pruned" {
			t.Errorf("trial %d is %s: %s", one.Number, one.State, one.Reason)
		}
		if one.State == "completed" && one.Epochs != 4 {
			t.Errorf("trial %d has %d epochs", one.Number, one.Epochs)
		}
	}
	if len(trials) != 40 || conditional == 0 || conditional == 40 {
		t.Errorf("%d trials, %d with the momentum", len(trials), conditional)
	}
	ours, err := study.GetTrials()
	if err != nil || len(ours) != 40 {
		t.Fatalf("goptuna has %d trials: %v", len(ours), err)
	}
	for _, one := range ours {
		theirs := trials[one.Number]
		if one.State == goptuna.TrialStateComplete && (theirs.State != "completed" || theirs.Values[0] != one.Value) {
			t.Errorf("trial %d: %+v here, %+v there", one.Number, one, theirs)
		}
	}
}

// Each trial is worse than those before it. The control's server has no rule.
func TestTheServerPrunes(t *testing.T) {
	worse := func() goptuna.FuncObjective {
		var runs atomic.Int64
		return func(trial goptuna.Trial) (float64, error) {
			if _, err := trial.SuggestFloat("x", 0, 1); err != nil {
				return 0, err
			}
			loss := float64(runs.Add(1))
			for step := range 3 {
				if err := trial.ShouldPrune(step, loss); err != nil {
					return 0, err
				}
			}
			return loss, nil
		}
	}
	for name, one := range map[string]struct {
		options goptunatandem.Options
		least   int
	}{
		"median":  {goptunatandem.Options{}, 12},
		"halving": {goptunatandem.Options{Pruner: &successivehalving.Pruner{MinResource: 1, ReductionFactor: 2}}, 12},
		"warm-up": {goptunatandem.Options{Pruner: &medianstopping.PercentilePruner{Percentile: 25, NStartUpTrials: 5, NWarmUpSteps: 1}}, 12},
		"control": {goptunatandem.Options{Search: map[string]any{"early_stopping": nil}}, 0},
	} {
		bridge := bridged(t, one.options)
		study := opened(t, bridge, named(t)+name)
		if err := study.Optimize(worse(), 20); err != nil {
			t.Fatal(name, err)
		}
		ours, err := study.GetTrials()
		if err != nil {
			t.Fatal(err)
		}
		theirs, err := bridge.Study().Trials(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		here, there := 0, 0
		for i := range theirs {
			if ours[i].State == goptuna.TrialStatePruned {
				here++
			}
			if theirs[i].State == "pruned" {
				there++
			}
		}
		if here != there || here < one.least || one.least == 0 && here > 0 || len(ours) != 20 || len(theirs) != 20 {
			t.Errorf("%s: of %d and %d trials %d are pruned here and %d there, not at least %d", name, len(ours), len(theirs), here, there, one.least)
		}
	}
}

// The example of the documentation runs, and the server prunes in it.
func TestTheExampleRuns(t *testing.T) {
	said, err := exec.Command("go", "run", "../examples/goptuna").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	client, err := tandem.Connect(tandem.Options{})
	if err != nil {
		t.Fatal(err)
	}
	study, err := client.Study(t.Context(), "descent")
	if err != nil {
		t.Fatal(err)
	}
	found, err := study.Best(t.Context())
	if err != nil || found.Value > 0.5 || !strings.Contains(string(said), study.URL()) {
		t.Errorf("%+v, %v: %s", found, err, said)
	}
}

// another is what the second process of TestTwoProcesses does.
func another(name string) int {
	bridge, err := goptunatandem.New(context.Background(), goptunatandem.Options{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer bridge.Close()
	study, err := goptuna.CreateStudy(name, bridge.StudyOptions(quiet, goptuna.StudyOptionLoadIfExists(true))...)
	if err == nil {
		err = study.Optimize(every, 15)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// Two processes, and two goroutines in one of them, begin at once on one study.
func TestTwoProcesses(t *testing.T) {
	name := named(t)
	other := exec.Command(os.Args[0])
	other.Env = append(os.Environ(), second+"="+name)
	var said strings.Builder
	other.Stderr = &said
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	bridge := bridged(t, goptunatandem.Options{})
	study := opened(t, bridge, name, goptuna.StudyOptionLoadIfExists(true))
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			if err := study.Optimize(every, 10); err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
	if err := other.Wait(); err != nil {
		t.Fatalf("the other process: %v: %s", err, said.String())
	}
	theirs, err := bridge.Study().Trials(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ours, err := study.GetTrials()
	if err != nil {
		t.Fatal(err)
	}
	// A process may still have one that it got when it looked for another.
	ended, lowest := 0, math.Inf(1)
	for _, one := range theirs {
		switch one.State {
		case "completed":
			lowest = min(lowest, one.Values[0])
			ended++
		case "pruned":
			ended++
		case "failed", "lost", "cancelled":
			t.Errorf("%+v", one)
		}
	}
	ours = slices.DeleteFunc(ours, func(one goptuna.FrozenTrial) bool { return !one.State.IsFinished() })
	if ended != 35 || len(ours) != 35 {
		t.Errorf("%d trials ended on the server, %d for goptuna, not 35", ended, len(ours))
	}
	if found := best(t, study); found != lowest {
		t.Errorf("the best of all has %v, goptuna says %v", lowest, found)
	}
}

func TestWhatIsWrongIsSaid(t *testing.T) {
	bridge := bridged(t, goptunatandem.Options{})
	name := named(t)
	if err := opened(t, bridge, name).Optimize(quadratic, 12); err != nil {
		t.Fatal(err)
	}
	create := func(name string, more ...goptuna.StudyOption) error {
		_, err := goptuna.CreateStudy(name, bridged(t, goptunatandem.Options{}).StudyOptions(append(more, quiet)...)...)
		return err
	}
	for wrong, one := range map[string]struct {
		do    func() error
		wants []string
	}{
		"a name that is taken": {func() error { return create(name) }, []string{name, "StudyOptionLoadIfExists"}},
		"a pruner of one's own": {func() error {
			_, err := goptunatandem.New(t.Context(), goptunatandem.Options{Pruner: bridge})
			return err
		}, []string{"medianstopping", "*goptunatandem.Bridge"}},
		"no study": {func() error {
			_, err := goptuna.LoadStudy("nobody", bridged(t, goptunatandem.Options{}).StudyOptions(quiet)...)
			return err
		}, []string{`"nobody"`}},
		"nothing to search": {func() error {
			return opened(t, bridged(t, goptunatandem.Options{}), named(t)).Optimize(func(trial goptuna.Trial) (float64, error) {
				_, err := trial.SuggestInt("n", 3, 3)
				return 1, err
			}, 20)
		}, []string{"SuggestFloat"}},
		"two names that are one": {func() error {
			return opened(t, bridged(t, goptunatandem.Options{}), named(t)).Optimize(func(trial goptuna.Trial) (float64, error) {
				_, err1 := trial.SuggestFloat("a b", 0, 1)
				_, err2 := trial.SuggestFloat("a/b", 0, 1)
				return 1, errors.Join(err1, err2)
			}, 20)
		}, []string{`"a b"`, `"a/b"`, "rename"}},
		"a search that is none": {func() error {
			return opened(t, bridged(t, goptunatandem.Options{Search: map[string]any{"method": "gpu"}}), named(t)).Optimize(quadratic, 20)
		}, []string{"search.method", "gpu"}},
		"an objective's own error": {func() error {
			return opened(t, bridged(t, goptunatandem.Options{}), name, goptuna.StudyOptionLoadIfExists(true)).Optimize(func(goptuna.Trial) (float64, error) { return 0, errors.New("no data") }, 1)
		}, []string{"no data"}},
	} {
		err := one.do()
		if err == nil {
			t.Errorf("%s: no error", wrong)
			continue
		}
		for _, want := range one.wants {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q is not in: %v", wrong, want, err)
			}
		}
	}
	trials, err := bridge.Study().Trials(t.Context())
	if last := trials[len(trials)-1]; err != nil || len(trials) != 13 || last.State != "failed" {
		t.Errorf("%d trials, the last %+v, %v", len(trials), last, err)
	}
}

// Optimize ends with an error when the server is gone, or the study over; goptuna would
// try to create a trial for ever.
func TestOptimizeEndsWithoutAServer(t *testing.T) {
	own, err := servertest.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer own.Stop() //nolint:errcheck // a test's
	client, err := tandem.Connect(tandem.Options{Server: own.URL, Token: own.Token, Patience: -1})
	if err != nil {
		t.Fatal(err)
	}
	bridge := bridged(t, goptunatandem.Options{Client: client})
	study := opened(t, bridge, named(t))
	if err := study.Optimize(quadratic, 12); err != nil {
		t.Fatal(err)
	}
	if err := bridge.Study().Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := study.Optimize(quadratic, 1); !errors.Is(err, tandem.ErrStudyOver) {
		t.Errorf("a study that is over: %v", err)
	}
	if err := own.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := study.Optimize(quadratic, 1); !tandem.IsCode(err, tandem.Unavailable) || !strings.Contains(err.Error(), own.URL) {
		t.Errorf("a server that is gone: %v", err)
	}
}

// Values that a user enqueues run as they are, and stand on the server.
func TestEnqueuedTrials(t *testing.T) {
	bridge := bridged(t, goptunatandem.Options{})
	study := opened(t, bridge, named(t))
	for _, values := range []map[string]float64{{"x1": 2, "x2": -5}, {"x1": 3, "x2": -5}} {
		if err := study.EnqueueTrial(values); err != nil {
			t.Fatal(err)
		}
		if err := study.Optimize(quadratic, 12); err != nil { // the second time the server has the study
			t.Fatal(err)
		}
	}
	trials, err := bridge.Study().Trials(t.Context())
	if err != nil || len(trials) != 24 {
		t.Errorf("%d trials, %v", len(trials), err)
	}
	for _, want := range []float64{0, 1} {
		if !slices.ContainsFunc(trials, func(one tandem.TrialRecord) bool {
			return one.Values[0] == want && one.Params["x1"] == want+2
		}) {
			t.Errorf("no trial has the value %v: %+v", want, trials)
		}
	}
}

// A study that goptuna has in a storage of its own becomes one of the server's, which
// goes on with it.
func TestAStudyIsImported(t *testing.T) {
	name, storage := named(t), goptuna.NewInMemoryStorage()
	before, err := goptuna.CreateStudy(name, goptuna.StudyOptionStorage(storage), goptuna.StudyOptionPruner(medianstopping.NewMedianPruner()), goptuna.StudyOptionDirection(goptuna.StudyDirectionMinimize), quiet)
	if err != nil {
		t.Fatal(err)
	}
	if err := before.Optimize(every, 30); err != nil {
		t.Fatal(err)
	}
	imported, err := goptunatandem.Import(t.Context(), storage, name, goptunatandem.Options{})
	if err != nil {
		t.Fatal(err)
	}
	had, err := before.GetTrials()
	if err != nil {
		t.Fatal(err)
	}
	has, err := imported.Trials(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	number := 0
	for _, one := range had {
		if one.State != goptuna.TrialStateComplete {
			continue
		}
		if number >= len(has) || has[number].State != "completed" || has[number].Values[0] != one.Value || has[number].Params["kind"] != one.Params["kind"] || has[number].Epochs != 4 {
			t.Fatalf("trial %d of goptuna's, %+v, is not trial %d of %+v", one.Number, one, number, has)
		}
		number++
	}
	if number != len(has) || number == 0 || number == 30 {
		t.Errorf("%d trials were completed, and the server has %d", number, len(has))
	}
	if _, err := goptunatandem.Import(t.Context(), storage, name, goptunatandem.Options{}); !tandem.IsCode(err, tandem.Conflict) {
		t.Errorf("imported twice: %v", err)
	}
	if _, err := goptunatandem.Import(t.Context(), storage, "nobody", goptunatandem.Options{}); err == nil || !strings.Contains(err.Error(), `"nobody"`) {
		t.Errorf("a study that is none: %v", err)
	}
	study := opened(t, bridged(t, goptunatandem.Options{}), name, goptuna.StudyOptionLoadIfExists(true))
	if err := study.Optimize(every, 5); err != nil {
		t.Fatal(err)
	}
	if after, err := imported.Trials(t.Context()); err != nil || len(after) != number+5 {
		t.Errorf("%d trials, not %d: %v", len(after), number+5, err)
	}
}
