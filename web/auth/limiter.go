package auth

import (
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/tandem-tune/tandem/problem"
)

// The bounds of failed sign-ins.
const (
	maxFailures   = 10
	failureWindow = time.Minute
	maxAddresses  = 10000
)

// Limiter bounds how often one address may fail to sign in: ten times a
// minute. It is safe for concurrent use.
type Limiter struct {
	now      func() time.Time
	mutex    sync.Mutex
	failures map[netip.Prefix][]time.Time
}

// NewLimiter returns a Limiter on the clock.
func NewLimiter(now func() time.Time) *Limiter {
	return &Limiter{now: now, failures: make(map[netip.Prefix][]time.Time)}
}

// Allow returns exhausted if the address ("host:port") has failed too often.
func (l *Limiter) Allow(remote string) error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if len(l.recent(origin(remote))) < maxFailures {
		return nil
	}
	return problem.New(problem.Exhausted, "too many failed sign-ins from this address: wait a minute")
}

// Failed notes that the address failed to sign in.
func (l *Limiter) Failed(remote string) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	from := origin(remote)
	if _, known := l.failures[from]; !known && len(l.failures) >= maxAddresses {
		for address := range l.failures {
			if len(l.recent(address)) == 0 {
				delete(l.failures, address)
			}
		}
		if len(l.failures) >= maxAddresses {
			clear(l.failures)
		}
	}
	l.failures[from] = append(l.recent(from), l.now())
}

// recent drops the failures that no longer count.
func (l *Limiter) recent(from netip.Prefix) []time.Time {
	times := l.failures[from]
	since := l.now().Add(-failureWindow)
	for len(times) > 0 && !times[0].After(since) {
		times = times[1:]
	}
	return times
}

// origin is who stands behind an address: in IPv6 one customer has a whole /64.
// Addresses that cannot be read count as one.
func origin(remote string) netip.Prefix {
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
