// Package autoscale acts on the forecast of the demand: it drains workers that are
// not wanted through the server's own drain, and takes such drains back when they
// are (docs/forecasting.md).
//
// What to do is decided by [demand.Scaler], and kept by the studies' service; this
// package asks the one, tells the other, and writes the audit log. Its one
// invariant: what cannot be written to the audit log is not done.
package autoscale

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/web/audit"
	"github.com/tandem-tune/tandem/workers/demand"
)

// Studies is who drains.
type Studies interface {
	// Situation is how the workers are, and what was done before.
	Situation() demand.Situation
	// Rescale does and keeps the changes, and returns those that it kept.
	Rescale(ctx context.Context, changes []demand.Change) ([]demand.Change, error)
}

// Audit takes an entry of the audit log. When it returns nil, the entry is kept.
type Audit interface {
	Append(entry audit.Entry) error
}

// Options make a Service.
type Options struct {
	Now     func() time.Time
	Logger  *slog.Logger
	Audit   Audit
	Studies Studies
	// Advice says how many GPUs should be awake.
	Advice func(protocol.PoolAdviceQuery) (protocol.PoolAdvice, error)
	// Settings are the mode, the bounds and the patience; its changes are not read.
	Settings protocol.PoolAutoscale
	// Delay is how long a machine takes to wake up.
	Delay time.Duration
}

// Check says which of the settings cannot be meant.
func Check(settings protocol.PoolAutoscale) error {
	switch {
	case settings.Mode != protocol.AutoscaleOff && settings.Mode != protocol.AutoscaleDryRun && settings.Mode != protocol.AutoscaleOn:
		return fmt.Errorf("the mode %q must be off, dry-run or on", settings.Mode)
	case !(settings.Least >= 0) || !(settings.Most >= 0) || math.IsInf(settings.Least+settings.Most, 0) || settings.Most > 0 && settings.Most < settings.Least:
		return fmt.Errorf("at least %g and at most %g GPUs: neither may be negative or without end, and the most, unless it is 0 (no bound), not below the least", settings.Least, settings.Most)
	case settings.Steady < 1 || settings.PauseSeconds < 0:
		return fmt.Errorf("steady for %d minutes, and a pause of %g s: the first must be at least 1, the second not negative", settings.Steady, settings.PauseSeconds)
	}
	return nil
}

// every is how often it decides.
const every = time.Minute

// Service acts on advice. One goroutine uses it.
type Service struct {
	options Options
	scaler  demand.Scaler
}

// New makes a Service. The error is of settings that cannot be meant.
func New(options Options) (*Service, error) {
	settings := options.Settings
	if err := Check(settings); err != nil {
		return nil, err
	}
	return &Service{options: options, scaler: demand.Scaler{
		Least: settings.Least, Most: settings.Most, Delay: options.Delay, Pretend: settings.Mode == protocol.AutoscaleDryRun,
		Pace: demand.Pace{Steady: settings.Steady, Pause: time.Duration(settings.PauseSeconds * float64(time.Second))},
	}}, nil
}

// Run decides every minute until the context ends.
func (s *Service) Run(ctx context.Context) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		if err := s.Step(ctx); err != nil && ctx.Err() == nil {
			s.options.Logger.Error("workers could not be drained by advice, or taken back", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// Step decides once, and does it. An error leaves things as they are: the next step
// decides again.
func (s *Service) Step(ctx context.Context) error {
	now, situation := s.options.Now(), s.options.Studies.Situation()
	changes := s.released(now, situation)
	if s.options.Settings.Mode != protocol.AutoscaleOff && len(changes) == 0 {
		advice, err := s.options.Advice(protocol.PoolAdviceQuery{})
		if err != nil {
			return fmt.Errorf("ask for advice: %w", err)
		}
		situation.Wanted = advice.Wanted
		if advice.Method == "" {
			situation.Unknown = strings.TrimPrefix(advice.Reason, "leave all as it is: ")
		}
		changes = s.scaler.Decide(now, situation)
	}
	return s.apply(ctx, changes)
}

// released takes back all drains by advice, and nothing where the server drains by
// itself.
func (s *Service) released(now time.Time, situation demand.Situation) []demand.Change {
	if s.options.Settings.Mode == protocol.AutoscaleOn {
		return nil
	}
	var changes []demand.Change
	done := make(map[[2]string]bool)
	for _, one := range situation.Hosts {
		if key := [2]string{one.Name, one.Holder}; one.Advised && !done[key] {
			done[key] = true
			changes = append(changes, demand.Change{
				At: now.UTC(), Worker: one.Name, Holder: one.Holder, Action: demand.Wake, Capacity: one.Capacity, Asleep: one.Silent,
				Reason: fmt.Sprintf("the server does not drain workers by itself any more (--autoscale %s)", s.options.Settings.Mode),
			})
		}
	}
	return changes
}

// apply notes the changes in the audit log, and does them.
func (s *Service) apply(ctx context.Context, changes []demand.Change) error {
	for i, one := range changes {
		if actionOf(one) == "" {
			continue
		}
		if err := s.options.Audit.Append(entryOf(one, audit.Asked, "")); err != nil {
			err = fmt.Errorf("the audit log takes no entry, so nothing is done: %w", err)
			return errors.Join(err, s.failed(changes[:i], err.Error()))
		}
	}
	kept, err := s.options.Studies.Rescale(ctx, changes)
	for _, one := range kept {
		s.options.Logger.Info("autoscale", "worker", one.Worker, "action", one.Action, "pretended", one.Pretended, "reason", one.Reason)
	}
	if err != nil {
		return errors.Join(err, s.failed(without(changes, kept), err.Error()))
	}
	return s.failed(without(changes, kept), "somebody else had changed it meanwhile")
}

// failed notes that changes were not done.
func (s *Service) failed(changes []demand.Change, why string) (err error) {
	for _, one := range changes {
		if actionOf(one) != "" {
			err = errors.Join(err, s.options.Audit.Append(entryOf(one, audit.Failed, why)))
		}
	}
	return err
}

// without are the changes but for those that were kept, which are in their order.
func without(changes, kept []demand.Change) []demand.Change {
	var rest []demand.Change
	for _, one := range changes {
		if len(kept) > 0 && kept[0] == one {
			kept = kept[1:]
			continue
		}
		rest = append(rest, one)
	}
	return rest
}

// actionOf is a change's name in the audit log, that of the route that does the
// same for a person; empty where nothing is done.
func actionOf(change demand.Change) string {
	switch {
	case change.Pretended:
	case change.Action == demand.Drain:
		return "drain-worker"
	case change.Action == demand.Wake, change.Action == demand.Forgotten:
		return "undrain-worker"
	}
	return ""
}

func entryOf(change demand.Change, outcome audit.Outcome, why string) audit.Entry {
	if why == "" {
		why = change.Reason
	}
	return audit.Entry{Action: actionOf(change), Outcome: outcome, Who: "server:autoscale", On: change.Worker, Detail: why}
}
