// Package release is the part of a key broker that decides: which challenges are open,
// what a machine has to sign, and whether a key may go. It does no I/O and is told the
// time, so that its histories can be tried by the thousand.
//
// A key goes only through a [Ledger.Release], which takes an [Attempt], which only
// [Ledger.Present] makes, once for each challenge.
package release

import (
	"bytes"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/binary"
	"slices"
	"time"

	"github.com/tandem-tune/tandem/workers/confidential/evidence"
)

// Lifetime is how long a challenge is good.
const Lifetime = time.Minute

// Request is for what a key is asked.
type Request struct {
	Worker string `json:"worker"`
	Study  string `json:"study"`
	Trial  int    `json:"trial"`
	Lease  int64  `json:"lease"` // counts how often the trial changed hands
	Policy string `json:"policy"`
}

// Data is what a machine has to have its processor sign: it binds the report to the
// challenge, to the key pair made in the machine, and to the request.
func (r Request) Data(nonce, key []byte) [64]byte {
	sum := sha512.New()
	number := func(n int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }
	for _, part := range [][]byte{[]byte("tandem-cc-v1"), nonce, key, []byte(r.Worker), []byte(r.Study), number(int64(r.Trial)), number(r.Lease), []byte(r.Policy)} {
		sum.Write(number(int64(len(part)))) // never fails
		sum.Write(part)
	}
	return [64]byte(sum.Sum(nil))
}

// GPUNonce is what a GPU has to sign, by its number: no report of another request, nor that
// of another GPU, has it.
func GPUNonce(data [64]byte, number int) [32]byte {
	return sha256.Sum256(binary.BigEndian.AppendUint64(append([]byte("tandem-gpu-v1"), data[:]...), uint64(number)))
}

// Bind is what the processor has to sign where GPUs are shown: their digest is its second
// half, so that they can be told to be others. Without GPUs it is the data.
func Bind(data [64]byte, digest []byte) [64]byte {
	if digest != nil {
		copy(data[len(data)/2:], digest)
	}
	return data
}

// Bound refuses GPUs that are not those that the processor's report names, in their order,
// or that signed for another request. Whether the report itself is of this one, a policy says.
func Bound(data [64]byte, claims *evidence.Claims) error {
	const half = len(data) / 2
	want := Bind(data, claims.GPUDigest)
	if len(claims.ReportData) != len(data) || !bytes.Equal(claims.ReportData[:half], data[:half]) {
		return nil
	}
	for i, one := range claims.GPUs {
		if nonce := GPUNonce(data, i); !bytes.Equal(one.Nonce, nonce[:]) {
			return evidence.Refuse("gpu_not_bound", "the report of GPU %d was not made for this request, or for another GPU", i)
		}
	}
	if !bytes.Equal(claims.ReportData[half:], want[half:]) {
		return evidence.Refuse("gpu_not_bound", "the machine's report names other GPUs than are shown, or another order")
	}
	return nil
}

type place struct {
	study string
	trial int
}

// Limits bound how many keys go.
type Limits struct{ PerHour, Total int }

// asksPerRelease bounds what is asked in an hour, by the keys that may go in it.
const asksPerRelease = 10

// Ledger knows what was asked and released. Challenges end with the process that made
// them; what was released does not, and is told again with [Ledger.Recall].
type Ledger struct {
	policy string
	limits Limits
	open   map[string]challenge
	asked  []time.Time // in the last hour
	gone   []time.Time // releases in the last hour
	total  int
	newest map[place]int64 // leases that keys went to
}

type challenge struct {
	request Request
	expires time.Time
	used    bool
}

// New is a ledger for the policy of the id.
func New(policy string, limits Limits) *Ledger {
	return &Ledger{policy: policy, limits: limits, open: map[string]challenge{}, newest: map[place]int64{}}
}

// Recall tells of a release before this process.
func (l *Ledger) Recall(request Request, at time.Time) {
	at0 := place{request.Study, request.Trial}
	l.gone, l.total, l.newest[at0] = append(l.gone, at), l.total+1, max(l.newest[at0], request.Lease)
}

// Challenge opens a challenge with a nonce that nobody could foresee.
func (l *Ledger) Challenge(request Request, nonce []byte, now time.Time) (expires time.Time, err error) {
	if err := l.ask(now); err != nil {
		return expires, err
	}
	if request.Policy != l.policy {
		return expires, evidence.Refuse("policy_changed", "the policy here is %s, not %q: the study must name it", l.policy, request.Policy)
	}
	expires = now.Add(Lifetime)
	l.open[string(nonce)] = challenge{request: request, expires: expires}
	return expires, nil
}

// ask counts a request, and forgets what is over.
func (l *Ledger) ask(now time.Time) error {
	old := func(at time.Time) bool { return now.Sub(at) >= time.Hour }
	l.asked, l.gone = slices.DeleteFunc(l.asked, old), slices.DeleteFunc(l.gone, old)
	for nonce, one := range l.open {
		if now.Sub(one.expires) >= time.Hour {
			delete(l.open, nonce)
		}
	}
	if len(l.asked) >= asksPerRelease*l.limits.PerHour {
		return evidence.Refuse("too_many_requests", "there were %d requests in an hour: wait", len(l.asked))
	}
	l.asked = append(l.asked, now)
	return nil
}

// Attempt is evidence that answers an open challenge.
type Attempt struct {
	Request Request
	expires time.Time
	// What was found, by name: each must have been, and be good.
	appraised, current bool
	ended              bool
}

// Present uses the challenge up, whatever comes of it.
func (l *Ledger) Present(nonce []byte, now time.Time) (*Attempt, error) {
	if err := l.ask(now); err != nil {
		return nil, err
	}
	found, known := l.open[string(nonce)]
	switch {
	case !known:
		return nil, evidence.Refuse("nonce_unknown", "the broker made no such challenge, or was started anew: ask for one")
	case found.used:
		return &Attempt{Request: found.request, ended: true}, evidence.Refuse("nonce_used", "the challenge was answered before: ask for another")
	}
	found.used = true
	l.open[string(nonce)] = found
	made := &Attempt{Request: found.request, expires: found.expires}
	return made, made.fresh(now)
}

func (a *Attempt) fresh(now time.Time) error {
	if now.Before(a.expires) {
		return nil
	}
	a.ended = true
	return evidence.Refuse("nonce_expired", "the challenge was good until %s: ask for another", a.expires.UTC().Format(time.RFC3339))
}

// Appraised says that the policy allows the machine, which signed the attempt's data.
func (a *Attempt) Appraised() { a.appraised = true }

// Current says that the worker holds the lease.
func (a *Attempt) Current() { a.current = true }

// Release counts a key that goes. After it the attempt is over, and no other outcome
// lets a key go.
func (l *Ledger) Release(a *Attempt, now time.Time) error {
	defer func() { a.ended = true }()
	at := place{a.Request.Study, a.Request.Trial}
	switch {
	case a.ended || !a.appraised || !a.current:
		return evidence.Refuse("nonce_used", "the attempt is over, or was not examined")
	case a.Request.Lease < l.newest[at]:
		return evidence.Refuse("stale_lease", "lease %d of the trial is over: a key went to lease %d", a.Request.Lease, l.newest[at])
	case l.total >= l.limits.Total:
		return evidence.Refuse("too_many_releases", "the policy allows %d releases, and there were as many: sign a new one", l.limits.Total)
	case len(slices.DeleteFunc(slices.Clone(l.gone), func(at time.Time) bool { return now.Sub(at) >= time.Hour })) >= l.limits.PerHour:
		return evidence.Refuse("too_many_releases", "the policy allows %d releases in an hour: wait", l.limits.PerHour)
	}
	if err := a.fresh(now); err != nil {
		return err
	}
	l.Recall(a.Request, now)
	return nil
}
