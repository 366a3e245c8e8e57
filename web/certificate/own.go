package certificate

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/tandem-tune/tandem/internal/files"
	"github.com/tandem-tune/tandem/internal/problem"
)

const (
	// authorityLife is how long clients may keep the authority's file.
	authorityLife = 10 * 365 * 24 * time.Hour
	// ownLife is how long a certificate that the authority signed is shown at
	// most. It is replaced when a third of that is left.
	ownLife = 90 * 24 * time.Hour
	// skew is how much a client's clock may be behind.
	skew = time.Hour

	// PublicFile is the authority's certificate, which clients are given, and
	// privateFile the same with its key, which never leaves the server.
	PublicFile  = "authority.pem"
	privateFile = "authority-key.pem"

	maxPrivate = 64 << 10
)

// Own is an authority in the data folder and the certificates that it signs.
// Only the authority is on the disk: a certificate is made at each start, and
// again before it ends. It is safe for concurrent use.
type Own struct {
	folder    string
	authority *x509.Certificate
	key       crypto.Signer
	names     []string
	now       func() time.Time

	mutex   sync.Mutex
	current *tls.Certificate
	renew   time.Time
}

// OpenOwn opens the authority in the folder, or makes it there, for a server
// that is addressed by the names (host names and addresses). The error is
// invalid for an authority that has ended, was damaged, or whose key other
// users of the machine can read; it says how to get out of it.
func OpenOwn(folder string, names []string, now func() time.Time) (*Own, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of the certificate: %w", err)
	}
	own := &Own{folder: folder, names: slices.Clone(names), now: now}
	err := own.load()
	if errors.Is(err, fs.ErrNotExist) {
		err = own.found()
	}
	if err != nil {
		return nil, err
	}
	if now().After(own.authority.NotAfter) {
		return nil, problem.New(problem.Invalid, "the server's own authority in %s ended on %s: delete that folder, start again, and give the new %s to all clients",
			folder, own.authority.NotAfter.Format(time.DateOnly), PublicFile)
	}
	if err := own.publish(); err != nil {
		return nil, err
	}
	own.mutex.Lock()
	defer own.mutex.Unlock()
	return own, own.sign()
}

// File is the path of what clients are given.
func (o *Own) File() string { return filepath.Join(o.folder, PublicFile) }

// Fingerprint is the authority's.
func (o *Own) Fingerprint() string { return Fingerprint(o.authority) }

// AuthorityExpires is when the clients need another file.
func (o *Own) AuthorityExpires() time.Time { return o.authority.NotAfter }

// Certificate returns the certificate to show, and makes the next one when a
// third of its life is left.
func (o *Own) Certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if !o.now().Before(o.renew) {
		if err := o.sign(); err != nil {
			return nil, err
		}
	}
	return o.current, nil
}

// Expires is when the certificate that is shown ends, if nobody asks for one.
func (o *Own) Expires() time.Time {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.current.Leaf.NotAfter
}

func (o *Own) private() string { return filepath.Join(o.folder, privateFile) }

// load reads the authority; the error is fs.ErrNotExist if there is none.
func (o *Own) load() error {
	path := o.private()
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return problem.New(problem.Invalid, "the key in %s can be read by other users of this machine (mode %04o): if nobody has, chmod 600 it; else delete the folder, start again, and give the new %s to all clients",
			path, info.Mode().Perm(), PublicFile)
	}
	damaged := func(why error) error {
		return problem.New(problem.Invalid, "the server's own authority in %s is damaged (%w): restore it from a backup, or delete the folder, start again, and give the new %s to all clients", path, why, PublicFile)
	}
	content, err := readBounded(path, maxPrivate)
	if err != nil {
		return damaged(err)
	}
	pair, err := tls.X509KeyPair(content, content)
	if err != nil {
		return damaged(err)
	}
	key, ok := pair.PrivateKey.(crypto.Signer)
	if !ok || !pair.Leaf.IsCA {
		return damaged(errors.New("it is no authority"))
	}
	o.authority, o.key = pair.Leaf, key
	return nil
}

// found makes the authority.
func (o *Own) found() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("make the authority's key: %w", err)
	}
	host, err := os.Hostname()
	if err != nil {
		host = "server"
	}
	now := o.now()
	template := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: "Tandem on " + host},
		NotBefore: now.Add(-skew), NotAfter: now.Add(authorityLife),
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		IsCA:     true, BasicConstraintsValid: true, MaxPathLenZero: true,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return fmt.Errorf("make the authority: %w", err)
	}
	if o.authority, err = x509.ParseCertificate(raw); err != nil {
		return fmt.Errorf("read the authority that was made: %w", err)
	}
	o.key = key
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return fmt.Errorf("encode the authority's key: %w", err)
	}
	content := append(o.public(), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})...)
	return files.Write(o.private(), bytes.NewReader(content), 0o600)
}

// public is what clients are given.
func (o *Own) public() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: o.authority.Raw})
}

// publish makes sure that the file for clients is there and is the authority's.
func (o *Own) publish() error {
	wanted := o.public()
	if present, err := os.ReadFile(o.File()); err == nil && bytes.Equal(present, wanted) {
		return nil
	}
	return files.Write(o.File(), bytes.NewReader(wanted), 0o644)
}

// sign makes the certificate that is shown from now on. The caller holds the
// mutex.
func (o *Own) sign() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("make the certificate's key: %w", err)
	}
	now := o.now()
	ends := now.Add(ownLife)
	if ends.After(o.authority.NotAfter) {
		ends = o.authority.NotAfter
	}
	template := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: "Tandem"},
		NotBefore: now.Add(-skew), NotAfter: ends,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
	}
	for _, name := range o.names {
		if address := net.ParseIP(name); address != nil {
			template.IPAddresses = append(template.IPAddresses, address)
		} else if name != "" {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, o.authority, key.Public(), o.key)
	if err != nil {
		return fmt.Errorf("sign the certificate for %v: %w", o.names, err)
	}
	leaf, err := x509.ParseCertificate(raw)
	if err != nil {
		return fmt.Errorf("read the certificate that was made: %w", err)
	}
	o.current = &tls.Certificate{Certificate: [][]byte{raw, o.authority.Raw}, PrivateKey: key, Leaf: leaf}
	o.renew = now.Add(ends.Sub(now) * 2 / 3)
	return nil
}

// serial is a number that no other certificate has.
func serial() *big.Int {
	var octets [16]byte
	rand.Read(octets[:]) // never fails: crypto/rand ends the process instead
	octets[0] &= 0x7f    // it must be positive
	octets[15] |= 1
	return new(big.Int).SetBytes(octets[:])
}
