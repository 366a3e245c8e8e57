package launchertest

import (
	"slices"
	"strings"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/internal/protocol/crew"
	"github.com/tandem-tune/tandem/workers/launcher"
)

// replaced waits until another worker has the trial of one that is gone, whose shape is
// not to blame.
func (s *story) replaced(launch string, causes ...protocol.Cause) {
	s.Helper()
	s.eventually("the server to know", func() bool { _, told := s.server.gone[launch]; return told })
	if cause := s.server.gone[launch]; !slices.Contains(causes, cause) {
		s.Errorf("it is gone for %q, want %q", cause, causes)
	}
	if launches := s.take(1); launches[0] == launch || s.hold() {
		s.Errorf("%v took its place, on hold: %v", launches, s.hold())
	}
	if !slices.ContainsFunc(s.server.report.Ends, func(end crew.LaunchEnd) bool { return end.Launch == launch && end.Worked && end.Why != "" }) {
		s.Errorf("its end is not in %+v", s.server.report.Ends)
	}
}

func preemptedWorks(s *story) {
	if s.site.Preempt == nil {
		s.Skip("it is tried elsewhere")
	}
	s.begin(1)
	s.server.wants = 1
	launch := s.take(1)[0]
	s.site.Preempt(s.job(launch))
	s.replaced(launch, protocol.Preempted, protocol.Finished)
}

func lostWorks(s *story) {
	if s.site.Lose == nil {
		s.Skip("it is tried elsewhere")
	}
	s.begin(1)
	s.server.wants = 1
	launch := s.take(1)[0]
	s.site.Lose(s.job(launch))
	s.replaced(launch, protocol.NodeFailed)
}

func cancelledByAPerson(s *story) {
	s.begin(1)
	s.server.wants = 1
	launch := s.take(1)[0]
	s.cancel(s.job(launch))
	s.replaced(launch, protocol.Cancelled, protocol.Finished)
}

func holds(s *story) {
	s.begin(1)
	s.server.wants = 1
	for i := range 3 {
		s.eventually("another worker", func() bool { return len(s.begun()) == i+1 })
		for _, launch := range s.begun() {
			s.crash(launch)
		}
		s.eventually("its end", func() bool { return len(s.server.over) == i+1 })
	}
	if hold := s.shape().Hold; hold == nil || !strings.Contains(hold.Why, "no GPU is there") || s.shape().Wanted != 1 {
		s.Fatalf("the server is told %+v", s.shape())
	}
	until := s.shape().Hold.Until
	s.begin(1) // a hold outlives the process
	s.tick(2)
	if jobs := s.alive(); len(jobs) > 0 || !s.hold() || s.waiting() > 0 || len(s.server.issued) > 0 {
		s.Errorf("on hold there are %+v, and %d enrolments", jobs, s.waiting())
	}
	if ends := s.server.report.Ends; len(ends) != 3 || ends[0].Cause != protocol.Crashed || ends[0].Worked {
		s.Errorf("the ends are %+v", ends)
	}
	s.server.again = []string{"cpu"}
	s.eventually("a worker that is tried again", func() bool { return len(s.begun()) == 4 })
	if s.site.Simulated != nil && !time.Now().Before(until) {
		s.Error("it was not tried again before the end of the hold")
	}
	s.take(1)
	if s.tick(1); s.hold() {
		s.Error("it is on hold, though a worker has a trial")
	}
}

func neverLeases(s *story) {
	s.begin(1)
	s.server.wants = 1
	for i := range 3 {
		s.eventually("another worker", func() bool { return len(s.begun()) == i+1 })
		for _, launch := range s.begun() {
			if s.register(launch) {
				s.tick(1)
				delete(s.server.workers, launch) // it takes leave
				s.write("say."+launch, "bye")
				s.write("end."+launch, "0")
			}
		}
		s.eventually("its end", func() bool { return len(s.server.over) == i+1 })
	}
	if !s.hold() {
		s.Errorf("workers that do nothing are started for ever: %+v", s.shape())
	}
}

// simulated skips what takes long where time is real.
func (s *story) simulated() {
	if s.site.Simulated == nil {
		s.Skip("it takes long: it is told in simulated time")
	}
}

func enrolmentsAreRenewed(s *story) {
	s.simulated()
	s.begin(5, func(shape *launcher.Shape) { shape.TimeLimit = 48 * time.Hour })
	s.server.wants = 5
	s.take(4)
	s.tick(1)
	if len(s.server.issued) != 1 || s.server.enrolled != 5 {
		s.Fatalf("%d enrolments wait of %d", len(s.server.issued), s.server.enrolled)
	}
	s.site.Simulated.sleep(13 * time.Hour)
	s.tick(1)
	if len(s.server.issued) != 1 || s.server.enrolled != 6 {
		s.Errorf("after 13 hours %d enrolments wait of %d", len(s.server.issued), s.server.enrolled)
	}
	launch := s.begun()[0]
	delete(s.server.workers, launch)
	s.write("say."+launch, "bye")
	s.write("end."+launch, "0")
	s.take(4) // the one that waited, too
}

func listedLate(s *story) {
	s.simulated()
	s.begin(8)
	s.site.Simulated.lag = 20 * time.Second
	s.server.wants = 2
	s.tick(30)
	s.take(2)
	if s.server.enrolled != 2 || len(s.alive()) != 2 {
		s.Errorf("%d were ordered, and there are %+v", s.server.enrolled, s.alive())
	}
}

func forgotten(s *story) {
	s.simulated()
	s.begin(1)
	s.server.wants = 1
	launch := s.take(1)[0]
	s.tick(1)
	s.site.Simulated.forget(s.job(launch).ID)
	s.tick(30) // a minute, in which its worker is heard of
	if s.server.enrolled != 1 {
		s.Error("another one was ordered while its worker is heard of")
	}
	delete(s.server.workers, launch)
	s.eventually("another one", func() bool { return s.server.enrolled == 2 })
	s.take(1)
	if !slices.Contains(s.server.over, launch) || s.hold() || !strings.Contains(s.server.report.Ends[0].Why, "does not know the job any more") {
		s.Errorf("over are %v, the ends %+v", s.server.over, s.server.report.Ends)
	}
}

func timeLimit(s *story) {
	s.simulated()
	s.begin(1, func(shape *launcher.Shape) { shape.TimeLimit = 10 * time.Minute })
	s.server.wants = 1
	launch := s.take(1)[0]
	s.site.Simulated.sleep(10 * time.Minute)
	s.replaced(launch, protocol.TimeLimit)
}
