// Package rules holds what people have said of the pool of workers (quotas,
// reservations, drains), and what users have spent of their day. It has no lock.
package rules

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/access"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/workers/pool"
)

// The kinds of what is stored.
const (
	QuotaEntry       = "quota"
	ReservationEntry = "reservation"
	DrainEntry       = "drain"
	spentEntry       = "spent"
)

// Kinds are all of them.
func Kinds() []string {
	return []string{QuotaEntry, ReservationEntry, DrainEntry, spentEntry}
}

// saveSpentEvery is how often the GPU time of users is stored: so much of it may be lost
// when a server is killed. Joules and money are stored at the next tick.
const saveSpentEvery = 10 * time.Second

// Rules are what is said of the pool, as it is stored. Maps and slices that are given
// out are not changed in place.
type Rules struct {
	Quotas       map[string]pool.Quota // by owner, "" the administrators
	Reservations []pool.Reservation    // in order of their ids
	Drains       map[WorkerName]protocol.Drain
	spent        map[string]pool.Spent // by owner
	// unsaved are owners whose spending is to be stored, saved is when that was
	// last done.
	unsaved map[string]bool
	saved   time.Time
}

// New returns no rules.
func New() Rules {
	return Rules{Quotas: map[string]pool.Quota{}, Drains: map[WorkerName]protocol.Drain{}, spent: map[string]pool.Spent{}, unsaved: map[string]bool{}}
}

// WorkerName names workers: those with the name that belong to the holder.
type WorkerName struct {
	Name   string `json:"name"`
	Holder string `json:"holder,omitempty"`
}

// NameOf is the worker's.
func NameOf(member pool.Member) WorkerName {
	return WorkerName{member.Registration.Name, member.Holder}
}

// Entry names the workers' drain in the store.
func (n WorkerName) Entry() string {
	name, _ := json.Marshal([]string{n.Name, n.Holder})
	return string(name)
}

// StoredDrain is a drain as it is stored.
type StoredDrain struct {
	WorkerName
	protocol.Drain
	// Advised is of earlier versions, whose servers drained workers by a forecast: the
	// next start takes such a drain back.
	Advised bool `json:"advised,omitempty"`
}

// OwnerNamed is the owner of studies that people call by the name.
func OwnerNamed(name string) string {
	if name == access.Administrators {
		return ""
	}
	return name
}

// NamedOwner is what people call the owner of studies.
func NamedOwner(owner string) string {
	if owner == "" {
		return access.Administrators
	}
	return owner
}

// QuotaOf is the quota as it is counted with.
func QuotaOf(q protocol.Quota) pool.Quota {
	return pool.Quota{Trials: q.Trials, GPUs: q.GPUs, GPUSeconds: q.GPUSecondsADay, Joules: q.JoulesADay, Cost: q.CostADay, Weight: q.Weight, Preempt: q.Preempt, DatasetBytes: q.DatasetBytes}
}

// ReservationOf is the reservation as it is counted with.
func ReservationOf(r protocol.Reservation) pool.Reservation {
	return pool.Reservation{ID: r.ID, User: r.User, Study: r.StudyID, Name: r.Study, Worker: r.Worker, GPUs: r.GPUs, From: r.From, To: r.To}
}

// Copy is what does not change any more.
func (r *Rules) Copy() Rules {
	all := *r
	all.spent, all.unsaved = maps.Clone(r.spent), nil
	return all
}

// Load reads an entry that is stored.
func (r *Rules) Load(entry journal.PoolEntry) error {
	switch entry.Kind {
	case QuotaEntry:
		return journal.Decode(entry, func(quota protocol.Quota) { r.Quotas[OwnerNamed(entry.Name)] = QuotaOf(quota) })
	case ReservationEntry:
		return journal.Decode(entry, func(one protocol.Reservation) { r.Reservations = append(r.Reservations, ReservationOf(one)) })
	case DrainEntry:
		return journal.Decode(entry, func(one StoredDrain) {
			if !one.Advised {
				r.Drains[one.WorkerName] = one.Drain
			}
		})
	default:
		return journal.Decode(entry, func(one pool.Spent) { r.spent[OwnerNamed(entry.Name)] = one })
	}
}

// SetQuota bounds what the owner has of the pool; nil: there is no bound any more.
func (r *Rules) SetQuota(owner string, quota *pool.Quota) {
	r.Quotas = maps.Clone(r.Quotas)
	delete(r.Quotas, owner)
	if quota != nil {
		r.Quotas[owner] = *quota
	}
}

// AddReservation keeps a worker or GPUs.
func (r *Rules) AddReservation(one pool.Reservation) {
	r.Reservations = append(slices.Clone(r.Reservations), one)
}

// RemoveReservation ends one.
func (r *Rules) RemoveReservation(id string) {
	r.Reservations = slices.DeleteFunc(slices.Clone(r.Reservations), func(one pool.Reservation) bool { return one.ID == id })
}

// SetDrains drains workers, and undrains those without a drain.
func (r *Rules) SetDrains(drains map[WorkerName]*protocol.Drain) {
	r.Drains = maps.Clone(r.Drains)
	for name, drain := range drains {
		delete(r.Drains, name)
		if drain != nil {
			r.Drains[name] = *drain
		}
	}
}

// DrainOf is how the worker is drained; nil: it is not.
func (r *Rules) DrainOf(member pool.Member) *protocol.Drain {
	drain, drained := r.Drains[NameOf(member)]
	if !drained {
		return nil
	}
	return new(drain) // a copy: only one that is there is put on the heap
}

// MayPreempt reports whether the owner may have others make way: the administrators,
// and users whose quota says so.
func (r *Rules) MayPreempt(owner string) bool { return owner == "" || r.Quotas[owner].Preempt }

// MayNotPreempt says that the owner may not have others make way, and who could change that.
func MayNotPreempt(owner string) string {
	return fmt.Sprintf("no trial makes way for it (preempt), as user %s may not ask for that: an administrator allows it with tandem quota set %s --preempt", owner, owner)
}

// Spend adds to what the owner's trials have used of the day.
func (r *Rules) Spend(now time.Time, owner string, used pool.Spent) {
	if used.GPUSeconds <= 0 && used.Joules <= 0 && used.Cost <= 0 {
		return
	}
	spent := r.SpentBy(now, owner)
	spent.GPUSeconds += max(0, used.GPUSeconds)
	spent.Joules += max(0, used.Joules)
	spent.Cost += max(0, used.Cost)
	r.spent[owner] = spent
	r.unsaved[owner] = true // also without a quota: it may be given one today
	if used.Joules > 0 || used.Cost > 0 {
		r.saved = time.Time{}
	}
}

// SpentBy is what the owner's trials have used today.
func (r *Rules) SpentBy(now time.Time, owner string) pool.Spent {
	today := now.UTC().Format(time.DateOnly)
	if spent := r.spent[owner]; spent.Day == today {
		return spent
	}
	return pool.Spent{Day: today}
}

// Usage is the owner's quota and what its trials have.
func (r *Rules) Usage(now time.Time, owner string, held pool.Holdings) protocol.QuotaView {
	amount, spent := held.ByOwner[owner], r.SpentBy(now, owner)
	view := protocol.QuotaView{User: NamedOwner(owner), Uses: protocol.PoolUse{
		Trials: amount.Trials, GPUs: amount.GPUs, Cores: amount.Cores, DominantShare: amount.DominantShare(held.Pool),
		GPUSecondsToday: spent.GPUSeconds, JoulesToday: spent.Joules, CostToday: spent.Cost,
	}}
	if q, has := r.Quotas[owner]; has {
		view.Quota = &protocol.Quota{Trials: q.Trials, GPUs: q.GPUs, GPUSecondsADay: q.GPUSeconds, JoulesADay: q.Joules, CostADay: q.Cost, Weight: q.Weight, Preempt: q.Preempt, DatasetBytes: q.DatasetBytes}
	}
	return view
}

// Over are the entries to remove of reservations that are over.
func (r *Rules) Over(now time.Time) (entries []journal.PoolEntry) {
	for _, one := range r.Reservations {
		if !now.Before(one.To) {
			entries = append(entries, journal.PoolEntry{Kind: ReservationEntry, Name: one.ID})
		}
	}
	return entries
}

// Turned reports whether reservations began or ended between the two times, or a new
// day for quotas, so that who waits should look again.
func (r *Rules) Turned(before, now time.Time) bool {
	return len(r.Quotas) > 0 && before.UTC().Format(time.DateOnly) != now.UTC().Format(time.DateOnly) ||
		slices.ContainsFunc(r.Reservations, func(one pool.Reservation) bool { return one.Active(before) != one.Active(now) })
}

// Unsaved are the entries to write of what was spent, if that is due.
func (r *Rules) Unsaved(now time.Time, closing bool) (entries []journal.PoolEntry) {
	if !closing && now.Sub(r.saved) < saveSpentEvery {
		return nil
	}
	for _, owner := range slices.Sorted(maps.Keys(r.unsaved)) {
		entries = append(entries, journal.Entry(spentEntry, NamedOwner(owner), r.spent[owner]))
	}
	clear(r.unsaved)
	r.saved = now
	return entries
}

// Applied notes whether an entry that was due is stored; it is due again if not.
func (r *Rules) Applied(entry journal.PoolEntry, stored bool) {
	switch {
	case entry.Kind == spentEntry && !stored:
		r.unsaved[OwnerNamed(entry.Name)] = true
		r.saved = time.Time{}
	case entry.Kind == ReservationEntry && stored:
		r.RemoveReservation(entry.Name)
	}
}
