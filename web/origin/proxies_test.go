package origin_test

import (
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/web/origin"
)

func TestForwardedAddresses(t *testing.T) {
	t.Parallel()
	trusted := origin.Proxies{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
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
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = c.peer
		if c.chain != "" {
			r.Header.Set("X-Forwarded-For", c.chain)
		}
		if c.forwarded != "" {
			r.Header.Set("Forwarded", c.forwarded)
		}
		trusted.Resolve(r)
		if r.RemoteAddr != c.want {
			t.Errorf("%s, X-Forwarded-For %.40q, Forwarded %q: came from %s, want %s", c.peer, c.chain, c.forwarded, r.RemoteAddr, c.want)
		}
	}
}
