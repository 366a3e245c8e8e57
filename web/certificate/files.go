package certificate

import (
	"crypto/tls"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
)

// lookEvery is how soon a certificate that was replaced on the disk is shown.
const lookEvery = 10 * time.Second

const maxFile = 1 << 20

// Files is a certificate and its key in two PEM files that somebody else
// renews. A pair that does not fit together, as there is for a moment while
// both are replaced, leaves the old one in force. It is safe for concurrent
// use.
type Files struct {
	certificate, key string
	now              func() time.Time
	logger           *slog.Logger

	mutex   sync.Mutex
	current *tls.Certificate
	// seen is what the files looked like when they were read last, for good or
	// ill, and look when they are looked at next.
	seen [2]stamp
	look time.Time
}

// stamp tells one version of a file from another.
type stamp struct {
	modified time.Time
	size     int64
}

// OpenFiles reads the files. The error is invalid if they cannot be read, do
// not fit together, or hold a certificate that has ended, or if everybody on
// the machine can read the key.
func OpenFiles(certificate, key string, now func() time.Time, logger *slog.Logger) (*Files, error) {
	files := &Files{certificate: certificate, key: key, now: now, logger: logger}
	files.mutex.Lock()
	defer files.mutex.Unlock()
	files.seen = files.stamps()
	files.look = now().Add(lookEvery)
	pair, err := files.read()
	if err != nil {
		return nil, err
	}
	files.current = pair
	return files, nil
}

// Certificate returns the certificate to show.
func (f *Files) Certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	now := f.now()
	if now.Before(f.look) {
		return f.current, nil
	}
	f.look = now.Add(lookEvery)
	stamps := f.stamps()
	if stamps == f.seen {
		return f.current, nil
	}
	f.seen = stamps
	pair, err := f.read()
	if err != nil {
		f.logger.Error("the certificate was replaced by one that cannot be used: the old one stays", "error", err, "expires", f.current.Leaf.NotAfter)
		return f.current, nil
	}
	f.current = pair
	f.logger.Info("the certificate was replaced", "expires", pair.Leaf.NotAfter)
	return f.current, nil
}

// Expires is when the certificate that is shown now ends.
func (f *Files) Expires() time.Time {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.current.Leaf.NotAfter
}

func (f *Files) stamps() (seen [2]stamp) {
	for i, path := range []string{f.certificate, f.key} {
		if info, err := os.Stat(path); err == nil {
			seen[i] = stamp{info.ModTime(), info.Size()}
		}
	}
	return seen
}

func (f *Files) read() (*tls.Certificate, error) {
	public, err := readBounded(f.certificate, maxFile)
	if err != nil {
		return nil, problem.New(problem.Invalid, "--tls-cert: %w", err)
	}
	private, err := readBounded(f.key, maxFile)
	if err != nil {
		return nil, problem.New(problem.Invalid, "--tls-key: %w", err)
	}
	if info, err := os.Stat(f.key); err == nil && info.Mode().Perm()&0o007 != 0 {
		return nil, problem.New(problem.Invalid, "--tls-key: everybody on this machine can read %s (mode %04o): chmod o-rwx it", f.key, info.Mode().Perm())
	}
	pair, err := tls.X509KeyPair(public, private)
	if err != nil {
		return nil, problem.New(problem.Invalid, "--tls-cert %s and --tls-key %s: %w", f.certificate, f.key, err)
	}
	if ends := pair.Leaf.NotAfter; f.now().After(ends) {
		return nil, problem.New(problem.Invalid, "--tls-cert: the certificate in %s ended on %s: renew it", f.certificate, ends.Format(time.DateOnly))
	}
	return &pair, nil
}
