// Package origin finds out where a request comes from and where it was addressed.
// It takes the word of trusted proxies and of other servers, and of nobody else.
package origin

import (
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/tandem-tune/tandem/internal/problem"
)

// Hosts are the names that requests may be addressed to. A page of a foreign name
// that DNS points at our address shows that name in its Host header.
type Hosts struct {
	names   []string
	literal bool // any address: an attacker can only point names at us
}

// NewHosts returns the configured names and addresses, and those of the loopback. An
// unspecified address (0.0.0.0, ::) stands for every address, but for no name.
func NewHosts(configured []string) Hosts {
	hosts := Hosts{names: []string{"localhost"}}
	for _, host := range configured {
		if host = normalize(host); host == "" {
			continue
		}
		if address, err := netip.ParseAddr(host); err == nil && address.IsUnspecified() {
			hosts.literal = true
		}
		hosts.names = append(hosts.names, host)
	}
	return hosts
}

// Admit refuses a request that is addressed to another host. The error is forbidden.
func (h Hosts) Admit(r *http.Request) error {
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = normalize(host)
	if address, err := netip.ParseAddr(host); err == nil && (h.literal || address.Unmap().IsLoopback()) || slices.Contains(h.names, host) {
		return nil
	}
	return problem.New(problem.Forbidden, "this server is not addressed as %q: start it with --allow-host to answer to that name", r.Host)
}

// normalize returns the one spelling of a host that is compared.
func normalize(host string) string {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
}

// pages knows no trusted origins and no exceptions.
var pages = http.NewCrossOriginProtection()

// AdmitPage refuses a change by a page of another origin. The error is forbidden.
func AdmitPage(r *http.Request) error {
	if pages.Check(r) != nil {
		return problem.New(problem.Forbidden, "a page of another origin may not change anything here")
	}
	return nil
}

// Local reports whether a program on this machine sent the request. A request that a
// proxy passes on comes from this machine, too, and from anywhere.
func Local(r *http.Request) bool {
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip", "Via"} {
		if r.Header.Get(name) != "" {
			return false
		}
	}
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && from.Addr().Unmap().IsLoopback()
}

// The headers of a request that another server passes on.
const (
	peerHeader = "Tandem-Peer"     // the secret of the server that receives it
	fromHeader = "Tandem-Peer-For" // the client of the other server
)

// FromPeer reports whether the request says that another server passed it on.
func FromPeer(r *http.Request) bool { return r.Header.Get(peerHeader) != "" }

// PassOn marks a request to another server with that server's secret and with the
// client's address.
func PassOn(out *http.Request, secret, from string) {
	out.Header.Set(peerHeader, secret)
	out.Header.Set(fromHeader, from)
}

// ResolvePeer gives a request that another server passed on the address of its client.
// It requires the secret; where that is empty there are no other servers.
func ResolvePeer(r *http.Request, secret string) {
	shown, from := r.Header.Get(peerHeader), r.Header.Get(fromHeader)
	r.Header.Del(peerHeader)
	r.Header.Del(fromHeader)
	if secret != "" && subtle.ConstantTimeCompare([]byte(shown), []byte(secret)) == 1 {
		r.RemoteAddr = from
		r.Header.Set("Via", "tandem") // it is not from this machine, whatever its address says
	}
}
