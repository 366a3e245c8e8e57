package api_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/web/api"
	"github.com/tandem-tune/tandem/web/auth"
)

// mute is a store that finds no token while it is told so.
type mute struct {
	auth.Store
	silent atomic.Bool
}

func (m *mute) Token(ctx context.Context, id string) (auth.Token, error) {
	if m.silent.Load() {
		return auth.Token{}, problem.New(problem.Unavailable, "the store does not answer")
	}
	return m.Store.Token(ctx, id)
}

// TestAServerThatRefusesHeartbeatsExpiresNoLease: for want of memory, of a store or of
// requests that the token has left. Its leases last as long as heartbeats come, and
// are over a term after the last one.
func TestAServerThatRefusesHeartbeatsExpiresNoLease(t *testing.T) {
	t.Parallel()
	full := func(s *stage, _ *mute, ctx context.Context) {
		for range 200 {
			s.hang(ctx, "/api/v1/workers/worker-0001/heartbeat", s.secrets[auth.Worker], "192.0.2.1:5", 1<<19)
			synctest.Wait()
		}
	}
	for name, given := range map[string]struct {
		refuse   func(s *stage, tokens *mute, ctx context.Context)
		requests float64
		status   int
	}{
		"a store that does not answer": {func(_ *stage, tokens *mute, _ context.Context) { tokens.silent.Store(true) }, 0, 503},
		"no memory":                    {full, 0, 503},
		"too many requests": {func(s *stage, _ *mute, _ context.Context) {
			for range 40 {
				s.hand("GET", "/api/v1/session", s.secrets[auth.Worker], "192.0.2.2:5", "")
			}
		}, 10, 429},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onTheClock(t, func(t *testing.T) {
				tokens := &mute{}
				s := build(t, func(c *api.Config) {
					tokens.Store, c.Tokens = c.Tokens, tokens
					c.Limits.Requests = given.requests
				})
				study := s.stored()
				s.introduce()
				if got := s.hand("POST", "/api/v1/leases", s.secrets[auth.Worker], "192.0.2.1:5", `{"worker":"worker-0001"}`); got.status != 200 {
					t.Fatalf("%d %s", got.status, got.body)
				}
				live := func(span time.Duration) {
					for range int(span / time.Second) {
						time.Sleep(time.Second)
						s.pass(time.Second)
						if err := s.studies.Tick(t.Context()); err != nil {
							t.Fatal(err)
						}
					}
				}
				beat := func(secret string, padding int) answer {
					return s.hand("POST", "/api/v1/workers/worker-0001/heartbeat", secret, "192.0.2.1:5",
						fmt.Sprintf(`{"leases":[{"trial_id":"%s-0","lease_epoch":1}]%s}`, study, strings.Repeat(" ", padding)))
				}
				held := func() bool { return strings.Contains(string(beat(s.secrets[auth.Worker], 0).body), `"lost":[]`) }
				live(50 * time.Second)
				ctx, end := context.WithCancel(t.Context())
				for range 6 {
					given.refuse(s, tokens, ctx)
					got := beat(s.secrets[auth.Worker], 1<<11)
					if got.status != given.status || got.header.Get("Tandem-Leases") != "kept" {
						t.Fatalf("%d %s, %v", got.status, got.body, got.header)
					}
					live(50 * time.Second)
				}
				// Nobody else keeps a lease so.
				for range 2 {
					given.refuse(s, tokens, ctx)
					for _, secret := range []string{"", "nonsense", strings.Replace(s.secrets[auth.Viewer], "viewer", "worker", 1)} {
						if got := beat(secret, 1<<11); got.header.Get("Tandem-Leases") != "" {
							t.Errorf("the token %.20q: %d %s", secret, got.status, got.body)
						}
					}
				}
				end()
				tokens.silent.Store(false)
				synctest.Wait()
				live(5 * time.Second)
				if !held() {
					t.Fatal("a trial was taken from a worker whose heartbeats came")
				}
				live(70 * time.Second)
				if held() {
					t.Error("a silent worker keeps its trial")
				}
			})
		})
	}
}
