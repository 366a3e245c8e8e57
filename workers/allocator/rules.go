package allocator

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/access"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/workers/pool"
	"github.com/tandem-tune/tandem/workers/rules"
)

// Rules are what people have said of the pool. They share the allocator's lock.
type Rules struct{ *state }

const (
	// ExclusionEntry is the kind of what is stored of exclusions.
	ExclusionEntry = "exclusion"
	// colocatedEntry is the kind of what is stored of leases that share, or shared, their
	// GPU with others: whoever runs out of its memory there has not failed, also after a
	// restart of the server before which the others had left.
	colocatedEntry = "neighbour"
)

// LongestExclusion is how long a worker is excluded from a study at most. Exclusions
// are stored for as long after they ended, since the next one may be longer for them.
const LongestExclusion = 24 * time.Hour

// Kinds are those of what is loaded when the server starts.
func Kinds() []string {
	return append(rules.Kinds(), ExclusionEntry, colocatedEntry, migrationEntry)
}

// ExclusionName names an exclusion in the store.
func ExclusionName(one pool.Exclusion) string {
	name, _ := json.Marshal([]string{one.Study, one.Worker})
	return string(name)
}

// Load reads what is stored of the pool.
func (r Rules) Load(entries []journal.PoolEntry) error {
	defer r.locked()()
	for _, entry := range entries {
		if err := r.load(entry); err != nil {
			return problem.New(problem.Internal, "read the %s %q of the pool: %w", entry.Kind, entry.Name, err)
		}
	}
	return nil
}

func (r Rules) load(entry journal.PoolEntry) error {
	switch entry.Kind {
	case ExclusionEntry:
		return journal.Decode(entry, r.workers.Exclude)
	case migrationEntry:
		return journal.Decode(entry, func(stored Migration) { r.departing[stored.name()] = stored })
	case colocatedEntry:
		if one, known := pool.ParseLeaseID(entry.Name); known {
			r.colocated[one] = true
		}
		return nil
	}
	return r.rules.Load(entry)
}

// Govern changes the rules. The change touches nothing but them.
func (r Rules) Govern(change func(*rules.Rules)) {
	defer r.locked()()
	change(&r.rules)
	r.counted = counted{}
}

// Drainable finds the caller's workers with the id or the name. Undraining also finds
// those that are away, and names none that are not drained. It returns how many trials
// they run, whether there are some, and whether somebody else has one.
func (r Rules) Drainable(caller access.Caller, worker string, undrain bool) (names []rules.WorkerName, trials int, found, foreign bool) {
	defer r.locked()()
	meant := map[rules.WorkerName]bool{}
	for _, member := range r.workers.Members() {
		name := rules.NameOf(member)
		switch is := member.Registration.ID == worker || name.Name == worker; {
		case is && caller.Holds(member.Holder):
			meant[name] = meant[name] || !undrain || r.rules.DrainOf(member) != nil
		case is:
			foreign = true
		}
	}
	for name := range r.rules.Drains {
		if undrain && name.Name == worker && caller.Holds(name.Holder) {
			meant[name] = true
		}
	}
	for name, does := range meant {
		if does {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b rules.WorkerName) int {
		return slices.Compare([]string{a.Name, a.Holder}, []string{b.Name, b.Holder})
	})
	for _, member := range r.workers.Members() {
		if meant[rules.NameOf(member)] {
			trials += len(r.leases.HeldBy(member.Registration.ID))
		}
	}
	return names, trials, len(meant) > 0, foreign
}

// QuotaViews are what those owners have that have a quota or something of the pool, and
// those that are named.
func (r Rules) QuotaViews(named ...string) map[string]protocol.QuotaView {
	defer r.locked()()
	held := r.holdings()
	views := map[string]protocol.QuotaView{}
	for owner := range r.rules.Quotas {
		views[owner] = r.rules.Usage(r.now(), owner, held)
	}
	for _, owner := range slices.AppendSeq(named, maps.Keys(held.ByOwner)) {
		views[owner] = r.rules.Usage(r.now(), owner, held)
	}
	return views
}

// Useless says that the owner may not ask for preempt, as its study does, so that it
// has no effect; empty: it may, or does not ask.
func (r Rules) Useless(owner string, preempt bool) string {
	defer r.locked()()
	if !preempt || r.rules.MayPreempt(owner) {
		return ""
	}
	return rules.MayNotPreempt(owner)
}

// Spend adds to what the owner's trials have used of the day.
func (r Rules) Spend(owner string, used pool.Spent) {
	defer r.locked()()
	r.rules.Spend(r.now(), owner, used)
}

// chargeGPUs counts the time that leases held GPUs since the tick before.
func (r Rules) chargeGPUs(span time.Duration) {
	for _, lease := range r.leases.All() {
		if len(lease.GPUs) > 0 {
			r.rules.Spend(r.now(), lease.Owner, pool.Spent{GPUSeconds: lease.HeldGPUs() * span.Seconds()})
		}
	}
}

// Account is what an owner has, has spent and may have.
type Account struct {
	Quota pool.Quota
	Spent pool.Spent
	Has   pool.Amount
}

// Accounts are those of the owners, and what the pool has.
func (r Rules) Accounts(candidates []pool.Candidate) (all pool.Amount, accounts map[string]*Account) {
	defer r.locked()()
	held := r.holdings()
	accounts = map[string]*Account{}
	for _, one := range candidates {
		accounts[one.Owner] = &Account{r.rules.Quotas[one.Owner], r.rules.SpentBy(r.now(), one.Owner), held.ByOwner[one.Owner]}
	}
	return held.Pool, accounts
}

// Due are the entries to write by time alone, and whether those who wait should look
// again, as a rule began or ended.
func (r Rules) Due(before, now time.Time, closing bool) (entries []journal.PoolEntry, turned bool) {
	defer r.locked()()
	entries = slices.Concat(r.rules.Over(now), r.departed(), r.newlyColocated())
	for _, one := range r.workers.Exclusions("") {
		if now.Sub(one.Until) >= LongestExclusion { // nothing follows from it any more
			entries = append(entries, journal.PoolEntry{Kind: ExclusionEntry, Name: ExclusionName(one)})
		}
	}
	return append(entries, r.rules.Unsaved(now, closing)...), r.rules.Turned(before, now)
}

// newlyColocated are the entries to write of leases whose GPU others have come to
// share, and those to remove of leases that are over.
func (r Rules) newlyColocated() (entries []journal.PoolEntry) {
	for _, lease := range r.leases.All() {
		if one := (pool.LeaseID{Trial: lease.Trial, Epoch: lease.Epoch}); lease.Beside && !r.colocated[one] {
			entries = append(entries, journal.Entry(colocatedEntry, one.String(), true))
		}
	}
	for one := range r.colocated {
		if !r.leases.Has(one.Trial, one.Epoch) {
			entries = append(entries, journal.PoolEntry{Kind: colocatedEntry, Name: one.String()})
		}
	}
	return entries
}

// Applied notes whether the due entries are stored; those that are not are due again.
func (r Rules) Applied(entries []journal.PoolEntry, stored bool) {
	defer r.locked()()
	for _, entry := range entries {
		r.rules.Applied(entry, stored)
		switch {
		case !stored:
		case entry.Kind == migrationEntry:
			delete(r.departing, entry.Name)
		case entry.Kind == ExclusionEntry:
			var of [2]string
			if json.Unmarshal([]byte(entry.Name), &of) == nil {
				r.workers.Readmit(of[0], of[1])
			}
		case entry.Kind == colocatedEntry:
			one, _ := pool.ParseLeaseID(entry.Name)
			delete(r.colocated, one)
			if entry.Document != nil {
				r.colocated[one] = true
			}
		}
	}
}

// Exclude puts into force which workers are excluded from studies, and which are not
// any more.
func (r Rules) Exclude(exclude, readmit []pool.Exclusion) {
	defer r.locked()()
	for _, one := range readmit {
		r.workers.Readmit(one.Study, one.Worker)
	}
	for _, one := range exclude {
		r.workers.Exclude(one)
	}
}
