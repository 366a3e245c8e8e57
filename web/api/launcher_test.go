package api_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/internal/protocol/crew"
	"github.com/tandem-tune/tandem/web/auth"
)

// reported is what a launcher says that has one shape on hold until then.
func reported(study string, until time.Time) crew.LauncherReport {
	return crew.LauncherReport{LauncherState: crew.LauncherState{
		Engine: "slurm", EverySeconds: 10,
		Shapes: []crew.LaunchShape{{
			Name: "gpu1", GPUs: 1, Cores: 4, Trials: 1, Most: 8, Wanted: 3, Pending: 2,
			Waits: []crew.LaunchWait{{Workers: 2, Why: "waits behind jobs that go first", Since: until}}, Hold: &crew.LaunchHold{Why: "no GPU is there", Until: until},
		}, {Name: "cpu", Cores: 4, Trials: 1, Most: 8}},
		Notes: []crew.LaunchNote{{StudyID: study, Says: "of-alice waits"}, {Says: "most is 8"}},
		Ends:  []crew.LaunchEnd{{At: until, Shape: "gpu1", Launch: "L-0", Cause: protocol.Crashed, Why: "no GPU is there"}},
	}}
}

// TestWhatLaunchersStartIsShown to those whose trials may get the workers, and only whose
// launcher it is may ask it to try again. It is asked until the hold has gone.
func TestWhatLaunchersStartIsShown(t *testing.T) {
	t.Parallel()
	s, folder := auditedStage(t)
	ctx := t.Context()
	for _, name := range []string{"alice", "bob", "*"} {
		s.issue(auth.Request{Name: name, Scope: auth.Launcher})
		s.secrets[auth.Scope(name+"'s launcher")] = s.secrets[auth.Scope(name)]
		if name != "*" {
			s.issue(auth.Request{Name: name, Scope: auth.User})
		}
	}
	study, err := s.as("alice").CreateStudy(ctx, []byte(strings.Replace(smallStudy, "name: small", "name: of-alice", 1)), "application/yaml")
	if err != nil {
		t.Fatal(err)
	}
	until := time.Now().Add(time.Hour).UTC()
	say := func(launcher string, report crew.LauncherReport) []string {
		t.Helper()
		reply, err := s.as(launcher).ReportLauncher(ctx, "tandem", report)
		if err != nil {
			t.Fatal(err)
		}
		return reply.TryAgain
	}
	say("alice's launcher", reported(study.ID, until))
	say("*'s launcher", reported(study.ID, until))

	seen := map[string][]crew.Launcher{}
	for _, who := range []string{"alice", "bob", "admin", "viewer"} {
		if seen[who], err = s.as(who).Launches(ctx); err != nil {
			t.Fatal(err)
		}
		var of []string
		for _, one := range seen[who] {
			of = append(of, map[bool]string{true: "own ", false: ""}[one.Yours]+map[string]string{"": "all"}[one.User]+one.User+" "+map[int]string{1: "most", 2: "all notes"}[len(one.Notes)])
		}
		slices.Sort(of)
		want := map[string]string{"alice": "all all notes|own alice all notes", "bob": "all most", "admin": "own alice all notes|own all all notes", "viewer": "alice all notes|all all notes"}[who]
		if got := strings.Join(of, "|"); got != want {
			t.Errorf("%s sees %s, want %s", who, got, want)
		}
	}
	alices, everybodys := seen["alice"][0], seen["bob"][0]
	if alices.User == "" {
		alices = seen["alice"][1]
	}
	if shape := alices.Shapes[0]; shape.Pending != 2 || shape.Waits[0].Why != "waits behind jobs that go first" || shape.Hold.TryAgain || alices.Silent || len(alices.Ends) != 1 {
		t.Errorf("alice sees %+v", alices)
	}

	for _, test := range []struct {
		who, launcher, shape string
		code                 problem.Code
	}{
		{"bob", alices.ID, "gpu1", problem.NotFound}, {"bob", everybodys.ID, "gpu1", problem.Forbidden},
		{"alice", alices.ID, "cpu", problem.Conflict}, {"alice", alices.ID, "none", problem.Conflict}, {"alice", "none", "gpu1", problem.NotFound},
	} {
		if _, err := s.as(test.who).TryAgain(ctx, test.launcher, test.shape); !problem.Is(err, test.code) {
			t.Errorf("%s tries %s again: %v, want %s", test.who, test.shape, err, test.code)
		}
	}
	if again := say("alice's launcher", reported(study.ID, until)); len(again) > 0 {
		t.Errorf("nobody may ask, and %v are tried again", again)
	}
	if got, err := s.as("alice").TryAgain(ctx, alices.ID, "gpu1"); err != nil || !got.Shapes[0].Hold.TryAgain {
		t.Errorf("alice asks: %+v, %v", got, err)
	}
	if again := say("*'s launcher", reported(study.ID, until)); len(again) > 0 {
		t.Errorf("another launcher is told %v", again)
	}
	for range 2 { // an answer may be lost
		if again := say("alice's launcher", reported(study.ID, until)); !slices.Equal(again, []string{"gpu1"}) {
			t.Errorf("it is told %v", again)
		}
	}
	if again := say("alice's launcher", reported(study.ID, until.Add(time.Hour))); len(again) > 0 {
		t.Errorf("it was tried, is on hold again, and is told %v", again)
	}
	s.pass(5 * time.Minute)
	if all, err := s.as("bob").Launches(ctx); err != nil || !all[0].Silent {
		t.Errorf("a launcher that ended: %+v, %v", all, err)
	}
	if log := strings.Join(logged(t, folder), "\n"); !strings.Contains(log, "try-launcher-again") || strings.Contains(log, "done report-launcher") {
		t.Errorf("the audit log is\n%s", log)
	}
}

// TestTheTokensOfALaunchEndWithIt: what a launcher says is over cannot enrol any more, and
// what another says of it changes nothing.
func TestTheTokensOfALaunchEndWithIt(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	ctx := t.Context()
	for _, name := range []string{"alice", "bob"} {
		s.issue(auth.Request{Name: name, Scope: auth.Launcher})
	}
	made, err := s.as("alice").Enrol(ctx, crew.EnrolmentRequest{Launches: []string{"L-0", "L-1", "L-2"}, TTLSeconds: 3600})
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range made {
		s.secrets[auth.Scope(one.Launch)] = one.Token
	}
	over := reported("", time.Now())
	over.Over = []string{"L-0", "L-1"}
	if _, err := s.as("bob").ReportLauncher(ctx, "tandem", over); err != nil {
		t.Fatal(err)
	}
	worker, err := s.as("L-1").ExchangeEnrolment(ctx, aNonce)
	if err != nil {
		t.Fatalf("bob ended alice's launch: %v", err)
	}
	s.secrets["worker of L-1"] = worker.Token
	if _, err := s.as("alice").ReportLauncher(ctx, "tandem", over); err != nil {
		t.Fatal(err)
	}
	if _, err := s.as("L-0").ExchangeEnrolment(ctx, aNonce); !problem.Is(err, problem.Unauthorized) {
		t.Errorf("a launch that is over enrols: %v", err)
	}
	if _, err := s.as("worker of L-1").Identity(ctx); !problem.Is(err, problem.Unauthorized) {
		t.Errorf("the worker of a launch that is over: %v", err)
	}
	if _, err := s.as("L-2").ExchangeEnrolment(ctx, aNonce); err != nil {
		t.Errorf("a launch that is not over: %v", err)
	}
	over.Over = []string{"../L"}
	if _, err := s.as("alice").ReportLauncher(ctx, "tandem", over); !problem.Is(err, problem.Invalid) || !strings.Contains(err.Error(), "over[0]") {
		t.Errorf("a launch that is a path: %v", err)
	}
}
