package api_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/web/api"
	"github.com/tandem-tune/tandem/web/auth"
	"github.com/tandem-tune/tandem/web/limit"
)

// watcher remembers what the API told its monitor.
type watcher struct {
	mutex    sync.Mutex
	answered map[string]int // by route and status
	limited  map[string]int // by bound
}

func newWatcher() *watcher {
	return &watcher{answered: map[string]int{}, limited: map[string]int{}}
}

func (w *watcher) Answered(route string, status int, _ time.Duration) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.answered[fmt.Sprintf("%s %d", route, status)]++
}

func (w *watcher) Limited(bound string) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.limited[bound]++
}

func (w *watcher) ServeHTTP(out http.ResponseWriter, _ *http.Request) {
	io.WriteString(out, "tandem_healthy 1\n")
}

func (w *watcher) count(of map[string]int, key string) int {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return of[key]
}

// retryAfter reads the header that every client of ours obeys.
func (a answer) retryAfter(t *testing.T) int {
	t.Helper()
	seconds, err := strconv.Atoi(a.header.Get("Retry-After"))
	if err != nil || seconds < 1 {
		t.Fatalf("Retry-After is %q", a.header.Get("Retry-After"))
	}
	return seconds
}

func TestLimitsOnRequestsOfOneToken(t *testing.T) {
	t.Parallel()
	onTheClock(t, func(t *testing.T) {
		watch := newWatcher()
		s := build(t, func(c *api.Config) { c.Limits, c.Monitor = limit.PerSecond{Requests: 10}, watch })
		read := func(scope auth.Scope) answer {
			return s.hand("GET", "/api/v1/studies", s.secrets[scope], "192.0.2.1:5", "")
		}
		for i := range 40 {
			if got := read(auth.Viewer); got.status != 200 {
				t.Fatalf("request %d: %d %s", i, got.status, got.body)
			}
		}
		got := read(auth.Viewer)
		got.problem(t, 429, problem.Exhausted)
		if got.retryAfter(t) != 1 || watch.count(watch.limited, "token") != 1 {
			t.Errorf("Retry-After %s, limited %v", got.header.Get("Retry-After"), watch.limited)
		}
		if got := read(auth.Admin); got.status != 200 {
			t.Errorf("another token waits with it: %d", got.status)
		}
		if got := s.hand("GET", "/healthz", "", "192.0.2.1:5", ""); got.status != 200 {
			t.Errorf("health takes a token's place: %d", got.status)
		}
		time.Sleep(time.Second)
		for i := range 10 {
			if got := read(auth.Viewer); got.status != 200 {
				t.Fatalf("a second later, request %d: %d", i, got.status)
			}
		}
		read(auth.Viewer).problem(t, 429, problem.Exhausted)
	})
}

func TestLimitsOnRequestsOfOneAddress(t *testing.T) {
	t.Parallel()
	onTheClock(t, func(t *testing.T) {
		watch := newWatcher()
		s := build(t, func(c *api.Config) { c.Limits, c.Monitor = limit.PerSecond{Requests: 10}, watch })
		from := func(address string) answer { return s.hand("GET", "/api/v1/studies", "", address, "") }
		for range 80 {
			from("[2001:db8::1]:9").problem(t, 401, problem.Unauthorized)
		}
		got := from("[2001:db8::2]:9") // of the same network
		got.problem(t, 429, problem.Exhausted)
		if got.retryAfter(t) != 1 || watch.count(watch.limited, "address") != 1 {
			t.Errorf("limited %v", watch.limited)
		}
		from("192.0.2.1:5").problem(t, 401, problem.Unauthorized)
	})
}

// Five thousand workers with one token behind one proxy make 500 requests a
// second, and 15,000 at once when their server comes back.
func TestLimitsLetAFleetBehindOneProxyWork(t *testing.T) {
	t.Parallel()
	onTheClock(t, func(t *testing.T) {
		s := build(t)
		s.introduce()
		beat := func(count int) {
			for range count {
				if got := s.hand("POST", "/api/v1/workers/"+workerID+"/heartbeat", s.secrets[auth.Worker], "192.0.2.1:5", `{"leases":[]}`); got.status != 200 {
					t.Fatalf("%d %s", got.status, got.body)
				}
			}
		}
		beat(15_000)
		for range 5 {
			time.Sleep(time.Second)
			beat(500)
		}
	})
}

func TestWrongTokensDoNotShutOutRightOnes(t *testing.T) {
	t.Parallel()
	onTheClock(t, func(t *testing.T) {
		watch := newWatcher()
		s := build(t, func(c *api.Config) { c.Monitor = watch })
		try := func(secret string) answer { return s.hand("GET", "/api/v1/studies", secret, "192.0.2.1:5", "") }
		wrong := strings.Replace(s.secrets[auth.Viewer], "viewer", "admin", 1)
		for range 600 {
			try(wrong).problem(t, 401, problem.Unauthorized)
		}
		try(wrong).problem(t, 429, problem.Exhausted)
		if watch.count(watch.limited, "wrong_token") != 1 {
			t.Errorf("limited %v", watch.limited)
		}
		if got := try(s.secrets[auth.Viewer]); got.status != 200 {
			t.Fatalf("a right token beside wrong ones: %d %s", got.status, got.body)
		}
		try("").problem(t, 401, problem.Unauthorized) // nothing was guessed
	})
}

func TestLimitsOnWhatATrialReports(t *testing.T) {
	t.Parallel()
	onTheClock(t, func(t *testing.T) {
		watch := newWatcher()
		s := build(t, func(c *api.Config) { c.Limits, c.Monitor = limit.PerSecond{Points: 10}, watch })
		study := s.stored()
		s.introduce()
		lease := func() {
			if got := s.hand("POST", "/api/v1/leases", s.secrets[auth.Worker], "192.0.2.1:5", `{"worker":"worker-0001"}`); got.status != 200 || !strings.Contains(string(got.body), "trial_id") {
				t.Fatalf("%d %s", got.status, got.body)
			}
		}
		lease()
		lease()
		report := func(trial, metrics string) answer {
			return s.hand("POST", "/api/v1/trials/"+study+"-"+trial+"/reports", s.secrets[auth.Worker], "192.0.2.1:5", `{"lease_epoch":1,"epoch":1,"metrics":{`+metrics+`}}`)
		}
		for range 100 {
			if got := report("0", `"loss":1`); got.status != 200 {
				t.Fatalf("%d %s", got.status, got.body)
			}
		}
		got := report("0", `"loss":1,"a":1,"b":1,"c":1`)
		got.problem(t, 429, problem.Exhausted)
		if got.retryAfter(t) != 1 || watch.count(watch.limited, "points") != 1 {
			t.Errorf("Retry-After %s, limited %v", got.header.Get("Retry-After"), watch.limited)
		}
		if got := report("1", `"loss":1`); got.status != 200 {
			t.Errorf("another trial waits with it: %d %s", got.status, got.body)
		}
		time.Sleep(time.Second)
		if got := report("0", `"loss":1`); got.status != 200 {
			t.Errorf("a second later: %d %s", got.status, got.body)
		}
	})
}

func TestLimitsOnTheNamesATrialReports(t *testing.T) {
	t.Parallel()
	s := build(t)
	study := s.stored()
	s.introduce()
	if got := s.hand("POST", "/api/v1/leases", s.secrets[auth.Worker], "192.0.2.1:5", `{"worker":"worker-0001"}`); got.status != 200 {
		t.Fatalf("%d %s", got.status, got.body)
	}
	report := func(epoch, from, to int) answer {
		metrics := []string{`"loss":1`}
		for i := from; i < to; i++ {
			metrics = append(metrics, fmt.Sprintf(`"step_%d":1`, i))
		}
		return s.hand("POST", "/api/v1/trials/"+study+"-0/reports", s.secrets[auth.Worker], "192.0.2.1:5",
			fmt.Sprintf(`{"lease_epoch":1,"epoch":%d,"metrics":{%s}}`, epoch, strings.Join(metrics, ",")))
	}
	if got := report(1, 0, 999); got.status != 200 {
		t.Fatalf("%d %s", got.status, got.body)
	}
	if told := report(1, 999, 1000).problem(t, 422, problem.Invalid); !told.has("metrics", "at most 1000 different") {
		t.Errorf("%+v", told)
	}
	if got := report(1, 0, 999); got.status != 200 {
		t.Errorf("names it has used already: %d %s", got.status, got.body)
	}
}

func TestBodiesInMemoryAreBounded(t *testing.T) {
	t.Parallel()
	onWire(t, func(w *wire, _ func()) {
		// Clients that send their last byte never, of bodies of a mebibyte: as many
		// as fit into the share of one token.
		head := []string{"POST /api/v1/leases HTTP/1.1", host, w.bearer(auth.Worker), fmt.Sprintf("Content-Length: %d", 1<<20), "", ""}
		var slow []net.Conn
		for range 30 {
			slow = append(slow, w.say(strings.Repeat(" ", 1<<20-1), head...))
		}
		synctest.Wait()
		got := w.answered(w.say(strings.Repeat(" ", 1<<11), head...))
		got.problem(t, 503, problem.Unavailable)
		if got.retryAfter(t) != 1 {
			t.Errorf("Retry-After %s", got.header.Get("Retry-After"))
		}
		time.Sleep(time.Minute) // the others are cut off, and give their room back
		body := strings.Repeat(" ", 1<<20)
		told := w.answered(w.say(body, "POST /api/v1/leases HTTP/1.1", host, w.bearer(auth.Worker), fmt.Sprintf("Content-Length: %d", len(body)), "Connection: close", "", ""))
		told.problem(t, 400, problem.Invalid)
		for _, connection := range slow {
			connection.Close()
		}
		time.Sleep(time.Minute) // until the server has seen that
	})
}

func TestMonitorIsToldOfEveryRequest(t *testing.T) {
	t.Parallel()
	watch := newWatcher()
	s := build(t, func(c *api.Config) { c.Monitor = watch })
	s.hand("GET", "/api/v1/studies/none", s.secrets[auth.Viewer], "192.0.2.1:5", "")
	s.hand("GET", "/api/v1/studies/other", s.secrets[auth.Worker], "192.0.2.1:5", "")
	s.hand("GET", "/api/v1/nothing/at/all", "", "192.0.2.1:5", "")
	s.hand("GET", "/login", "", "192.0.2.1:5", "")
	for key, count := range map[string]int{
		"GET /api/v1/studies/{study} 404": 1, "GET /api/v1/studies/{study} 403": 1, "none 401": 1, "page 200": 1,
	} {
		if got := watch.count(watch.answered, key); got != count {
			t.Errorf("%s: %d in %v", key, got, watch.answered)
		}
	}
}

func TestMetricsTakeAToken(t *testing.T) {
	t.Parallel()
	closed := build(t, func(c *api.Config) { c.Monitor = newWatcher() })
	opened := build(t, func(c *api.Config) { c.Monitor, c.OpenMetrics = newWatcher(), true })
	for _, c := range []struct {
		stage          *stage
		secret, from   string
		header, reason string
		status         int
	}{
		{closed, "", "127.0.0.1:5", "", "no token", 401},
		{closed, closed.secrets[auth.Worker], "127.0.0.1:5", "", "a worker's token", 403},
		{closed, closed.secrets[auth.Viewer], "192.0.2.1:5", "", "a viewer's token", 200},
		{opened, "", "127.0.0.1:5", "", "from this machine", 200},
		{opened, "", "[::1]:5", "", "from this machine", 200},
		{opened, "", "192.0.2.1:5", "", "from elsewhere", 401},
		{opened, "", "", "", "from nowhere", 401},
		{opened, "", "127.0.0.1:5", "X-Forwarded-For", "through a proxy", 401},
		{opened, "", "127.0.0.1:5", "Forwarded", "through a proxy", 401},
		{opened, opened.secrets[auth.Viewer], "127.0.0.1:5", "X-Forwarded-For", "through a proxy with a token", 200},
	} {
		var headers []string
		if c.header != "" {
			headers = []string{c.header, "192.0.2.1"}
		}
		got := c.stage.hand("GET", "/metrics", c.secret, c.from, "", headers...)
		if got.status != c.status || got.status == 200 && !strings.Contains(string(got.body), "tandem_healthy 1") {
			t.Errorf("%s: %d %s", c.reason, got.status, got.body)
		}
	}
	// It opens the metrics and nothing else.
	opened.hand("GET", "/api/v1/studies", "", "127.0.0.1:5", "").problem(t, 401, problem.Unauthorized)
}

func TestReadiness(t *testing.T) {
	t.Parallel()
	var unwell, ending error
	s := build(t, func(c *api.Config) {
		c.Healthy = func() error { return unwell }
		c.Ready = func() error { return ending }
	})
	ask := func(path string) answer { return s.hand("GET", path, "", "192.0.2.1:5", "") }
	if got := ask("/readyz"); got.status != 200 {
		t.Fatalf("%d %s", got.status, got.body)
	}
	ending = fmt.Errorf("it ends")
	if told := ask("/readyz").problem(t, 503, problem.Unavailable); !strings.Contains(told.Detail, "it ends") {
		t.Error(told.Detail)
	}
	if got := ask("/healthz"); got.status != 200 {
		t.Errorf("a server that drains is well: %d", got.status)
	}
	ending, unwell = nil, io.ErrUnexpectedEOF
	ask("/readyz").problem(t, 503, problem.Unavailable)
}
