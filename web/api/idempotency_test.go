package api_test

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/tandem-tune/tandem/problem"
	"github.com/tandem-tune/tandem/web/auth"
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
		"another query": {method: "POST", path: "/api/v1/studies?dry_run=true", body: smallStudy},
		"another path":  {method: "POST", path: "/api/v1/studies/small/stop", body: smallStudy},
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
