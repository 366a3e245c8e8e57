// Package sealed encrypts what trials keep for the holders of a study's keys, as age
// files (age-encryption.org/v1). It is the one door to that library.
//
// The first recipient of a study is its workers' key. Each file begins with a [Label]
// that only a holder of that key could have written: the study server knows all
// recipients, but it can neither read a file nor make one up.
package sealed

import (
	"bytes"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"

	"filippo.io/age"
	"filippo.io/age/armor"

	"github.com/tandem-tune/tandem/internal/problem"
)

// Magic is how every encrypted file begins.
const Magic = "age-encryption.org/v1\n"

// Keys are the identities that one process holds. The zero value, and nil, hold none.
type Keys struct {
	identities []age.Identity
	recipients []string          // of the identities, in their order
	secrets    map[string][]byte // what labels are signed with, by recipient
	trusted    []string          // recipients besides that may read what is encrypted here
	signing    []byte            // seed of the first identity's signatures
}

// Create makes a new identity and returns the content of its file, and its recipient.
func Create(postQuantum bool) (file, recipient string, err error) {
	var made age.Identity
	if postQuantum {
		made, err = age.GenerateHybridIdentity()
	} else {
		made, err = age.GenerateX25519Identity()
	}
	if err != nil {
		return "", "", fmt.Errorf("make an identity: %w", err)
	}
	recipient, content := both(made)
	return "# public key: " + recipient + "\n" + content + "\n", recipient, nil
}

// both are the identity's recipient and the identity as text; empty for other kinds.
func both(identity age.Identity) (recipient, content string) {
	switch one := identity.(type) {
	case *age.X25519Identity:
		return one.Recipient().String(), one.String()
	case *age.HybridIdentity:
		return one.Recipient().String(), one.String()
	}
	return "", ""
}

// Read reads a file of identities, which nobody else may be able to read; without a path
// there are no keys: nil. trusted are recipients that files may be encrypted to besides.
func Read(path string, trusted []string) (*Keys, error) {
	if path == "" && len(trusted) == 0 {
		return nil, nil
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("--identity: %w", err)
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows" { // which has no such bits
		return nil, fmt.Errorf("--identity %s: others can read it: chmod 600 it", path)
	}
	content, err := io.ReadAll(io.LimitReader(file, 1<<20))
	if err != nil {
		return nil, fmt.Errorf("--identity %s: %w", path, err)
	}
	keys, err := Parse(content, trusted)
	if err != nil {
		return nil, fmt.Errorf("--identity %s: %w", path, err)
	}
	return keys, nil
}

// Parse reads the content of such a file.
func Parse(content []byte, trusted []string) (*Keys, error) {
	identities, err := age.ParseIdentities(bytes.NewReader(content))
	if err != nil {
		return nil, fmt.Errorf("%w: it must be a file of 'tandem keys create' or age-keygen", err)
	}
	keys := &Keys{identities: identities, secrets: map[string][]byte{}, trusted: trusted}
	for _, one := range identities {
		recipient, content := both(one)
		secret, err := hkdf.Key(sha256.New, []byte(content), nil, "tandem label v1", sha256.Size)
		if err != nil {
			return nil, err
		}
		keys.recipients, keys.secrets[recipient] = append(keys.recipients, recipient), secret
		if keys.signing == nil {
			if keys.signing, err = hkdf.Key(sha256.New, []byte(content), nil, "tandem signature v1", ed25519.SeedSize); err != nil {
				return nil, err
			}
		}
	}
	for _, one := range trusted {
		if _, err := parse(one); err != nil {
			return nil, fmt.Errorf("--recipient %q: %w", one, err)
		}
	}
	return keys, nil
}

// Recipients are the public keys of the identities.
func (k *Keys) Recipients() []string {
	if k == nil {
		return nil
	}
	return k.recipients
}

// Signer is what the owner of the first identity signs with.
func (k *Keys) Signer() ed25519.PrivateKey { return ed25519.NewKeyFromSeed(k.signing) }

// Refuses says why nothing of a study with the recipients may run with these keys; empty:
// it may. The server that names the recipients is not trusted: who holds keys encrypts
// everything, and only to recipients that its owner knows.
func (k *Keys) Refuses(recipients []string) string {
	switch {
	case k == nil && len(recipients) == 0:
		return ""
	case k == nil || len(recipients) > 0 && k.secrets[recipients[0]] == nil:
		return fmt.Sprintf("it does not hold the key %s that the study's checkpoints are encrypted with: its owner gives it one with --identity FILE", Short(recipients[0]))
	case len(recipients) == 0:
		return "it has --identity and so runs encrypted studies only: start another worker for this one, or give the study encryption.recipients"
	}
	for _, one := range recipients {
		if k.secrets[one] == nil && !slices.Contains(k.trusted, one) {
			return fmt.Sprintf("its owner does not let the holder of %s read checkpoints: --recipient %s allows it", Short(one), Short(one))
		}
	}
	return ""
}

// Short is a recipient as people see it.
func Short(recipient string) string {
	if len(recipient) <= 70 {
		return recipient
	}
	return recipient[:24] + "..." + recipient[len(recipient)-8:]
}

// Check says what is wrong with a study's list of recipients, and with which of them;
// empty: nothing.
func Check(recipients []string) (at int, wrong string) {
	for i, one := range recipients {
		_, err := parse(one)
		switch {
		case err != nil:
			return i, "must be " + err.Error()
		case slices.Contains(recipients[:i], one):
			return i, "is there twice: take one out"
		case strings.HasPrefix(one, "age1pq1") != strings.HasPrefix(recipients[0], "age1pq1"):
			return i, "must be of the same kind as the first: age1pq1... (post-quantum) and other keys do not mix"
		}
	}
	return 0, ""
}

// parse reads one recipient. The error says what it must be.
func parse(text string) (age.Recipient, error) {
	found, err := age.ParseRecipients(strings.NewReader(text))
	if err != nil || len(found) != 1 {
		return nil, errors.New("a public key that 'tandem keys create' printed, which begins with age1")
	}
	return found[0], nil
}

// Encrypt encrypts to the recipients what is written until Close.
func Encrypt(out io.Writer, recipients []string) (io.WriteCloser, error) {
	list := make([]age.Recipient, len(recipients))
	for i, one := range recipients {
		var err error
		if list[i], err = parse(one); err != nil {
			return nil, problem.New(problem.Invalid, "the recipient %q must be %w", one, err)
		}
	}
	return age.Encrypt(out, list...)
}

// Armour is the text, encrypted to the recipients, as lines of text.
func Armour(text string, recipients []string) (string, error) {
	var made strings.Builder
	lines := armor.NewWriter(&made)
	out, err := Encrypt(lines, recipients)
	if err != nil {
		return "", err
	}
	_, err = io.WriteString(out, text)
	err = errors.Join(err, out.Close(), lines.Close())
	return made.String(), err
}

// Decrypt decrypts what was encrypted to one of the keys. The error is invalid where it
// was not, or is damaged; a read of what is damaged further on fails.
func (k *Keys) Decrypt(in io.Reader) (io.Reader, error) {
	if k == nil {
		return nil, problem.New(problem.Invalid, "it is encrypted: give --identity FILE, the file of a key that the study names")
	}
	opened, err := age.Decrypt(in, k.identities...)
	if err != nil {
		return nil, problem.New(problem.Invalid, "it cannot be decrypted: %w", err)
	}
	return whole{opened}, nil
}

// whole tells damage by its code.
type whole struct{ from io.Reader }

func (w whole) Read(p []byte) (int, error) {
	n, err := w.from.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = problem.New(problem.Invalid, "it is damaged: %w", err)
	}
	return n, err
}
