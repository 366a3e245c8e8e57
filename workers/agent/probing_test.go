package agent_test

import (
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/workers/agent"
	"github.com/tandem-tune/tandem/workers/agent/probe"
)

// TestProbesAreInTheRegistration starts one worker after the other on a machine.
func TestProbesAreInTheRegistration(t *testing.T) {
	file := filepath.Join(t.TempDir(), "probes.json")
	var runs atomic.Int64
	for _, step := range []struct {
		what      string
		mode      probe.Mode
		others    float64
		runs, has bool
	}{
		{"one that is not to probe", probe.Never, 0, false, false},
		{"the first one, disturbed", probe.Once, 0.9, true, false},
		{"the first one", probe.Once, 0, true, true},
		{"the next one", probe.Once, 0.9, false, true},
		{"one that is to probe anew", probe.Always, 0, true, true},
		{"one that is to probe, disturbed", probe.Always, 0.9, true, true},
		{"one that is not to, then", probe.Never, 0, false, false},
	} {
		s, before := newServer(), runs.Load()
		stop := work(t, s, agent.Options{Probe: step.mode, ProbesFile: file}.WithProbingTask(&runs, step.others))
		s.await(t, "a worker registers", func() bool { return s.registered > 0 })
		stop()
		if ran := runs.Load() > before; ran != step.runs || (len(s.probes) > 0) != step.has {
			t.Errorf("%s: its tasks ran: %v, it told %+v", step.what, ran, s.probes)
		}
		for _, one := range s.probes {
			if one.Workload != "small" || !(one.Seconds > 0) || !(one.Joules > 0) || one.Method == "" {
				t.Errorf("%s: got %+v", step.what, one)
			}
		}
	}
	if _, err := agent.New(agent.Options{Server: newServer(), Scratch: t.TempDir(), Probe: "often"}); err == nil {
		t.Error("probing often is taken")
	}
}

// Whoever has no token that runs trials is told so before the machine is probed.
func TestTheTokenIsTriedBeforeTheMachineIsProbed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		identity protocol.Identity
		denies   error
		want     problem.Code
	}{
		"a wrong token":    {denies: problem.New(problem.Unauthorized, "the token is not valid"), want: problem.Unauthorized},
		"a viewer's token": {identity: protocol.Identity{Scope: "viewer"}, want: problem.Forbidden},
		"a link":           {identity: protocol.Identity{Scope: "link"}, want: problem.Forbidden},
	} {
		var runs atomic.Int64
		s := newServer()
		s.identity, s.denies = c.identity, c.denies
		worker, err := agent.New(agent.Options{
			Server: s, Scratch: t.TempDir(), Probe: probe.Always, ProbesFile: filepath.Join(t.TempDir(), "probes.json"), Logger: slog.New(slog.DiscardHandler),
		}.WithProbingTask(&runs, 0))
		if err != nil {
			t.Fatal(err)
		}
		if err := worker.Run(t.Context()); !problem.Is(err, c.want) || runs.Load() != 0 || s.registered != 0 {
			t.Errorf("%s: %v, after %d runs of the probing task and %d registrations", name, err, runs.Load(), s.registered)
		}
	}
}
