package api_test

import (
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/web/api"
	"github.com/tandem-tune/tandem/web/audit"
	"github.com/tandem-tune/tandem/web/auth"
)

// origins remembers where audited requests came from.
type origins struct {
	mutex sync.Mutex
	last  string
}

func (o *origins) Append(entry audit.Entry) error {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.last = entry.From
	return nil
}

var trusted = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}

func TestForwardedAddresses(t *testing.T) {
	t.Parallel()
	seen := &origins{}
	s := build(t, func(c *api.Config) { c.Proxies, c.Audit = trusted, seen })
	const proxy = "10.0.0.1:4711"
	for _, c := range []struct{ peer, chain, forwarded, want string }{
		{proxy, "192.0.2.7", "", "192.0.2.7"},
		{proxy, "192.0.2.7:99", "", "192.0.2.7"},
		{proxy, " 2001:db8::7 ", "", "2001:db8::7"},
		{proxy, "[2001:db8::7]:99", "", "2001:db8::7"},
		{"[fd00::1]:1", "::ffff:192.0.2.7", "", "192.0.2.7"},
		{"[::ffff:10.0.0.1]:1", "192.0.2.7", "", "192.0.2.7"},
		{proxy, "6.6.6.6, 192.0.2.7", "", "192.0.2.7"},           // what the client says of itself
		{proxy, "6.6.6.6, 192.0.2.7, 10.9.9.9", "", "192.0.2.7"}, // two proxies
		{proxy, `", 192.0.2.7`, "", "192.0.2.7"},                 // a client that would hide
		{proxy, "10.1.1.1,10.2.2.2", "", "10.1.1.1"},             // from within
		{proxy, "192.0.2.7, unknown", "", proxy},                 // the proxy does not say
		{proxy, "192.0.2.7, unknown, 10.9.9.9", "", "10.9.9.9"},  // nor does the outer one
		{proxy, "192.0.2.7,", "", proxy},                         //
		{proxy, "", "", proxy},                                   // the proxy itself
		{"192.0.2.1:5", "6.6.6.6", "", "192.0.2.1:5"},            // no proxy of ours
		{"192.0.2.1:5", "", "for=6.6.6.6", "192.0.2.1:5"},        //
		{"[2001:db8::1]:5", "10.0.0.1", "", "[2001:db8::1]:5"},   //
		{"@", "6.6.6.6", "", "@"},                                //
		{proxy, "", "for=192.0.2.7", "192.0.2.7"},                //
		{proxy, "", "For=192.0.2.7;proto=https", "192.0.2.7"},    //
		{proxy, "", `by=10.0.0.1; for="[2001:db8::7]:99"`, "2001:db8::7"},
		{proxy, "", `for=6.6.6.6, for=192.0.2.7;host="a,b;for=6.6.6.6", for=10.9.9.9`, "192.0.2.7"},
		{proxy, "", `for=6.6.6.6;a=", for="192.0.2.7"`, proxy},   // quotes that do not end
		{proxy, "", `for=6.6.6.6;a="\", for="192.0.2.7"`, proxy}, // or might not
		{proxy, "", "for=_hidden", proxy},                        //
		{proxy, "", "proto=https", proxy},                        //
		{proxy, "192.0.2.7", "for=192.0.2.7", "192.0.2.7"},       // both
		{proxy, "192.0.2.7", "for=6.6.6.6", proxy},               // one of them is the client's own
		{proxy, "6.6.6.6", "for=_hidden", proxy},                 //
		{proxy, "192.0.2.7", `for="`, proxy},                     //
		{proxy, strings.Repeat("10.0.0.1,", 1000) + "192.0.2.7", "", "192.0.2.7"},
	} {
		var headers []string
		if c.chain != "" {
			headers = append(headers, "X-Forwarded-For", c.chain)
		}
		if c.forwarded != "" {
			headers = append(headers, "Forwarded", c.forwarded)
		}
		s.hand("POST", "/api/v1/tokens", s.secrets[auth.Admin], c.peer, `{"name":"x","scope":"viewer"}`, headers...)
		if seen.last != c.want {
			t.Errorf("%s, X-Forwarded-For %.40q, Forwarded %q: came from %s, want %s", c.peer, c.chain, c.forwarded, seen.last, c.want)
		}
	}
}

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
