package api

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// proxies are those whose word is taken for where a request came from.
type proxies []netip.Prefix

// believe makes the request its client's that a trusted proxy passed on. From
// anybody else such headers say nothing.
func (p proxies) believe(r *http.Request) {
	peer, ok := addressIn(r.RemoteAddr)
	if !ok || !p.trust(peer) {
		return
	}
	chain, elements := r.Header.Values("X-Forwarded-For"), r.Header.Values("Forwarded")
	from := p.behind(peer, strings.Split(strings.Join(chain, ","), ","))
	if len(elements) > 0 {
		other := p.behind(peer, forwardedFor(elements))
		if len(chain) > 0 && other != from {
			return // the proxy wrote one of them, and whoever asked it the other
		}
		from = other
	}
	if from != peer {
		r.RemoteAddr = from.String()
	}
}

func (p proxies) trust(address netip.Addr) bool {
	return slices.ContainsFunc(p, func(one netip.Prefix) bool { return one.Contains(address) })
}

// behind is the address that the outermost trusted proxy saw. Each proxy has added at
// the end whom it saw; what stands before an address that is not trusted is anybody's
// invention.
func (p proxies) behind(peer netip.Addr, seen []string) netip.Addr {
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

// forwardedFor is whom the lines of Forwarded (RFC 7239) are for, in order.
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

// parts are what the separator divides a text into, outside of quotes. If these do not
// end or escape something there are none: then nobody can tell where what the proxy
// wrote begins.
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

// addressIn is the address in a text, which may have a port behind it.
func addressIn(text string) (netip.Addr, bool) {
	text = strings.TrimSpace(text)
	address, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(text, "["), "]"))
	if err != nil {
		with, failed := netip.ParseAddrPort(text)
		address, err = with.Addr(), failed
	}
	return address.Unmap().WithZone(""), err == nil
}
