package api_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/internal/protocol/crew"
	"github.com/tandem-tune/tandem/web/auth"
)

const aNonce = "0123456789abcdef0123456789"

// enrol has the launcher of that name make an enrolment, and exchanges it for the token
// of a worker that is then kept under the launch's name.
func (s *stage) enrol(launcher, launch string) {
	s.t.Helper()
	made, err := s.as(launcher).Enrol(s.t.Context(), crew.EnrolmentRequest{Launches: []string{launch}, TTLSeconds: 3600})
	if err != nil || len(made) != 1 || made[0].Launch != launch {
		s.t.Fatalf("%v, %v", made, err)
	}
	s.secrets["enrolment"] = made[0].Token
	got, err := s.as("enrolment").ExchangeEnrolment(s.t.Context(), aNonce)
	if err != nil || got.Launch != launch || got.Expires == nil {
		s.t.Fatalf("%+v, %v", got, err)
	}
	s.secrets[auth.Scope(launch)] = got.Token
}

// TestALauncherStartsWorkersForItsUser: a launcher's token reads what is wanted, enrols
// workers and says which of its own are gone. The workers run that user's trials alone.
func TestALauncherStartsWorkersForItsUser(t *testing.T) {
	t.Parallel()
	s, folder := auditedStage(t)
	ctx := t.Context()
	for _, request := range []auth.Request{
		{Name: "alice", Scope: auth.User}, {Name: "bob", Scope: auth.User}, {Name: "*", Scope: auth.Launcher},
	} {
		s.issue(request)
	}
	for _, name := range []string{"alice", "bob"} {
		s.issue(auth.Request{Name: name, Scope: auth.Launcher})
		s.secrets[auth.Scope(name+"'s launcher")] = s.secrets[auth.Scope(name)]
		s.issue(auth.Request{Name: name, Scope: auth.User})
		if _, err := s.as(name).CreateStudy(ctx, []byte(strings.Replace(smallStudy, "name: small", "name: of-"+name, 1)), "application/yaml"); err != nil {
			t.Fatal(err)
		}
	}
	launcher := s.as("alice's launcher")
	wanted, err := launcher.PoolWanted(ctx)
	if err != nil || len(wanted.Studies) != 1 || wanted.Studies[0].Study != "of-alice" || len(wanted.Workers) != 0 {
		t.Fatalf("wanted are %+v, %v", wanted, err)
	}
	s.enrol("alice's launcher", "L-0")
	if _, err := s.as("enrolment").ExchangeEnrolment(ctx, aNonce+"other"); !problem.Is(err, problem.Forbidden) || !strings.Contains(err.Error(), "the enrolment of the launch L-0 was used already") {
		t.Errorf("a second use: %v", err)
	}
	worker := s.as("L-0")
	if _, err := worker.Register(ctx, protocol.WorkerRegistration{ID: "worker-0", Name: "n1", Slots: 1, Launch: "L-1"}); !problem.Is(err, problem.Forbidden) {
		t.Errorf("it registers for another launch: %v", err)
	}
	if _, err := worker.Register(ctx, protocol.WorkerRegistration{ID: "worker-0", Name: "n1", Slots: 2, Launch: "L-0"}); err != nil {
		t.Fatal(err)
	}
	lease, err := worker.Lease(ctx, protocol.LeaseRequest{Worker: "worker-0"})
	if err != nil || lease.Lease == nil || lease.Lease.Study != "of-alice" {
		t.Fatalf("it is given %+v, %v", lease.Lease, err)
	}
	wanted, err = launcher.PoolWanted(ctx)
	if want := (crew.LaunchedWorker{ID: "worker-0", Launch: "L-0", Trials: 1, Slots: 2}); err != nil || !slices.Equal(wanted.Workers, []crew.LaunchedWorker{want}) || wanted.Free != 0 {
		t.Errorf("its launcher sees %+v, %v", wanted, err)
	}
	for _, other := range []string{"bob's launcher", "*"} {
		wanted, err := s.as(other).PoolWanted(ctx)
		if free := map[bool]int{true: 1}[other == "*"]; err != nil || len(wanted.Workers) != 0 || wanted.Free != free {
			t.Errorf("%s sees %+v, %v", other, wanted, err)
		}
		if _, err := s.as(other).Gone(ctx, "worker-0", protocol.Gone{Launch: "L-0", Cause: protocol.Crashed}); !problem.Is(err, problem.NotFound) {
			t.Errorf("%s says that it is gone: %v", other, err)
		}
	}
	if reply, err := launcher.Gone(ctx, "worker-0", protocol.Gone{Launch: "L-0", Cause: protocol.NodeFailed}); err != nil || len(reply.Trials) != 1 {
		t.Errorf("its launcher says that it is gone: %+v, %v", reply, err)
	}
	if _, err := worker.Report(ctx, lease.Lease.Trial, reportOf(*lease.Lease, 1, 0.5)); !problem.Is(err, problem.Unauthorized) {
		t.Errorf("its token is still good: %v", err)
	}

	s.enrol("alice's launcher", "L-1")
	leaving := s.as("L-1")
	if _, err := leaving.Register(ctx, protocol.WorkerRegistration{ID: "worker-1", Name: "n1", Slots: 1, Launch: "L-1"}); err != nil {
		t.Fatal(err)
	}
	if err := leaving.Unregister(ctx, "worker-1"); err != nil {
		t.Fatal(err)
	}
	if _, err := leaving.Identity(ctx); !problem.Is(err, problem.Unauthorized) {
		t.Errorf("the token of one that left is still good: %v", err)
	}
	if _, err := launcher.Enrol(ctx, crew.EnrolmentRequest{Launches: []string{"L-2", "../L"}, TTLSeconds: 60}); !problem.Is(err, problem.Invalid) || !strings.Contains(err.Error(), "launches[1]") {
		t.Errorf("a launch that is a path: %v", err)
	}
	lines := strings.Join(logged(t, folder), "\n")
	for _, want := range []string{
		"launcher:alice done create-enrolments 1 enrolments, launches L-0 to L-0", ", worker:alice, launch L-0",
		"enrolment:alice refused exchange-enrolment /api/v1/enrolments/exchange, forbidden", "launcher:alice asked worker-gone /api/v1/workers/worker-0/gone",
	} {
		if !strings.Contains(lines, want) {
			t.Errorf("%q is not in the log:\n%s", want, lines)
		}
	}
}
