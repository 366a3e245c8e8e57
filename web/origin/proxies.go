package origin

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Proxies are the networks of the proxies that are trusted.
type Proxies []netip.Prefix

// Resolve gives a request that a trusted proxy passed on the address of its client.
// It ignores the same headers from anybody else.
func (p Proxies) Resolve(r *http.Request) {
	peer, ok := addressIn(r.RemoteAddr)
	if !ok || !p.trust(peer) {
		return
	}
	chain, elements := r.Header.Values("X-Forwarded-For"), r.Header.Values("Forwarded")
	from := p.client(peer, strings.Split(strings.Join(chain, ","), ","))
	if len(elements) > 0 {
		other := p.client(peer, forwardedFor(elements))
		if len(chain) > 0 && other != from {
			return // the proxy wrote one of them, and whoever asked it the other
		}
		from = other
	}
	if from != peer {
		r.RemoteAddr = from.String()
	}
}

func (p Proxies) trust(address netip.Addr) bool {
	return slices.ContainsFunc(p, func(one netip.Prefix) bool { return one.Contains(address) })
}

// client returns the address that the outermost trusted proxy saw. Each proxy appends
// the address that it saw; anybody may have written those before one that is not trusted.
func (p Proxies) client(peer netip.Addr, seen []string) netip.Addr {
	for _, text := range slices.Backward(seen) {
		address, ok := addressIn(text)
		if !ok {
			break
		}
		if peer = address; !p.trust(peer) {
			break
		}
	}
	return peer
}

// forwardedFor returns the "for" parameters of the lines of Forwarded (RFC 7239), in order.
func forwardedFor(lines []string) (nodes []string) {
	for _, element := range parts(strings.Join(lines, ","), ',') {
		node := ""
		for _, pair := range parts(element, ';') {
			if name, value, _ := strings.Cut(strings.TrimSpace(pair), "="); strings.EqualFold(name, "for") {
				node = strings.Trim(value, `"`)
			}
		}
		nodes = append(nodes, node)
	}
	return nodes
}

// parts splits a text at the separator, outside of quotes. It returns none if quotes do
// not end or escape something: the proxy's own part could begin anywhere then.
func parts(text string, separator rune) []string {
	quoted := false
	if strings.Count(text, `"`)%2 != 0 || strings.Contains(text, `\`) {
		return nil
	}
	return strings.FieldsFunc(text, func(r rune) bool {
		if r == '"' {
			quoted = !quoted
		}
		return r == separator && !quoted
	})
}

// addressIn parses an address that a port may follow.
func addressIn(text string) (netip.Addr, bool) {
	text = strings.TrimSpace(text)
	address, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(text, "["), "]"))
	if err != nil {
		with, failed := netip.ParseAddrPort(text)
		address, err = with.Addr(), failed
	}
	return address.Unmap().WithZone(""), err == nil
}
