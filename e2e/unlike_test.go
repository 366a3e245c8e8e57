package e2e_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/e2e/unlike"
	"github.com/tandem-tune/tandem/internal/protocol"
)

// newUnlike is a server for workers on unlike machines.
func newUnlike(t *testing.T) (*unlike.Site, context.Context) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	site, err := unlike.Open(unlike.Options{Binary: binary, Script: self, Folder: t.TempDir(), Probe: "always", Tell: func(what string) { t.Log(what) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := site.Close(); err != nil {
			t.Error(err)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	t.Cleanup(cancel)
	return site, ctx
}

// arrive starts a worker, or skips the test where it can't be limited.
func arrive(ctx context.Context, t *testing.T, site *unlike.Site, place unlike.Place) protocol.Worker {
	t.Helper()
	worker, err := site.Start(ctx, place)
	if errors.Is(err, unlike.ErrLimits) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return worker
}

// TestUnlikeMachines runs three real workers under limits of their own, each in a
// network of its own where the machine makes some.
func TestUnlikeMachines(t *testing.T) {
	t.Parallel()
	site, ctx := newUnlike(t)
	cores, types := map[string]int{}, map[string]string{}
	for _, place := range unlike.Places() {
		worker := arrive(ctx, t, site, place)
		machine := worker.Machine
		cores[place.Name] = machine.Cores
		if other, taken := types[machine.Type()]; taken {
			t.Errorf("%s and %s are both of type %s", other, place.Name, machine.Type())
		}
		types[machine.Type()] = place.Name
		if want := place.Limits.Cores; want > 0 && machine.CPUQuota != want {
			t.Errorf("%s has a quota of %g cores, want %g", place.Name, machine.CPUQuota, want)
		}
		if want := place.Limits.MemoryBytes; want > 0 && (machine.MemoryLimitBytes != want || machine.MemoryBytes != want) {
			t.Errorf("%s has a limit of %d bytes of %d, want %d", place.Name, machine.MemoryLimitBytes, machine.MemoryBytes, want)
		}
		probes := 4
		if place.Limits.MemoryBytes > 0 {
			probes = 2 // it is too small for the others
		}
		if len(worker.Probes) != probes {
			t.Errorf("%s tells %d probes, want %d: %+v\n%s", place.Name, len(worker.Probes), probes, worker.Probes, site.Log(place.Name))
		}
		for _, one := range worker.Probes {
			if owned := strings.HasSuffix(one.Method, "as its owner says"); place.BusyWatts > 0 && strings.HasPrefix(one.Method, "estimate") && !owned {
				t.Errorf("%s: joules of %s are by %q", place.Name, one.Workload, one.Method)
			}
		}
	}
	for _, energy := range []float64{0, 1} {
		name := map[float64]string{0: "in-haste", 1: "in-thrift"}[energy]
		id := create(ctx, t, site, unlike.Study{Name: name, Energy: energy, Trials: 6, Epochs: 4, Pause: 50 * time.Millisecond})
		books, err := site.Await(ctx, id, func(unlike.Books) bool { return false })
		if err != nil {
			t.Fatal(err)
		}
		if books.View.Status != protocol.StudyCompleted || len(books.Reports) != 24 {
			t.Errorf("%s is %s with %d epochs", name, books.View.Status, len(books.Reports))
		}
		for _, fault := range site.Faults(books, cores) {
			t.Errorf("%s: %s", name, fault)
		}
		t.Logf("%s: %+v", name, books.ByWorker)
	}
}

// TestATrialMovesToAMachineThatWantsLess starts a trial that is to take little
// energy where there is no other machine, and then a frugal one.
func TestATrialMovesToAMachineThatWantsLess(t *testing.T) {
	t.Parallel()
	site, ctx := newUnlike(t)
	cores := map[string]int{}
	fast, frugal := unlike.Places()[0], unlike.Places()[1]
	fast.Network, frugal.Network = 0, 0 // another test has their networks
	fast.BusyWatts, fast.IdleWatts = 10, 1
	cores[fast.Name] = arrive(ctx, t, site, fast).Machine.Cores
	id := create(ctx, t, site, unlike.Study{Name: "moves", Energy: 1, Trials: 1, Epochs: 5000, Pause: 100 * time.Millisecond})
	if _, err := site.Await(ctx, id, func(b unlike.Books) bool { return len(b.Reports) >= 3 }); err != nil {
		t.Fatal(err)
	}
	cores[frugal.Name] = arrive(ctx, t, site, frugal).Machine.Cores
	if _, err := site.Await(ctx, id, func(b unlike.Books) bool { return b.ByWorker[frugal.Name].Epochs >= 3 }); err != nil {
		t.Fatalf("%v\n%s", err, site.Log(fast.Name))
	}
	if _, err := site.Client.StopStudy(ctx, id); err != nil {
		t.Fatalf("%v\n%s", err, site.Log(frugal.Name))
	}
	books, err := site.Await(ctx, id, func(unlike.Books) bool { return false })
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range site.Faults(books, cores) {
		t.Error(fault)
	}
	if moves := books.Moves(); moves != 1 || len(books.Trials) != 1 {
		t.Errorf("%d trials moved %d times", len(books.Trials), moves)
	}
}

// create creates the study, or skips the test where the server does not place
// trials by their energy.
func create(ctx context.Context, t *testing.T, site *unlike.Site, study unlike.Study) string {
	t.Helper()
	id, err := site.Create(ctx, study)
	if err != nil && study.Energy > 0 && strings.Contains(err.Error(), "placement") {
		t.Skipf("this server does not place trials by their energy: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return id
}
