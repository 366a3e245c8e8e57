package knob

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/profiler"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/study/system"
	"github.com/tandem-tune/tandem/workers/agent/clock"
	"github.com/tandem-tune/tandem/workers/agent/gpu"
)

// Budget is what the worker's owner lets sprints take (DiAS; Rocha's
// thesis, section 4.4.1: a job is accelerated until its end or until the budget
// is spent, which is replenished all the time). The zero value allows none.
type Budget struct {
	// Joules is how much the account holds; it is full at first.
	Joules float64
	// Watts is what it is replenished by, up to Joules.
	Watts float64
	// ExtraWatts is what the machine takes more while a trial sprints, by its
	// owner's estimate: what the account is charged.
	ExtraWatts float64
}

func (b Budget) allowed() bool { return b.Joules > 0 && b.ExtraWatts > 0 }

// Check names what is wrong with the budget.
func (b Budget) Check() error {
	for name, value := range map[string]float64{"joules": b.Joules, "watts": b.Watts, "extra watts": b.ExtraWatts} {
		if !(value >= 0 && value <= 1e12) {
			return fmt.Errorf("sprints of %g %s: it must be a number from 0 to 1e12", value, name)
		}
	}
	if (b.Joules > 0) != (b.ExtraWatts > 0) {
		return fmt.Errorf("sprints of %g J that take %g W more: give both, above 0, or neither", b.Joules, b.ExtraWatts)
	}
	return nil
}

// sprintLook is how closely the account is kept.
const sprintLook = 200 * time.Millisecond

// Account is the account of an agent. It is safe for concurrent use.
type Account struct {
	budget Budget

	mutex   sync.Mutex
	joules  float64
	at      clock.Moment
	running int
}

func NewAccount(budget Budget, at clock.Moment) *Account {
	return &Account{budget: budget, joules: budget.Joules, at: at}
}

// settle brings the account up to the moment. The lock is held.
func (s *Account) settle(at clock.Moment) {
	span := time.Duration(at - s.at).Seconds()
	s.joules = min(s.budget.Joules, max(0, s.joules+span*(s.budget.Watts-float64(s.running)*s.budget.ExtraWatts)))
	s.at = at
}

// left is what the account holds.
func (s *Account) left(at clock.Moment) float64 {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.settle(at)
	return s.joules
}

// begin charges a sprint from now on; false if nothing is left for one.
func (s *Account) begin(at clock.Moment) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.settle(at)
	if s.joules <= 0 {
		return false
	}
	s.running++
	return true
}

// end charges it no longer.
func (s *Account) end(at clock.Moment) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.settle(at)
	s.running--
}

// Balance is what the server is told; nil where the owner allows no sprint.
func (s *Account) Balance(at clock.Moment) *protocol.SprintAccount {
	if !s.budget.allowed() {
		return nil
	}
	return &protocol.SprintAccount{Joules: s.left(at), Of: s.budget.Joules, Watts: s.budget.Watts, ExtraWatts: s.budget.ExtraWatts}
}

// Sprint is the sprinting of one command.
type Sprint struct {
	Account  *Account
	Controls *Controls
	// Wanted says that the command's study wants it to sprint, After a time.
	Wanted bool
	After  time.Duration
	// Runner returns what the knobs have to know of the command.
	Runner func() *Subject
	// Note adds a line to the trial's log.
	Note func(format string, args ...any)

	triggered atomic.Bool
	sprinted  stopwatch // since it was taken last
}

// Trigger says whether a trial of a higher priority waits for the machine.
func (s *Sprint) Trigger(waits bool) { s.triggered.Store(waits) }

// Take is for how long the command sprinted since this was last asked.
func (s *Sprint) Take(at clock.Moment) time.Duration { return s.sprinted.take(at) }

// Begin has the command sprint when its study wants that, or while a trial of a
// higher priority waits for the machine. The returned function ends it.
func (s *Sprint) Begin(ctx context.Context) (end func()) {
	if !s.Account.budget.allowed() {
		if s.Wanted {
			s.Note("sprint: none: this worker's owner allows none (--sprint-joules)")
		}
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var over sync.WaitGroup
	over.Go(func() { s.run(ctx, clock.Now()) })
	return func() {
		cancel()
		over.Wait()
	}
}

// run sprints whenever that is due, until the command has ended or the account
// was empty once.
func (s *Sprint) run(ctx context.Context, began clock.Moment) {
	for {
		why := s.due(began)
		if why != "" && s.once(ctx, began, why) {
			return
		}
		if clock.Sleep(ctx, sprintLook); ctx.Err() != nil {
			return
		}
	}
}

// due says why the command sprints now; it does not if that is empty.
func (s *Sprint) due(began clock.Moment) string {
	switch {
	case s.Wanted && time.Duration(clock.Now()-began) >= s.After:
		return fmt.Sprintf("after %s", s.After)
	case s.triggered.Load():
		return "as a trial of a higher priority waits for this machine"
	}
	return ""
}

// once sprints as long as that is due; over says that there will be no other.
func (s *Sprint) once(ctx context.Context, began clock.Moment, why string) (over bool) {
	account, runner := s.Account, s.Runner()
	if !account.begin(clock.Now()) {
		s.Note("sprint: none: the account of %g J is empty", account.budget.Joules)
		return true
	}
	defer func() { account.end(clock.Now()) }()
	from := clock.Now()
	s.sprinted.turn(true, from)
	names, err := s.Controls.speedUp(runner)
	if err != nil {
		s.sprinted.turn(false, clock.Now())
		s.sprinted.take(clock.Now()) // it was none
		s.Note("sprint: none: %s", strings.ReplaceAll(err.Error(), "\n", "; "))
		return true
	}
	defer func() {
		for _, name := range names {
			s.Controls.devices.release(runner, name)
		}
	}()
	defer func() { s.sprinted.turn(false, clock.Now()) }()
	s.Note("sprint: %s: %s at the highest", why, strings.Join(names, ", "))
	for account.left(clock.Now()) > 0 {
		if clock.Sleep(ctx, sprintLook); ctx.Err() != nil {
			return true
		}
		if s.due(began) == "" {
			s.Note("sprint: ended after %.1f s: nothing of a higher priority waits any more", time.Duration(clock.Now()-from).Seconds())
			return false
		}
	}
	s.Note("sprint: ended after %.1f s: the account of %g J is empty", time.Duration(clock.Now()-from).Seconds(), account.budget.Joules)
	return true
}

// sprintKnobs set what makes a command faster to its highest value.
func (c *Controls) sprintKnobs() []*deviceKnob {
	allowed := allowedCores()
	frequency, governor := cpuSetting{root: c.root, file: frequencyFile}, cpuSetting{root: c.root, file: governorFile}
	return []*deviceKnob{
		{name: system.GPUPowerWatts, devices: c.devices, places: gpuPlaces(c.gpus, mostPower)},
		{name: system.CPUFrequencyMHz, devices: c.devices, places: frequency.places(allowed, mostFrequency)},
		{name: system.CPUGovernor, devices: c.devices, places: governor.places(allowed, fastestGovernor)},
	}
}

func mostPower(control gpu.Control, device int, _ space.Value) (string, error) {
	_, high, err := control.PowerBounds(device)
	return strconv.FormatUint(uint64(high), 10), err
}

func mostFrequency(policy string, _ space.Value) (string, error) {
	khz, err := readWhole(filepath.Join(policy, "cpuinfo_max_freq"))
	return strconv.Itoa(khz), err
}

// fastestGovernor keeps the highest frequency all the time.
func fastestGovernor(policy string, _ space.Value) (string, error) {
	const fastest = "performance"
	content, err := os.ReadFile(filepath.Join(policy, "scaling_available_governors"))
	if known := strings.Fields(string(content)); err == nil && !slices.Contains(known, fastest) {
		return "", fmt.Errorf("the kernel has no governor %q here", fastest)
	}
	return fastest, nil
}

// highest reports whether the places have these values already.
func (d *devices) highest(knob string, wanted map[string]string) bool {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	for where, value := range wanted {
		present, err := d.accesses[knob].read(where)
		if err != nil || !d.accesses[knob].same(value, present) {
			return false
		}
	}
	return true
}

// errHighest is of a machine that cannot be made faster.
var errHighest = errors.New("it is at its highest already")

// speedUp sets all that there is to its highest value for the subject. The error
// says of each knob why not; it is nil if one was set.
func (c *Controls) speedUp(s *Subject) (names []string, err error) {
	for _, k := range c.sprintKnobs() {
		wanted, failed := k.places(s, space.Value{})
		if failed == nil && c.devices.highest(k.name, wanted) {
			failed = errHighest
		}
		if failed == nil {
			failed = c.devices.set(s, k.name, wanted)
		}
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", k.name, failed))
			continue
		}
		names = append(names, k.name)
	}
	if len(names) > 0 {
		return names, nil
	}
	return nil, err
}

// stopwatch counts for how long something was so. It is safe for concurrent use.
type stopwatch struct {
	mutex sync.Mutex
	on    bool
	since clock.Moment
	sum   time.Duration
}

// turn begins or ends it.
func (s *stopwatch) turn(on bool, at clock.Moment) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.count(at)
	s.on = on
}

// take is how long it was so since it was last asked.
func (s *stopwatch) take(at clock.Moment) time.Duration {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.count(at)
	sum := s.sum
	s.sum = 0
	return sum
}

func (s *stopwatch) count(at clock.Moment) {
	if s.on {
		s.sum += max(0, time.Duration(at-s.since))
	}
	s.since = max(s.since, at)
}

// Sprinting says whether commands can be made faster on this machine, or why
// not. root is as for [Knobs]. Nothing is changed.
func Sprinting(root string) profiler.Capability {
	c := New(Options{Root: root, OpenGPUs: gpu.Open})
	defer c.Close()
	one := profiler.Capability{Name: "sprint"}
	var names []string
	var reasons error
	for _, k := range c.sprintKnobs() {
		if _, err := k.available(); err != nil {
			reasons = errors.Join(reasons, fmt.Errorf("%s: %w", k.name, err))
			continue
		}
		names = append(names, k.name)
	}
	if len(names) == 0 {
		one.Reason = strings.ReplaceAll(reasons.Error(), "\n", "; ")
		return one
	}
	one.Available, one.Detail = true, "trials can be sped up by "+strings.Join(names, ", ")+" where tandem worker allows it (--sprint-joules)"
	return one
}
