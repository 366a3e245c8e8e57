package tandem_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	tandem "github.com/tandem-tune/tandem/clients/go"
	"github.com/tandem-tune/tandem/clients/go/internal/servertest"
)

// server is one for all tests: each has a study of its own.
var server *servertest.Server

func TestMain(m *testing.M) {
	if os.Getenv(scriptOf) != "" {
		os.Exit(script())
	}
	servertest.Main(m, func(one *servertest.Server) { server = one })
}

func connect(t *testing.T) *tandem.Client {
	t.Helper()
	client, err := tandem.Connect(tandem.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// named is a name that no other test has, nor this one when it ran before.
func named(t *testing.T) string { return t.Name() + "-" + rand.Text() }

func created(t *testing.T, definition tandem.Definition) *tandem.Study {
	t.Helper()
	study, err := connect(t).CreateStudy(t.Context(), definition)
	if err != nil {
		t.Fatal(err)
	}
	return study
}

// mixed has each kind of parameter, and a condition on one that stands before it.
var mixed = []tandem.Parameter{
	tandem.Float("x", -1, 1), tandem.LogFloat("rate", 1e-4, 1), tandem.Int("layers", 1, 9).Step(2),
	tandem.Categorical("optimizer", "sgd", "adam"), tandem.Categorical("bias", true, false), tandem.Ordinal("batch", 32, 64),
	tandem.Float("decay", 0, 1).When("optimizer", "sgd"),
}

func TestWhatIsExpectedComesFirst(t *testing.T) {
	study := created(t, tandem.Definition{Name: named(t), Objectives: tandem.Minimize("loss"), Trials: 2, Space: []tandem.Parameter{
		tandem.Float("x", -1, 1).Expect(0.25, "high"), tandem.Categorical("optimizer", "sgd", "adam").Expect("adam", "low"),
	}})
	defer study.Close()
	trial, err := study.Ask(t.Context())
	if err != nil || trial.Float("x") != 0.25 || trial.Categorical("optimizer") != "adam" {
		t.Errorf("it begins with %v, %v", trial, err)
	}
}

func TestAProgramIsTuned(t *testing.T) {
	study := created(t, tandem.Definition{Name: named(t), Objectives: tandem.Minimize("loss"), Space: mixed, Trials: 20})
	objective := func(_ context.Context, trial *tandem.Trial) (float64, error) {
		loss := trial.Float("x")*trial.Float("x") + trial.Float("rate")
		if layers := trial.Int("layers"); layers%2 == 0 {
			return 0, fmt.Errorf("%d layers", layers)
		}
		if batch := trial.Int("batch"); batch != 32 && batch != 64 {
			return 0, fmt.Errorf("a batch of %d", batch)
		}
		if trial.Has("decay") != (trial.Categorical("optimizer") == "sgd") {
			return 0, fmt.Errorf("%v", trial.Params())
		}
		if trial.Has("decay") {
			loss += trial.Float("decay")
		}
		if trial.Bool("bias") {
			loss++
		}
		return loss, nil
	}
	if err := study.Optimize(t.Context(), objective, tandem.Parallel(2)); err != nil {
		t.Fatal(err)
	}
	trials, err := study.Trials(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	best, err := study.Best(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(trials) != 20 || trials[19].Number != 19 {
		t.Errorf("%d trials: %+v", len(trials), trials)
	}
	for _, one := range trials {
		if one.State != "completed" || len(one.Values) != 1 {
			t.Fatalf("trial %d: %+v", one.Number, one)
		}
		if one.Values[0] < best.Value {
			t.Errorf("trial %d has %v, and the best is %+v", one.Number, one.Values[0], best)
		}
	}
	if status, err := study.Status(t.Context()); err != nil || !status.Over() {
		t.Errorf("%+v, %v", status, err)
	}
	if err := study.Optimize(t.Context(), objective); err != nil {
		t.Errorf("a study that is over: %v", err)
	}
	if _, err := study.Ask(t.Context()); !errors.Is(err, tandem.ErrStudyOver) {
		t.Errorf("a study that is over gives a trial: %v", err)
	}
	study.Close()
}

// Trials climb the ladder: what was trained is not trained again, as its checkpoint says.
func TestATrialGoesOnFromItsCheckpoint(t *testing.T) {
	study := created(t, tandem.Definition{
		Name: named(t), Objectives: tandem.Maximize("score"), Space: []tandem.Parameter{tandem.Float("x", 0, 1)}, Epochs: 9, Trials: 9,
		Search: map[string]any{"method": "random", "seed": 7},
	})
	var trained, resumed atomic.Int64
	objective := func(_ context.Context, trial *tandem.Trial) (float64, error) {
		sum := 0.0
		went, err := trial.Restore(func(path string) error {
			text, err := os.ReadFile(filepath.Join(path, "sum"))
			if err != nil {
				return err
			}
			sum, err = strconv.ParseFloat(string(text), 64)
			return err
		})
		if err != nil {
			return 0, err
		}
		if went {
			resumed.Add(1)
		}
		for epoch := range trial.Epochs() {
			sum += trial.Float("x")
			trained.Add(1)
			if err := trial.Report(epoch, tandem.Metrics{"score": sum}); err != nil {
				return 0, err
			}
			err := trial.Checkpoint(func(path string) error {
				if err := os.Mkdir(path, 0o700); err != nil {
					return err
				}
				return os.WriteFile(filepath.Join(path, "sum"), []byte(fmt.Sprint(sum)), 0o600)
			})
			if err != nil {
				return 0, err
			}
		}
		if want := trial.Float("x") * float64(trial.LastEpoch); sum < want-1e-9 || sum > want+1e-9 {
			return 0, fmt.Errorf("epochs 1 to %d sum to %v, not %v", trial.LastEpoch, sum, want)
		}
		return sum, nil
	}
	if err := study.Optimize(t.Context(), objective); err != nil {
		t.Fatal(err)
	}
	trials, err := study.Trials(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	epochs, top := 0, 0
	for _, one := range trials {
		epochs = epochs + one.Epochs
		top = max(top, one.Epochs)
	}
	if top != 9 || resumed.Load() == 0 || int64(epochs) != trained.Load() {
		t.Errorf("%d epochs were trained and the server has %d; %d runs went on; the longest has %d", trained.Load(), epochs, resumed.Load(), top)
	}
}

// A trial that does worse than others is stopped early; the control has no such rule.
func TestAReportIsAnsweredThatTheTrialIsPruned(t *testing.T) {
	pruned := func(name string, search map[string]any) int {
		search["method"], search["promotion"] = "random", "none"
		study := created(t, tandem.Definition{
			Name: named(t) + name, Objectives: tandem.Minimize("loss"), Space: []tandem.Parameter{tandem.Float("x", 0, 1)}, Epochs: 4, Trials: 10, Search: search,
		})
		runs, stopped := 0, 0
		err := study.Optimize(t.Context(), func(_ context.Context, trial *tandem.Trial) (float64, error) {
			runs++
			for epoch := range trial.Epochs() {
				if err := trial.Report(epoch, tandem.Metrics{"loss": float64(runs)}); err != nil {
					return 0, err
				}
			}
			if why, is := trial.Stopped(); is {
				stopped++
				if why == "" || trial.Complete() {
					t.Errorf("trial %d was stopped: %q", trial.Number, why)
				}
			}
			return float64(runs), nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return stopped
	}
	if count := pruned("-median", map[string]any{"early_stopping": map[string]any{"rule": "median", "min_trials": 2}}); count != 8 {
		t.Errorf("%d of 8 trials that are worse than each before them were pruned", count)
	}
	if count := pruned("-control", map[string]any{}); count != 0 {
		t.Errorf("%d trials were pruned without a rule", count)
	}
}

func TestWhatIsWrongIsSaid(t *testing.T) {
	study := created(t, tandem.Definition{Name: named(t), Objectives: tandem.Minimize("loss"), Space: mixed, Search: map[string]any{"promotion": "none", "method": "random"}})
	ask := func() *tandem.Trial {
		trial, err := study.Ask(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return trial
	}
	defer study.Close()
	for name, one := range map[string]struct {
		do    func() error
		wants []string
	}{
		"a parameter that is none": {func() error {
			trial := ask()
			trial.Float("learning_rat")
			return trial.Report(1, tandem.Metrics{"loss": 1})
		}, []string{`"learning_rat"`, "rate", "Has"}},
		"a text as a number": {func() error {
			trial := ask()
			trial.Float("optimizer")
			_, err := study.Tell(t.Context(), trial, 1)
			return err
		}, []string{`"optimizer"`, "not a number"}},
		"an epoch too many":         {func() error { return ask().Report(2, tandem.Metrics{"loss": 1}) }, []string{"epoch 2", "1 to 1"}},
		"a metric that is not hers": {func() error { return ask().Report(1, tandem.Metrics{"los": 1}) }, []string{`"loss"`, "it has los"}},
		"a study that is none":      {func() error { _, err := connect(t).Study(t.Context(), "nobody"); return err }, []string{"open the study", "nobody"}},
		"a range that is none": {func() error {
			_, err := connect(t).CreateStudy(t.Context(), tandem.Definition{Name: "turned", Objectives: tandem.Minimize("loss"), Space: []tandem.Parameter{tandem.LogFloat("x", -1, 1)}})
			return err
		}, []string{"space.x.low", "greater than 0", "-1"}},
		"a name that is taken": {func() error {
			_, err := connect(t).CreateStudy(t.Context(), tandem.Definition{Name: study.Name, Objectives: tandem.Minimize("loss"), Space: mixed})
			return err
		}, []string{study.Name}},
		"an address that is none": {func() error { _, err := tandem.Connect(tandem.Options{Server: "example.test"}); return err }, []string{"TANDEM_SERVER", `"example.test"`}},
		"a token in plain text": {func() error {
			_, err := tandem.Connect(tandem.Options{Server: "http://example.test", Token: "x"})
			return err
		}, []string{"https", "Insecure"}},
		"a file that is no authority": {func() error { _, err := tandem.Connect(tandem.Options{CA: "client_test.go"}); return err }, []string{"client_test.go", "authority.pem"}},
		"no worker":                   {func() error { _, err := tandem.FromEnvironment(t.Context()); return err }, []string{"TANDEM_SOCKET", "Alone"}},
	} {
		err := one.do()
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		for _, want := range one.wants {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q is not in: %v", name, want, err)
			}
		}
	}
}

func TestAFailureEndsTheProgramUnlessItIsToKeepGoing(t *testing.T) {
	study := created(t, tandem.Definition{Name: named(t), Objectives: tandem.Minimize("loss"), Space: mixed, Trials: 3, More: map[string]any{"retry": map[string]int{"failures": 0}}})
	broken := errors.New("no data")
	fails := func(context.Context, *tandem.Trial) (float64, error) { return 0, broken }
	if err := study.Optimize(t.Context(), fails); !errors.Is(err, broken) || !strings.Contains(err.Error(), "trial 0") {
		t.Errorf("%v", err)
	}
	if err := study.Optimize(t.Context(), fails, tandem.KeepGoing(), tandem.Trials(2)); err != nil {
		t.Errorf("%v", err)
	}
	trials, err := study.Trials(t.Context())
	if err != nil || len(trials) != 3 {
		t.Fatalf("%d trials, %v", len(trials), err)
	}
	for _, one := range trials {
		if one.State != "failed" || !strings.Contains(one.Reason, "no data") {
			t.Errorf("%+v", one)
		}
	}
}

// A program that is ended gives its trial back, and another one goes on with it.
func TestAnEndedProgramGivesItsTrialBack(t *testing.T) {
	study := created(t, tandem.Definition{Name: named(t), Objectives: tandem.Minimize("loss"), Space: mixed, Trials: 1})
	ctx, end := context.WithCancel(t.Context())
	err := study.Optimize(ctx, func(ctx context.Context, trial *tandem.Trial) (float64, error) {
		end()
		<-ctx.Done()
		return 0, ctx.Err()
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	runs := 0
	err = study.Optimize(t.Context(), func(context.Context, *tandem.Trial) (float64, error) { runs++; return 1, nil })
	if trials, failed := study.Trials(t.Context()); err != nil || failed != nil || runs != 1 || len(trials) != 1 || trials[0].State != "completed" {
		t.Errorf("%d runs, %+v, %v, %v", runs, trials, err, failed)
	}
}

// What a lost lease's holder writes is refused, and its context ends.
func TestALostLeaseEndsTheContext(t *testing.T) {
	study := created(t, tandem.Definition{Name: named(t), Objectives: tandem.Minimize("loss"), Space: mixed})
	defer study.Close()
	trial, err := study.Ask(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := study.Delete(t.Context()); err != nil {
		t.Fatal(err)
	}
	err = trial.Report(1, tandem.Metrics{"loss": 1})
	<-trial.Context().Done()
	if !tandem.IsCode(err, tandem.LeaseLost) || !tandem.IsCode(context.Cause(trial.Context()), tandem.LeaseLost) {
		t.Errorf("%v, %v", err, context.Cause(trial.Context()))
	}
}

// A heartbeat brings the word that a trial is lost; Optimize goes on with the next.
func TestAHeartbeatSaysThatATrialIsLost(t *testing.T) {
	var leases atomic.Int64
	answers := http.NewServeMux()
	answer := func(pattern string, document func() string) {
		answers.HandleFunc(pattern, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, document()) }) //nolint:errcheck // a test's
	}
	answer("GET /api/v1/studies/{study}", func() string { return `{"id": "s", "name": "s"}` })
	answer("POST /api/v1/workers", func() string { return `{"lease_seconds": 60, "heartbeat_seconds": 0.01}` })
	answer("DELETE /api/v1/workers/{worker}", func() string { return "" })
	answer("POST /api/v1/leases", func() string {
		if leases.Add(1) > 1 {
			return `{"study_finished": true}`
		}
		return `{"lease": {"trial_id": "s-0", "lease_epoch": 1, "budget": {"epochs": 1, "data_fraction": 1}, "objectives": ["loss"]}}`
	})
	answer("POST /api/v1/workers/{worker}/heartbeat", func() string { return `{"lost": ["s-0"]}` })
	fake := httptest.NewServer(answers)
	defer fake.Close()
	client, err := tandem.Connect(tandem.Options{Server: fake.URL})
	if err != nil {
		t.Fatal(err)
	}
	study, err := client.Study(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	err = study.Optimize(t.Context(), func(ctx context.Context, trial *tandem.Trial) (float64, error) {
		<-ctx.Done()
		if cause := context.Cause(ctx); !tandem.IsCode(cause, tandem.LeaseLost) {
			t.Error(cause)
		}
		return 1, nil
	})
	if err != nil || leases.Load() != 2 {
		t.Errorf("%d leases, %v", leases.Load(), err)
	}
}

// A server that is killed and started again has all that it acknowledged: the trial
// that ran meanwhile ends as if nothing had happened.
func TestAServerThatIsKilledIsWaitedFor(t *testing.T) {
	own, err := servertest.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer own.Stop() //nolint:errcheck // a test's
	client, err := tandem.Connect(tandem.Options{Server: own.URL, Token: own.Token, Patience: 5 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	study, err := client.CreateStudy(t.Context(), tandem.Definition{Name: "killed", Objectives: tandem.Minimize("loss"), Space: mixed, Epochs: 2, Trials: 2, Search: map[string]any{"method": "random", "promotion": "none"}})
	if err != nil {
		t.Fatal(err)
	}
	runs := 0
	err = study.Optimize(t.Context(), func(_ context.Context, trial *tandem.Trial) (float64, error) {
		runs++
		if err := trial.Report(1, tandem.Metrics{"loss": 2}); err != nil || runs > 1 {
			return 1, err
		}
		if err := own.Kill(); err != nil {
			return 0, err
		}
		return 1, own.Again(strings.TrimPrefix(own.URL, "http://"))
	})
	if err != nil || runs != 2 {
		t.Errorf("%d runs, %v", runs, err)
	}
	trials, err := study.Trials(t.Context())
	if err != nil || len(trials) != 2 || trials[0].Epochs != 2 || trials[0].State != "completed" || trials[0].Values[0] != 1 {
		t.Errorf("%+v, %v", trials, err)
	}
	if err := own.Kill(); err != nil {
		t.Fatal(err)
	}
	hasty, err := tandem.Connect(tandem.Options{Server: own.URL, Token: own.Token, Patience: -1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := hasty.Study(t.Context(), "killed"); !tandem.IsCode(err, tandem.Unavailable) || !strings.Contains(err.Error(), own.URL) {
		t.Errorf("a server that is gone: %v", err)
	}
}

// Results from elsewhere are trials of the study.
func TestResultsFromElsewhereAreRecorded(t *testing.T) {
	study := created(t, tandem.Definition{Name: named(t), Objectives: tandem.Minimize("loss"), Space: []tandem.Parameter{tandem.Float("x", 0, 1)}, Epochs: 3, Search: map[string]any{"method": "tpe", "promotion": "none"}})
	defer study.Close()
	for i := range 5 {
		result := tandem.Result{Params: map[string]any{"x": float64(i) / 4}, Metrics: tandem.Metrics{"loss": float64(i)}, Curve: []float64{9, 8}, Took: 3 * time.Second}
		if number, err := study.Record(t.Context(), result); err != nil || number != i {
			t.Fatalf("%d: trial %d, %v", i, number, err)
		}
	}
	_, err := study.Record(t.Context(), tandem.Result{Params: map[string]any{"x": 2}, Metrics: tandem.Metrics{"loss": 1}})
	if !tandem.IsCode(err, tandem.Invalid) {
		t.Errorf("a value out of range: %v", err)
	}
	trials, err := study.Trials(t.Context())
	if err != nil || len(trials) != 5 {
		t.Fatalf("%d trials, %v", len(trials), err)
	}
	for i, one := range trials {
		if one.State != "completed" || one.Values[0] != float64(i) || one.Params["x"] != float64(i)/4 && i%4 != 0 || one.Epochs != 3 {
			t.Errorf("%+v", one)
		}
	}
}

const scriptOf = "GO_TEST_SCRIPT"

// script is what a worker starts in TestAWorkerStartsAProgram, and what the second
// process does in TestTwoProcessesShareAStudy.
func script() int {
	ctx := context.Background()
	fail := func(err error) int {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if name := os.Getenv(scriptOf); name != "worker" {
		client, err := tandem.Connect(tandem.Options{})
		if err != nil {
			return fail(err)
		}
		study, err := client.OpenOrCreateStudy(ctx, shared(name))
		if err != nil {
			return fail(err)
		}
		return map[bool]int{true: 0, false: 1}[study.Optimize(ctx, square) == nil]
	}
	trial, err := tandem.FromEnvironment(ctx)
	if err != nil {
		return fail(err)
	}
	sum := []byte{}
	if _, err := trial.Restore(func(path string) error { sum, err = os.ReadFile(path); return err }); err != nil {
		return fail(err)
	}
	for epoch := range trial.Epochs() {
		sum = append(sum, '+')
		if err := trial.Report(epoch, tandem.Metrics{"sum": float64(len(sum)) * trial.Float("x")}); err != nil {
			return fail(err)
		}
		if err := trial.Checkpoint(func(path string) error { return os.WriteFile(path, sum, 0o600) }); err != nil {
			return fail(err)
		}
	}
	return 0
}

func shared(name string) tandem.Definition {
	return tandem.Definition{Name: name, Objectives: tandem.Minimize("loss"), Space: []tandem.Parameter{tandem.Float("x", -1, 1)}, Trials: 12}
}

func square(_ context.Context, trial *tandem.Trial) (float64, error) {
	return trial.Float("x") * trial.Float("x"), nil
}

func TestTwoProcessesShareAStudy(t *testing.T) {
	client := connect(t)
	other := exec.Command(os.Args[0])
	name := named(t)
	other.Env = append(os.Environ(), scriptOf+"="+name)
	var said strings.Builder
	other.Stderr = &said
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	study, err := client.OpenOrCreateStudy(t.Context(), shared(name))
	if err != nil {
		t.Fatal(err)
	}
	if err := study.Optimize(t.Context(), square); err != nil {
		t.Error(err)
	}
	if err := other.Wait(); err != nil {
		t.Errorf("the other process: %v: %s", err, said.String())
	}
	trials, err := study.Trials(t.Context())
	if err != nil || len(trials) != 12 {
		t.Fatalf("%d trials, %v", len(trials), err)
	}
	for _, one := range trials {
		if one.State != "completed" {
			t.Errorf("%+v", one)
		}
	}
}

// A worker starts this program for each run of a trial.
func TestAWorkerStartsAProgram(t *testing.T) {
	study := created(t, tandem.Definition{
		Name: named(t), Objectives: tandem.Maximize("sum"), Space: []tandem.Parameter{tandem.Float("x", 0.5, 1)}, Epochs: 3, Trials: 3,
		Search: map[string]any{"method": "random"}, More: map[string]any{"command": []string{os.Args[0]}, "environment": map[string]string{scriptOf: "worker"}, "directory": ".", "system": "off"},
	})
	ctx, end := context.WithTimeout(t.Context(), 10*time.Minute)
	defer end()
	worker := exec.CommandContext(ctx, server.Binary, "worker", "--slots", "1", "--sandbox", "off", "--idle", "1s", "--directory", t.TempDir())
	if said, err := worker.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	trials, err := study.Trials(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	top := 0
	for _, one := range trials {
		if top = max(top, one.Epochs); one.Values[0] != float64(one.Epochs)*one.Params["x"].(float64) {
			t.Errorf("%+v", one)
		}
	}
	if top != 3 {
		t.Errorf("no trial was promoted: %+v", trials)
	}
}

// The example of the documentation finds settings that train: with those of most of its
// trials the loss stays above 0.01.
func TestTheExampleRuns(t *testing.T) {
	said, err := exec.Command("go", "run", "./examples/regression").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	study, err := connect(t).Study(t.Context(), "regression")
	if err != nil {
		t.Fatal(err)
	}
	best, err := study.Best(t.Context())
	if err != nil || best.Value > 0.01 || !strings.Contains(string(said), study.URL()) {
		t.Errorf("%+v, %v: %s", best, err, said)
	}
}

func TestAloneNeedsNoServer(t *testing.T) {
	trial, end, err := tandem.Alone(map[string]any{"x": 0.5, "n": 3}, 2)
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	for epoch := range trial.Epochs() {
		if err := trial.Report(epoch, tandem.Metrics{"loss": trial.Float("x") * float64(trial.Int("n"))}); err != nil {
			t.Error(err)
		}
		if err := trial.Checkpoint(func(path string) error { return os.WriteFile(path, nil, 0o600) }); err != nil {
			t.Error(err)
		}
	}
	if !trial.Complete() {
		t.Error("two epochs were reported, and it is not complete")
	}
}
