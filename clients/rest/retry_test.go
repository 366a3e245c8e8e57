package rest_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

func TestOneKeyForAllAttemptsOfACall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &server{t: t, answer: failing(`{"id":"a"}`, refused, status(503), status(429), status(502), status(504), status(507), cut)}
		client := s.client()
		if view, err := client.CreateStudy(t.Context(), []byte("name: x"), "application/yaml"); err != nil || view.ID != "a" {
			t.Fatalf("%+v: %v", view, err)
		}
		seen := s.requests()
		if len(seen) != 8 {
			t.Fatalf("%d attempts", len(seen))
		}
		key := seen[0].header.Get("Idempotency-Key")
		for _, one := range seen {
			if one.header.Get("Idempotency-Key") != key || len(key) < 20 || one.body != "name: x" || one.header.Get("Content-Type") != "application/yaml" ||
				one.header.Get("Authorization") != "Bearer secret" || one.header.Get("User-Agent") != "test/1" {
				t.Errorf("%+v", one)
			}
		}
		if _, err := client.StopStudy(t.Context(), "x"); err != nil {
			t.Fatal(err)
		}
		if _, err := client.Studies(t.Context()); err != nil {
			t.Fatal(err)
		}
		seen = s.requests()[8:]
		if other := seen[0].header.Get("Idempotency-Key"); other == key || other == "" {
			t.Errorf("another call has the key %q", other)
		}
		if got := seen[1].header.Get("Idempotency-Key"); got != "" {
			t.Errorf("a GET has the key %q", got)
		}
	})
}

// TestWritesUnderALeaseAreNamedByTheirContent: a worker that gave up and calls
// again, even after it was started anew, repeats the same logical call.
func TestWritesUnderALeaseAreNamedByTheirContent(t *testing.T) {
	t.Parallel()
	s := &server{t: t, answer: always(200, "{}")}
	report := protocol.Report{LeaseEpoch: 1, Epoch: 3, Metrics: map[string]trial.Float{"a": 1, "b": 2, "c": 3}}
	calls := []func(*rest.Client) error{
		func(c *rest.Client) error { _, err := c.Report(t.Context(), "x-1", report); return err },
		func(c *rest.Client) error { _, err := c.Report(t.Context(), "x-1", report); return err },
		func(c *rest.Client) error { _, err := c.Report(t.Context(), "x-2", report); return err },
		func(c *rest.Client) error {
			later := report
			later.LeaseEpoch = 2
			_, err := c.Report(t.Context(), "x-1", later)
			return err
		},
		func(c *rest.Client) error {
			_, err := c.Finish(t.Context(), "x-1", protocol.FinishRequest{LeaseEpoch: 1, Outcome: protocol.BudgetReached})
			return err
		},
	}
	for _, call := range calls {
		if err := call(s.client()); err != nil {
			t.Fatal(err)
		}
	}
	keys := map[string]int{}
	for _, one := range s.requests() {
		keys[one.header.Get("Idempotency-Key")]++
	}
	if len(keys) != 4 {
		t.Fatalf("%d keys for four logical calls: %v", len(keys), keys)
	}
}

func TestPausesGrowAndDiffer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		first := map[time.Duration]bool{}
		for range 5 {
			s := &server{t: t, answer: always(503, "")}
			_, err := s.client().Studies(t.Context())
			if !problem.Is(err, problem.Unavailable) {
				t.Fatal(err)
			}
			seen := s.requests()
			longest := 100 * time.Millisecond
			for i := range seen[1:] {
				pause := seen[i+1].at.Sub(seen[i].at)
				if pause < longest/2 || pause >= longest {
					t.Errorf("pause %d is %v, want it from %v up to %v", i, pause, longest/2, longest)
				}
				longest = min(2*longest, 5*time.Second)
			}
			first[seen[1].at.Sub(seen[0].at)] = true
			if took := seen[len(seen)-1].at.Sub(seen[0].at); took > time.Minute || took < 50*time.Second {
				t.Errorf("it was tried for %v", took)
			}
		}
		if len(first) < 2 {
			t.Error("every client comes back at the same moment")
		}
	})
}

func TestTheServerIsAskedWhenItSaysSo(t *testing.T) {
	t.Parallel()
	date := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, c := range map[string]struct {
		header []string
		least  time.Duration
	}{
		"seconds":   {[]string{"Retry-After", "7"}, 7 * time.Second},
		"a date":    {[]string{"Retry-After", date.Add(9 * time.Second).Format(http.TimeFormat), "Date", date.Format(http.TimeFormat)}, 9 * time.Second},
		"the past":  {[]string{"Retry-After", date.Add(-time.Hour).Format(http.TimeFormat), "Date", date.Format(http.TimeFormat)}, 50 * time.Millisecond},
		"nonsense":  {[]string{"Retry-After", "soon"}, 50 * time.Millisecond},
		"negative":  {[]string{"Retry-After", "-5"}, 50 * time.Millisecond},
		"forbidden": {[]string{"Retry-After", "100000"}, 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &server{t: t, answer: failing("{}", status(429, c.header...))}
				if _, err := s.client(func(o *rest.Options) { o.Patience = 10 * time.Minute }).Study(t.Context(), "x"); err != nil {
					t.Fatal(err)
				}
				seen := s.requests()
				if pause := seen[1].at.Sub(seen[0].at); pause < c.least || pause >= 2*c.least {
					t.Errorf("it came back after %v", pause)
				}
			})
		})
	}
}

func TestNothingElseIsTriedAgain(t *testing.T) {
	t.Parallel()
	for _, code := range []int{301, 307, 400, 401, 403, 404, 405, 409, 413, 415, 422, 500} {
		s := &server{t: t, answer: always(code, "", "Location", "http://evil.test/")}
		if _, err := s.client().StopStudy(t.Context(), "x"); err == nil {
			t.Errorf("%d is a success", code)
		}
		if tries := len(s.requests()); tries != 1 {
			t.Errorf("%d: %d attempts", code, tries)
		}
	}
	once := &server{t: t, answer: func(int, *http.Request) (*http.Response, error) { return refused() }}
	if _, err := once.client().CreateToken(t.Context(), protocol.TokenRequest{Name: "x", Scope: "viewer"}); !problem.Is(err, problem.Unavailable) {
		t.Error(err)
	}
	if tries := once.requests(); len(tries) != 1 || tries[0].header.Get("Idempotency-Key") != "" {
		t.Errorf("a secret was asked for with %+v", tries)
	}
}

func TestPatienceAndContexts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		down := func() *server {
			return &server{t: t, answer: func(int, *http.Request) (*http.Response, error) { return refused() }}
		}
		none := down()
		if _, err := none.client(impatient).Studies(t.Context()); !problem.Is(err, problem.Unavailable) || len(none.requests()) != 1 {
			t.Errorf("%d attempts without patience: %v", len(none.requests()), err)
		}
		short, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		began := time.Now()
		_, err := down().client().Studies(short)
		if !errors.Is(err, context.DeadlineExceeded) || !problem.Is(err, problem.Unavailable) {
			t.Errorf("a context that ended: %v", err)
		}
		if took := time.Since(began); took != 3*time.Second {
			t.Errorf("it took %v", took)
		}
		gone, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if _, err := down().client().Studies(gone); !errors.Is(err, context.Canceled) || problem.Is(err, problem.Unavailable) {
			t.Errorf("cancelled: %v", err)
		}
	})
}

func TestServersThatSayNothingAreGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		deaf := func() *server {
			return &server{t: t, answer: func(_ int, r *http.Request) (*http.Response, error) {
				<-r.Context().Done()
				return nil, context.Cause(r.Context())
			}}
		}
		for name, c := range map[string]struct {
			call func(*rest.Client) error
			took time.Duration
		}{
			"a call": {func(c *rest.Client) error { _, err := c.Studies(t.Context()); return err }, 30 * time.Second},
			"a lease": {func(c *rest.Client) error {
				_, err := c.Lease(t.Context(), protocol.LeaseRequest{WaitSeconds: 50})
				return err
			}, 80 * time.Second},
			"a download": {func(c *rest.Client) error { _, err := c.Artifact(t.Context(), "00"); return err }, 45 * time.Second},
		} {
			began := time.Now()
			if err := c.call(deaf().client(impatient)); !problem.Is(err, problem.Unavailable) {
				t.Errorf("%s: %v", name, err)
			}
			if took := time.Since(began); took != c.took {
				t.Errorf("%s was given up after %v", name, took)
			}
		}
	})
}

// TestWhoWaitsIsToldWhy: at once where the server asks to come back later, and after a
// second or so where attempts fail one after the other; once a call.
func TestWhoWaitsIsToldWhy(t *testing.T) {
	t.Parallel()
	ten, one, soon := status(507, "Retry-After", "10"), status(429, "Retry-After", "1"), status(502)
	for _, c := range []struct {
		failures []func() (*http.Response, error)
		told     int
	}{
		{nil, 0}, {failures(ten), 1}, {failures(ten, ten, ten), 1}, {failures(one), 0}, {failures(soon, soon), 0}, {failures(soon, soon, soon, soon, soon), 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			told := 0
			s := &server{t: t, answer: failing("{}", c.failures...)}
			client := s.client(func(o *rest.Options) { o.Waits = func(error, time.Duration) { told++ } })
			if err := client.Health(t.Context()); err != nil || told != c.told {
				t.Errorf("after %d failures told %d times and not %d: %v", len(c.failures), told, c.told, err)
			}
		})
	}
}

func failures(all ...func() (*http.Response, error)) []func() (*http.Response, error) { return all }
