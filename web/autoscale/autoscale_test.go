package autoscale_test

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/web/audit"
	"github.com/tandem-tune/tandem/web/autoscale"
	"github.com/tandem-tune/tandem/workers/demand"
)

// yard is a pool in simulated time, with its audit log.
type yard struct {
	t         *testing.T
	clock     time.Time
	situation demand.Situation
	advice    protocol.PoolAdvice
	entries   []audit.Entry
	full      error // of the audit log
	fullAt    int   // it takes so many entries, and then one fails; 0: all
	refuses   bool  // somebody else was faster
	service   *autoscale.Service
}

func (y *yard) Situation() demand.Situation { return y.situation }

func (y *yard) Rescale(_ context.Context, changes []demand.Change) ([]demand.Change, error) {
	if y.refuses {
		return nil, nil
	}
	for _, one := range changes {
		y.situation.Past = append(y.situation.Past, one)
		for i, host := range y.situation.Hosts {
			if host.Name == one.Worker && !one.Pretended {
				drains := one.Action == demand.Drain
				y.situation.Hosts[i].Draining, y.situation.Hosts[i].Advised = drains, drains
			}
		}
	}
	return changes, nil
}

func (y *yard) Append(entry audit.Entry) error {
	if y.full != nil {
		return y.full
	}
	if y.fullAt > 0 && len(y.entries) == y.fullAt {
		y.fullAt = 0
		return errFull
	}
	y.entries = append(y.entries, entry)
	return nil
}

var errFull = errors.New("the disk is full")

func newYard(t *testing.T, mode protocol.AutoscaleMode) *yard {
	y := &yard{t: t, clock: time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC), advice: protocol.PoolAdvice{Method: "persistence", Wanted: 1}}
	y.situation.Hosts = []demand.Host{{ID: "1", Name: "a", Capacity: 2}, {ID: "2", Name: "b", Capacity: 2, Trials: 1}}
	y.restart(mode)
	return y
}

func settings(mode protocol.AutoscaleMode) protocol.PoolAutoscale {
	return protocol.PoolAutoscale{Mode: mode, Least: 1, Steady: 2, PauseSeconds: 60}
}

func (y *yard) restart(mode protocol.AutoscaleMode) {
	y.t.Helper()
	var err error
	y.service, err = autoscale.New(autoscale.Options{
		Now: func() time.Time { return y.clock }, Logger: slog.New(slog.DiscardHandler), Audit: y, Studies: y, Settings: settings(mode),
		Advice: func(protocol.PoolAdviceQuery) (protocol.PoolAdvice, error) { return y.advice, nil },
	})
	if err != nil {
		y.t.Fatal(err)
	}
}

// step lets a minute pass.
func (y *yard) step() {
	y.t.Helper()
	y.clock = y.clock.Add(time.Minute)
	if err := y.service.Step(y.t.Context()); err != nil {
		y.t.Fatal(err)
	}
}

func TestAdviceIsActedOnAndAudited(t *testing.T) {
	y := newYard(t, protocol.AutoscaleOn)
	y.step()
	if len(y.situation.Past) != 0 {
		t.Fatalf("at once: %+v", y.situation.Past)
	}
	y.step()
	if !y.situation.Hosts[0].Draining || y.situation.Hosts[1].Draining || len(y.entries) != 1 {
		t.Fatalf("%+v, %+v", y.situation.Hosts, y.entries)
	}
	if one := y.entries[0]; one.Action != "drain-worker" || one.Outcome != audit.Asked || one.Who != "server:autoscale" || one.On != "a" || one.Detail == "" {
		t.Errorf("%+v", one)
	}
	y.advice.Wanted = 3
	y.step()
	if y.situation.Hosts[0].Draining || len(y.entries) != 2 || y.entries[1].Action != "undrain-worker" {
		t.Errorf("%+v, %+v", y.situation.Hosts, y.entries)
	}
	y.advice = protocol.PoolAdvice{Reason: "leave all as it is: the knob needs 240 minutes"}
	y.restart(protocol.AutoscaleOn)
	y.situation.Hosts[0].Draining, y.situation.Hosts[0].Advised = true, true
	for range 5 {
		y.step()
	}
	if last := y.situation.Past[len(y.situation.Past)-1]; y.situation.Hosts[0].Draining || !strings.Contains(last.Reason, "(the knob needs 240 minutes)") {
		t.Errorf("with no advice: %+v", last)
	}
}

func TestADryRunDoesNothing(t *testing.T) {
	y := newYard(t, protocol.AutoscaleDryRun)
	for range 5 {
		y.step()
	}
	if len(y.entries) != 0 || len(y.situation.Past) != 1 || !y.situation.Past[0].Pretended || y.situation.Hosts[0].Draining {
		t.Errorf("%+v, %+v", y.entries, y.situation)
	}
}

func TestDrainsOfAServerThatDrainsNoMoreAreTakenBack(t *testing.T) {
	for _, mode := range []protocol.AutoscaleMode{protocol.AutoscaleOff, protocol.AutoscaleDryRun} {
		y := newYard(t, mode)
		y.situation.Hosts[0].Draining, y.situation.Hosts[0].Advised = true, true
		y.situation.Hosts[1].Draining = true // a person's
		y.step()
		if len(y.situation.Past) != 1 || y.situation.Hosts[0].Draining || !y.situation.Hosts[1].Draining || !strings.Contains(y.situation.Past[0].Reason, "--autoscale "+string(mode)) || len(y.entries) != 1 {
			t.Errorf("%s: %+v, %+v", mode, y.situation, y.entries)
		}
	}
}

func TestWhatCannotBeAuditedIsNotDone(t *testing.T) {
	y := newYard(t, protocol.AutoscaleOn)
	y.step()
	y.full = errors.New("the disk is full")
	y.clock = y.clock.Add(time.Minute)
	if err := y.service.Step(t.Context()); !errors.Is(err, y.full) || y.situation.Hosts[0].Draining {
		t.Errorf("%v, %+v", err, y.situation.Hosts)
	}
	y.full, y.refuses = nil, true
	y.restart(protocol.AutoscaleOn)
	y.step()
	y.step()
	if len(y.entries) != 2 || y.entries[1].Outcome != audit.Failed || y.entries[1].On != "a" {
		t.Errorf("somebody else was faster: %+v", y.entries)
	}
}

func TestSettingsThatCannotBeMeantAreRefused(t *testing.T) {
	for field, spoil := range map[string]func(*protocol.PoolAutoscale){
		"the mode":        func(s *protocol.PoolAutoscale) { s.Mode = "yes" },
		"at most 2":       func(s *protocol.PoolAutoscale) { s.Least, s.Most = 3, 2 },
		"at least -1":     func(s *protocol.PoolAutoscale) { s.Least = -1 },
		"at least NaN":    func(s *protocol.PoolAutoscale) { s.Least = math.NaN() },
		"for 0 minutes":   func(s *protocol.PoolAutoscale) { s.Steady = 0 },
		"a pause of -1 s": func(s *protocol.PoolAutoscale) { s.PauseSeconds = -1 },
	} {
		bad := settings(protocol.AutoscaleOn)
		spoil(&bad)
		if err := autoscale.Check(bad); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// TestABatchThatIsAuditedInPartIsNotDone: the log says of what it has that it was not
// done, or whoever reads it would believe that it was.
func TestABatchThatIsAuditedInPartIsNotDone(t *testing.T) {
	y := newYard(t, protocol.AutoscaleOff)
	for i := range y.situation.Hosts {
		y.situation.Hosts[i].Draining, y.situation.Hosts[i].Advised = true, true
	}
	y.fullAt = 1
	if err := y.service.Step(t.Context()); !errors.Is(err, errFull) || len(y.situation.Past) != 0 {
		t.Errorf("%v, %+v", err, y.situation.Past)
	}
	if len(y.entries) != 2 || y.entries[0].Outcome != audit.Asked || y.entries[1].Outcome != audit.Failed || y.entries[1].On != y.entries[0].On || !strings.Contains(y.entries[1].Detail, "nothing is done") {
		t.Errorf("%+v", y.entries)
	}
}

func TestWhatIsForgottenIsAudited(t *testing.T) {
	y := newYard(t, protocol.AutoscaleOn)
	y.situation.Hosts[0] = demand.Host{ID: "1", Name: "a", Capacity: 2, Silent: true, Draining: true, Advised: true, Drained: y.clock.Add(-31 * 24 * time.Hour)}
	y.step()
	if len(y.entries) != 1 || y.entries[0].Action != "undrain-worker" || y.entries[0].On != "a" || !strings.Contains(y.entries[0].Detail, "30 days") || y.situation.Hosts[0].Advised {
		t.Errorf("%+v, %+v", y.entries, y.situation.Hosts)
	}
}
