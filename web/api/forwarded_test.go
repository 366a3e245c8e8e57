package api_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/web/api"
	"github.com/tandem-tune/tandem/web/auth"
)

var trusted = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}

// TestStrangersShutNobodyOut: ten wrong sign-ins from behind a proxy, and a right one
// from there; with and without the flag that names the proxy.
func TestStrangersShutNobodyOut(t *testing.T) {
	t.Parallel()
	for name, proxies := range map[string][]netip.Prefix{"a proxy that is named": trusted, "one that is not": nil} {
		s := build(t, func(c *api.Config) { c.Proxies = proxies })
		sign := func(secret, client string) answer {
			return s.hand("POST", "/api/v1/session", "", "10.0.0.1:4711", fmt.Sprintf(`{"token":%q}`, secret), "X-Forwarded-For", client)
		}
		for i := range 10 {
			sign("tandem_admin_guess", fmt.Sprintf("6.6.6.%d, 192.0.2.66", i)).problem(t, 401, problem.Unauthorized)
		}
		sign("tandem_admin_guess", "6.6.6.99, 192.0.2.66").problem(t, 429, problem.Exhausted)
		for _, client := range []string{"192.0.2.7", "192.0.2.66"} {
			if got := sign(s.secrets[auth.Admin], client); got.status != 204 {
				t.Errorf("%s: a right token from %s: %d %s", name, client, got.status, got.body)
			}
		}
		status := 429 // they share an address
		if proxies != nil {
			status = 401
		}
		if got := sign("tandem_admin_guess", "192.0.2.7"); got.status != status {
			t.Errorf("%s: a wrong token of another client: %d %s", name, got.status, got.body)
		}
	}
}

// TestAFloodFromOneAddressShutsOutNoKnownToken: strangers take all the requests that
// an address has, and a worker at that address works on.
func TestAFloodFromOneAddressShutsOutNoKnownToken(t *testing.T) {
	t.Parallel()
	onTheClock(t, func(t *testing.T) {
		s := build(t, func(c *api.Config) { c.Limits.Requests = 10 })
		s.introduce()
		beat := func(secret string) answer {
			time.Sleep(time.Second)
			for range 100 {
				s.hand("GET", "/api/v1/nothing", "", "192.0.2.1:5", "")
			}
			return s.hand("POST", "/api/v1/workers/"+workerID+"/heartbeat", secret, "192.0.2.1:5", `{"leases":[]}`)
		}
		if got := s.hand("GET", "/api/v1/session", s.secrets[auth.Worker], "192.0.2.1:5", ""); got.status != 200 {
			t.Fatalf("%d %s", got.status, got.body)
		}
		for range 10 {
			if got := beat(s.secrets[auth.Worker]); got.status != 200 {
				t.Fatalf("%d %s", got.status, got.body)
			}
		}
		beat(strings.Replace(s.secrets[auth.Worker], "worker", "admin", 1)).problem(t, 429, problem.Exhausted)
		beat("").problem(t, 429, problem.Exhausted)
		for range 50 {
			s.hand("GET", "/api/v1/session", s.secrets[auth.Worker], "192.0.2.1:5", "")
		}
		s.hand("GET", "/api/v1/session", s.secrets[auth.Worker], "192.0.2.1:5", "").problem(t, 429, problem.Exhausted) // its own bound
	})
}
