package e2e_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/e2e/launch"
	"github.com/tandem-tune/tandem/internal/protocol"
)

// site is a server on a fixed port, so that it can be killed and come back.
type site struct {
	t      testing.TB
	listen string
	data   string
	args   []string
	within []string // the command line that everything is run by; empty: by nothing
	server *launch.Server
	token  string
}

func newSite(t testing.TB, args ...string) *site {
	t.Helper()
	return newSiteIn(t, nil, args...)
}

// newSiteIn is newSite where the server and all commands are run by another
// command, such as one that enters a namespace.
func newSiteIn(t testing.TB, within []string, args ...string) *site {
	t.Helper()
	s := &site{t: t, listen: fmt.Sprintf("127.0.0.1:%d", freePort(t)), data: t.TempDir(), args: args, within: within}
	s.start()
	s.token = s.server.Token
	t.Cleanup(func() {
		if err := s.server.Stop(); err != nil {
			t.Errorf("the server did not end cleanly: %v\n%s", err, s.server.Output())
		} else if said := s.server.Output(); t.Failed() {
			t.Logf("the server ended with\n%s", said[max(0, len(said)-2000):])
		}
	})
	return s
}

func (s *site) start() {
	s.t.Helper()
	var err error
	if s.server, err = launch.ServeBy(s.within, binary, s.data, append([]string{"--listen", s.listen}, s.args...)...); err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) environment() []string {
	if slices.Contains(s.args, "--tls") {
		return []string{"TANDEM_SERVER=https://" + s.listen, "TANDEM_TOKEN=" + s.token, "TANDEM_CA=" + filepath.Join(s.data, "tls", "authority.pem")}
	}
	return []string{"TANDEM_SERVER=http://" + s.listen, "TANDEM_TOKEN=" + s.token}
}

func (s *site) cli(args ...string) outcome {
	s.t.Helper()
	return cliBy(s.t, s.within, s.environment(), args...)
}

// must runs a command that has to succeed, and returns what it printed.
func (s *site) must(args ...string) string {
	s.t.Helper()
	got := s.cli(args...)
	if got.code != 0 {
		s.t.Fatalf("tandem %s: exit code %d\n%s%s", strings.Join(args, " "), got.code, got.stdout, got.stderr)
	}
	return got.stdout
}

func (s *site) worker(args ...string) *launch.Process {
	s.t.Helper()
	return s.workerBy(s.within, args...)
}

// workerBy is worker run by another command.
func (s *site) workerBy(by []string, args ...string) *launch.Process {
	s.t.Helper()
	line := slices.Concat(by, []string{binary, "worker", "--probe", "never", "--scratch", s.t.TempDir(), "--drain", "5s"}, opened(s.t), args)
	worker, err := launch.Start(line[0], s.environment(), line[1:]...)
	if err != nil {
		s.t.Fatal(err)
	}
	endsWith(s.t, worker)
	return worker
}

// endsWith kills the process when the test ends. If that failed, what the process said last
// tells why.
func endsWith(t testing.TB, process *launch.Process) {
	t.Cleanup(func() {
		process.Kill()
		if said := process.Output(); t.Failed() && said != "" {
			t.Logf("a process ended with\n%s", said[max(0, len(said)-2000):])
		}
	})
}

func (s *site) books(name string) export {
	s.t.Helper()
	return read[export](s.t, s.must("study", "export", name, "--format", "json"))
}

// until waits for a condition, which has five minutes to come true: its time is no measure.
// Between two looks it pauses eight times as long as a look takes, half a second at most: a
// command of the command line takes longer than a file.
func until(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); ; {
		began := time.Now()
		if condition() {
			return
		}
		if began.After(deadline) {
			t.Fatalf("five minutes passed without %s", what)
		}
		time.Sleep(min(max(8*time.Since(began), 20*time.Millisecond), 500*time.Millisecond))
	}
}

func TestServerIsKilled(t *testing.T) {
	t.Parallel()
	s := newStudy(t, "server-killed", threeRungs, "0.05", 12)
	at := newSite(t)
	at.worker("--slots", "2")
	at.must("study", "create", s.file)
	for _, epochs := range []int{4, 10, 16} {
		until(t, fmt.Sprintf("%d acknowledged epochs", epochs), func() bool { return len(s.entries("acknowledged")) >= epochs })
		at.server.Kill()
		time.Sleep(300 * time.Millisecond)
		at.start()
	}
	found := read[result](t, at.must("study", "watch", s.name, "--json"))
	if found.Study.Status != protocol.StudyCompleted || found.Study.Progress.Created != 12 {
		t.Errorf("the study is %s after %d trials", found.Study.Status, found.Study.Progress.Created)
	}
	checkBooks(t, s, at.books(s.name))
	checkTrainedOnce(t, s)
}

func TestWorkerIsKilled(t *testing.T) {
	t.Parallel()
	s := newStudy(t, "worker-killed", nineEpochs, "0.2", 1)
	at := newSite(t, "--lease-seconds", "3", "--heartbeat-seconds", "1")
	first := at.worker()
	at.must("study", "create", s.file)
	// Then the server has the checkpoint of the third: that of the fourth was packed after it.
	until(t, "five trained epochs", func() bool { return len(s.entries("trained")) >= 5 })
	first.Kill()
	script := s.entries("trained")[0].pid
	until(t, "the end of the dead worker's script", func() bool { return syscall.Kill(script, 0) == syscall.ESRCH })
	trained := len(s.entries("trained"))
	at.worker()
	found := read[result](t, at.must("study", "watch", s.name, "--json"))
	if found.Study.Status != protocol.StudyCompleted || found.Study.Progress.Resumes != 1 {
		t.Errorf("the study is %s with %d resumes", found.Study.Status, found.Study.Progress.Resumes)
	}
	// What was behind the last checkpoint is trained again, and nothing else.
	if all := len(s.entries("trained")); all > trained+9-3 || all < 9 {
		t.Errorf("%d epochs were trained before the kill and %d in all: it did not go on from its checkpoint", trained, all)
	}
	books := at.books(s.name)
	checkBooks(t, s, books)
	if tr := books.Trials[0]; tr.Epochs != 9 || tr.Losses != 1 || tr.Failures != 0 {
		t.Errorf("the trial has %d epochs, %d losses, %d failures", tr.Epochs, tr.Losses, tr.Failures)
	}
}

// TestAKilledWorkersSuccessorReplacesIt: the server hears at once that the one before is
// dead, which would be shown as silent for a day.
func TestAKilledWorkersSuccessorReplacesIt(t *testing.T) {
	t.Parallel()
	s := newStudy(t, "replaced", nineEpochs, "0.2", 1)
	at, scratch := newSite(t, "--lease-seconds", "3600"), t.TempDir()
	killed := at.worker("--name", "box", "--scratch", scratch)
	at.must("study", "create", s.file)
	until(t, "two trained epochs", func() bool { return len(s.entries("trained")) >= 2 })
	killed.Kill()
	second := at.worker("--name", "box", "--scratch", scratch)
	found := read[result](t, at.must("study", "watch", s.name, "--json"))
	workers := read[[]protocol.Worker](t, at.must("workers", "--json"))
	if found.Study.Status != protocol.StudyCompleted || len(workers) != 1 {
		t.Errorf("the study is %s, the workers are %+v\n%s", found.Study.Status, workers, second.Output())
	}
	if tr := at.books(s.name).Trials[0]; tr.Losses != 1 || tr.Failures != 0 {
		t.Errorf("the trial has %d losses and %d failures", tr.Losses, tr.Failures)
	}
}

func TestRunIsKilled(t *testing.T) {
	t.Parallel()
	s := newStudy(t, "run-killed", threeRungs, "0.05", 12)
	data := t.TempDir()
	args := []string{"run", s.file, "--data", data, "--listen", "127.0.0.1:0", "--lease-seconds", "3", "--heartbeat-seconds", "1", "--scratch", filepath.Join(data, "scratch")}
	args = append(args, opened(t)...)
	killed, err := launch.Start(binary, nil, args...)
	if err != nil {
		t.Fatal(err)
	}
	until(t, "ten acknowledged epochs", func() bool { return len(s.entries("acknowledged")) >= 10 })
	killed.Kill()
	got := cli(t, nil, append(args, "--json")...)
	if got.code != 0 {
		t.Fatalf("exit code %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	found := read[result](t, got.stdout)
	if found.Study.Name != s.name || found.Study.Status != protocol.StudyCompleted || found.Study.Progress.Created != 12 {
		t.Errorf("study %s is %s after %d trials", found.Study.Name, found.Study.Status, found.Study.Progress.Created)
	}
	if trained, counted := len(s.entries("trained")), found.Study.Progress.Epochs; counted > trained {
		t.Errorf("%d epochs count, and %d were trained", counted, trained)
	}
	server, err := launch.Serve(binary, data)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Kill)
	list := cli(t, []string{"TANDEM_SERVER=" + server.URL, "TANDEM_TOKEN=" + server.Token}, "token", "list")
	if list.code != 0 || strings.Contains(list.stdout, "tandem run") {
		t.Errorf("tokens of the killed run are left:\n%s%s", list.stdout, list.stderr)
	}
}

func TestWorkerDrains(t *testing.T) {
	t.Parallel()
	s := newStudy(t, "drained", nineEpochs, "0.2", 1)
	at := newSite(t)
	first := at.worker()
	at.must("study", "create", s.file)
	until(t, "two acknowledged epochs", func() bool { return len(s.entries("acknowledged")) >= 2 })
	if err := first.Stop(); err != nil {
		t.Errorf("the worker did not drain: %v\n%s", err, first.Output())
	}
	// The lease is given back at once, not after its 60 seconds.
	at.worker()
	found := read[result](t, at.must("study", "watch", s.name, "--json"))
	if p := found.Study.Progress; found.Study.Status != protocol.StudyCompleted || p.Resumes != 1 || p.Epochs != 9 {
		t.Errorf("the study is %s with %d resumes and %d epochs", found.Study.Status, p.Resumes, p.Epochs)
	}
	checkBooks(t, s, at.books(s.name))
}

func TestOneServerForEachFolder(t *testing.T) {
	t.Parallel()
	at := newSite(t)
	second := cli(t, nil, "serve", "--data", at.data, "--listen", "127.0.0.1:0")
	if second.code == 0 || !strings.Contains(second.stderr, strconv.Itoa(at.server.PID())) {
		t.Errorf("exit code %d, and the holder %d is not named:\n%s", second.code, at.server.PID(), second.stderr)
	}
}
