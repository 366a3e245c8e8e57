package certificate_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/handclock"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/web/certificate"
)

// shake lets a client that trusts the pool talk to a server with the source,
// and returns what was agreed on.
func shake(source certificate.Source, client *tls.Config) (tls.ConnectionState, error) {
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	served := make(chan struct{})
	go func() {
		defer close(served)
		connection := tls.Server(far, certificate.Config(source))
		_ = connection.Handshake() // the client says what went wrong
		_ = far.Close()
	}()
	connection := tls.Client(near, client)
	err := connection.Handshake()
	state := connection.ConnectionState()
	_ = near.Close()
	<-served
	return state, err
}

func open(t *testing.T, folder string, watch *handclock.Clock, names ...string) *certificate.Own {
	t.Helper()
	own, err := certificate.OpenOwn(folder, names, watch.Now)
	if err != nil {
		t.Fatal(err)
	}
	return own
}

func pool(t *testing.T, own *certificate.Own) *x509.CertPool {
	t.Helper()
	authorities, err := certificate.ReadAuthorities(own.File())
	if err != nil {
		t.Fatal(err)
	}
	return authorities
}

func TestClientsThatHaveTheAuthorityBelieveTheServer(t *testing.T) {
	t.Parallel()
	watch := handclock.New()
	own := open(t, filepath.Join(t.TempDir(), "tls"), watch, "tuning.example.org", "127.0.0.1", "::1")
	trusted := pool(t, own)
	for _, name := range []string{"tuning.example.org", "127.0.0.1", "::1"} {
		state, err := shake(own, &tls.Config{RootCAs: trusted, ServerName: name, Time: watch.Now, NextProtos: []string{"h2", "http/1.1"}})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if state.Version != tls.VersionTLS13 || state.NegotiatedProtocol != "http/1.1" {
			t.Errorf("agreed on version %x and %q", state.Version, state.NegotiatedProtocol)
		}
	}
	if _, err := shake(own, &tls.Config{RootCAs: trusted, ServerName: "127.0.0.1", Time: watch.Now, MaxVersion: tls.VersionTLS12}); err == nil {
		t.Error("TLS 1.2 is answered")
	}
	for name, c := range map[string]struct {
		config *tls.Config
		given  string
		says   string
	}{
		"nobody trusted": {&tls.Config{RootCAs: x509.NewCertPool(), ServerName: "127.0.0.1", Time: watch.Now}, "", "name it with --ca FILE"},
		"another server": {&tls.Config{RootCAs: pool(t, open(t, filepath.Join(t.TempDir(), "tls"), watch, "127.0.0.1")), ServerName: "127.0.0.1", Time: watch.Now}, "old.pem", "no authority in old.pem, which --ca or TANDEM_CA names, has signed"},
		"another name":   {&tls.Config{RootCAs: trusted, ServerName: "evil.test", Time: watch.Now}, "old.pem", "--allow-host evil.test"},
		"a late clock":   {&tls.Config{RootCAs: trusted, ServerName: "127.0.0.1", Time: func() time.Time { return watch.Now().Add(100 * 24 * time.Hour) }}, "", "clocks"},
	} {
		_, err := shake(own, c.config)
		told, about := certificate.Explain(err, "the server", c.given)
		if err == nil || !about || !strings.Contains(told, c.says) {
			t.Errorf("%s: %v is explained as %q", name, err, told)
		}
	}
	if told, about := certificate.Explain(os.ErrNotExist, "x", ""); about || told != "" {
		t.Errorf("a missing file is about a certificate: %q", told)
	}
}

func TestTheAuthorityStaysAndItsKeyIsPrivate(t *testing.T) {
	t.Parallel()
	watch, folder := handclock.New(), filepath.Join(t.TempDir(), "tls")
	first := open(t, folder, watch, "127.0.0.1")
	trusted := pool(t, first)
	key := filepath.Join(folder, "authority-key.pem")
	info, err := os.Stat(key)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("the key: %v, %v", info.Mode(), err)
	}
	public, err := os.ReadFile(first.File())
	if err != nil || strings.Contains(string(public), "PRIVATE") {
		t.Fatalf("what clients are given: %s, %v", public, err)
	}
	block, _ := pem.Decode(public)
	parsed, err := x509.ParseCertificate(block.Bytes)
	if err != nil || certificate.Fingerprint(parsed) != first.Fingerprint() || len(first.Fingerprint()) != 32*3-1 {
		t.Fatalf("the fingerprint %s: %v", first.Fingerprint(), err)
	}
	if _, ok := parsed.PublicKey.(*ecdsa.PublicKey); !ok || !parsed.IsCA || !parsed.MaxPathLenZero {
		t.Errorf("the authority is %T, %v", parsed.PublicKey, parsed.IsCA)
	}

	// The file for clients was lost: it comes back, and is the same.
	if err := os.Remove(first.File()); err != nil {
		t.Fatal(err)
	}
	second := open(t, folder, watch, "127.0.0.1", "new.example.org")
	if second.Fingerprint() != first.Fingerprint() {
		t.Fatal("a new start made a new authority")
	}
	if again, err := os.ReadFile(second.File()); err != nil || string(again) != string(public) {
		t.Fatalf("%s: %v", again, err)
	}
	if _, err := shake(second, &tls.Config{RootCAs: trusted, ServerName: "new.example.org", Time: watch.Now}); err != nil {
		t.Errorf("a client from before: %v", err)
	}

	refused := func(why string) {
		t.Helper()
		if _, err := certificate.OpenOwn(folder, nil, watch.Now); !problem.Is(err, problem.Invalid) || !strings.Contains(err.Error(), why) {
			t.Errorf("want an error that says %q: %v", why, err)
		}
	}
	if err := os.Chmod(key, 0o640); err != nil {
		t.Fatal(err)
	}
	refused("chmod 600")
	whole, err := os.ReadFile(key)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(key, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, broken := range []string{"", "nonsense", string(whole[:len(whole)/2]), string(public)} {
		if err := os.WriteFile(key, []byte(broken), 0o600); err != nil {
			t.Fatal(err)
		}
		refused("damaged")
	}
	if err := os.WriteFile(key, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	watch.Pass(11 * 365 * 24 * time.Hour)
	refused("ended on")
}

func TestCertificatesAreRenewedWhileTheServerRuns(t *testing.T) {
	t.Parallel()
	watch := handclock.New()
	own := open(t, filepath.Join(t.TempDir(), "tls"), watch, "127.0.0.1")
	trusted, seen := pool(t, own), map[string]bool{}
	for range 20 { // 400 days
		state, err := shake(own, &tls.Config{RootCAs: trusted, ServerName: "127.0.0.1", Time: watch.Now})
		if err != nil {
			t.Fatal(err)
		}
		leaf := state.PeerCertificates[0]
		seen[leaf.SerialNumber.String()] = true
		if left := leaf.NotAfter.Sub(watch.Now()); left < 29*24*time.Hour || !own.Expires().Equal(leaf.NotAfter) {
			t.Fatalf("shows a certificate that ends in %v; Expires says %v", left, own.Expires())
		}
		watch.Pass(20 * 24 * time.Hour)
	}
	if len(seen) < 5 || len(seen) > 8 {
		t.Errorf("%d certificates in 400 days", len(seen))
	}
	watch.Pass(own.AuthorityExpires().Sub(watch.Now()) - 10*24*time.Hour)
	if _, err := own.Certificate(nil); err != nil || own.Expires().After(own.AuthorityExpires()) {
		t.Errorf("a certificate outlives its authority: %v, %v", own.Expires(), err)
	}
}

// write makes a self-signed certificate and writes it and its key.
func write(t *testing.T, folder, name string, ends time.Time) (public, private string, parsed *x509.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), DNSNames: []string{name}, NotBefore: time.Now().Add(-365 * 24 * time.Hour), NotAfter: ends}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	if parsed, err = x509.ParseCertificate(raw); err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	public, private = filepath.Join(folder, "cert.pem"), filepath.Join(folder, "key.pem")
	save(t, public, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}))
	save(t, private, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}))
	return public, private, parsed
}

// stamped counts the files that were saved: each gets a time of its own, as the
// clock of a file system may be too coarse to tell them apart.
var stamped struct {
	mutex sync.Mutex
	count int
}

func save(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	stamped.mutex.Lock()
	defer stamped.mutex.Unlock()
	stamped.count++
	at := time.Now().Add(time.Duration(stamped.count) * time.Second)
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
}

func TestFilesAreReadAgainWhenTheyChange(t *testing.T) {
	t.Parallel()
	watch, folder := handclock.New(), t.TempDir()
	year := watch.Now().Add(365 * 24 * time.Hour)
	public, private, first := write(t, folder, "one.test", year)
	files, err := certificate.OpenFiles(public, private, watch.Now, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	shows := func(wanted *x509.Certificate) {
		t.Helper()
		watch.Pass(time.Minute)
		shown, err := files.Certificate(nil)
		if err != nil || !shown.Leaf.Equal(wanted) || !files.Expires().Equal(wanted.NotAfter) {
			t.Fatalf("shows %v, want %v: %v", shown.Leaf.SerialNumber, wanted.SerialNumber, err)
		}
	}
	shows(first)
	_, _, second := write(t, folder, "two.test", year)
	if shown, err := files.Certificate(nil); err != nil || !shown.Leaf.Equal(first) {
		t.Fatal("the files are read for every connection")
	}
	shows(second)

	// What cannot be used leaves the old one in force; what follows counts.
	save(t, public, []byte("nonsense"))
	shows(second)
	write(t, folder, "over.test", watch.Now().Add(-time.Hour))
	shows(second)
	if err := os.Remove(private); err != nil {
		t.Fatal(err)
	}
	shows(second)
	_, _, third := write(t, folder, "three.test", year)
	shows(third)
}

func TestFilesThatCannotBeUsedSayWhy(t *testing.T) {
	t.Parallel()
	watch, folder := handclock.New(), t.TempDir()
	year := watch.Now().Add(365 * 24 * time.Hour)
	_, foreign, _ := write(t, t.TempDir(), "other.test", year)
	open := func(public, private string) string {
		t.Helper()
		_, err := certificate.OpenFiles(public, private, watch.Now, slog.New(slog.DiscardHandler))
		if !problem.Is(err, problem.Invalid) {
			t.Fatalf("%s, %s: %v", public, private, err)
		}
		return err.Error()
	}
	public, private, _ := write(t, folder, "one.test", year)
	for _, c := range [][3]string{
		{filepath.Join(folder, "none.pem"), private, "--tls-cert"}, {public, filepath.Join(folder, "none.pem"), "--tls-key"},
		{public, foreign, "does not match"}, {public, folder, "must be a file"},
	} {
		if told := open(c[0], c[1]); !strings.Contains(told, c[2]) {
			t.Errorf("%s, %s: %s", c[0], c[1], told)
		}
	}
	if err := os.Chmod(private, 0o644); err != nil {
		t.Fatal(err)
	}
	if told := open(public, private); !strings.Contains(told, "chmod o-rwx") {
		t.Error(told)
	}
	public, private, _ = write(t, t.TempDir(), "over.test", watch.Now().Add(-time.Hour))
	if told := open(public, private); !strings.Contains(told, "ended on") {
		t.Error(told)
	}
}

func TestAuthoritiesThatCannotBeReadSayWhy(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	own := open(t, filepath.Join(folder, "tls"), handclock.New(), "localhost")
	empty, long := filepath.Join(folder, "empty"), filepath.Join(folder, "long")
	damaged := filepath.Join(folder, "damaged")
	save(t, empty, []byte("no certificate here"))
	save(t, long, make([]byte, 5<<20))
	save(t, damaged, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("nonsense")}))
	for path, says := range map[string]string{
		filepath.Join(folder, "none"): "authority.pem", empty: "BEGIN CERTIFICATE", long: "at most", damaged: "certificate 1",
		filepath.Join(filepath.Dir(own.File()), "authority-key.pem"): "private key", folder: "must be a file",
	} {
		_, err := certificate.ReadAuthorities(path)
		if !problem.Is(err, problem.Invalid) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", path, err)
		}
	}
}
