package allocator

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/pool"
)

// Migrations are the running trials that are to go to another worker. They share the
// allocator's lock.
type Migrations struct{ *state }

// Migration is a running trial that is to go to another machine. It is stored as JSON,
// with that of its partner where two change places: then it is that of the one which
// goes first.
type Migration struct {
	Trial  trial.ID         `json:"trial"`
	Lease  trial.LeaseEpoch `json:"lease"`
	Worker string           `json:"worker"` // the id of the one to which it goes
	// From is the worker where it is, of two that change places; Wait is how long that may
	// take at most, in nanoseconds, of the one that goes first.
	From string        `json:"from,omitempty"`
	Wait time.Duration `json:"wait,omitempty"`
	// Told says that its worker has heard of it.
	Told    bool            `json:"told,omitempty"`
	Record  trial.Migration `json:"record"`
	Partner *Migration      `json:"partner,omitempty"`
	Need    pool.Need       `json:"-"`
}

// migrationEntry is the kind of what is stored of migrations: of each that a worker
// was told of, with the report after which it was told, until the trial has arrived or
// goes nowhere. So a server that starts again knows who has left a place for whom.
// What had not been told yet is decided anew.
const migrationEntry = "move"

// name tells it from earlier migrations of the trial.
func (m Migration) name() string { return fmt.Sprintf("%s@%d", m.Trial, m.Lease) }

// stored is the migration as it is stored, which is with the one that goes first.
func (m Migration) stored() Migration {
	if m.Partner == nil {
		return m
	}
	if m.Wait == 0 {
		return m.Partner.stored()
	}
	partner := *m.Partner
	partner.Partner, m.Partner = nil, &partner
	return m
}

// Cancelled is the entry to remove with the change that gives the trial back, where the
// worker that it was held for has other work; nil for the second of two: what that does
// is no matter of the first one.
func (m *Migration) Cancelled() *journal.PoolEntry {
	if stored := m.stored(); stored.Trial == m.Trial {
		return &journal.PoolEntry{Kind: migrationEntry, Name: stored.name()}
	}
	return nil
}

// Start notes that the trial is to migrate as soon as its worker reports, and reports
// whether it still has its lease.
func (m Migrations) Start(one Migration) bool {
	defer m.locked()()
	if !m.leases.Has(one.Trial, one.Lease) {
		return false
	}
	m.migrations[one.Trial] = &one
	return true
}

// Exchange notes that two trials are to change places, the first one first, if each
// has room where the other one is.
func (m Migrations) Exchange(both [2]Migration, wait time.Duration) bool {
	defer m.locked()()
	for i, one := range both {
		if other := both[1-i]; m.expects(one.Worker) || !m.leases.Has(one.Trial, one.Lease) || !m.roomWithout(m.heldOf(one.Worker), one.Worker, other.Trial, one.Need) {
			return false
		}
	}
	both[0].Partner, both[1].Partner, both[0].Wait = &both[1], &both[0], wait
	for i := range both {
		m.migrations[both[i].Trial] = &both[i]
	}
	return true
}

// Migrating says where a running trial is about to go; empty if it stays.
func (m Migrations) Migrating(id trial.ID) string {
	defer m.locked()()
	if one, moves := m.migrations[id]; moves {
		return one.Record.Why
	}
	return ""
}

// Prune forgets the migrations of trials whose lease is over, and returns the leases
// that are out.
func (m Migrations) Prune() []pool.Lease {
	defer m.locked()()
	maps.DeleteFunc(m.migrations, func(id trial.ID, one *Migration) bool { return !m.leases.Has(id, one.Lease) })
	return m.leases.All()
}

// Promises are what trials need, by the worker to which they migrate or for which they
// are held.
func (m Migrations) Promises() map[string][]pool.Need {
	defer m.locked()()
	needs := map[string][]pool.Need{}
	for _, one := range m.migrations {
		needs[one.Worker] = append(needs[one.Worker], one.Need)
	}
	for _, one := range m.leases.Kept() {
		needs[one.Worker] = append(needs[one.Worker], one.Needs())
	}
	return needs
}

// receives reports whether the worker waits and could take the trial that is to
// migrate now: since that was decided it may have been drained or reserved, or its GPUs
// given away.
func (s *state) receives(ask Ask, one *Migration) bool {
	if one.Partner != nil {
		return s.mayLeave(one)
	}
	lease, _ := s.leases.Lease(one.Trial)
	w, waits := s.queue.Waiter(one.Worker)
	member, known := s.workers.Member(one.Worker)
	if !waits || !known || !w.Caller.Sees(ask.Study, ask.Owner) || !ask.Eligible(member) {
		return false
	}
	room := s.site(one.Worker, "").Room
	need := ask.Need(room.Machine)
	return s.denied(ask, member, need, lease.Amount()).Reason == "" && room.Fits(need)
}

// Departure is what a worker that has reported is told of a trial's migration.
type Departure struct {
	// Pause says that the trial is to be given back, Why is where it goes.
	Pause bool
	Why   string
	// Entry is stored with the report, and After called when that is durable; nil where
	// nothing follows.
	Entry *journal.PoolEntry
	After func()
}

// Depart decides whether the holder of a trial that has reported gives it back for
// another worker, if that waits still and may have it. fresh says that the report is
// stored with the answer: nobody is told after an old one who had not been.
func (m Migrations) Depart(ask Ask, id trial.ID, epoch trial.LeaseEpoch, fresh bool) Departure {
	defer m.locked()()
	one, moves := m.migrations[id]
	switch {
	case !moves || one.Lease != epoch:
		return Departure{}
	case one.Told:
		return Departure{Pause: true, Why: one.Record.Why}
	case !fresh || one.Partner != nil && m.waitsForPartner(one):
		return Departure{}
	case !m.receives(ask, one):
		return Departure{After: func() { m.stays(one) }}
	}
	told := *one
	told.Told = true
	if one.Partner != nil {
		partner := *one.Partner
		told.Partner, partner.Partner = &partner, &told
	}
	stored := told.stored()
	entry := journal.Entry(migrationEntry, stored.name(), stored)
	return Departure{Pause: true, Why: one.Record.Why, Entry: &entry, After: func() {
		m.lock.Lock()
		defer m.lock.Unlock()
		one.Told = true
		m.departing[stored.name()] = stored
	}}
}

// stays gives up that a trial migrates, and its partner with it.
func (m Migrations) stays(one *Migration) {
	defer m.locked()()
	for _, each := range []*Migration{one, one.Partner} {
		if each != nil && m.migrations[each.Trial] == each {
			delete(m.migrations, each.Trial)
		}
	}
}

// Leaving is the migration for which a trial is given back, nil if it is for none, and
// whether the other worker waits still.
func (m Migrations) Leaving(ask Ask, id trial.ID, epoch trial.LeaseEpoch) (one *Migration, awaited bool) {
	defer m.locked()()
	one, moves := m.migrations[id]
	if !moves || one.Lease != epoch || !one.Told {
		return nil, false
	}
	return one, m.receives(ask, one)
}

// Left notes that the trial has left its worker. Where it is the first of two that
// change places, that is held for the second.
func (m Migrations) Left(one *Migration, awaited bool, now time.Time) {
	defer m.locked()()
	if m.migrations[one.Trial] == one {
		delete(m.migrations, one.Trial)
	}
	if awaited && one.Wait > 0 {
		m.holdSlot(one, now)
	}
}

// departed are the entries to remove of migrations that are over.
func (s *state) departed() (over []journal.PoolEntry) {
	for name, stored := range s.departing {
		if s.departs(stored) || stored.Partner != nil && s.departs(*stored.Partner) {
			continue
		}
		over = append(over, journal.PoolEntry{Kind: migrationEntry, Name: name})
	}
	return over
}

// departs reports whether the trial is to leave, or has left and not arrived.
func (s *state) departs(m Migration) bool {
	if s.isHeld(m.Trial) || m.Told && s.leases.Has(m.Trial, m.Lease) {
		return true
	}
	one, moves := s.migrations[m.Trial]
	return moves && one.Lease == m.Lease
}

// Stored are the migrations that are stored, in the order of their names.
func (m Migrations) Stored() (list []Migration) {
	defer m.locked()()
	for _, name := range slices.Sorted(maps.Keys(m.departing)) {
		list = append(list, m.departing[name])
	}
	return list
}

// Whereabouts is where a trial is that was told to migrate, or whose partner was: it
// runs still, under that lease, or has left its worker and is queued. Neither: that
// lease is over.
type Whereabouts struct {
	Runs, Left bool
	Lease      pool.Lease
}

// Resume goes on with a migration that was under way when the server stopped. Whoever
// is waited for gets a whole new term, as leases do.
func (m Migrations) Resume(stored Migration, here, there Whereabouts) {
	now, first := m.now(), &stored
	defer m.locked()()
	after := trial.ID("")
	if stored.Partner != nil {
		partner := *stored.Partner // the stored one stays as it is
		second := &partner
		first.Partner, second.Partner = second, first
		if here.Runs || here.Left || second.Told {
			m.resume(second, there, now, "")
			if there.Runs {
				after = second.Trial
			}
			if !here.Runs && (there.Runs || there.Left) {
				m.holdSlot(first, now)
			}
		}
	}
	m.resume(first, here, now, after)
}

// resume has the trial leave, or holds it for its worker if it has left.
func (m Migrations) resume(one *Migration, at Whereabouts, now time.Time, after trial.ID) {
	switch {
	case at.Runs:
		one.Need = at.Lease.Needs()
		m.migrations[one.Trial] = one
	case at.Left:
		at.Lease.Worker = one.Worker
		m.leases.Keep(pool.Keeping{Lease: at.Lease, Until: now.Add(max(HoldSpan, one.Wait)), Awaited: now, After: after})
	}
}
