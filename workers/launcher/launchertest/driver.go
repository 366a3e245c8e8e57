package launchertest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/internal/protocol/crew"
	"github.com/tandem-tune/tandem/study/selector"
	"github.com/tandem-tune/tandem/workers/launcher"
	"github.com/tandem-tune/tandem/workers/launcher/engine"
	"github.com/tandem-tune/tandem/workers/launcher/loop"
)

// server is one with a study that wants so many trials at once. Its workers register when
// the story says so.
type server struct {
	wants    int
	machines selector.Selector               // that its trials may run on
	key      string                          // that they are encrypted with
	workers  map[string]*crew.LaunchedWorker // by launch
	issued   map[string]string               // tokens of launches, not used yet
	enrolled int
	gone     map[string]protocol.Cause
	over     []string
	report   crew.LauncherReport
	again    []string
}

func newServer() *server {
	return &server{workers: map[string]*crew.LaunchedWorker{}, issued: map[string]string{}, gone: map[string]protocol.Cause{}}
}

func (v *server) PoolWanted(context.Context) (crew.PoolWanted, error) {
	wanted := crew.PoolWanted{}
	for _, one := range v.workers {
		wanted.Workers = append(wanted.Workers, *one)
	}
	wanted.Studies = []crew.WantedStudy{{Study: "s", StudyID: "s", Trials: max(0, v.wants-v.running()), Recipient: v.key, Selector: v.machines}}
	return wanted, nil
}

// running is how many trials run.
func (v *server) running() (trials int) {
	for _, one := range v.workers {
		trials += one.Trials
	}
	return trials
}

func (v *server) Enrol(_ context.Context, ask crew.EnrolmentRequest) (made []crew.Enrolment, err error) {
	for _, launch := range ask.Launches {
		v.enrolled++
		v.issued[launch] = fmt.Sprint("token ", v.enrolled)
		made = append(made, crew.Enrolment{Launch: launch, Token: v.issued[launch]})
	}
	return made, nil
}

func (v *server) Gone(_ context.Context, worker string, told protocol.Gone) (reply protocol.GoneReply, err error) {
	if one := v.workers[told.Launch]; one == nil || one.ID != worker {
		return reply, problem.New(problem.NotFound, "there is no worker %s", worker)
	}
	delete(v.workers, told.Launch)
	v.gone[told.Launch] = told.Cause
	return reply, nil
}

func (v *server) ReportLauncher(_ context.Context, _ string, report crew.LauncherReport) (crew.LauncherReply, error) {
	v.report = report
	v.over = append(v.over, report.Over...)
	for _, launch := range report.Over {
		delete(v.issued, launch)
	}
	again := v.again
	v.again = nil
	return crew.LauncherReply{TryAgain: again}, nil
}

// wrapped is an engine that does not do as it should.
type wrapped struct {
	launcher.Engine
	launch func(ctx context.Context, order launcher.Order) error
	down   error
}

func (w *wrapped) Launch(ctx context.Context, order launcher.Order) error {
	if w.launch != nil {
		return w.launch(ctx, order)
	}
	return w.Engine.Launch(ctx, order)
}

// Carry is for engines that carry enrolments.
func (w *wrapped) Carry(ctx context.Context, launch string) error {
	if engine, is := w.Engine.(interface {
		Carry(ctx context.Context, launch string) error
	}); is {
		return engine.Carry(ctx, launch)
	}
	return nil
}

func (w *wrapped) List(ctx context.Context) ([]launcher.Job, error) {
	if w.down != nil {
		return nil, w.down
	}
	return w.Engine.List(ctx)
}

// begin starts a launcher of one shape of one core, of which there may be so many at once;
// or another process of the same launcher, which knows what the one before kept.
func (s *story) begin(most int, change ...func(*launcher.Shape)) {
	s.Helper()
	if s.kept != nil {
		s.stop()
	}
	logs := filepath.Join(s.place, "logs")
	enrolments := engine.Enrolments(filepath.Join(logs, "enrolments"))
	shape := launcher.Shape{Name: "cpu", Cores: 1, Trials: 1, TimeLimit: time.Hour, Most: most, MostAnHour: 100}
	for _, one := range change {
		one(&shape)
	}
	shapes, err := launcher.Sorted([]launcher.Shape{shape})
	err = errors.Join(err, enrolments.Open())
	if err != nil {
		s.Fatal(err)
	}
	s.engine = s.site.Open(s.name, s.worker, enrolments)
	s.broken = &wrapped{Engine: s.engine}
	if s.kept, err = engine.OpenMemory(logs, s.name); err != nil {
		s.Fatal(err)
	}
	if s.server == nil {
		s.server = newServer()
	}
	s.loop = &loop.Loop{
		Server: s.server, Engine: s.broken, Enrolments: enrolments, Kept: s.kept, Name: s.name, Of: "fake", Out: io.Discard,
		Planner: &launcher.Planner{Shapes: shapes, Idle: time.Nanosecond},
	}
	if s.loop.Planner.Memory, err = s.kept.Read(); err != nil {
		s.Fatal(err)
	}
}

func (s *story) stop() {
	if s.kept == nil {
		return
	}
	if err := s.kept.Close(); err != nil {
		s.Error(err)
	}
	s.kept = nil
}

func (s *story) tick(times int) {
	s.Helper()
	for range times {
		if err := s.loop.Tick(s.Context()); err != nil {
			s.Fatal(err)
		}
		s.pause()
	}
}

// pause is between two looks of the launcher: short where time is real.
func (s *story) pause() {
	if s.site.Simulated != nil {
		time.Sleep(2 * time.Second)
		return
	}
	time.Sleep(look)
}

// eventually lets the launcher look again and again until something is so.
func (s *story) eventually(what string, is func() bool) {
	s.Helper()
	for deadline := time.Now().Add(5 * time.Minute); !is(); s.tick(1) {
		if time.Now().After(deadline) {
			s.Fatalf("five minutes passed without %s: %+v; %+v", what, s.list(), s.server.report)
		}
	}
}

// alive are the jobs that have not ended.
func (s *story) alive() []launcher.Job {
	s.Helper()
	return slices.DeleteFunc(s.list(), func(job launcher.Job) bool { return job.State == launcher.Ended })
}

func (s *story) count(state launcher.State) int {
	s.Helper()
	return len(slices.DeleteFunc(s.list(), func(job launcher.Job) bool { return job.State != state }))
}

// begun are the launches whose workers have begun.
func (s *story) begun() (launches []string) {
	paths, err := filepath.Glob(filepath.Join(s.place, "args.*"))
	if err != nil {
		s.Fatal(err)
	}
	for _, path := range paths {
		launches = append(launches, strings.TrimPrefix(filepath.Base(path), "args."))
	}
	return launches
}

// register has a worker that has begun use its enrolment, as tandem worker does.
func (s *story) register(launch string) bool {
	s.Helper()
	words := strings.Split(s.read("args."+launch), "\n")
	at := slices.Index(words, "--token-file")
	if at < 0 {
		s.Fatalf("the worker got no token: %q", words)
	}
	token, err := os.ReadFile(words[at+1])
	if err != nil || s.server.issued[launch] == "" || strings.TrimSpace(string(token)) != s.server.issued[launch] {
		return false
	}
	delete(s.server.issued, launch)
	if err := os.Remove(words[at+1]); err != nil {
		s.Fatal(err)
	}
	s.server.workers[launch] = &crew.LaunchedWorker{ID: "worker of " + launch, Launch: launch, Slots: 1}
	return true
}

// take waits until so many workers have a trial each, and returns their launches.
func (s *story) take(trials int) (launches []string) {
	s.Helper()
	s.eventually(fmt.Sprint(trials, " trials on workers"), func() bool {
		for _, launch := range s.begun() {
			if s.server.workers[launch] != nil || s.server.running() >= trials {
				continue
			}
			if _, gone := s.server.gone[launch]; !gone && s.register(launch) {
				s.server.workers[launch].Trials = 1
			}
		}
		return s.server.running() >= trials
	})
	for launch := range s.server.workers {
		launches = append(launches, launch)
	}
	slices.Sort(launches)
	return launches
}

// crash has a worker that has not registered fail.
func (s *story) crash(launch string) {
	s.write("say."+launch, "tandem: no GPU is there\n")
	s.write("end."+launch, "4")
}

func (s *story) job(launch string) launcher.Job {
	s.Helper()
	jobs := s.list()
	at := slices.IndexFunc(jobs, func(job launcher.Job) bool { return job.Launch == launch })
	if at < 0 {
		s.Fatalf("there is no job of %s: %+v", launch, jobs)
	}
	return jobs[at]
}

// shape is what the launcher told last of its shape.
func (s *story) shape() crew.LaunchShape { return s.server.report.Shapes[0] }

func (s *story) hold() bool { return len(s.server.report.Shapes) > 0 && s.shape().Hold != nil }

// waiting are the enrolments that no worker has used.
func (s *story) waiting() int {
	kept, err := s.loop.Enrolments.Kept()
	if err != nil {
		s.Fatal(err)
	}
	return len(kept)
}
