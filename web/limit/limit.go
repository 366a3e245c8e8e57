// Package limit bounds what clients take of a server.
//
// Each type bounds one thing that somebody could take so much of that nothing
// is left for others: requests and measured values a second ([Rates]), sign-ins
// that fail ([Failures]), what all hold of something at the same time ([Fair]),
// names of metrics ([Names]), connections ([Listener]). What is kept about whom is bounded too.
// They refuse nothing: they say whether there is room, and otherwise when there will be.
// [Clients] has the bounds of our server, and refuses. All types are safe for concurrent use.
package limit

import (
	"maps"
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Rates bounds how often each key may do something: so many a second, and so
// many at once after a pause.
type Rates struct {
	now    func() time.Time
	second rate.Limit
	burst  int
	most   int

	mutex sync.Mutex
	kept  map[string]*rate.Limiter
}

// NewRates returns Rates of so many a second and at once, for at most so many
// keys at the same time; of more, those that used nothing lately are forgotten,
// or all. A rate of 0 or less bounds nothing.
func NewRates(second float64, burst, most int, now func() time.Time) *Rates {
	return &Rates{now: now, second: rate.Limit(second), burst: burst, most: most, kept: make(map[string]*rate.Limiter)}
}

// Take takes count for the key and returns 0, or takes nothing and returns how
// long it is until there will be as many. More at once than there can ever be
// are taken as soon as all is there.
func (r *Rates) Take(key string, count int) time.Duration {
	if r.second <= 0 {
		return 0
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	now := r.now()
	limiter, known := r.kept[key]
	if !known {
		if len(r.kept) >= r.most {
			makeRoom(r.kept, r.most, func(one *rate.Limiter) bool { return one.TokensAt(now) >= float64(r.burst) })
		}
		limiter = rate.NewLimiter(r.second, r.burst)
		r.kept[key] = limiter
	}
	reserved := limiter.ReserveN(now, min(count, r.burst))
	wait := reserved.DelayFrom(now)
	if wait > 0 {
		reserved.CancelAt(now)
	}
	return wait
}

// makeRoom forgets the entries that are idle; if the map still has so many, all.
func makeRoom[K comparable, V any](kept map[K]V, most int, idle func(V) bool) {
	maps.DeleteFunc(kept, func(_ K, one V) bool { return idle(one) })
	if len(kept) >= most {
		clear(kept)
	}
}

// Fair bounds a sum of amounts that are held at the same time, such as bytes or
// places, and leaves something to whoever comes next: nobody may take more than a third of what
// is free then. One alone gets a quarter of it, and the greediest leave three quarters
// of what they find.
type Fair struct {
	most  int64
	mutex sync.Mutex
	held  map[string]int64
	all   int64
}

// NewFair returns a Fair of so much.
func NewFair(most int64) *Fair { return &Fair{most: most, held: make(map[string]int64)} }

// Take holds the amount for the key, in addition to what it holds, and reports
// whether there was room for it. What was taken has to be given back.
func (f *Fair) Take(key string, amount int64) bool {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.held[key]+amount > (f.most-f.all-amount)/3 {
		return false
	}
	f.held[key] += amount
	f.all += amount
	return true
}

// Give gives back what was taken for the key.
func (f *Fair) Give(key string, amount int64) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.all -= amount
	if f.held[key] -= amount; f.held[key] <= 0 {
		delete(f.held, key)
	}
}

// HeldBy is how much the key holds now.
func (f *Fair) HeldBy(key string) int64 {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.held[key]
}

// Origin is the customer who has an address ("host:port"): in IPv6 one customer
// has a whole /64. Addresses that cannot be read count as one.
func Origin(remote string) netip.Prefix {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		host = remote
	}
	address, err := netip.ParseAddr(host)
	if err != nil {
		return netip.Prefix{}
	}
	address = address.Unmap().WithZone("")
	bits := address.BitLen()
	if address.Is6() {
		bits = 64
	}
	prefix, err := address.Prefix(bits)
	if err != nil {
		return netip.Prefix{}
	}
	return prefix
}
