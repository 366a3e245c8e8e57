package api_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/web/api"
	"github.com/tandem-tune/tandem/web/auth"
)

// crowd is many clients that begin a request and do not end it.
type crowd struct {
	s    *stage
	sent sync.WaitGroup
}

// halfOpen has so many clients announce a body and send so much of it.
func (c *crowd) halfOpen(clients int, call, secret string, announced, sent int) {
	c.s.t.Helper()
	head := call + " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
	if secret != "" {
		head += "Authorization: Bearer " + secret + "\r\n"
	}
	if announced < 0 {
		head += fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n", sent+1)
	} else {
		head += fmt.Sprintf("Content-Length: %d\r\n\r\n", announced)
	}
	text := head + strings.Repeat(" ", sent)
	for range clients {
		connection, err := net.Dial("tcp", c.s.server.Listener.Addr().String())
		if err != nil {
			c.s.t.Fatal(err)
		}
		c.s.t.Cleanup(func() { connection.Close() })
		c.sent.Go(func() { io.WriteString(connection, text) }) // one that is refused is cut off
	}
}

// TestHalfOpenBodiesHoldUpNobodyElse: strangers and a user hold as many bodies open
// as they can, and everybody else works on.
func TestHalfOpenBodiesHoldUpNobodyElse(t *testing.T) {
	t.Parallel()
	watch := newWatcher()
	s := newStage(t, func(c *api.Config) { c.Monitor = watch })
	s.issue(auth.Request{Name: "mallory", Scope: auth.User})
	mallory := s.secrets["mallory"]
	s.create()
	worker := s.worker()
	lease := s.lease(worker)
	c := &crowd{s: s}
	c.halfOpen(500, "POST /api/v1/session", "", 1<<20, 1)
	c.halfOpen(500, "POST /api/v1/session", "", 4<<10, 4<<10-1)
	c.halfOpen(100, "POST /api/v1/session", "", -1, 1<<10)
	c.halfOpen(300, "POST /api/v1/studies", mallory, 1<<20, 1)
	c.halfOpen(150, "POST /api/v1/studies", mallory, -1, 1<<20-1)
	c.halfOpen(300, "POST /api/v1/workers/w/heartbeat", mallory, 1<<20, 1)
	c.halfOpen(75, "POST /api/v1/trials/x-0/reports", mallory, -1, 1<<20-1)
	c.sent.Wait()
	eventually(t, "somebody met the bound", func() bool { return watch.count(watch.limited, "bodies") > 0 })

	beat := protocol.Heartbeat{Leases: []protocol.HeldLease{{Trial: lease.Trial, LeaseEpoch: lease.LeaseEpoch}}}
	reply, err := worker.Heartbeat(t.Context(), workerID, beat)
	if err != nil || len(reply.Lost) > 0 {
		t.Fatalf("a heartbeat: %+v, %v", reply, err)
	}
	s.train(worker, lease, 0.5) // reports and a finish
	large := strings.Replace(smallStudy, "small", "large", 1) + "#" + strings.Repeat("x", 500_000)
	if got := s.admin("POST", "/api/v1/studies", large, "Content-Type", "application/yaml"); got.status != 201 {
		t.Errorf("a large write: %d %s", got.status, got.body)
	}
	s.signIn(auth.Viewer)
}

// hang begins a call from an address, sends so much of a body without a length and
// no more before the context ends. What it returns is the answer's status by then.
func (s *stage) hang(ctx context.Context, target, secret, from string, sent int) *httptest.ResponseRecorder {
	method := "POST"
	if strings.HasPrefix(target, "/api/v1/artifacts/") {
		method = "PUT"
	}
	r := httptest.NewRequestWithContext(s.t.Context(), method, target, io.MultiReader(strings.NewReader(strings.Repeat(" ", sent)), stuck{ctx}))
	r.Host, r.RemoteAddr = "localhost", from
	if secret != "" {
		r.Header.Set("Authorization", "Bearer "+secret)
	}
	recorder := httptest.NewRecorder()
	recorder.Code = 0
	go s.handler.ServeHTTP(recorder, r)
	return recorder
}

// stuck is the rest of a body that does not come.
type stuck struct{ ctx context.Context }

func (s stuck) Read([]byte) (int, error) {
	<-s.ctx.Done()
	return 0, io.ErrUnexpectedEOF
}

// TestBodiesInMemoryAreShared: what one client can hold is a share, whatever it
// sends, and many clients leave room for one more.
func TestBodiesInMemoryAreShared(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		target  string
		clients int
		sent    int
		key     func(s *stage, i int) (secret, from string)
		least   int // of those that are let in
		most    int
	}{
		"one token's writes":  {"/api/v1/studies", 60, 1 << 20, func(s *stage, _ int) (string, string) { return s.secrets["mallory"], "192.0.2.9:1" }, 25, 30},
		"one token's reports": {"/api/v1/trials/x-0/reports", 60, 1 << 20, func(s *stage, _ int) (string, string) { return s.secrets["mallory"], "192.0.2.9:1" }, 28, 32},
		"many tokens' reports": {"/api/v1/trials/x-0/reports", 300, 1 << 18, func(s *stage, i int) (string, string) {
			return s.secrets[auth.Scope(fmt.Sprintf("user%d", i%40))], "192.0.2.9:1"
		}, 200, 250},
		"one address":                {"/api/v1/session", 700, 4<<10 - 1, func(_ *stage, _ int) (string, string) { return "", "192.0.2.9:1" }, 500, 512},
		"one network":                {"/api/v1/session", 700, 4<<10 - 1, func(_ *stage, i int) (string, string) { return "", fmt.Sprintf("[2001:db8::%x]:1", i) }, 500, 512},
		"many addresses":             {"/api/v1/session", 2500, 4<<10 - 1, func(_ *stage, i int) (string, string) { return "", fmt.Sprintf("[2001:db8:0:%x::1]:1", i) }, 2000, 2047},
		"what is said to be no body": {"/api/v1/session", 500, 0, func(_ *stage, _ int) (string, string) { return "", "192.0.2.9:1" }, 500, 500},
		"a byte of a body":           {"/api/v1/studies", 2500, 1, func(s *stage, _ int) (string, string) { return s.secrets["mallory"], "192.0.2.9:1" }, 2500, 2500},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onTheClock(t, func(t *testing.T) {
				s := build(t)
				s.issue(auth.Request{Name: "mallory", Scope: auth.User})
				for i := range 40 {
					s.issue(auth.Request{Name: fmt.Sprintf("user%d", i), Scope: auth.User})
				}
				id := s.stored()
				s.introduce()
				ctx, end := context.WithCancel(t.Context())
				let, refused := []*httptest.ResponseRecorder{}, 0
				for i := range c.clients {
					secret, from := c.key(s, i)
					began := s.hang(ctx, c.target, secret, from, c.sent)
					synctest.Wait()
					switch began.Code {
					case 0:
						let = append(let, began)
					case 503:
						refused++
					default:
						t.Fatalf("%d %s", began.Code, began.Body)
					}
				}
				if len(let) < c.least || len(let) > c.most || len(let)+refused != c.clients {
					t.Errorf("%d of %d were let in, want %d to %d", len(let), c.clients, c.least, c.most)
				}
				s.worksOn(id)
				end()
				synctest.Wait()
				for _, one := range let {
					if one.Code != 400 {
						t.Fatalf("a body that was cut off: %d %s", one.Code, one.Body)
					}
				}
			})
		})
	}
}

// worksOn has another client do all that must always be possible.
func (s *stage) worksOn(study string) {
	s.t.Helper()
	for _, c := range []struct {
		target, body string
		scope        auth.Scope
		status       int
	}{
		{"/api/v1/session", fmt.Sprintf(`{"token":%q}`, s.secrets[auth.Admin]), "", 204},
		{"/api/v1/leases", `{"worker":"worker-0001"}`, auth.Worker, 200},
		{"/api/v1/workers/worker-0001/heartbeat", fmt.Sprintf(`{"leases":[{"trial_id":"%s-0","lease_epoch":1}]%s}`, study, strings.Repeat(" ", 100_000)), auth.Worker, 200},
		{"/api/v1/trials/" + study + "-0/reports", `{"lease_epoch":1,"epoch":1,"metrics":{"loss":1}}` + strings.Repeat(" ", 200_000), auth.Worker, 200},
		{"/api/v1/trials/" + study + "-0/finish", `{"lease_epoch":1,"outcome":"budget_reached"}`, auth.Worker, 200},
		{"/api/v1/studies/" + study + "/annotate", `{"note":"x"}` + strings.Repeat(" ", 500_000), auth.Admin, 200},
	} {
		if got := s.hand("POST", c.target, s.secrets[c.scope], "192.0.2.1:5", c.body); got.status != c.status {
			s.t.Errorf("%s: %d %s", c.target, got.status, got.body)
		}
	}
}

// TestBodiesOfEverySizeArrive sends bodies around every size at which memory is taken.
func TestBodiesOfEverySizeArrive(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	for _, size := range []int{1 << 10, 1 << 11, 1 << 15, 1 << 20} {
		for _, size := range []int{size - 1, size, size + 1} {
			body := smallStudy + "#" + strings.Repeat("x", size-len(smallStudy)-1)
			ask := ask{method: "POST", path: "/api/v1/preview", body: body, token: s.secrets[auth.Admin], header: map[string]string{"Content-Type": "application/yaml"}}
			for what, got := range map[string]answer{"with its length": s.do(ask), "in chunks": s.doChunked(ask, &trickle{strings.NewReader(body)})} {
				if size > 1<<20 {
					got.problem(t, 413, problem.Exhausted)
				} else if got.status != 200 {
					t.Errorf("%d bytes %s: %d %s", size, what, got.status, got.body)
				}
			}
		}
	}
	// A call about a session holds a token, and never more.
	for size, status := range map[int]int{4 << 10: 401, 4<<10 + 1: 413} {
		body := `{"token":"x"}`
		body += strings.Repeat(" ", size-len(body))
		sign := ask{method: "POST", path: "/api/v1/session", body: body}
		if got := s.do(sign); got.status != status {
			t.Errorf("a sign-in of %d bytes: %d %s", size, got.status, got.body)
		}
		if got := s.doChunked(sign, &trickle{strings.NewReader(body)}); got.status != status {
			t.Errorf("a sign-in of %d bytes in chunks: %d %s", size, got.status, got.body)
		}
	}
}

// trickle gives a byte, and then all there is but never much at once.
type trickle struct{ of io.Reader }

func (t *trickle) Read(into []byte) (int, error) {
	if len(into) > 1000 {
		into = into[:1+len(into)%1000]
	}
	return t.of.Read(into)
}

// TestABodyMayComeByteByByte signs in so slowly that it is just in time.
func TestABodyMayComeByteByByte(t *testing.T) {
	t.Parallel()
	onWire(t, func(w *wire, _ func()) {
		body := fmt.Sprintf(`{"token":%q}`, w.secrets[auth.Admin])
		connection := w.say("", "POST /api/v1/session HTTP/1.1", host, "Content-Type: application/json", "Connection: close", fmt.Sprintf("Content-Length: %d", len(body)), "", "")
		for i := range body {
			time.Sleep(200 * time.Millisecond)
			if _, err := io.WriteString(connection, body[i:i+1]); err != nil {
				t.Fatal(err)
			}
		}
		if got := w.answered(connection); got.status != 204 {
			t.Errorf("%d %s", got.status, got.body)
		}
	})
}

// TestUploadsAreShared: whoever takes all places that there are for one leaves as many
// to others, and many leave one to whoever comes next.
func TestUploadsAreShared(t *testing.T) {
	t.Parallel()
	for senders, want := range map[int]int{1: 32, 2: 56, 10: 100} {
		onTheClock(t, func(t *testing.T) {
			watch := newWatcher()
			s := build(t, func(c *api.Config) { c.Monitor = watch })
			ctx, end := context.WithCancel(t.Context())
			let := 0
			for i := range senders {
				name := fmt.Sprintf("mallory%d", i)
				for range 2 { // another token makes nobody another
					s.issue(auth.Request{Name: name, Scope: auth.User})
					for range 40 {
						began := s.hang(ctx, "/api/v1/artifacts/"+strings.Repeat("0", 64), s.secrets[auth.Scope(name)], "192.0.2.9:1", 1)
						synctest.Wait()
						if began.Code == 0 {
							let++
						} else if began.Code != 503 {
							t.Fatalf("%d %s", began.Code, began.Body)
						}
					}
				}
			}
			if let < want || let > 124 || watch.count(watch.limited, "uploads") != 80*senders-let {
				t.Errorf("%d uploads of %d senders were let in, want %d: %v", let, senders, want, watch.limited)
			}
			data := "weights"
			if got := s.hand("PUT", "/api/v1/artifacts/"+hashOf([]byte(data)), s.secrets[auth.Worker], "192.0.2.1:5", data); got.status != 204 {
				t.Errorf("beside %d senders: %d %s", senders, got.status, got.body)
			}
			end()
			synctest.Wait()
		})
	}
}

// TestManyUploadsOfOneMustNotCrawl: at the least pace of one upload, many are ended.
func TestManyUploadsOfOneMustNotCrawl(t *testing.T) {
	t.Parallel()
	onWire(t, func(w *wire, _ func()) {
		upload := func(scope auth.Scope) net.Conn {
			return w.say("", "PUT /api/v1/artifacts/"+strings.Repeat("0", 64)+" HTTP/1.1", host, w.bearer(scope), "Content-Length: 2000000", "", "")
		}
		crawl := func(one net.Conn) error {
			time.Sleep(50 * time.Second)
			_, err := io.WriteString(one, strings.Repeat("x", 16<<10))
			return err
		}
		single, ended := upload(auth.Worker), make(chan error, 1)
		go func() {
			var err error
			for range 10 {
				err = errors.Join(err, crawl(single))
			}
			ended <- err
		}()
		began := time.Now()
		many := []net.Conn{}
		for range 8 {
			many = append(many, upload(auth.Admin))
		}
		var all sync.WaitGroup
		for _, one := range many {
			go func() {
				for crawl(one) == nil { // until it is cut off
				}
			}()
			all.Go(func() { w.answered(one).problem(t, 408, problem.Unavailable) })
		}
		all.Wait()
		if err := <-ended; err != nil {
			t.Errorf("the one upload of another was cut off after %v: %v", time.Since(began), err)
		}
		single.Close()
		time.Sleep(time.Minute)
	})
}
