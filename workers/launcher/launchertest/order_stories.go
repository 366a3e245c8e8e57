package launchertest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/internal/protocol/crew"
	"github.com/tandem-tune/tandem/workers/launcher"
)

func orderToLease(s *story) {
	s.begin(8)
	s.server.wants = 2
	launches := s.take(2)
	s.tick(1)
	if shape := s.shape(); shape.Running != 2 || shape.Wanted != 0 || shape.Pending+shape.Starting != 0 || shape.Learned == nil || shape.Learned.Workers != 2 {
		s.Errorf("the server is told %+v", shape)
	}
	if s.waiting() != 0 || len(s.alive()) != 2 || s.server.enrolled != 2 {
		s.Errorf("%d enrolments wait, %d were made for %+v", s.waiting(), s.server.enrolled, s.alive())
	}
	if s.register(launches[0]) {
		s.Error("an enrolment was used twice")
	}
}

// Nodes of real clusters have these labels.
func labelled(s *story) {
	s.begin(8)
	zoned := s.loop.Planner.Shapes[0]
	zoned.Name, zoned.Labels = "zoned", map[string]string{"zone": "a", "disk": "ssd"}
	s.loop.Planner.Shapes = append(s.loop.Planner.Shapes, zoned)
	s.server.wants, s.server.machines.Labels = 1, map[string]string{"zone": "b"}
	s.tick(2)
	if notes := s.server.report.Notes; len(notes) != 1 || !strings.Contains(notes[0].Says, "no shape has what its trials ask for (0 GPUs, 0 cores, 0 GiB, labels zone=b)") || s.server.enrolled > 0 {
		s.Errorf("of labels that no shape has the server is told %+v, with %d enrolments", notes, s.server.enrolled)
	}
	s.server.machines.Labels["zone"] = "a"
	launch := s.take(1)[0]
	if words := s.read("args." + launch); s.job(launch).Shape != "zoned" || !strings.Contains(words, "\n--label\ndisk=ssd,zone=a\n") {
		s.Errorf("it is of the shape %s, with the words %q", s.job(launch).Shape, words)
	}
}

// Workers with a taint are ordered for trials that tolerate it, and such that leave too
// early for none.
func tainted(s *story) {
	s.begin(8)
	shape := &s.loop.Planner.Shapes[0]
	shape.Taints, s.server.wants = []string{"spot", "old"}, 1
	s.tick(2)
	if notes := s.server.report.Notes; len(notes) != 1 || !strings.Contains(notes[0].Says, "no shape has what its trials ask for (0 GPUs, 0 cores, 0 GiB); resources.tolerates does not name spot, a taint of the shape cpu: add") || s.server.enrolled > 0 {
		s.Errorf("of taints the server is told %+v, with %d enrolments", notes, s.server.enrolled)
	}
	s.server.machines.Tolerates, s.server.machines.TimeLimitSeconds = []string{"spot", "old"}, shape.TimeLimit.Seconds()
	s.tick(2)
	if notes := s.server.report.Notes; len(notes) != 1 || !strings.Contains(notes[0].Says, "time_limit_seconds 3600)") || s.server.enrolled > 0 {
		s.Errorf("of a time limit the server is told %+v, with %d enrolments", notes, s.server.enrolled)
	}
	s.server.machines.TimeLimitSeconds = (shape.TimeLimit - 5*time.Minute).Seconds()
	if words := s.read("args." + s.take(1)[0]); !strings.Contains(words, "\n--taint\nspot,old\n") {
		s.Errorf("it starts with the words %q", words)
	}
}

// A worker that lacks the key of a study, or has one that the study does not, would get
// no trial, and its shape would go on hold.
func keyed(s *story) {
	s.begin(8)
	s.server.wants, s.server.key = 1, "age1other"
	for _, test := range []struct {
		keys []string
		want string
		say  string
	}{
		{nil, "age1other", "do not hold its key age1other"}, {[]string{"age1own"}, "age1other", "do not hold its key age1other"},
		{[]string{"age1own"}, "", "encrypted studies only"},
	} {
		s.loop.Planner.Keys, s.server.key = test.keys, test.want
		s.tick(4)
		if notes := s.server.report.Notes; len(notes) != 1 || notes[0].StudyID != "s" || !strings.Contains(notes[0].Says, test.say) || s.server.enrolled > 0 {
			s.Errorf("with the keys %v, of the key %q the server is told %+v, with %d enrolments", test.keys, test.want, notes, s.server.enrolled)
		}
	}
	s.server.key = "age1own"
	if s.take(1); len(s.server.report.Notes) > 0 || s.shape().Hold != nil {
		s.Errorf("with the key the server is told %+v", s.server.report)
	}
}

func nothingWanted(s *story) {
	s.begin(8)
	s.tick(3)
	if jobs := s.list(); len(jobs) > 0 || s.server.enrolled > 0 {
		s.Errorf("it started %+v", jobs)
	}
}

func pendingIsSupply(s *story) {
	s.begin(6)
	s.server.wants = 6
	s.take(4)
	s.tick(3)
	shape := s.shape()
	if shape.Pending != 2 || shape.Running != 4 || shape.Wanted != 2 || len(s.alive()) != 6 {
		s.Errorf("the server is told %+v of %+v", shape, s.alive())
	}
	if len(shape.Waits) != 1 || shape.Waits[0].Workers != 2 || shape.Waits[0].Why == "" {
		s.Errorf("of why they wait it is told %+v", shape.Waits)
	}
}

func capLowered(s *story) {
	s.begin(6)
	s.server.wants = 6
	launches := s.take(4)
	s.begin(3)
	s.tick(2)
	if len(s.alive()) != 6 {
		s.Errorf("with a lower bound there are %+v", s.alive())
	}
	for _, launch := range launches {
		delete(s.server.workers, launch)
		s.write("say."+launch, "bye")
		s.write("end."+launch, "0")
	}
	s.eventually("three workers", func() bool { return len(s.alive()) <= 3 })
	s.eventually("one more of three", func() bool { return len(s.alive()) == 3 })
	s.tick(2)
	if jobs := s.alive(); len(jobs) != 3 {
		s.Errorf("there may be three, and are %+v", jobs)
	}
}

func studyEnds(s *story) {
	s.begin(6)
	s.server.wants = 6
	s.take(4)
	s.eventually("two jobs that wait", func() bool { return s.count(launcher.Pending) == 2 })
	s.server.wants = 0
	s.eventually("nothing that waits", func() bool { return s.count(launcher.Pending) == 0 })
	s.eventually("the end of their tokens", func() bool { return len(s.server.issued) == 0 && s.waiting() == 0 })
	if ends := s.server.report.Ends; len(ends) != 2 || ends[0].Cause != protocol.Cancelled || ends[1].Cause != protocol.Cancelled {
		s.Errorf("the ends are %+v", ends)
	}
	if len(s.alive()) != 4 || len(s.server.gone) > 0 {
		s.Errorf("workers with trials were taken back: %+v", s.alive())
	}
}

func refusedOrder(s *story) {
	s.begin(2, func(shape *launcher.Shape) { shape.Options = []string{s.site.Refused} })
	s.server.wants = 2
	if err := s.loop.Tick(s.Context()); err == nil {
		s.Error("nothing is said")
	}
	s.tick(2)
	if ends := s.server.report.Ends; len(ends) != 1 || !strings.HasPrefix(ends[0].Why, "the engine refused the order: ") || s.server.enrolled != 2 || len(s.list()) > 0 {
		s.Errorf("of an order that was refused the server is told %+v, with %d enrolments", ends, s.server.enrolled)
	}
}

func startedAgain(s *story) {
	s.begin(8)
	s.server.wants = 3
	s.tick(1)
	s.begin(8)
	s.take(3)
	s.begin(8)
	s.tick(3)
	if s.server.enrolled != 3 || len(s.alive()) != 3 {
		s.Errorf("%d were ordered, there are %+v, and these ended: %+v", s.server.enrolled, s.alive(), s.server.report.Ends)
	}
}

// kill has the launcher's process end while the engine does something with an order: what
// it kept until then is all that the next one knows.
func (s *story) kill(do func(ctx context.Context, order launcher.Order) error) {
	s.Helper()
	path := filepath.Join(s.place, "logs", "launcher-"+s.name+".json")
	var kept []byte
	s.broken.launch = func(ctx context.Context, order launcher.Order) (err error) {
		if kept, err = os.ReadFile(path); err != nil {
			s.Fatal(err)
		}
		return do(ctx, order)
	}
	s.loop.Tick(s.Context()) //nolint:errcheck // nobody hears what it returns
	s.stop()
	if err := os.WriteFile(path, kept, 0o600); err != nil {
		s.Fatal(err)
	}
}

func killedBeforeTheAnswer(s *story) {
	s.begin(8)
	s.server.wants = 2
	s.kill(s.engine.Launch)
	s.begin(8)
	s.take(2)
	s.tick(3)
	if s.server.enrolled != 2 || len(s.alive()) != 2 {
		s.Errorf("%d were ordered, and there are %+v", s.server.enrolled, s.alive())
	}
}

func killedBeforeTheOrder(s *story) {
	s.simulated()
	s.begin(8)
	s.server.wants = 2
	s.kill(func(context.Context, launcher.Order) error { return nil })
	s.begin(8)
	s.take(2)
	if s.server.enrolled != 4 || len(s.alive()) != 2 || s.hold() {
		s.Errorf("%d were ordered, and there are %+v", s.server.enrolled, s.alive())
	}
}

func answeredLate(s *story) {
	s.begin(8)
	s.server.wants = 2
	s.broken.launch = func(ctx context.Context, order launcher.Order) error {
		return errors.Join(s.engine.Launch(ctx, order), errors.New("timed out"))
	}
	if err := s.loop.Tick(s.Context()); err == nil || !strings.Contains(err.Error(), "timed out") {
		s.Errorf("it says %v", err)
	}
	s.take(2)
	s.tick(2)
	if s.server.enrolled != 2 || len(s.alive()) != 2 {
		s.Errorf("%d were ordered, and there are %+v", s.server.enrolled, s.alive())
	}
}

func takenTwice(s *story) {
	s.begin(8)
	s.server.wants = 1
	s.broken.launch = func(ctx context.Context, order launcher.Order) error {
		return errors.Join(s.engine.Launch(ctx, order), s.engine.Launch(ctx, order))
	}
	s.tick(1)
	s.broken.launch = nil
	s.eventually("one of two to be taken back", func() bool { return len(s.list()) == 2 && len(s.alive()) == 1 || len(s.list()) == 1 })
	s.take(1)
	s.tick(2)
	if len(s.alive()) != 1 || s.server.enrolled != 1 || s.hold() {
		s.Errorf("%d were ordered, and there are %+v", s.server.enrolled, s.alive())
	}
}

func twoLaunchers(s *story) {
	s.begin(1)
	s.server.wants = 1
	s.take(1)
	other := &story{T: s.T, site: s.site, place: s.TempDir(), name: s.name + "x"}
	other.worker = []string{s.worker[0], filepath.Join(other.place, "worker.sh")}
	other.write("worker.sh", fmt.Sprintf(worker, other.place))
	defer func() {
		other.write("end", "")
		other.stop()
	}()
	if s.site.Simulated == nil {
		other.begin(2)
		other.server.wants = 1
		other.take(1)
	} else { // its workers would have their files in the folder of the first one
		other.begin(2)
		other.server.wants = 1
		other.eventually("a worker of the other", func() bool { return len(other.alive()) == 1 })
	}
	other.server.wants = 0
	other.server.workers = map[string]*crew.LaunchedWorker{}
	other.tick(2)
	s.tick(2)
	if jobs := s.alive(); len(jobs) != 1 || s.server.running() != 1 || len(s.server.gone) > 0 {
		s.Errorf("the other launcher touched %+v", jobs)
	}
}

func engineDown(s *story) {
	s.begin(2)
	s.server.wants = 1
	s.tick(1)
	s.broken.down = errors.New("the controller does not answer")
	s.server.wants = 2
	if err := s.loop.Tick(s.Context()); err == nil || s.server.report.Trouble != "the controller does not answer" || len(s.server.report.Shapes) != 1 {
		s.Errorf("it says %v, and the server is told %+v", err, s.server.report)
	}
	if s.server.enrolled != 1 {
		s.Errorf("%d were ordered of an engine that is not seen", s.server.enrolled)
	}
	s.broken.down = nil
	s.take(2)
	if s.tick(1); s.server.report.Trouble != "" {
		s.Errorf("the server is told %q", s.server.report.Trouble)
	}
}

func takenInPart(s *story) {
	s.begin(4)
	s.server.wants = 4
	s.broken.launch = func(ctx context.Context, order launcher.Order) error {
		order.Count = 2
		return errors.Join(s.engine.Launch(ctx, order), errors.New("you have too many jobs"))
	}
	if err := s.loop.Tick(s.Context()); err == nil {
		s.Error("nothing is said")
	}
	s.broken.launch = nil
	s.take(2)
	s.tick(2)
	if len(s.alive()) != 2 {
		s.Errorf("of four it took two, and there are %+v", s.alive())
	}
	if s.site.Simulated != nil { // elsewhere it takes too long
		s.take(4)
	}
}
