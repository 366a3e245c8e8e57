// Package launchertest is what every engine of a launcher must do, as stories.
package launchertest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/workers/launcher"
	"github.com/tandem-tune/tandem/workers/launcher/engine"
	"github.com/tandem-tune/tandem/workers/launcher/loop"
)

// Site is an engine to try, with nothing of anybody on it.
type Site struct {
	// Open returns the engine for a launcher of that name, whose workers are the command.
	// It runs four workers of one core at once, and is asked again and again.
	// Their tokens are in the folder, unless TokenFile says where a worker finds that of
	// its job.
	Open      func(name string, worker []string, enrolments engine.Enrolments) launcher.Engine
	TokenFile func(launcher, launch string) string
	// Option is one that its commands take, Refused one that they do not.
	Option, Refused string
	// Preempt and Lose have the site end a job for another one, and lose its node; nil
	// where that is tried elsewhere.
	Preempt, Lose func(job launcher.Job)
	// Simulated is the engine where time is simulated.
	Simulated *Fake
}

// worker stands for "tandem worker": it notes how it was started, and ends as it is told.
const worker = `#!/bin/sh
for last; do :; done
place='%[1]s'
for word; do printf '%%s\n' "$word"; done > "$place/new.$last"
env > "$place/env.$last"
mv "$place/new.$last" "$place/args.$last"
trap 'echo > "$place/term.$last"; exit 0' TERM
until [ -e "$place/end.$last" ] || [ -e "$place/end" ] || [ ! -e "$place" ]; do sleep 0.2; done
[ -e "$place/end.$last" ] || exit 0
cat "$place/say.$last" >&2
exit "$(cat "$place/end.$last")"
`

// story is one that is told: an engine of its own name, and a place for its workers.
type story struct {
	*testing.T
	site   Site
	engine launcher.Engine
	place  string
	name   string
	worker []string
	tokens engine.Enrolments // of what it orders itself

	// What stories of a launcher have beside.
	server *server
	loop   *loop.Loop
	kept   *engine.MemoryFile
	broken *wrapped
}

// stories are all that are told.
var stories = []struct {
	name string
	tell func(s *story)
}{
	{"an engine without jobs lists none", nothing},
	{"a worker is started as it must", started},
	{"several workers are told apart", several},
	{"what does not fit waits and says why, and starts later", waits},
	{"what waits is taken back", takenBackBefore},
	{"what runs is asked to end", takenBackWhile},
	{"a worker that fails is told with its last words", fails},
	{"another launcher's jobs are not ours", others},
	{"jobs are found again after a crash", foundAgain},
	{"options and setup of the shape count", shaped},
	{"what the site refuses is an error", refused},
	{"preempted is nobody's fault", preempted},
	{"a node that is lost is known as the cause", lost},

	{"an order becomes a worker with a lease", orderToLease},
	{"a study gets workers with the labels that it asks for", labelled},
	{"workers with taints, or that leave too early, are ordered for who puts up with it", tainted},
	{"only studies whose key the workers hold get some", keyed},
	{"nothing is wanted and nothing started", nothingWanted},
	{"what waits for the engine is supply", pendingIsSupply},
	{"a bound is lowered while jobs wait", capLowered},
	{"a study ends while jobs wait", studyEnds},
	{"workers that fail put their shape on hold, and one is tried again", holds},
	{"workers that register and never lease put their shape on hold", neverLeases},
	{"an order that is refused is told and not placed again at once", refusedOrder},
	{"a worker that is preempted is replaced", preemptedWorks},
	{"a worker whose node is lost is replaced", lostWorks},
	{"a worker that a person cancelled is replaced", cancelledByAPerson},
	{"a launcher that is started again orders nothing twice", startedAgain},
	{"a launcher is killed before the engine answers", killedBeforeTheAnswer},
	{"a launcher is killed before the engine hears it", killedBeforeTheOrder},
	{"an order is answered late", answeredLate},
	{"an order is taken twice", takenTwice},
	{"an order is taken in part", takenInPart},
	{"two launchers leave each other's workers alone", twoLaunchers},
	{"an engine that is down is told and asked for nothing", engineDown},
	{"the enrolment of what waits for long is renewed", enrolmentsAreRenewed},
	{"an engine lists what it took a while later", listedLate},
	{"an engine forgets a job", forgotten},
	{"a worker ends at its time limit and is replaced", timeLimit},
}

// Run tells the stories one after the other on one site.
func Run(t *testing.T, site Site) {
	t.Setenv(secret, "a-secret-of-the-launcher")
	for i, one := range stories {
		t.Run(one.name, func(t *testing.T) { tell(t, site, fmt.Sprint("story", i), t.TempDir(), one.tell) })
	}
}

// RunEach tells the stories side by side, each on a site of its own.
func RunEach(t *testing.T, open func(t *testing.T) Site) {
	t.Setenv(secret, "a-secret-of-the-launcher")
	for i, one := range stories {
		t.Run(one.name, func(t *testing.T) {
			t.Parallel()
			tell(t, open(t), fmt.Sprint("story", i), t.TempDir(), one.tell)
		})
	}
}

// secret is a variable of the launcher's process that no worker may get.
const secret = "TANDEM_TOKEN"

// Simulate tells them in simulated time, each on an engine in memory.
func Simulate(t *testing.T) {
	for i, one := range stories {
		t.Run(one.name, func(t *testing.T) {
			place := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				fake := NewFake(t.Context(), place)
				site := Site{Option: "--some", Refused: fakeRefused, Simulated: fake}
				site.Open = func(name string, worker []string, enrolments engine.Enrolments) launcher.Engine {
					return fake.Open(engine.Options{Name: name, Logs: place, Worker: worker, Enrolments: enrolments, Home: "/home/of'it", Path: "/usr/local/bin:/usr/bin:/bin"})
				}
				site.Preempt = func(job launcher.Job) { fake.stop(job.ID, protocol.Preempted) }
				site.Lose = func(job launcher.Job) { fake.stop(job.ID, protocol.NodeFailed) }
				tell(t, site, fmt.Sprint("story", i), place, one.tell)
			})
		})
	}
}

// tell tells one.
func tell(t *testing.T, site Site, name, place string, tell func(s *story)) {
	s := &story{T: t, site: site, place: place, name: name, worker: []string{"/bin/sh", filepath.Join(place, "worker.sh"), "two words", "it's", `"$HOME"`}}
	s.write("worker.sh", fmt.Sprintf(worker, place))
	s.tokens = engine.Enrolments(filepath.Join(place, "tokens of it"))
	if err := s.tokens.Open(); err != nil {
		t.Fatal(err)
	}
	s.engine = site.Open(s.name, s.worker, s.tokens)
	defer s.end()
	tell(s)
}

func (s *story) write(name, content string) {
	s.Helper()
	path := filepath.Join(s.place, name)
	if err := os.WriteFile(path+".new", []byte(content), 0o600); err != nil {
		s.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		s.Fatal(err)
	}
}

func (s *story) read(name string) string {
	content, _ := os.ReadFile(filepath.Join(s.place, name)) //nolint:errcheck // it may not be there yet
	return string(content)
}

// launch orders workers of a shape of one core.
func (s *story) launch(count int, change ...func(*launcher.Shape)) launcher.Order {
	s.Helper()
	shape := launcher.Shape{Name: "cpu", Cores: 1, Trials: 2, TimeLimit: time.Hour}
	for _, one := range change {
		one(&shape)
	}
	order := launcher.Order{ID: strings.ReplaceAll(s.name, "story", "order"), Shape: shape, Count: count}
	if err := s.order(order); err != nil {
		s.Fatal(err)
	}
	return order
}

// order has the engine take an order, whose workers have tokens.
func (s *story) order(order launcher.Order) error {
	for i := range order.Count {
		if err := s.tokens.Keep(order.Launch(i), "a token"); err != nil {
			s.Fatal(err)
		}
	}
	return s.engine.Launch(s.Context(), order)
}

func (s *story) list() []launcher.Job {
	s.Helper()
	jobs, err := s.engine.List(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	return jobs
}

// look is how often the engine is asked.
const look = 200 * time.Millisecond

// until waits until so many jobs are in the state, and returns these.
func (s *story) until(state launcher.State, count int) (found []launcher.Job) {
	s.Helper()
	for deadline := time.Now().Add(5 * time.Minute); ; time.Sleep(look) {
		all := s.list()
		found = slices.DeleteFunc(slices.Clone(all), func(job launcher.Job) bool { return job.State != state })
		if len(found) == count {
			return found
		}
		if time.Now().After(deadline) {
			s.Fatalf("five minutes passed without %d jobs %s: %+v", count, state, all)
		}
	}
}

// running waits until so many workers run, and have noted how they were started.
func (s *story) running(count int) []launcher.Job {
	s.Helper()
	jobs := s.until(launcher.Running, count)
	for _, job := range jobs {
		s.file("args." + job.Launch)
	}
	return jobs
}

// file waits for a file of a worker.
func (s *story) file(name string) string {
	s.Helper()
	for deadline := time.Now().Add(5 * time.Minute); s.read(name) == ""; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.Fatalf("five minutes passed without %s", name)
		}
	}
	return s.read(name)
}

func (s *story) cancel(jobs ...launcher.Job) {
	s.Helper()
	var ids []string
	for _, job := range jobs {
		ids = append(ids, job.ID)
	}
	if err := s.engine.Cancel(s.Context(), ids); err != nil {
		s.Fatal(err)
	}
}

// end has all workers end, so that the next story finds room.
func (s *story) end() {
	s.stop()
	s.write("end", "")
	if s.Failed() {
		return
	}
	s.cancel(slices.DeleteFunc(s.list(), func(job launcher.Job) bool { return job.State != launcher.Pending })...)
	for _, state := range []launcher.State{launcher.Pending, launcher.Running, launcher.Leaving} {
		s.until(state, 0)
	}
}

// ended waits until the job has ended, for one of the causes if the engine still lists it.
func (s *story) ended(launch string, causes ...protocol.Cause) launcher.Job {
	s.Helper()
	for deadline := time.Now().Add(5 * time.Minute); ; time.Sleep(look) {
		jobs := s.list()
		at := slices.IndexFunc(jobs, func(job launcher.Job) bool { return job.Launch == launch })
		if at < 0 || jobs[at].State == launcher.Ended {
			if at >= 0 && !slices.Contains(causes, jobs[at].Cause) {
				s.Errorf("it ended as %q (%s), want one of %q", jobs[at].Cause, jobs[at].Why, causes)
			}
			if at >= 0 && jobs[at].Why == "" {
				s.Error("nobody says how it ended")
			}
			if at < 0 {
				return launcher.Job{}
			}
			return jobs[at]
		}
		if time.Now().After(deadline) {
			s.Fatalf("five minutes passed, and it has not ended: %+v", jobs)
		}
	}
}
