package study

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/allocator"
	"github.com/tandem-tune/tandem/workers/placement"
	"github.com/tandem-tune/tandem/workers/pool"
	"github.com/tandem-tune/tandem/workers/scheduler"
)

const (
	// rescheduleEvery is how often the machines of running trials are reconsidered
	// (x in Rocha, section 3.2).
	rescheduleEvery = 15 * time.Second
	// mostMigrations is how often one trial moves at most.
	mostMigrations = 3
	// carried is how fast a checkpoint is taken to be written, carried over and
	// read, in bytes a second.
	carried = 20e6
)

// reschedule decides which running trials move to a machine that waits (Rocha,
// algorithm 3). They do so at the end of an epoch, by their checkpoint.
func (s *Service) reschedule(ctx context.Context, now time.Time) {
	if !s.planning.rescheduleDue(now) {
		return
	}
	leases := s.allocator.Prune()
	if len(leases) == 0 {
		return
	}
	stands := s.allocator.Stands("", Caller{})
	waits := map[string]bool{}
	for _, one := range stands {
		waits[one.Worker] = true
	}
	hosts := slices.DeleteFunc(s.allocator.Hosts(leases), func(one allocator.Stand) bool { return waits[one.Worker] })
	if len(scheduler.Types(slices.Concat(stands, hosts))) < 2 {
		return
	}
	s.decideMoves(ctx, leases, stands, hosts)
}

func (s *Service) decideMoves(ctx context.Context, leases []pool.Lease, stands, hosts []allocator.Stand) {
	known := outlooks{}
	all := slices.Concat(stands, hosts)
	free, promised := s.promised(stands)
	var pending []placement.Task
	offered, _ := s.offers(ctx, stands)
	for i, one := range offered {
		pending = append(pending, free.task(&one, one.name(i)))
	}
	machines := make([]placement.Machine, len(all))
	for i, one := range all {
		machines[i] = placement.Machine{Name: one.Worker, Type: one.Machine}
		if i < len(stands) {
			machines[i].Free = placement.Resources{Cores: max(0, one.Trials-promised[one.Worker]), GPUs: len(free[i].GPUs)}
		}
	}
	q := question{Field: scheduler.FieldOf(stands), all: all, types: scheduler.Types(all), probes: s.allocator.Probes()}
	var running []placement.Running
	var movers []mover
	offers := map[string]offer{}
	for _, lease := range leases {
		if one, movable := s.movable(ctx, lease, q); movable {
			one.Task, offers[one.Name] = free.task(&one.offer, one.Name), one.offer
			running, movers = append(running, one.Running), append(movers, one)
			known[one.Name] = one.sights
		}
	}
	byName := map[string]allocator.Stand{}
	for _, one := range all {
		byName[one.Worker] = one
	}
	for _, one := range placement.Reschedule(running, pending, machines, known, placement.Settings{}) {
		s.toMove(one, byName[one.From], byName[one.To], offers[one.Task])
	}
	s.decideExchanges(movers, machines, known, byName)
}

// promised is what is free of the workers beside the trials that are on their way to
// them, and how many of these there are to each.
func (s *Service) promised(stands []allocator.Stand) (free rooms, trials map[string]int) {
	free, trials = roomsOf(stands), map[string]int{}
	promises := s.allocator.Promises()
	for at, stand := range stands {
		for _, need := range promises[stand.Worker] {
			free[at] = free[at].With(need)
			trials[stand.Worker]++
		}
	}
	return free, trials
}

// movable is a running trial that could go on elsewhere, as what it would be there,
// with what all its epochs should take on each type; false for one that has no fresh
// checkpoint, has moved often enough, is about to, or is trained for an amount of time
// or energy. Where it goes it may have what it gives back.
func (s *Service) movable(ctx context.Context, lease pool.Lease, q question) (mover, bool) {
	id, number := studyOf(lease.Trial)
	r := s.inMemory(id)
	if r == nil || s.allocator.Migrating(lease.Trial) != "" {
		return mover{}, false
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.stale || r.study.Status != protocol.StudyRunning || number >= len(r.trials) || len(r.study.Definition.Command) == 0 {
		return mover{}, false
	}
	t := r.trials[number]
	if t.LeaseEpoch != lease.Epoch || t.State != trial.Running || t.Budget.Measured() || t.MeasuredAt(t.Rung) ||
		len(t.Migrations) >= mostMigrations || t.Checkpoint == nil || t.Checkpoint.Rung != t.Rung || t.LastEpoch-t.Checkpoint.Epoch > 1 {
		return mover{}, false
	}
	known := s.outlook(ctx, r)
	sights := sights(known, known.encode(t.Configuration), t.Budget.DataFraction, q)
	worker, _, _ := s.allocator.Worker(lease.Worker)
	here := sights[worker.Type]
	for machine, one := range sights {
		one.Seconds *= float64(t.Budget.Epochs)
		one.Joules *= float64(t.Budget.Epochs)
		sights[machine] = one
	}
	may, needs := s.mayRun(r, &t, q.Field, lease.Amount())
	return mover{placement.Running{
		Task: placement.Task{Name: string(t.ID)}, Machine: lease.Worker,
		Remaining: float64(t.Budget.Epochs-t.LastEpoch) / float64(t.Budget.Epochs), Move: known.moving(t, here),
	}, lease, r.offered(may, needs, q.Stands), sights, here.Seconds, s.allocator.MayGo(s.ask(r, nil), q.all, lease.Amount())}, true
}

// moving is what it costs to take a trial elsewhere: to carry its checkpoint over,
// and to start its command again, at the power that its training has.
func (o *outlook) moving(t trial.Trial, here sight) placement.Prediction {
	setup := o.setup
	if setup == 0 {
		setup = usualSetup
	}
	cost := placement.Prediction{Seconds: setup + float64(t.Checkpoint.Bytes)/carried}
	if here.Joules > 0 {
		cost.Joules = cost.Seconds * here.Joules / here.Seconds
	}
	return cost
}

// toMove notes that a trial is to move as soon as its worker reports.
func (s *Service) toMove(m placement.Migration, from, to allocator.Stand, as offer) {
	lease, _, held := s.allocator.Leased(trial.ID(m.Task))
	if !held {
		return
	}
	one := allocator.Migration{Trial: lease.Trial, Lease: lease.Epoch, Worker: m.To, Need: as.needs[to.Room.Machine], Record: recordOf(lease, m, from, to)}
	one.Record.Why = fmt.Sprintf("moves from %s (%s) to %s (%s): what is left should take %s there with the move, and %s here (an estimate): score %.2f against %.2f at H=%g",
		from.Host, from.Machine, to.Host, to.Machine, amountsOf(one.Record.Goes), amountsOf(one.Record.Stays), m.There, m.Here, as.energy)
	s.options.Logger.Info("a trial is to move", "trial", m.Task, "why", one.Record.Why)
	s.allocator.Migrations.Start(one)
}

func recordOf(lease pool.Lease, m placement.Migration, from, to allocator.Stand) trial.Migration {
	return trial.Migration{
		LeaseEpoch: lease.Epoch, From: from.Host, FromType: from.Machine, To: to.Host, ToType: to.Machine,
		Stays: *estimateOf(m.Stays), Goes: *estimateOf(m.Goes), Here: trial.Float(m.Here), There: trial.Float(m.There),
	}
}

// orMove has the holder of a trial that has reported give it back for another
// machine, if that waits still and may have it, unless it is told something else.
// That it was told is stored with the transaction; without one, for a report that was
// accepted before, nobody is told who had not been.
func (s *Service) orMove(r *session, t trial.Trial, told protocol.Directive, tx *transaction) protocol.Directive {
	if told.Action != protocol.Continue || s.allocator.Migrating(t.ID) == "" {
		return told
	}
	departure := s.allocator.Depart(s.askFor(r, t.ID), t.ID, t.LeaseEpoch, tx != nil)
	if departure.Entry != nil {
		tx.change.Pool = append(tx.change.Pool, *departure.Entry)
	}
	if departure.After != nil {
		tx.then(departure.After)
	}
	if departure.Pause {
		return protocol.Directive{Action: protocol.Pause, Reason: departure.Why}
	}
	return told
}

// askFor is the ask for the trial as the study has it now.
func (s *Service) askFor(r *session, id trial.ID) allocator.Ask {
	if _, number := studyOf(id); number < len(r.trials) {
		return s.ask(r, &r.trials[number])
	}
	return s.ask(r, nil)
}

// leaving notes the migration for which a trial is given back, if it is for one, and
// whether the other worker waits still.
func (s *Service) leaving(tx *transaction, t trial.Trial) {
	if s.allocator.Migrating(t.ID) == "" {
		return
	}
	one, awaited := s.allocator.Leaving(s.askFor(tx.session, t.ID), t.ID, t.LeaseEpoch)
	if one != nil {
		tx.migration, tx.awaited = one, awaited
		tx.then(func() { s.allocator.Left(one, awaited, tx.now) })
	}
}

// depart notes on a trial that is given back that it moves, and keeps it for its
// new machine for a while.
func (tx *transaction) depart(t trial.Trial, reason string) (trial.Trial, string) {
	if tx.migration == nil {
		return t, reason
	}
	record := tx.migration.Record
	record.At = tx.now
	t.Migrations = append(slices.Clone(t.Migrations), record)
	if !tx.awaited {
		if entry := tx.migration.Cancelled(); entry != nil {
			tx.change.Pool = append(tx.change.Pool, *entry)
		}
		return t, record.Why + "; that has other work by now"
	}
	tx.held = true
	return t, fmt.Sprintf("%s; kept for it for up to %g s", record.Why, allocator.HoldSpan.Seconds())
}

// moved adds an epoch to what a trial's last move really came to.
func moved(t trial.Trial, report trial.Report) trial.Trial {
	last := len(t.Migrations) - 1
	if last < 0 || report.LeaseEpoch <= t.Migrations[last].LeaseEpoch {
		return t
	}
	t.Migrations = slices.Clone(t.Migrations)
	one := &t.Migrations[last]
	one.Epochs++
	one.Seconds += report.Seconds
	one.Energy = one.Energy.Plus(report.Energy)
	return t
}

// studyOf is the study and the number of a trial.
func studyOf(id trial.ID) (study string, number int) {
	study, _, _ = strings.Cut(string(id), "-")
	number, _ = id.Number()
	return study, number
}

// rescheduleDue reports whether they are to be reconsidered now.
func (p *planning) rescheduleDue(now time.Time) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if now.Sub(p.rescheduled) < rescheduleEvery {
		return false
	}
	p.rescheduled = now
	return true
}
