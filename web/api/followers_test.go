package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tandem-tune/tandem/internal/effort"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/store/memory"
	"github.com/tandem-tune/tandem/study"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/web/api"
	"github.com/tandem-tune/tandem/web/auth"
)

// counted is a store that counts how often events are read.
type counted struct {
	*memory.Store
	reads atomic.Int64
}

func (c *counted) Events(ctx context.Context, id string, after int64, limit int) ([]journal.Event, error) {
	c.reads.Add(1)
	return c.Store.Events(ctx, id, after, limit)
}

// countedStage is a stage on a store that counts.
func countedStage(t *testing.T) (*stage, *counted) {
	t.Helper()
	var store *counted
	var studies *study.Service
	s := newStage(t, func(c *api.Config) {
		store = &counted{Store: c.Tokens.(*memory.Store)}
		var id atomic.Uint64
		studies = study.New(store, store, study.Options{Now: time.Now, Random: func() uint64 { return id.Add(1) }})
		c.Studies = useCases(studies)
	})
	s.studies = studies
	return s, store
}

// watching is one client on a connection of its own.
type watching struct {
	net.Conn
	lines *bufio.Reader
	last  int64
}

// watch opens an event stream and reads its head.
func watch(dial func() (net.Conn, error), token string, after int64) (*watching, error) {
	connection, err := dial()
	if err != nil {
		return nil, err
	}
	w := &watching{Conn: connection, lines: bufio.NewReader(connection), last: after}
	if _, err := fmt.Fprintf(connection, "GET /api/v1/studies/small/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nLast-Event-ID: %d\r\n\r\n", token, after); err != nil {
		return w, err
	}
	response, err := http.ReadResponse(w.lines, nil)
	if err != nil {
		return w, err
	}
	if response.StatusCode != http.StatusOK {
		return w, fmt.Errorf("status %d", response.StatusCode)
	}
	w.lines = bufio.NewReader(response.Body)
	return w, nil
}

// reach reads events up to the sequence, each once and in order.
func (w *watching) reach(sequence int64) error {
	for w.last < sequence {
		line, err := w.lines.ReadString('\n')
		if err != nil {
			return fmt.Errorf("behind %d: %w", w.last, err)
		}
		if id, ok := strings.CutPrefix(line, "id: "); ok {
			w.last++
			if id != fmt.Sprintln(w.last) {
				return fmt.Errorf("%q came, want %d", id, w.last)
			}
		}
	}
	return nil
}

// each does something for all at once and fails the test with the first error.
func each(t *testing.T, all []*watching, do func(i int, w *watching) error) {
	t.Helper()
	var group sync.WaitGroup
	failures := make(chan error, len(all))
	for i, w := range all {
		group.Go(func() {
			if err := do(i, w); err != nil {
				failures <- fmt.Errorf("watcher %d: %w", i, err)
			}
		})
	}
	group.Wait()
	select {
	case err := <-failures:
		t.Fatalf("%v (%d in all)", err, len(failures)+1)
	default:
	}
}

// Hundreds look at one study by day, and thousands at night, with tokens of every kind.
// The store is read once for what happens, and not once for each of them.
func TestManyWatchersOfOneStudy(t *testing.T) {
	t.Parallel()
	s, store := countedStage(t)
	view := s.create()
	link := s.shared(view.ID, time.Hour)
	tokens := []string{s.secrets[auth.Viewer], s.secrets[auth.Admin], s.secrets[auth.Viewer], s.secrets[auth.Viewer], link.Token}
	dial := func() (net.Conn, error) { return net.Dial("tcp", s.server.Listener.Addr().String()) }

	all := make([]*watching, effort.ByDay(t, 200, 2000))
	reads := store.reads.Load()
	each(t, all, func(i int, _ *watching) (err error) {
		all[i], err = watch(dial, tokens[i%len(tokens)], 0)
		return err
	})
	t.Cleanup(func() {
		for _, w := range all {
			_ = w.Close()
		}
	})
	each(t, all, func(_ int, w *watching) error { return w.reach(1) })
	for i := range int64(10) {
		toggle(t, s, i)
		each(t, all, func(_ int, w *watching) error { return w.reach(2 + i) })
	}
	if reads = store.reads.Load() - reads; reads > 40 { // two readers: links may be told less
		t.Errorf("the store was read %d times for 11 events", reads)
	}
}

// Who is far behind reads the past in the store, and what comes then with the others.
func TestWatchersFarBehindCatchUp(t *testing.T) {
	t.Parallel()
	s, store := countedStage(t)
	s.create()
	for i := range int64(3000) {
		toggle(t, s, i)
	}
	dial := func() (net.Conn, error) { return net.Dial("tcp", s.server.Listener.Addr().String()) }
	all := make([]*watching, 8)
	for i := range all {
		var err error
		if all[i], err = watch(dial, s.secrets[auth.Viewer], int64(i*430)); err != nil {
			t.Fatal(err)
		}
		defer all[i].Close()
	}
	each(t, all, func(_ int, w *watching) error { return w.reach(3001) })
	before := store.reads.Load()
	for i := range int64(10) {
		toggle(t, s, i)
	}
	each(t, all, func(_ int, w *watching) error { return w.reach(3011) })
	if reads := store.reads.Load() - before; reads > 20 {
		t.Errorf("the store was read %d times for 10 events", reads)
	}
}

// toggle makes an event: of a pause, and every second time of its end.
func toggle(t *testing.T, s *stage, time int64) {
	t.Helper()
	change := s.studies.Pause
	if time%2 == 1 {
		change = s.studies.Resume
	}
	if _, err := change(t.Context(), "small"); err != nil {
		t.Fatal(err)
	}
}

// A watcher that takes nothing is let go, harms nobody, and comes again behind
// what it has seen.
func TestSlowWatchersAreLetGo(t *testing.T) {
	t.Parallel()
	onWire(t, func(w *wire, _ func()) {
		w.stored()
		dial := func() (net.Conn, error) {
			ours, theirs := net.Pipe()
			w.dialled <- theirs
			return ours, nil
		}
		open := func(after int64) *watching {
			watcher, err := watch(dial, w.secrets[auth.Viewer], after)
			if err != nil {
				t.Fatal(err)
			}
			return watcher
		}
		slow, quick := open(0), open(0)
		defer quick.Close()
		for i := range int64(3000) { // more than is kept of the newest events
			toggle(t, w.stage, i)
			if err := quick.reach(2 + i); err != nil {
				t.Fatal(err)
			}
		}
		go func() { _, _ = io.Copy(io.Discard, quick.lines) }()
		time.Sleep(2 * time.Minute)
		if err := slow.reach(3001); err == nil {
			t.Fatal("a watcher that took nothing for two minutes is served still")
		}
		again := open(slow.last)
		defer again.Close()
		if err := again.reach(3001); err != nil {
			t.Fatal(err)
		}
	})
}

// What was revoked is told nothing more, whoever else follows.
func TestWatchersAreToldNothingOnceTheirTokenIsRevoked(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	view := s.create()
	link := s.shared(view.ID, time.Hour)
	dial := func() (net.Conn, error) { return net.Dial("tcp", s.server.Listener.Addr().String()) }
	other := s.shared(view.ID, time.Hour)
	var all []*watching
	for _, token := range []string{link.Token, other.Token, s.secrets[auth.Viewer]} {
		w, err := watch(dial, token, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		if err := w.reach(1); err != nil {
			t.Fatal(err)
		}
		all = append(all, w)
	}
	if got := s.revoke(auth.Admin, "small", link.ID); got.status != 204 {
		t.Fatal(got.status)
	}
	toggle(t, s, 0)
	if err := all[0].reach(2); err == nil || all[0].last != 1 {
		t.Errorf("with a link that was revoked: %v, at %d", err, all[0].last)
	}
	for _, w := range all[1:] {
		if err := w.reach(2); err != nil {
			t.Error(err)
		}
	}
	if err := s.client(auth.Admin).DeleteStudy(t.Context(), "small"); err != nil {
		t.Fatal(err)
	}
	s.create() // another one of that name
	for _, w := range all[1:] {
		if err := w.reach(10); err == nil || w.last > 3 {
			t.Errorf("of a study that was deleted: %v, at %d", err, w.last)
		}
	}
}

// inert is who takes an answer without a connection.
type inert struct {
	header http.Header
	status chan int
}

func (i inert) Header() http.Header            { return i.header }
func (i inert) WriteHeader(status int)         { i.status <- status }
func (i inert) Write(data []byte) (int, error) { return len(data), nil }
func (i inert) Flush()                         {}

// Whoever takes what there is of event streams, others have some.
func TestNobodyTakesAllEventStreams(t *testing.T) {
	t.Parallel()
	onTheClock(t, func(t *testing.T) {
		seen := newWatcher()
		s := build(t, func(c *api.Config) { c.Monitor = seen })
		s.server = httptest.NewUnstartedServer(nil) // never asked
		ctx, end := context.WithCancel(t.Context())
		// opens follows until it is refused, and returns how many streams it got.
		opens := func(ref string, most int, tokens ...string) int {
			for got := range most {
				r := httptest.NewRequestWithContext(ctx, "GET", "/api/v1/studies/"+ref+"/events", nil)
				r.Host, r.RemoteAddr = "localhost", "192.0.2.1:5"
				r.Header.Set("Authorization", "Bearer "+tokens[got%len(tokens)])
				answer := inert{http.Header{}, make(chan int, 1)}
				go s.handler.ServeHTTP(answer, r)
				switch status := <-answer.status; status {
				case http.StatusOK:
				case http.StatusServiceUnavailable:
					return got
				default:
					t.Fatalf("stream %d: status %d", got, status)
				}
				if got%100 == 99 {
					time.Sleep(2 * time.Second) // a link may not ask as often
				}
			}
			return most
		}
		issue := func(request auth.Request) string {
			secret, _, err := auth.Issue(t.Context(), s.store, request)
			if err != nil {
				t.Fatal(err)
			}
			return secret
		}
		id := s.stored()
		// Her second token is no second share.
		alice := []string{issue(auth.Request{Name: "alice", Scope: auth.User}), issue(auth.Request{Name: "alice", Scope: auth.User})}
		own := s.hand("POST", "/api/v1/studies", alice[0], "192.0.2.1:5", strings.Replace(smallStudy, "small", "hers", 1), "Content-Type", "application/yaml")
		if own.status != http.StatusCreated {
			t.Fatalf("%d %s", own.status, own.body)
		}
		var hers protocol.StudyView
		if err := json.Unmarshal(own.body, &hers); err != nil {
			t.Fatal(err)
		}
		if got := opens("hers", 10_000, alice...); got != 2048 {
			t.Errorf("one user got %d streams", got)
		}
		var links []string
		for range protocol.MaxLinks {
			links = append(links, issue(auth.Request{Name: "readers", Scope: auth.Link, Subject: hers.ID, Life: time.Hour}))
		}
		if got := opens(hers.ID, 10_000, links...); got != 1536 {
			t.Errorf("her links got %d streams", got)
		}
		if got := opens(id, 1000, s.secrets[auth.Viewer]); got != 1000 {
			t.Errorf("the next got %d streams", got)
		}
		if seen.count(seen.limited, "streams") < 2 {
			t.Errorf("limited %v", seen.limited)
		}
		end()
		synctest.Wait()
		ctx, end = context.WithCancel(t.Context())
		defer end()
		if got := opens("hers", 10_000, alice...); got != 2048 {
			t.Errorf("when all had gone she got %d streams", got)
		}
	})
}
