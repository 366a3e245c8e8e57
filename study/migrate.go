package study

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/placement"
	"github.com/tandem-tune/tandem/workers/pool"
)

const (
	// rescheduleEvery is how often the machines of running trials are reconsidered
	// (x in Rocha, section 3.2).
	rescheduleEvery = 15 * time.Second
	// keptSpan is how long a trial that moves is kept for its new machine.
	keptSpan = 30 * time.Second
	// mostMigrations is how often one trial moves at most.
	mostMigrations = 3
	// carried is how fast a checkpoint is taken to be written, carried over and
	// read, in bytes a second.
	carried = 20e6
)

// move is a running trial that is to go to another machine.
type move struct {
	trial  trial.ID
	lease  trial.LeaseEpoch
	worker string // where it goes
	// partner is what it changes places with, if it does, and from where it is then;
	// wait is how long that may take at most, of the one that goes first.
	partner *move
	from    string
	wait    time.Duration
	need    pool.Need
	record  trial.Migration
	// told says that its worker has heard of it.
	told bool
}

// reschedule decides which running trials move to a machine that waits (Rocha,
// algorithm 3). They do so at the end of an epoch, by their checkpoint.
func (s *Service) reschedule(ctx context.Context, now time.Time) {
	s.poolMutex.Lock()
	due := now.Sub(s.rescheduled) >= rescheduleEvery
	var leases []pool.Lease
	if due {
		s.rescheduled = now
		leases = s.leases.All()
		maps.DeleteFunc(s.moves, func(id trial.ID, one *move) bool { return !s.leases.Has(id, one.lease) })
	}
	s.poolMutex.Unlock()
	if !due || len(leases) == 0 {
		return
	}
	stands := s.standing("", Caller{})
	hosts := s.hostsOf(leases, stands)
	if len(typesOf(slices.Concat(stands, hosts))) < 2 {
		return
	}
	s.decideMoves(ctx, leases, stands, hosts)
}

// hostsOf are the workers that have leases and do not wait.
func (s *Service) hostsOf(leases []pool.Lease, stands []stand) []stand {
	s.poolMutex.Lock()
	defer s.poolMutex.Unlock()
	known := map[string]bool{}
	for _, one := range stands {
		known[one.worker] = true
	}
	var hosts []stand
	for _, lease := range leases {
		member, registered := s.workers.Member(lease.Worker)
		if known[lease.Worker] || !registered {
			continue
		}
		known[lease.Worker] = true
		hosts = append(hosts, stand{worker: lease.Worker, host: member.Registration.Name, machine: member.Registration.Machine.Type()})
	}
	return hosts
}

func (s *Service) decideMoves(ctx context.Context, leases []pool.Lease, stands, hosts []stand) {
	known := outlooks{}
	all := slices.Concat(stands, hosts)
	free, promised := s.promised(stands)
	var pending []placement.Task
	for i, one := range s.offers(ctx, stands) {
		pending = append(pending, free.task(&one, one.name(i)))
	}
	machines := make([]placement.Machine, len(all))
	for i, one := range all {
		machines[i] = placement.Machine{Name: one.worker, Type: one.machine}
		if i < len(stands) {
			machines[i].Free = placement.Resources{Cores: max(0, one.trials-promised[one.worker]), GPUs: len(free[i].GPUs)}
		}
	}
	q := question{field: fieldOf(stands), all: all, types: typesOf(all), probes: s.probesByType()}
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
	byName := map[string]stand{}
	for _, one := range all {
		byName[one.worker] = one
	}
	for _, one := range placement.Reschedule(running, pending, machines, known, placement.Settings{}) {
		s.toMove(one, byName[one.From], byName[one.To], offers[one.Task])
	}
	s.decideExchanges(movers, machines, known, byName)
}

// promised is what is free of the workers beside the trials that are on their way to
// them, and how many of these there are to each.
func (s *Service) promised(stands []stand) (free rooms, trials map[string]int) {
	free, trials = roomsOf(stands), map[string]int{}
	s.poolMutex.Lock()
	defer s.poolMutex.Unlock()
	coming := func(worker string, need pool.Need) {
		trials[worker]++
		if at := slices.IndexFunc(stands, func(one stand) bool { return one.worker == worker }); at >= 0 {
			free[at] = free[at].With(need)
		}
	}
	for _, one := range s.moves {
		coming(one.worker, one.need)
	}
	for _, one := range s.leases.Kept() {
		coming(one.Worker, one.Needs())
	}
	return free, trials
}

// movable is a running trial that could go on elsewhere, as what it would be there,
// with what all its epochs should take on each type; false for one that has no fresh
// checkpoint, has moved often enough, is about to, or is trained for an amount of time
// or energy. Where it goes it may have what it gives back.
func (s *Service) movable(ctx context.Context, lease pool.Lease, q question) (mover, bool) {
	id, number := studyOf(lease.Trial)
	s.mutex.Lock()
	r, loaded := s.sessions[id]
	s.mutex.Unlock()
	s.poolMutex.Lock()
	_, moves := s.moves[lease.Trial]
	s.poolMutex.Unlock()
	if !loaded || moves {
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
	here := sights[s.machineOf(lease.Worker)]
	for machine, one := range sights {
		one.Seconds *= float64(t.Budget.Epochs)
		one.Joules *= float64(t.Budget.Epochs)
		sights[machine] = one
	}
	may, needs := s.mayRun(r, &t, q.field, lease.Amount())
	return mover{placement.Running{
		Task: placement.Task{Name: string(t.ID)}, Machine: lease.Worker,
		Remaining: float64(t.Budget.Epochs-t.LastEpoch) / float64(t.Budget.Epochs), Move: known.moving(t, here),
	}, lease, r.offered(may, needs, q.stands), sights, here.Seconds, s.mayGo(r, lease, q.all)}, true
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
func (s *Service) toMove(m placement.Migration, from, to stand, as offer) {
	lease, held := s.leaseOut(trial.ID(m.Task))
	if !held {
		return
	}
	one := &move{trial: lease.Trial, lease: lease.Epoch, worker: m.To, need: as.needs[to.room.Machine], record: recordOf(lease, m, from, to)}
	one.record.Why = fmt.Sprintf("moves from %s (%s) to %s (%s): what is left should take %s there with the move, and %s here (an estimate): score %.2f against %.2f at H=%g",
		from.host, from.machine, to.host, to.machine, amountsOf(one.record.Goes), amountsOf(one.record.Stays), m.There, m.Here, as.energy)
	s.options.Logger.Info("a trial is to move", "trial", m.Task, "why", one.record.Why)
	s.poolMutex.Lock()
	defer s.poolMutex.Unlock()
	s.moves[one.trial] = one
}

func recordOf(lease pool.Lease, m placement.Migration, from, to stand) trial.Migration {
	return trial.Migration{
		LeaseEpoch: lease.Epoch, From: from.host, FromType: from.machine, To: to.host, ToType: to.machine,
		Stays: *estimateOf(m.Stays), Goes: *estimateOf(m.Goes), Here: trial.Float(m.Here), There: trial.Float(m.There),
	}
}

func (s *Service) leaseOut(id trial.ID) (pool.Lease, bool) {
	s.poolMutex.Lock()
	defer s.poolMutex.Unlock()
	return s.leases.Lease(id)
}

// receives reports whether the worker waits and could take the trial that is to move
// now: since that was decided it may have been drained or reserved, or its GPUs given
// away. The study's lock and the pool's are held.
func (s *Service) receives(r *session, one *move) bool {
	if one.partner != nil {
		return s.mayLeave(one)
	}
	worker := one.worker
	lease, _ := s.leases.Lease(one.trial)
	w, waits := s.line.waiting[worker]
	member, known := s.workers.Member(worker)
	if !waits || !known || !w.caller.sees(r.id, r.owner) || !suited(r, member) {
		return false
	}
	room := s.lockedSite(worker, "").room
	var moves *trial.Trial
	if _, number := studyOf(one.trial); number < len(r.trials) {
		moves = &r.trials[number]
	}
	need := s.needOf(r, moves, room.Machine)
	return s.withheld(r, member, need, lease.Amount()).reason == "" && room.Fits(need)
}

// orMove has the holder of a trial that has reported give it back for another
// machine, if that waits still and may have it, unless it is told something else.
// That it was told is stored with the transaction; without one, for a report that was
// accepted before, nobody is told who had not been.
func (s *Service) orMove(r *session, t trial.Trial, told protocol.Directive, tx *transaction) protocol.Directive {
	if told.Action != protocol.Continue {
		return told
	}
	s.poolMutex.Lock()
	defer s.poolMutex.Unlock()
	one, moves := s.moves[t.ID]
	if !moves || one.lease != t.LeaseEpoch {
		return told
	}
	if !one.told && (tx == nil || one.partner != nil && s.waitsForPartner(one)) {
		return told
	}
	if !one.told && !s.receives(r, one) {
		tx.then(func() { s.stays(one) })
		return told
	}
	if !one.told {
		s.tell(tx, one)
	}
	return protocol.Directive{Action: protocol.Pause, Reason: one.record.Why}
}

// stays gives up that a trial moves, and its partner with it.
func (s *Service) stays(one *move) {
	s.poolMutex.Lock()
	defer s.poolMutex.Unlock()
	for _, each := range []*move{one, one.partner} {
		if each != nil && s.moves[each.trial] == each {
			delete(s.moves, each.trial)
		}
	}
}

// leaving notes the move for which a trial is given back, if it is for one, and
// whether the other worker waits still.
func (s *Service) leaving(tx *transaction, t trial.Trial) {
	s.poolMutex.Lock()
	defer s.poolMutex.Unlock()
	one, moves := s.moves[t.ID]
	if !moves || one.lease != t.LeaseEpoch || !one.told {
		return
	}
	tx.move, tx.awaited = one, s.receives(tx.session, one)
	tx.then(func() {
		s.poolMutex.Lock()
		defer s.poolMutex.Unlock()
		if s.moves[t.ID] == one {
			delete(s.moves, t.ID)
		}
		if tx.awaited && one.wait > 0 {
			s.vacate(one, tx.now)
		}
	})
}

// depart notes on a trial that is given back that it moves, and keeps it for its
// new machine for a while.
func (tx *transaction) depart(t trial.Trial, reason string) (trial.Trial, string) {
	if tx.move == nil {
		return t, reason
	}
	record := tx.move.record
	record.At = tx.now
	t.Migrations = append(slices.Clone(t.Migrations), record)
	if !tx.awaited {
		tx.forgo()
		return t, record.Why + "; that has other work by now"
	}
	tx.kept = true
	return t, fmt.Sprintf("%s; kept for it for up to %g s", record.Why, keptSpan.Seconds())
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

// machineOf is the type of a worker's machine; empty for one that is not
// registered.
func (s *Service) machineOf(worker string) string {
	s.poolMutex.Lock()
	defer s.poolMutex.Unlock()
	member, known := s.workers.Member(worker)
	if !known {
		return ""
	}
	return member.Registration.Machine.Type()
}

// studyOf is the study and the number of a trial.
func studyOf(id trial.ID) (study string, number int) {
	study, _, _ = strings.Cut(string(id), "-")
	number, _ = id.Number()
	return study, number
}
