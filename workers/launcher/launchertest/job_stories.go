package launchertest

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/workers/launcher"
)

func nothing(s *story) {
	if jobs := s.list(); len(jobs) > 0 {
		s.Errorf("it lists %+v", jobs)
	}
	s.cancel()
}

func started(s *story) {
	order := s.launch(1)
	job := s.running(1)[0]
	if job.Launch != order.Launch(0) || job.Shape != "cpu" || job.ID == "" || job.Node == "" {
		s.Errorf("it is %+v of order %s", job, order.ID)
	}
	words := strings.Split(strings.TrimSpace(s.read("args."+job.Launch)), "\n")
	if len(words) < 5 || words[0] != "--scratch" || !slices.Equal(words[2:5], s.worker[2:]) {
		s.Errorf("its first words are %q", words)
	}
	token := filepath.Join(string(s.tokens), job.Launch)
	if s.site.TokenFile != nil {
		token = s.site.TokenFile(s.name, job.Launch)
	}
	if got := strings.Join(words[5:], " "); got != "--slots 2 --end-at 59m0s --token-file "+token+" --launch "+job.Launch {
		s.Errorf("the launcher's words are %s", got)
	}
	environment := s.read("env." + job.Launch)
	if strings.Contains(strings.ReplaceAll(environment, "TANDEM_NODE=", ""), "TANDEM_") || strings.Contains(environment, "secret") {
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

func several(s *story) {
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

func waits(s *story) {
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

func takenBackBefore(s *story) {
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

func takenBackWhile(s *story) {
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

func fails(s *story) {
	s.launch(1)
	job := s.running(1)[0]
	s.write("say."+job.Launch, "noise\ntandem: no GPU is there\nmore noise\n")
	s.write("end."+job.Launch, "4")
	job = s.ended(job.Launch, protocol.Crashed)
	if job.ID != "" && (!strings.Contains(job.Why, "no GPU is there") || !job.Failed()) {
		s.Errorf("it says %q", job.Why)
	}
}

func others(s *story) {
	s.launch(1)
	s.running(1)
	other := s.site.Open(s.name+"x", s.worker, s.tokens)
	if jobs, err := other.List(s.Context()); err != nil || len(jobs) > 0 {
		s.Errorf("another launcher lists %+v, %v", jobs, err)
	}
}

func foundAgain(s *story) {
	s.launch(2)
	before := s.running(2)
	s.engine = s.site.Open(s.name, s.worker, s.tokens)
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

func shaped(s *story) {
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

func refused(s *story) {
	order := launcher.Order{ID: "refused", Count: 1, Shape: launcher.Shape{Name: "cpu", Cores: 1, Trials: 1, TimeLimit: time.Hour, Options: []string{s.site.Refused}}}
	if err := s.order(order); err == nil {
		s.Error("nothing is said")
	}
	if jobs := s.list(); len(jobs) > 0 {
		s.Errorf("there are %+v", jobs)
	}
}

func preempted(s *story) {
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

func lost(s *story) {
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
