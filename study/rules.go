package study

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/workers/demand"
	"github.com/tandem-tune/tandem/workers/pool"
)

// The kinds of what is stored of the pool.
const (
	quotaEntry       = "quota"
	reservationEntry = "reservation"
	drainEntry       = "drain"
	spentEntry       = "spent"
)

// saveSpentEvery is how often what users have spent of their day is stored: so
// much of it may be lost when a server is killed.
const saveSpentEvery = 10 * time.Second

// rules are what people have said of the pool, as it is stored, and what users
// have spent of their day. The pool's lock guards them.
type rules struct {
	quotas       map[string]pool.Quota // by owner, "" the administrators
	reservations []pool.Reservation    // in order of their ids
	drains       map[drainKey]protocol.Drain
	changes      []demand.Change       // drains by advice, and what became of them; the oldest first, and never changed in place
	spent        map[string]pool.Spent // by owner
	// unsaved are owners whose spending is to be stored, saved is when that was
	// last done.
	unsaved map[string]bool
	saved   time.Time
}

// drainKey names workers: those with the name that belong to the holder.
type drainKey struct {
	Name   string `json:"name"`
	Holder string `json:"holder,omitempty"`
}

func newRules() rules {
	return rules{quotas: map[string]pool.Quota{}, drains: map[drainKey]protocol.Drain{}, spent: map[string]pool.Spent{}, unsaved: map[string]bool{}}
}

// storedDrain is a drain as it is stored.
type storedDrain struct {
	drainKey
	protocol.Drain
}

// loadRules reads what is stored of the pool.
func (s *Service) loadRules(ctx context.Context) error {
	found := newRules()
	if err := eachEntry(ctx, s.store, quotaEntry, func(name string, quota protocol.Quota) { found.quotas[ownerNamed(name)] = quotaOf(quota) }); err != nil {
		return err
	}
	if err := eachEntry(ctx, s.store, reservationEntry, func(_ string, one protocol.Reservation) {
		found.reservations = append(found.reservations, reservationOf(one))
	}); err != nil {
		return err
	}
	if err := eachEntry(ctx, s.store, drainEntry, func(_ string, one storedDrain) { found.drains[one.drainKey] = one.Drain }); err != nil {
		return err
	}
	if err := eachEntry(ctx, s.store, changesEntry, func(_ string, stored storedChanges) { found.changes = stored.Changes }); err != nil {
		return err
	}
	if err := eachEntry(ctx, s.store, spentEntry, func(name string, one pool.Spent) { found.spent[ownerNamed(name)] = one }); err != nil {
		return err
	}
	s.poolMutex.Lock()
	defer s.poolMutex.Unlock()
	s.rules = found
	return nil
}

func eachEntry[T any](ctx context.Context, store Store, kind string, take func(name string, value T)) error {
	entries, err := store.PoolEntries(ctx, kind)
	if err != nil {
		return fmt.Errorf("load what is kept of the pool: %w", err)
	}
	for _, entry := range entries {
		var value T
		if err := json.Unmarshal(entry.Document, &value); err != nil {
			return problem.New(problem.Internal, "read the %s %q of the pool: %w", kind, entry.Name, err)
		}
		take(entry.Name, value)
	}
	return nil
}

// poolEntry is a value as it is stored.
func poolEntry(kind, name string, value any) PoolEntry {
	document, _ := json.Marshal(value) // numbers, words and times only
	return PoolEntry{Kind: kind, Name: name, Document: document}
}

// ownerNamed is the owner of studies that people call by the name.
func ownerNamed(name string) string {
	if name == Administrators {
		return ""
	}
	return name
}

func namedOwner(owner string) string { return orElse(owner, Administrators) }

// govern makes a change of the pool's rules durable, with the answer under the
// call's key, and then shows it. One change is made at a time.
func govern[T any](ctx context.Context, s *Service, answer *T, entries []PoolEntry, show func(*rules)) error {
	now := s.options.Now()
	receipt, err := receiptOf(ctx, *answer, now)
	if err != nil {
		return err
	}
	// A client that hangs up must not leave us guessing whether the write happened.
	if err := s.store.Apply(context.WithoutCancel(ctx), Change{Pool: entries, Receipt: receipt}); err != nil {
		_, err := overtaken(ctx, s, err, answer)
		return err
	}
	s.poolMutex.Lock()
	show(&s.rules)
	s.counted = counted{}
	s.poolMutex.Unlock()
	s.notify()
	return nil
}

// spend adds to what the owner's trials have used of the day. The pool's lock is
// held.
func (s *Service) spend(owner string, gpuSeconds, joules float64) {
	if gpuSeconds <= 0 && joules <= 0 {
		return
	}
	spent := s.spentBy(owner)
	spent.GPUSeconds += max(0, gpuSeconds)
	spent.Joules += max(0, joules)
	s.rules.spent[owner] = spent
	if quota, has := s.rules.quotas[owner]; has && (quota.GPUSeconds > 0 || quota.Joules > 0) {
		s.rules.unsaved[owner] = true
	}
}

// spentBy is what the owner's trials have used today. The pool's lock is held.
func (s *Service) spentBy(owner string) pool.Spent {
	today := s.options.Now().UTC().Format(time.DateOnly)
	if spent := s.rules.spent[owner]; spent.Day == today {
		return spent
	}
	return pool.Spent{Day: today}
}

// chargeGPUs counts the time that leases held GPUs since the tick before. The
// pool's lock is held.
func (s *Service) chargeGPUs(span time.Duration) {
	for _, lease := range s.leases.All() {
		if len(lease.GPUs) > 0 {
			s.spend(lease.Owner, lease.HeldGPUs()*span.Seconds(), 0)
		}
	}
}

// keepRules does what time alone makes due of the rules: what was spent is
// stored, reservations that are over go, and who waits hears of those that began
// or ended, and of a new day.
func (s *Service) keepRules(ctx context.Context, before, now time.Time, closing bool) (failed error) {
	s.poolMutex.Lock()
	entries, over, turned := s.dueRules(before, now, closing)
	s.poolMutex.Unlock()
	if len(entries) > 0 {
		err := s.store.Apply(ctx, Change{Pool: entries})
		s.poolMutex.Lock()
		s.applied(entries, err == nil)
		if err == nil && len(over) > 0 {
			s.rules.reservations = slices.DeleteFunc(slices.Clone(s.rules.reservations), func(r pool.Reservation) bool { return over[r.ID] })
		}
		s.poolMutex.Unlock()
		if err != nil {
			failed = fmt.Errorf("store what is kept of the pool: %w", err)
		}
	}
	if turned { // by the time, whatever of it is stored
		s.notify()
	}
	return failed
}

// applied notes which of the due entries are stored; those that are not are due again.
// The pool's lock is held.
func (s *Service) applied(entries []PoolEntry, stored bool) {
	for _, entry := range entries {
		switch {
		case entry.Kind == spentEntry && !stored:
			s.rules.unsaved[ownerNamed(entry.Name)] = true
			s.rules.saved = time.Time{}
		case entry.Kind == moveEntry && stored:
			delete(s.departing, entry.Name)
		case entry.Kind == exclusionEntry && stored:
			s.forgetExclusion(entry.Name)
		case entry.Kind == neighbourEntry && stored:
			if one, _ := pool.ParseLeaseID(entry.Name); entry.Document != nil {
				s.neighboured[one] = true
			} else {
				delete(s.neighboured, one)
			}
		}
	}
}

// dueRules are the entries to write, the reservations that are over, and whether
// anything began or ended. The pool's lock is held.
func (s *Service) dueRules(before, now time.Time, closing bool) (entries []PoolEntry, over map[string]bool, turned bool) {
	for _, one := range s.rules.reservations {
		turned = turned || one.Active(before) != one.Active(now)
		if !now.Before(one.To) {
			if over == nil {
				over = map[string]bool{}
			}
			over[one.ID] = true
			entries = append(entries, PoolEntry{Kind: reservationEntry, Name: one.ID})
		}
	}
	entries = append(append(entries, s.departed()...), s.neighbours()...)
	entries = append(entries, s.pastExclusions(now)...)
	turned = turned || len(s.rules.quotas) > 0 && before.UTC().Format(time.DateOnly) != now.UTC().Format(time.DateOnly)
	if closing || now.Sub(s.rules.saved) >= saveSpentEvery {
		for _, owner := range slices.Sorted(maps.Keys(s.rules.unsaved)) {
			entries = append(entries, poolEntry(spentEntry, namedOwner(owner), s.rules.spent[owner]))
		}
		clear(s.rules.unsaved)
		s.rules.saved = now
	}
	return entries, over, turned
}

// usable reports whether a worker could take a trial now. The pool's lock is held.
func (s *Service) usable(member pool.Member) bool {
	return s.options.Now().Sub(member.LastSeen) < s.leaseTerm() && s.drainOf(member) == nil
}

// counted are holdings as they were a moment ago.
type counted struct {
	held    pool.Holdings
	changes uint64
	at      time.Time
}

// countEvery is how long holdings count while no lease changes: who is alive
// changes more slowly. Thousands of workers that wait look at them at once.
const countEvery = time.Second

// holdings are what there is and who has it. The pool's lock is held.
func (s *Service) holdings() pool.Holdings {
	now, changes := s.options.Now(), s.leases.Changes()
	if s.counted.held.ByOwner == nil || s.counted.changes != changes || now.Sub(s.counted.at) >= countEvery {
		s.counted = counted{pool.Hold(&s.workers, &s.leases, s.usable), changes, now}
	}
	return s.counted.held
}
