// Package trouble makes networks bad on purpose, for tests: requests that never
// arrive, that arrive late, twice or again long after; answers that are lost
// when the server has acted already; connections that are slow, stand still or
// break.
//
// [Transport] troubles the requests of one client, [Proxy] the connections to
// one server, and [Network] connects both in one process without sockets, so
// that all of it can run in simulated time (testing/synctest). What happens is
// drawn from a seed. The package knows HTTP and nothing of tandem.
package trouble

import (
	"context"
	"hash/fnv"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"
)

// Kind is what happens to a request.
type Kind string

// The kinds.
const (
	Undisturbed Kind = "undisturbed"
	Refused     Kind = "refused"  // it does not arrive
	Lost        Kind = "lost"     // it arrives, and the answer does not
	Cut         Kind = "cut"      // the answer breaks off
	Twice       Kind = "twice"    // it arrives twice at the same time
	Replayed    Kind = "replayed" // it arrives once more, later
	Delayed     Kind = "delayed"  // it arrives later, perhaps behind what was sent after it
)

// Odds are how often each kind of trouble comes, each from 0 to 1 and together
// at most 1; what is left is undisturbed.
type Odds struct {
	Refused, Lost, Cut, Twice, Replayed, Delayed float64
	// Longest bounds how much later a request arrives, the first or the second time.
	Longest time.Duration
}

// Everything is trouble of every kind, in about half of the requests.
func Everything(longest time.Duration) Odds {
	return Odds{Refused: 0.08, Lost: 0.12, Cut: 0.06, Twice: 0.1, Replayed: 0.1, Delayed: 0.08, Longest: longest}
}

// copyPatience is how long a copy that nobody waits for may take.
const copyPatience = time.Minute

// Transport troubles the requests that go through it. It is safe for concurrent
// use. What happens to a client's n-th request of a method to a path depends on
// the seed alone, and not on what other requests are under way.
type Transport struct {
	next http.RoundTripper
	seed uint64
	odds Odds

	ctx    context.Context // ends the copies that nobody waits for
	cancel context.CancelFunc
	copies sync.WaitGroup

	mutex  sync.Mutex
	calm   bool
	sent   map[string]uint64
	counts map[Kind]int
}

// NewTransport troubles requests on their way to next. Close ends it.
func NewTransport(next http.RoundTripper, seed uint64, odds Odds) *Transport {
	ctx, cancel := context.WithCancel(context.Background())
	return &Transport{next: next, seed: seed, odds: odds, ctx: ctx, cancel: cancel, sent: map[string]uint64{}, counts: map[Kind]int{}}
}

// Calm ends all trouble but copies that are on their way.
func (t *Transport) Calm() {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.calm = true
}

// Counts says how many requests met with what.
func (t *Transport) Counts() map[Kind]int {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return maps.Clone(t.counts)
}

// Wait returns when every copy has arrived.
func (t *Transport) Wait() { t.copies.Wait() }

// Close calls back the copies that are on their way.
func (t *Transport) Close() {
	t.Calm()
	t.cancel()
	t.copies.Wait()
}

// fate is what happens to one request, how much later it arrives, and how many
// bytes of a cut answer do.
type fate struct {
	kind  Kind
	later time.Duration
	bytes int
}

func (t *Transport) draw(request *http.Request) fate {
	name := fnv.New64a()
	_, _ = io.WriteString(name, request.Method+" "+request.URL.Path) // a hash takes everything
	t.mutex.Lock()
	defer t.mutex.Unlock()
	key := request.Method + " " + request.URL.Path
	n := t.sent[key]
	t.sent[key]++
	f := fate{kind: Undisturbed}
	if !t.calm {
		random := rand.New(rand.NewPCG(t.seed, name.Sum64()+n))
		f = t.odds.fate(random)
	}
	t.counts[f.kind]++
	return f
}

func (o Odds) fate(random *rand.Rand) fate {
	f := fate{kind: Undisturbed, bytes: random.IntN(64)}
	if o.Longest > 0 {
		f.later = time.Duration(random.Int64N(int64(o.Longest)))
	}
	draw := random.Float64()
	for _, one := range []struct {
		kind Kind
		odds float64
	}{{Refused, o.Refused}, {Lost, o.Lost}, {Cut, o.Cut}, {Twice, o.Twice}, {Replayed, o.Replayed}, {Delayed, o.Delayed}} {
		if draw -= one.odds; draw < 0 {
			f.kind = one.kind
			return f
		}
	}
	return f
}

// RoundTrip sends the request as its fate is. One whose body cannot be had
// twice arrives once.
func (t *Transport) RoundTrip(request *http.Request) (*http.Response, error) {
	f := t.draw(request)
	switch f.kind {
	case Refused:
		if request.Body != nil {
			_ = request.Body.Close() // as every transport has to
		}
		return nil, broken("dial", syscall.ECONNREFUSED)
	case Delayed:
		if err := sleep(request.Context(), f.later); err != nil {
			if request.Body != nil {
				_ = request.Body.Close()
			}
			return nil, err
		}
	case Twice:
		t.copy(request, 0)
	}
	response, err := t.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	switch f.kind {
	case Lost:
		_, _ = io.CopyN(io.Discard, response.Body, 1<<20) // the server has answered, whatever comes
		_ = response.Body.Close()
		return nil, broken("read", syscall.ECONNRESET)
	case Cut:
		response.Body = &cutBody{ReadCloser: response.Body, left: f.bytes}
	case Replayed:
		t.copy(request, f.later)
	}
	return response, nil
}

// copy sends the request once more, and lets nobody wait for it.
func (t *Transport) copy(request *http.Request, later time.Duration) {
	again := request.Clone(context.WithoutCancel(request.Context()))
	if request.Body != nil && request.Body != http.NoBody {
		if request.GetBody == nil {
			return
		}
		body, err := request.GetBody()
		if err != nil {
			return
		}
		again.Body = body
	}
	t.copies.Go(func() {
		ctx, cancel := context.WithTimeout(t.ctx, later+copyPatience)
		defer cancel()
		if sleep(ctx, later) != nil {
			return
		}
		response, err := t.next.RoundTrip(again.WithContext(ctx))
		if err != nil {
			return
		}
		_, _ = io.CopyN(io.Discard, response.Body, 1<<20)
		_ = response.Body.Close()
	})
}

// cutBody breaks off behind so many bytes, or where the whole of it was.
type cutBody struct {
	io.ReadCloser
	left int
}

func (b *cutBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, broken("read", syscall.ECONNRESET)
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left)])
	b.left -= n
	if err == io.EOF {
		err = broken("read", syscall.ECONNRESET)
	}
	return n, err
}

func broken(operation string, err error) error {
	return &net.OpError{Op: operation, Net: "tcp", Err: err}
}

func sleep(ctx context.Context, span time.Duration) error {
	timer := time.NewTimer(span)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
