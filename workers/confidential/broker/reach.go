package broker

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"
)

// Reach is a client for the address of the flag, over TLS but on this machine. It follows no
// redirect. Without authorities the system's vouch for the other side.
func Reach(flag, address string, authorities *x509.CertPool) (*http.Client, error) {
	at, err := url.Parse(address)
	if err != nil || at.Scheme != "https" && at.Scheme != "http" || at.Host == "" || at.RawQuery != "" || at.User != nil {
		return nil, fmt.Errorf("%s %q must be an address such as https://keys.example.org:7172", flag, address)
	}
	if host, err := netip.ParseAddr(at.Hostname()); at.Scheme == "http" && (err != nil || !host.IsLoopback()) {
		return nil, fmt.Errorf("%s %s: what is sent would cross the network in plain text: use https", flag, address)
	}
	transport := &http.Transport{
		DialContext: (&net.Dialer{Timeout: 10 * time.Second}).DialContext, TLSHandshakeTimeout: 10 * time.Second,
		TLSClientConfig: &tls.Config{RootCAs: authorities, MinVersion: tls.VersionTLS13},
	}
	return &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, nil
}
