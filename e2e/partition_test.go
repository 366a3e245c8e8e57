package e2e_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/e2e/launch"
	"github.com/tandem-tune/tandem/e2e/trouble"
	"github.com/tandem-tune/tandem/internal/protocol"
)

// short are leases that run out soon, but not while a busy machine is slow.
var short = []string{"--lease-seconds", "6", "--heartbeat-seconds", "1"}

// proxied starts a worker that reaches the server only through the proxy.
func (s *site) proxied(proxy *trouble.Proxy, args ...string) *launch.Process {
	s.t.Helper()
	return s.worker(append([]string{"--server", "http://" + proxy.Address()}, args...)...)
}

func (s *site) proxy(seed uint64) *trouble.Proxy {
	s.t.Helper()
	proxy, err := trouble.NewProxy(s.listen, seed)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if err := proxy.Close(); err != nil {
			s.t.Error(err)
		}
	})
	return proxy
}

// gone waits for the end of a script.
func gone(t *testing.T, script int) {
	t.Helper()
	until(t, "the end of the cut off worker's script", func() bool { return syscall.Kill(script, 0) == syscall.ESRCH })
}

// takenOver waits until another process than the script trains.
func (s study) takenOver(script int) {
	s.t.Helper()
	until(s.t, "another worker on the trial", func() bool {
		for _, e := range s.entries("trained") {
			if e.pid != script {
				return true
			}
		}
		return false
	})
}

// once checks that the trial was lost once, counts every epoch once, and is done.
func (s *site) once(of study) {
	s.t.Helper()
	found := read[result](s.t, s.must("study", "watch", of.name, "--json"))
	books := s.books(of.name)
	checkBooks(s.t, of, books)
	if tr := books.Trials[0]; found.Study.Status != protocol.StudyCompleted || tr.Epochs != 9 || tr.Losses != 1 || tr.Failures != 0 {
		s.t.Errorf("the study is %s, its trial has %d epochs, %d losses, %d failures", found.Study.Status, tr.Epochs, tr.Losses, tr.Failures)
	}
}

// TestASleepingWorkerWakesUpAsAZombie stops a worker for longer than its lease.
// Its script trains on meanwhile; when the worker wakes up it ends the script,
// and what that reported is refused.
func TestASleepingWorkerWakesUpAsAZombie(t *testing.T) {
	t.Parallel()
	s := newStudy(t, "zombie", nineEpochs, "0.3", 1)
	at := newSite(t, short...)
	sleeper := at.worker()
	at.must("study", "create", s.file)
	until(t, "two acknowledged epochs", func() bool { return len(s.entries("acknowledged")) >= 2 })
	script := s.entries("trained")[0].pid
	if err := syscall.Kill(sleeper.PID(), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	at.worker()
	s.takenOver(script)
	if syscall.Kill(script, 0) != nil {
		t.Error("the script ended while its worker slept: this test tests nothing")
	}
	woke := time.Now()
	if err := syscall.Kill(sleeper.PID(), syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	gone(t, script)
	t.Logf("the zombie's script was ended within %v of its worker's waking", time.Since(woke).Round(time.Millisecond))
	at.once(s)
}

// TestPartitions cuts a worker off, in one direction or in both, for longer
// than its lease: it ends its script, another one trains the trial, and when the
// network is whole again nothing of the first one counts.
func TestPartitions(t *testing.T) {
	for name, weather := range map[string]trouble.Weather{
		"to the server":   {HoldUp: true},
		"from the server": {HoldDown: true},
		"both ways":       {HoldUp: true, HoldDown: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStudy(t, "cut-off-"+strings.ReplaceAll(name, " ", "-"), nineEpochs, "0.3", 1)
			at := newSite(t, short...)
			proxy := at.proxy(1)
			at.proxied(proxy)
			at.must("study", "create", s.file)
			until(t, "two acknowledged epochs", func() bool { return len(s.entries("acknowledged")) >= 2 })
			script := s.entries("trained")[0].pid
			proxy.Set(weather)
			gone(t, script)
			at.worker()
			s.takenOver(script)
			proxy.Set(trouble.Weather{})
			at.once(s)
		})
	}
}

// TestABadNetworkCostsNothing runs a study through a network that is slow, comes
// in small pieces, resets connections, and stands still for a while, which is
// less than a lease.
func TestABadNetworkCostsNothing(t *testing.T) {
	t.Parallel()
	s := newStudy(t, "bad-network", threeRungs, "0.02", 12)
	at := newSite(t)
	proxy := at.proxy(2)
	proxy.Set(trouble.Weather{Piece: 150, Latency: time.Millisecond, ResetAfter: 30_000})
	at.proxied(proxy, "--slots", "2")
	at.must("study", "create", s.file)
	for _, one := range []struct {
		epochs  int
		weather trouble.Weather
	}{{5, trouble.Weather{HoldUp: true}}, {10, trouble.Weather{HoldDown: true}}, {15, trouble.Weather{Refuse: true, ResetAfter: 1}}} {
		until(t, fmt.Sprintf("%d acknowledged epochs", one.epochs), func() bool { return len(s.entries("acknowledged")) >= one.epochs })
		proxy.Set(one.weather)
		time.Sleep(500 * time.Millisecond)
		proxy.Set(trouble.Weather{Piece: 150, Latency: time.Millisecond, ResetAfter: 30_000})
	}
	found := read[result](t, at.must("study", "watch", s.name, "--json"))
	if found.Study.Status != protocol.StudyCompleted || found.Study.Progress.Created != 12 {
		t.Errorf("the study is %s after %d trials", found.Study.Status, found.Study.Progress.Created)
	}
	books := at.books(s.name)
	checkBooks(t, s, books)
	checkTrainedOnce(t, s)
	for _, tr := range books.Trials {
		if tr.Failures != 0 || tr.Losses != 0 {
			t.Errorf("trial %d has %d failures and %d losses: %s", tr.Number, tr.Failures, tr.Losses, tr.Reason)
		}
	}
	if proxy.Resets() == 0 {
		t.Error("no connection was reset: this test tests less than it says")
	}
}

// TestARestartOfAnyLengthCostsNoScript leaves no server there for two leases: the scripts
// finish their epochs, wait with their reports, and go on when it is back.
func TestARestartOfAnyLengthCostsNoScript(t *testing.T) {
	t.Parallel()
	s := newStudy(t, "long-restart", nineEpochs, "0.2", 3)
	at := newSite(t, "--lease-seconds", "5", "--heartbeat-seconds", "1")
	worker := at.worker("--slots", "2")
	at.must("study", "create", s.file)
	until(t, "four acknowledged epochs", func() bool { return len(s.entries("acknowledged")) >= 4 })
	at.server.Kill()
	time.Sleep(10 * time.Second)
	before := s.entries("trained")
	at.start()
	found := read[result](t, at.must("study", "watch", s.name, "--json"))
	books := at.books(s.name)
	checkBooks(t, s, books)
	checkTrainedOnce(t, s)
	if found.Study.Status != protocol.StudyCompleted || found.Study.Progress.Epochs != 27 {
		t.Errorf("the study is %s after %d epochs\n%s", found.Study.Status, found.Study.Progress.Epochs, worker.Output())
	}
	for _, tr := range books.Trials {
		if tr.Losses != 0 || tr.Failures != 0 {
			t.Errorf("trial %d has %d losses and %d failures: %s", tr.Number, tr.Losses, tr.Failures, tr.Reason)
		}
	}
	for _, e := range s.entries("trained")[len(before):] {
		if e.number == before[len(before)-1].number && e.pid != before[len(before)-1].pid {
			t.Errorf("trial %d was started again", e.number)
		}
	}
}

// TestAServerThatSleptBlamesNobody stops the server for two leases. The worker
// has to end its scripts, since it cannot know; but no trial is lost.
func TestAServerThatSleptBlamesNobody(t *testing.T) {
	t.Parallel()
	s := newStudy(t, "sleeping-server", nineEpochs, "0.2", 3)
	at := newSite(t, "--lease-seconds", "5", "--heartbeat-seconds", "1")
	worker := at.worker("--slots", "2")
	at.must("study", "create", s.file)
	until(t, "four acknowledged epochs", func() bool { return len(s.entries("acknowledged")) >= 4 })
	scripts := map[int]bool{}
	for _, e := range s.entries("trained") {
		scripts[e.pid] = true
	}
	if err := syscall.Kill(at.server.PID(), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	asleep := time.Now()
	for script := range scripts {
		gone(t, script)
	}
	time.Sleep(time.Until(asleep.Add(10 * time.Second)))
	if err := syscall.Kill(at.server.PID(), syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	found := read[result](t, at.must("study", "watch", s.name, "--json"))
	books := at.books(s.name)
	checkBooks(t, s, books)
	if found.Study.Status != protocol.StudyCompleted || found.Study.Progress.Epochs != 27 {
		t.Errorf("the study is %s after %d epochs", found.Study.Status, found.Study.Progress.Epochs)
	}
	for _, tr := range books.Trials {
		if tr.Losses != 0 || tr.Failures != 0 {
			t.Errorf("trial %d has %d losses and %d failures: %s", tr.Number, tr.Losses, tr.Failures, tr.Reason)
		}
	}
	if t.Failed() {
		for number := range 3 {
			t.Log(trialHistory(at.must("study", "trial", s.name, fmt.Sprint(number))))
		}
		t.Logf("the worker said\n%s\nthe server said\n%s", worker.Output(), at.server.Output())
	}
}

// trialHistory is the last table of what "study trial" prints.
func trialHistory(printed string) string {
	return printed[strings.LastIndex(printed, "\nAT ")+1:]
}
