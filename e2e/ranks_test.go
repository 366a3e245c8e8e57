package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/e2e/launch"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

// TestRanksTrainTogether has three processes train each trial. In one study the command
// starts them, as torchrun does, and all report. In the other the worker does, and only the
// first reports. They wait for each other in every epoch, so that one which went on alone,
// or ended earlier, would fail its trial. The trials are promoted, and some are stopped in
// the middle.
func TestRanksTrainTogether(t *testing.T) {
	t.Parallel()
	script, err := os.ReadFile("testdata/ranks.py")
	if err != nil {
		t.Fatal(err)
	}
	for name, variables := range map[string]string{"all-report": "ALL_REPORT: 1, ", "first-reports": threeProcesses} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			here := newSite(t)
			here.worker("--slots", "1")
			s := newStudy(t, name, threeRungs, "0.02", 5)
			if err := os.WriteFile(filepath.Join(filepath.Dir(s.file), "train.py"), script, 0o600); err != nil {
				t.Fatal(err)
			}
			if variables == threeProcesses {
				s.rewrite("environment:", threeProcesses+"environment:")
			} else {
				s.rewrite("environment: {", "environment: {"+variables)
			}
			here.must("study", "create", s.file)
			found := read[result](t, here.must("study", "watch", s.name, "--json"))
			if p := found.Study.Progress; found.Study.Status != protocol.StudyCompleted || p.Promotions == 0 || p.Resumes == 0 || p.Trials[trial.Failed] > 0 {
				t.Errorf("the study is %s with %+v; the first log is\n%s", found.Study.Status, p, here.must("study", "log", s.name, "0"))
			}
			wantTogether(t, s, found.Study.Progress.Epochs, 0)
		})
	}
}

// TestAWorkerOutlivesItsFile: the file of the worker's program makes way for that of a
// version which can neither run several processes nor drive a service. The sandbox of the
// processes opens their own program, which lies elsewhere.
func TestAWorkerOutlivesItsFile(t *testing.T) {
	t.Parallel()
	folder, here := t.TempDir(), newSite(t)
	program, other, shell := filepath.Join(folder, "tandem"), filepath.Join(folder, "other"), filepath.Join(folder, "shell")
	for to, from := range map[string]string{program: binary, other: "/bin/false", shell: "/bin/sh"} {
		content, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(to, content, 0o700)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	worker, err := launch.Start(program, here.environment(), append([]string{"worker", "--probe", "never", "--scratch", t.TempDir(), "--slots", "1"}, opened(t)...)...)
	if err != nil {
		t.Fatal(err)
	}
	endsWith(t, worker)
	until(t, "the worker", func() bool { return strings.Contains(worker.Output(), "registered") })
	if err := os.Rename(other, program); err != nil {
		t.Fatal(err)
	}
	trained := newStudy(t, "replaced-ranks", "epochs, epochs: 2", "0.02", 2)
	trained.rewrite("command: [python3, train.py]", "command: ["+shell+`, -c, "exec python3 train.py"]`, "environment:", threeProcesses+"environment:")
	served := newService(t, "replaced-service", "search: {", "stop: {trials: 2}\nsearch: {")
	for _, s := range []study{trained, served} {
		here.must("study", "create", s.file)
		if p := read[result](t, here.must("study", "watch", s.name, "--json")).Study.Progress; p.Trials[trial.Completed] == 0 || p.Trials[trial.Failed] > 0 {
			t.Errorf("%s: %+v; the first log is\n%s", s.name, p, here.must("study", "log", s.name, "0"))
		}
	}
}

// threeProcesses is of a study file.
const threeProcesses = "processes: 3\n"

// TestARankThatFailsEndsTheOthers: the others would wait for it for ever.
func TestARankThatFailsEndsTheOthers(t *testing.T) {
	t.Parallel()
	here := newSite(t)
	here.worker("--slots", "1")
	s := newStudy(t, "failing-rank", "epochs, epochs: 1", "0.05", 1)
	s.rewrite("command: [python3, train.py]", `command: [sh, -c, "echo $RANK of $WORLD_SIZE, threads $OMP_NUM_THREADS; test $RANK != 1 && exec sleep 600; exit 7"]`)
	s.rewrite("environment:", "retry: {failures: 0}\n"+threeProcesses+"environment:")
	s.rewrite("system: off", "system: {cpu_threads: 6}")
	here.must("study", "create", s.file)
	until(t, "the trial's end", func() bool {
		trials := here.books(s.name).Trials
		return len(trials) > 0 && trials[0].State.Terminal()
	})
	if one := here.books(s.name).Trials[0]; one.State != trial.Failed || !strings.Contains(one.Reason, "7") {
		t.Errorf("the trial is %s: %s", one.State, one.Reason)
	}
	if log := here.must("study", "log", s.name, "0"); !strings.Contains(log, "1 of 3, threads 2") {
		t.Errorf("the log is\n%s", log)
	}
}

// TestRanksAreStoppedTogether ends a study while they train.
func TestRanksAreStoppedTogether(t *testing.T) {
	t.Parallel()
	script, err := os.ReadFile("testdata/ranks.py")
	if err != nil {
		t.Fatal(err)
	}
	here := newSite(t)
	here.worker("--slots", "1")
	s := newStudy(t, "stopped-ranks", "epochs, epochs: 1000", "0.05", 1)
	if err := os.WriteFile(filepath.Join(filepath.Dir(s.file), "train.py"), script, 0o600); err != nil {
		t.Fatal(err)
	}
	s.rewrite("environment:", threeProcesses+"environment:")
	here.must("study", "create", s.file)
	until(t, "three epochs", func() bool { return len(s.entries("rank2")) > 3 })
	here.must("study", "stop", s.name)
	until(t, "the trial's end", func() bool { return here.books(s.name).Trials[0].State.Terminal() })
	first := s.entries("rank0")
	wantTogether(t, s, first[len(first)-1].epoch, 1) // who has met the others may be killed before it says so
}

// TestExampleInTwoProcesses runs the example of DistributedDataParallel in small, with
// PyTorch's collective operations.
func TestExampleInTwoProcesses(t *testing.T) {
	t.Parallel()
	python := os.Getenv("TANDEM_EXAMPLE_PYTHON")
	if os.Getenv("TANDEM_EXAMPLE") != "lenet-fashion-mnist" || python == "" {
		t.Skip("it needs PyTorch: scripts/setup-python did not find it (TANDEM_EXAMPLE, TANDEM_EXAMPLE_PYTHON)")
	}
	folder := t.TempDir() // the sandbox opens it
	if err := os.CopyFS(folder, os.DirFS("../examples/lenet-fashion-mnist")); err != nil {
		t.Fatal(err)
	}
	shortened(t, folder)
	file := filepath.Join(folder, "ddp.yaml")
	full, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	small := strings.NewReplacer("max: 9}}", "max: 2}, eta: 2}", "trials: 12", "trials: 2").Replace(string(full)) +
		"environment: {FASHION_MNIST_DIR: sample}\n"
	if err := os.WriteFile(file, []byte(small), 0o600); err != nil {
		t.Fatal(err)
	}
	got := cli(t, nil, "run", file, "--data", t.TempDir(), "--listen", "127.0.0.1:0", "--path", filepath.Dir(python), "--json")
	if got.code != 0 {
		t.Fatalf("exit code %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	found := read[result](t, got.stdout)
	if p := found.Study.Progress; p.Promotions == 0 || p.Resumes == 0 || p.Trials[trial.Failed] > 0 {
		t.Errorf("the study ended with %+v\n%s", p, got.stderr)
	}
}

// wantTogether checks that every rank has trained the same epochs, but for so many last ones
// that some have not written down, and that the first has saved them.
func wantTogether(t *testing.T, s study, epochs, spare int) {
	t.Helper()
	trained := func(rank int) (list []string) {
		for _, one := range s.entries(fmt.Sprint("rank", rank)) {
			list = append(list, fmt.Sprint(one.number, one.rung, one.epoch))
		}
		return list
	}
	first := trained(0)
	if len(first) != epochs {
		t.Errorf("the first rank trained %d epochs, and the server has %d", len(first), epochs)
	}
	for rank := 1; rank < 3; rank++ {
		other := trained(rank)
		if both := min(len(first), len(other)); max(len(first), len(other))-both > spare || !slices.Equal(first[:both], other[:both]) {
			t.Errorf("rank 0 trained %v\nand rank %d %v", first, rank, other)
		}
		if saved := s.entries(fmt.Sprint("saved", rank)); len(saved) > 0 {
			t.Errorf("rank %d saved %v", rank, saved)
		}
	}
	if saved := s.entries("saved0"); len(saved) == 0 {
		t.Error("nothing was saved")
	}
}
