// Package e2e_test runs the built binary as users do: real servers, real
// workers, real Python training scripts, and signals that cannot be caught.
package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/e2e/launch"
	"github.com/tandem-tune/tandem/e2e/storm"
	"github.com/tandem-tune/tandem/e2e/unlike"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

// binary is the tandem under test: the one that TANDEM_BINARY names, or else it
// is built once. With the race detector it must be an instrumented one.
var binary = os.Getenv("TANDEM_BINARY")

// built is the folder of what the tests build.
var built string

func TestMain(m *testing.M) {
	if storm.IsScript() {
		if err := storm.Train(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if unlike.IsScript() {
		if err := unlike.Train(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if addresses := os.Getenv(forwarding); addresses != "" {
		os.Exit(forward(addresses))
	}
	flag.Parse()
	if testing.Short() {
		fmt.Println("the end-to-end tests take a minute: left out with -short")
		return
	}
	waiting()
	var err error
	built, err = os.MkdirTemp("", "tandem-e2e-")
	if err == nil {
		err = plainPython(built)
	}
	compileClient()
	if err == nil && binary == "" {
		binary, err = launch.Build(context.Background(), built)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(built)
	os.Exit(code)
}

// waiting lets more tests run at once than there are cores, unless -parallel says
// how many: most of what they do is to wait for leases to run out and for scripts
// that sleep.
func waiting() {
	chosen := false
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "test.parallel" })
	if chosen {
		return
	}
	if err := flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0))); err != nil {
		panic(err)
	}
}

// plainPython puts a virtual environment in the folder first, without a package: what others
// have installed, and a version manager, would be started with each trial too.
func plainPython(folder string) error {
	if _, err := exec.LookPath("python3"); err != nil {
		return nil //nolint:nilerr // tests that need Python say that there is none
	}
	environment := filepath.Join(folder, "python")
	if output, err := exec.Command("python3", "-m", "venv", "--without-pip", environment).CombinedOutput(); err != nil {
		return fmt.Errorf("make a virtual environment: %w\n%s", err, output)
	}
	return os.Setenv("PATH", filepath.Join(environment, "bin")+string(os.PathListSeparator)+os.Getenv("PATH"))
}

// compileClient keeps the Python client compiled: scripts read it from a folder
// that their sandbox lets nobody write to.
func compileClient() {
	_ = exec.Command("python3", "-m", "compileall", "-q", "../clients/python/tandem").Run() // without, they are slower
}

// outcome is what one command line did.
type outcome struct {
	code           int
	stdout, stderr string
}

// cli runs tandem to its end.
func cli(t testing.TB, environment []string, args ...string) outcome {
	t.Helper()
	return cliBy(t, nil, environment, args...)
}

// cliBy is cli run by another command.
func cliBy(t testing.TB, by, environment []string, args ...string) outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	if args[0] == "run" {
		args = append(args, opened(t)...)
	}
	line := append(append(slices.Clone(by), binary), args...)
	command := exec.CommandContext(ctx, line[0], line[1:]...)
	command.Env = append(os.Environ(), environment...)
	var stdout, stderr strings.Builder
	command.Stdout, command.Stderr = &stdout, &stderr
	err := command.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("tandem %v: %v", args, err)
	}
	return outcome{command.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// opened are the flags of a worker whose commands are in its sandbox and may use
// the client of this repository, and keep their ledgers.
func opened(t testing.TB) []string {
	t.Helper()
	client, err := filepath.Abs("../clients/python")
	if err != nil {
		t.Fatal(err)
	}
	return []string{"--allow-read", client, "--allow-write", ledgers(t)}
}

// ledgers is where the scripts of the test keep theirs.
func ledgers(t testing.TB) string {
	t.Helper()
	folder := filepath.Join(filepath.Dir(t.TempDir()), "ledgers")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	return folder
}

// study is a study file in a folder of its own, with the script and its ledger.
type study struct {
	t      testing.TB
	name   string
	file   string
	ledger string
}

const studyFile = `
name: %s
command: [python3, train.py]
environment: {PYTHONPATH: %s, LEDGER: %s, EPOCH_SECONDS: "%s"}
objective: [{metric: accuracy, direction: maximize}]
space: {x: {type: float, low: 0, high: 1}}
budget: {policy: %s}
search: {method: bohb, seed: 7}
stop: {trials: %d, seconds: 120}
system: off
`

const (
	threeRungs = "multi, epochs: {min: 1, max: 9}, data_fraction: {min: 0.25, max: 1}, eta: 3"
	nineEpochs = "epochs, epochs: {min: 9, max: 9}, eta: 3"
)

func newStudy(t *testing.T, name, budget, epochSeconds string, trials int) study {
	t.Helper()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("python3 is not installed: the end-to-end tests run a Python script")
	}
	folder := t.TempDir()
	script, err := os.ReadFile("testdata/train.py")
	if err != nil {
		t.Fatal(err)
	}
	client, err := filepath.Abs("../clients/python")
	if err != nil {
		t.Fatal(err)
	}
	s := study{t: t, name: name, file: filepath.Join(folder, "study.yaml"), ledger: filepath.Join(ledgers(t), name)}
	content := fmt.Sprintf(studyFile, name, client, s.ledger, epochSeconds, budget, trials)
	for path, data := range map[string][]byte{s.file: []byte(content), filepath.Join(folder, "train.py"): script} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// entry is a line of the ledger.
type entry struct {
	what                     string
	number, rung, epoch, pid int
}

func (s study) entries(what string) []entry {
	s.t.Helper()
	var list []entry
	for _, line := range launch.Lines(s.ledger) {
		var e entry
		if _, err := fmt.Sscanf(line, "%s %d %d %d %d", &e.what, &e.number, &e.rung, &e.epoch, &e.pid); err != nil {
			s.t.Fatalf("the ledger has %q: %v", line, err)
		}
		if e.what == what {
			list = append(list, e)
		}
	}
	return list
}

// result is what "tandem run --json" and "study watch --json" print.
type result struct {
	Study          protocol.StudyView      `json:"study"`
	Recommendation protocol.Recommendation `json:"recommendation"`
}

func read[T any](t testing.TB, text string) T {
	t.Helper()
	var value T
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatalf("not the JSON that was promised: %v\n%s", err, text)
	}
	return value
}

// export is the JSON export, as far as the tests read it.
type export struct {
	Trials []trial.Trial `json:"trials"`
	Events []struct {
		Kind string          `json:"kind"`
		Data json.RawMessage `json:"data"`
	} `json:"events"`
}

// reports are the accepted reports of the history, by trial.
func (e export) reports(t testing.TB) map[trial.ID][]trial.Report {
	t.Helper()
	list := map[trial.ID][]trial.Report{}
	for _, event := range e.Events {
		if event.Kind == "report" {
			report := read[trial.Report](t, string(event.Data))
			list[report.Trial] = append(list[report.Trial], report)
		}
	}
	return list
}

// checkBooks compares the server's books with the script's: every acknowledged
// epoch is there, none counts twice.
func checkBooks(t testing.TB, s study, books export) {
	t.Helper()
	kept, reports := map[[3]int]int{}, books.reports(t)
	for _, tr := range books.Trials {
		if len(reports[tr.ID]) != tr.Epochs {
			t.Errorf("trial %d counts %d epochs and has %d reports", tr.Number, tr.Epochs, len(reports[tr.ID]))
		}
		for _, report := range reports[tr.ID] {
			kept[[3]int{tr.Number, report.Rung, report.Epoch}]++
		}
	}
	acknowledged := s.entries("acknowledged")
	if len(acknowledged) == 0 {
		t.Error("nothing was acknowledged")
	}
	for _, e := range acknowledged {
		if n := kept[[3]int{e.number, e.rung, e.epoch}]; n != 1 {
			t.Errorf("trial %d, rung %d, epoch %d was acknowledged and is in the books %d times", e.number, e.rung, e.epoch, n)
		}
	}
}

// checkTrainedOnce makes sure that no epoch was trained twice, over all rungs.
func checkTrainedOnce(t testing.TB, s study) {
	t.Helper()
	trained := map[[2]int]int{}
	for _, e := range s.entries("trained") {
		trained[[2]int{e.number, e.epoch}]++
	}
	for at, times := range trained {
		if times != 1 {
			t.Errorf("trial %d trained epoch %d %d times", at[0], at[1], times)
		}
	}
}
