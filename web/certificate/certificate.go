// Package certificate answers: with which certificate does the server prove who
// it is, and whom does a client believe?
//
// A server without a certificate of its own makes an authority in its data
// folder ([Own]) and signs what it shows itself; one that has a certificate
// from elsewhere reads it from files ([Files]). Either is replaced while the
// server runs. Clients are given the authority's file and then trust nobody
// else ([ReadAuthorities]). The package knows no HTTP and listens to nothing.
package certificate

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
)

// Source has the certificate to show right now.
type Source interface {
	// Certificate returns the certificate for a connection; its signature is
	// that of tls.Config.GetCertificate.
	Certificate(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// Expires is when the certificate that is shown now ends.
	Expires() time.Time
}

// Config returns how a server talks TLS with the source's certificates: TLS 1.3
// and HTTP/1.1, nothing older and nothing else.
func Config(source Source) *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS13,
		NextProtos:     []string{"http/1.1"},
		GetCertificate: source.Certificate,
	}
}

// maxAuthorities bounds the file of authorities: a system's whole bundle has
// about 250 KiB.
const maxAuthorities = 4 << 20

// ReadAuthorities reads the certificates in a PEM file that a client trusts
// instead of the machine's own. The error is invalid for a file that cannot be
// read or has no certificate, or a private key.
func ReadAuthorities(path string) (*x509.CertPool, error) {
	content, err := readBounded(path, maxAuthorities)
	if err != nil {
		return nil, problem.New(problem.Invalid, "--ca (or TANDEM_CA): %w; it is the file authority.pem of the server's data folder, copied to this machine", err)
	}
	pool, found := x509.NewCertPool(), 0
	for block, rest := pem.Decode(content); block != nil; block, rest = pem.Decode(rest) {
		if strings.Contains(block.Type, "PRIVATE KEY") {
			return nil, problem.New(problem.Invalid, "--ca (or TANDEM_CA): %s holds a private key: give the certificate alone, and keep the key where it was made", path)
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		parsed, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, problem.New(problem.Invalid, "--ca (or TANDEM_CA): certificate %d in %s is damaged: %w", found+1, path, err)
		}
		pool.AddCert(parsed)
		found++
	}
	if found == 0 {
		return nil, problem.New(problem.Invalid, "--ca (or TANDEM_CA): %s has no certificate: it must hold PEM text that begins with -----BEGIN CERTIFICATE-----", path)
	}
	return pool, nil
}

// Fingerprint is the SHA-256 of a certificate in the spelling of openssl:
// AB:CD:...
func Fingerprint(certificate *x509.Certificate) string {
	sum := sha256.Sum256(certificate.Raw)
	pairs := make([]string, len(sum))
	for i, octet := range sum {
		pairs[i] = fmt.Sprintf("%02X", octet)
	}
	return strings.Join(pairs, ":")
}

// Explain says what to do about a certificate that was refused, and reports
// whether the error is about one at all. address is where the client wanted to, given
// names the file of the authorities that alone are trusted; empty: the machine's are.
func Explain(err error, address, given string) (string, bool) {
	var refused *tls.CertificateVerificationError
	if !errors.As(err, &refused) {
		return "", false
	}
	var unknown x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(refused.Err, &unknown) && given != "":
		return fmt.Sprintf("no authority in %s, which --ca or TANDEM_CA names, has signed the certificate of %s: copy authority.pem from the folder tls of that server's data folder again, and compare its fingerprint with what the server says when it starts", given, address), true
	case errors.As(refused.Err, &unknown):
		return fmt.Sprintf("nobody whom this machine trusts has signed the certificate of %s: copy authority.pem from the folder tls of the server's data folder, and name it with --ca FILE or TANDEM_CA", address), true
	case errors.As(refused.Err, &host):
		return fmt.Sprintf("the certificate of %s is for another name (%s): use an address that it names, or start the server with --allow-host %s", address, named(host.Certificate), host.Host), true
	case errors.As(refused.Err, &invalid) && invalid.Reason == x509.Expired:
		return fmt.Sprintf("the certificate of %s is not valid at this time (%v): compare the clocks of both machines, and renew the certificate if it is over", address, refused.Err), true
	}
	return fmt.Sprintf("the certificate of %s cannot be trusted: %v", address, refused.Err), true
}

// named lists whom a certificate is for.
func named(certificate *x509.Certificate) string {
	names := append([]string(nil), certificate.DNSNames...)
	for _, address := range certificate.IPAddresses {
		names = append(names, address.String())
	}
	const shown = 8
	if len(names) > shown {
		names = append(names[:shown], "...")
	}
	return strings.Join(names, ", ")
}

// readBounded reads a file that is not larger than it may be.
func readBounded(path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > limit {
		return nil, fmt.Errorf("%s must be a file of at most %d bytes", path, limit)
	}
	return os.ReadFile(path)
}
