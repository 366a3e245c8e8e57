// Package launchertest is what every engine of a launcher must do, as stories.
package launchertest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/workers/launcher"
)

// Site is an engine to try, with nothing of anybody on it.
type Site struct {
	// Open returns the engine for a launcher of that name, whose workers are the command.
	// It runs four workers of one core at once, and is asked again and again.
	Open func(name string, worker []string) launcher.Engine
	// Option is one that its commands take, Refused one that they do not.
	Option, Refused string
	// Preempt and Lose have the site end a job for another one, and lose its node; nil
	// where that is tried elsewhere.
	Preempt, Lose func(job launcher.Job)
}

// worker stands for "tandem worker": it notes how it was started, and ends as it is told.
const worker = `#!/bin/sh
for last; do :; done
place='%[1]s'
for word; do printf '%%s\n' "$word"; done > "$place/new.$last"
env > "$place/env.$last"
mv "$place/new.$last" "$place/args.$last"
trap 'echo > "$place/term.$last"; exit 0' TERM
until [ -e "$place/end.$last" ] || [ -e "$place/end" ] || [ ! -e "$place" ]; do sleep 0.05; done
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
}

// Run tells the stories one after the other.
func Run(t *testing.T, open func(t *testing.T) Site) {
	site := open(t)
	for i, one := range []struct {
		name string
		tell func(s *story)
	}{
		{"an engine without jobs lists none", (*story).nothing},
		{"a worker is started as it must", (*story).started},
		{"several workers are told apart", (*story).several},
		{"what does not fit waits and says why, and starts later", (*story).waits},
		{"what waits is taken back", (*story).takenBackBefore},
		{"what runs is asked to end", (*story).takenBackWhile},
		{"a worker that fails is told with its last words", (*story).fails},
		{"another launcher's jobs are not ours", (*story).others},
		{"jobs are found again after a crash", (*story).foundAgain},
		{"options and setup of the shape count", (*story).shaped},
		{"what the site refuses is an error", (*story).refused},
		{"preempted is nobody's fault", (*story).preempted},
		{"a node that is lost is known as the cause", (*story).lost},
	} {
		t.Run(one.name, func(t *testing.T) {
			place := t.TempDir()
			s := &story{T: t, site: site, place: place, name: fmt.Sprintf("story%d", i), worker: []string{"/bin/sh", filepath.Join(place, "worker.sh"), "two words", "it's", `"$HOME"`}}
			s.write("worker.sh", fmt.Sprintf(worker, place))
			s.engine = site.Open(s.name, s.worker)
			defer s.end()
			one.tell(s)
		})
	}
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
	if err := s.engine.Launch(s.Context(), order); err != nil {
		s.Fatal(err)
	}
	return order
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
			s.Fatalf("two minutes passed without %d jobs %s: %+v", count, state, all)
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
			s.Fatalf("two minutes passed without %s", name)
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
			s.Fatalf("two minutes passed, and it has not ended: %+v", jobs)
		}
	}
}

func (s *story) nothing() {
	if jobs := s.list(); len(jobs) > 0 {
		s.Errorf("it lists %+v", jobs)
	}
	s.cancel()
}

func (s *story) started() {
	s.Setenv("TANDEM_TOKEN", "a-secret-of-the-launcher")
	order := s.launch(1)
	job := s.running(1)[0]
	if job.Launch != order.Launch(0) || job.Shape != "cpu" || job.ID == "" || job.Node == "" {
		s.Errorf("it is %+v of order %s", job, order.ID)
	}
	words := strings.Split(strings.TrimSpace(s.read("args."+job.Launch)), "\n")
	if len(words) < 5 || words[0] != "--scratch" || !slices.Equal(words[2:5], s.worker[2:]) {
		s.Errorf("its first words are %q", words)
	}
	if got := strings.Join(words[5:], " "); got != "--slots 2 --end-at 59m0s --token-file /tokens of it/"+job.Launch+" --launch "+job.Launch {
		s.Errorf("the launcher's words are %s", got)
	}
	environment := s.read("env." + job.Launch)
	if strings.Contains(environment, "TANDEM_") || strings.Contains(environment, "secret") {
		s.Errorf("what is the launcher's went with it:\n%s", environment)
	}
	for _, want := range []string{"HOME=/home/of'it", "PATH=/usr/local/bin:/usr/bin:/bin"} {
		if !strings.Contains("\n"+environment, "\n"+want+"\n") {
			s.Errorf("%s is missing in\n%s", want, environment)
		}
	}
	s.write("say."+job.Launch, "bye")
	s.write("end."+job.Launch, "0")
	s.ended(job.Launch, protocol.Finished)
}

func (s *story) several() {
	order := s.launch(3)
	jobs := s.running(3)
	ids := map[string]bool{}
	for _, job := range jobs {
		ids[job.ID], ids[job.Launch] = true, true
	}
	for i := range 3 {
		if !ids[fmt.Sprintf("%s-%d", order.ID, i)] {
			s.Errorf("launch %d is not there: %+v", i, jobs)
		}
	}
	if len(ids) != 6 {
		s.Errorf("they share ids: %+v", jobs)
	}
}

func (s *story) waits() {
	s.launch(6)
	jobs := s.running(4)
	for _, job := range s.until(launcher.Pending, 2) {
		if job.Why == "" || job.Cause != "" {
			s.Errorf("it waits and says %q, %q", job.Why, job.Cause)
		}
	}
	s.write("say."+jobs[0].Launch, "bye")
	s.write("end."+jobs[0].Launch, "0")
	s.until(launcher.Pending, 1)
	s.running(4)
}

func (s *story) takenBackBefore() {
	s.launch(5)
	s.running(4)
	job := s.until(launcher.Pending, 1)[0]
	s.cancel(job)
	s.ended(job.Launch, protocol.Cancelled)
	s.running(4)
	if s.read("args."+job.Launch) != "" {
		s.Error("it was started all the same")
	}
}

func (s *story) takenBackWhile() {
	s.launch(2)
	jobs := s.running(2)
	s.cancel(jobs[0])
	s.file("term." + jobs[0].Launch)
	job := s.ended(jobs[0].Launch, protocol.Cancelled)
	if job.ID != "" && (!job.Blameless() || job.Failed()) {
		s.Errorf("it is to blame: %+v", job)
	}
	if s.read("term."+jobs[1].Launch) != "" {
		s.Error("the other one was asked, too")
	}
	s.running(1)
}

func (s *story) fails() {
	s.launch(1)
	job := s.running(1)[0]
	s.write("say."+job.Launch, "noise\ntandem: no GPU is there\nmore noise\n")
	s.write("end."+job.Launch, "4")
	job = s.ended(job.Launch, protocol.Crashed)
	if job.ID != "" && (!strings.Contains(job.Why, "no GPU is there") || !job.Failed()) {
		s.Errorf("it says %q", job.Why)
	}
}

func (s *story) others() {
	s.launch(1)
	s.running(1)
	other := s.site.Open(s.name+"x", s.worker)
	if jobs, err := other.List(s.Context()); err != nil || len(jobs) > 0 {
		s.Errorf("another launcher lists %+v, %v", jobs, err)
	}
}

func (s *story) foundAgain() {
	s.launch(2)
	before := s.running(2)
	s.engine = s.site.Open(s.name, s.worker)
	after := s.running(2)
	byID := func(a, b launcher.Job) int { return strings.Compare(a.ID, b.ID) }
	slices.SortFunc(before, byID)
	slices.SortFunc(after, byID)
	if !slices.Equal(before, after) {
		s.Errorf("it lists %+v, and before %+v", after, before)
	}
	s.cancel(after[0])
	s.file("term." + after[0].Launch)
}

func (s *story) shaped() {
	s.launch(1, func(shape *launcher.Shape) {
		shape.Name, shape.Options, shape.Setup = "other-1", []string{s.site.Option}, []string{"export MODULE='of the shape'"}
	})
	job := s.running(1)[0]
	if job.Shape != "other-1" {
		s.Errorf("its shape is %s", job.Shape)
	}
	if environment := s.read("env." + job.Launch); !strings.Contains(environment, "MODULE=of the shape") {
		s.Errorf("setup did not run:\n%s", environment)
	}
}

func (s *story) refused() {
	order := launcher.Order{ID: "refused", Count: 1, Shape: launcher.Shape{Name: "cpu", Cores: 1, Trials: 1, TimeLimit: time.Hour, Options: []string{s.site.Refused}}}
	if err := s.engine.Launch(s.Context(), order); err == nil {
		s.Error("nothing is said")
	}
	if jobs := s.list(); len(jobs) > 0 {
		s.Errorf("there are %+v", jobs)
	}
}

func (s *story) preempted() {
	if s.site.Preempt == nil {
		s.Skip("it is tried elsewhere")
	}
	s.launch(1)
	job := s.running(1)[0]
	s.site.Preempt(job)
	s.file("term." + job.Launch)
	// Slurm calls it finished where the worker left in order within the grace.
	if job := s.ended(job.Launch, protocol.Preempted, protocol.Finished); job.Failed() {
		s.Errorf("it is to blame: %+v", job)
	}
}

func (s *story) lost() {
	if s.site.Lose == nil {
		s.Skip("it is tried elsewhere")
	}
	s.launch(1)
	job := s.running(1)[0]
	s.site.Lose(job)
	if job := s.ended(job.Launch, protocol.NodeFailed); !job.Failed() {
		s.Errorf("it is no bad sign: %+v", job)
	}
}
