package api_test

import (
	"bytes"
	"context"
	"fmt"
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
	"github.com/tandem-tune/tandem/web/usecases"
)

func TestSameKeyGetsTheSameAnswer(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	first := s.admin("POST", "/api/v1/studies", smallStudy, "Content-Type", "application/yaml", "Idempotency-Key", "one")
	if first.status != 201 || first.header.Get("Idempotency-Replayed") != "" {
		t.Fatalf("%d %s", first.status, first.body)
	}
	again := s.admin("POST", "/api/v1/studies", smallStudy, "Content-Type", "application/yaml", "Idempotency-Key", "one")
	if again.status != 201 || again.header.Get("Idempotency-Replayed") != "true" || !bytes.Equal(bytes.TrimSpace(first.body), bytes.TrimSpace(again.body)) {
		t.Fatalf("%d replayed %q:\n%s\nwas\n%s", again.status, again.header.Get("Idempotency-Replayed"), again.body, first.body)
	}
	if got := again.header.Get("Content-Type"); got != "application/json" {
		t.Errorf("type %q", got)
	}
	for name, other := range map[string]ask{
		"another body":  {method: "POST", path: "/api/v1/studies", body: smallStudy + "\n# more"},
		"another query": {method: "POST", path: "/api/v1/studies?like=small", body: smallStudy},
		"another path":  {method: "POST", path: "/api/v1/studies/small/stop"},
	} {
		other.token, other.header = s.secrets[auth.Admin], map[string]string{"Content-Type": "application/yaml", "Idempotency-Key": "one"}
		t.Log(name)
		s.do(other).problem(t, 422, problem.KeyReused)
	}
	gone := s.admin("DELETE", "/api/v1/studies/small", "", "Idempotency-Key", "two")
	repeated := s.admin("DELETE", "/api/v1/studies/small", "", "Idempotency-Key", "two")
	if gone.status != 204 || repeated.status != 204 || repeated.header.Get("Idempotency-Replayed") != "true" || len(repeated.body) != 0 {
		t.Fatalf("deleted with %d, then %d %s", gone.status, repeated.status, repeated.body)
	}
	s.admin("DELETE", "/api/v1/studies/small", "").problem(t, 404, problem.NotFound)
}

func TestKeysOfDifferentTokensNeverMeet(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.create()
	s.worker()
	body := fmt.Sprintf(`{"worker":%q}`, workerID)
	trials := map[string]bool{}
	for _, scope := range []auth.Scope{auth.Worker, auth.Admin} {
		got := s.do(ask{method: "POST", path: "/api/v1/leases", body: body, token: s.secrets[scope], header: map[string]string{"Idempotency-Key": "k"}})
		if got.status != 200 || got.header.Get("Idempotency-Replayed") != "" {
			t.Fatalf("%d %s", got.status, got.body)
		}
		trials[string(got.body)] = true
	}
	if len(trials) != 2 {
		t.Fatal("two tokens got one lease")
	}
}

func TestOneKeyAtOnceLeasesOneTrial(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.create()
	s.worker()
	body := fmt.Sprintf(`{"worker":%q}`, workerID)
	answers := make([]answer, 8)
	var all sync.WaitGroup
	for i := range answers {
		all.Go(func() {
			answers[i] = s.do(ask{method: "POST", path: "/api/v1/leases", body: body, token: s.secrets[auth.Worker], header: map[string]string{"Idempotency-Key": "k"}})
		})
	}
	all.Wait()
	for _, got := range answers {
		if got.status != 200 || string(bytes.TrimSpace(got.body)) != string(bytes.TrimSpace(answers[0].body)) {
			t.Fatalf("%d %s\nand %s", got.status, got.body, answers[0].body)
		}
	}
	page, err := s.client(auth.Admin).Study(t.Context(), "small")
	if err != nil || page.Progress.Created != 1 {
		t.Fatalf("%d trials for one key: %v", page.Progress.Created, err)
	}
}

// TestAttemptsAtOnceGetOneAnswer sends the attempts of one call all at once:
// none may see the state that another of them has just made.
func TestAttemptsAtOnceGetOneAnswer(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.create()
	worker := s.worker()
	lease := s.lease(worker)
	for epoch := lease.FirstEpoch; epoch <= lease.Budget.Epochs; epoch++ {
		if _, err := worker.Report(t.Context(), lease.Trial, reportOf(lease, epoch, 0.5)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		method, path, body string
		status             int
	}{
		{"POST", fmt.Sprintf("/api/v1/trials/%s/finish", lease.Trial), fmt.Sprintf(`{"lease_epoch":%d,"outcome":"budget_reached"}`, lease.LeaseEpoch), 200},
		{"POST", "/api/v1/studies/small/enqueue", `{"configurations":[{}]}`, 200},
		{"POST", "/api/v1/studies/small/pause", "", 200}, {"POST", "/api/v1/studies/small/resume", "", 200},
		{"POST", "/api/v1/studies/small/stop", "", 200}, {"POST", "/api/v1/studies/small/extend", `{"trials":3}`, 200}, {"POST", "/api/v1/studies/small/set", `{"priority":3}`, 200}, {"DELETE", "/api/v1/studies/small", "", 204},
	} {
		answers := make([]answer, 6)
		var all sync.WaitGroup
		for i := range answers {
			all.Go(func() { answers[i] = s.admin(c.method, c.path, c.body, "Idempotency-Key", c.path) })
		}
		all.Wait()
		replayed := 0
		for _, got := range answers {
			if got.status != c.status || !bytes.Equal(bytes.TrimSpace(got.body), bytes.TrimSpace(answers[0].body)) {
				t.Errorf("%s: %d %s\nand %d %s", c.path, got.status, got.body, answers[0].status, answers[0].body)
			}
			if got.header.Get("Idempotency-Replayed") == "true" {
				replayed++
			}
		}
		if replayed != len(answers)-1 {
			t.Errorf("%s: %d of %d answers are replayed", c.path, replayed, len(answers))
		}
	}
}

// held has a use case that takes a while.
type held struct{ usecases.All }

func (h held) Pause(ctx context.Context, ref string) (protocol.StudyView, error) {
	time.Sleep(time.Second)
	return h.All.Pause(ctx, ref)
}

// TestAttemptThatOverlapsWaits sends the second attempt of a call while the
// first is under way, and a third one whose client does not wait for it.
func TestAttemptThatOverlapsWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := build(t, func(c *api.Config) { c.Studies = useCases(held{c.Studies}) })
		path := "/api/v1/studies/" + s.stored() + "/pause"
		attempt := func(ctx context.Context) *httptest.ResponseRecorder {
			r := httptest.NewRequestWithContext(ctx, "POST", path, nil)
			r.Host = "localhost"
			r.Header.Set("Authorization", "Bearer "+s.secrets[auth.Admin])
			r.Header.Set("Idempotency-Key", "k")
			recorder := httptest.NewRecorder()
			s.handler.ServeHTTP(recorder, r)
			return recorder
		}
		var all sync.WaitGroup
		var first, second *httptest.ResponseRecorder
		all.Go(func() { first = attempt(t.Context()) })
		synctest.Wait()
		all.Go(func() { second = attempt(t.Context()) })
		hurried, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if got := attempt(hurried); got.Code != 503 {
			t.Errorf("a client that hung up: %d %s", got.Code, got.Body)
		}
		all.Wait()
		if first.Code != 200 || second.Code != 200 || second.Header().Get("Idempotency-Replayed") != "true" || first.Body.String() != second.Body.String() {
			t.Fatalf("%d %s\nand %d %s", first.Code, first.Body, second.Code, second.Body)
		}
	})
}

// TestOneKeyForTwoRequestsAtOnce lets two requests with one key race: one of
// them is done, the other learns that the key is taken.
func TestOneKeyForTwoRequestsAtOnce(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	for round := range 10 {
		var answers [2]answer
		var all sync.WaitGroup
		for i := range answers {
			file := strings.Replace(smallStudy, "name: small", fmt.Sprintf("name: small-%d-%d", round, i), 1)
			all.Go(func() {
				answers[i] = s.admin("POST", "/api/v1/studies", file, "Content-Type", "application/yaml", "Idempotency-Key", fmt.Sprint(round))
			})
		}
		all.Wait()
		if answers[0].status > answers[1].status {
			answers[0], answers[1] = answers[1], answers[0]
		}
		if answers[0].status != 201 {
			t.Fatalf("%d %s", answers[0].status, answers[0].body)
		}
		answers[1].problem(t, 422, problem.KeyReused)
	}
	if list, err := s.client(auth.Admin).Studies(t.Context()); err != nil || len(list) != 10 {
		t.Fatalf("%d studies for 10 keys: %v", len(list), err)
	}
}

func TestBadKeysAreRefused(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.create()
	for _, key := range []string{" ", "a b", strings.Repeat("k", 129), "caf\u00e9"} {
		s.admin("POST", "/api/v1/studies/small/stop", "", "Idempotency-Key", key).problem(t, 422, problem.Invalid)
	}
	if got := s.admin("POST", "/api/v1/studies/small/stop", "", "Idempotency-Key", strings.Repeat("k", 128)); got.status != 200 {
		t.Fatalf("%d %s", got.status, got.body)
	}
}

func TestFailedCallsKeepNoAnswer(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.admin("POST", "/api/v1/studies/small/pause", "", "Idempotency-Key", "k").problem(t, 404, problem.NotFound)
	s.create()
	if got := s.admin("POST", "/api/v1/studies/small/pause", "", "Idempotency-Key", "k"); got.status != 200 {
		t.Fatalf("the retry of a call that had failed: %d %s", got.status, got.body)
	}
}
