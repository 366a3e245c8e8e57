// Package policy decides to which machines the keys of an owner's data may go: it reads
// the owner's policy file, gives it an id and a signature, says in sentences what it
// trusts, and appraises what a machine's report claims.
//
// Its input is claims whose signatures package evidence has checked. It does no I/O, and
// is told the time.
package policy

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/tandem-tune/tandem/workers/confidential/evidence"
)

// Policy is which machines may get keys. Its fields stand in the order of their names,
// and lists are sorted, so that the same policy always has the same JSON and the same id.
type Policy struct {
	// CollateralMaxAge is how old lists of what was revoked may be, such as 30d; none: it
	// may be unknown whether something was revoked.
	CollateralMaxAge string    `json:"collateral_max_age"`
	Expires          time.Time `json:"expires"`
	GPU              *GPU      `json:"gpu,omitempty"`
	Releases         Releases  `json:"releases"`
	TEE              TEE       `json:"tee"`
	Version          int       `json:"version"`
}

// Releases bound how many keys a broker lets go.
type Releases struct {
	PerHour int `json:"per_hour"`
	Total   int `json:"total"`
}

// TEE are the kinds of machines; nil: none of that kind.
type TEE struct {
	SNP *SNP `json:"sev-snp,omitempty"`
	TDX *TDX `json:"tdx,omitempty"`
}

// SNP are guests of AMD SEV-SNP.
type SNP struct {
	// Allow are smt, debug and migrate: what weakens a guest and is refused unless named.
	Allow        []string `json:"allow,omitempty"`
	HostData     []string `json:"host_data,omitempty"`
	Keys         []string `json:"keys"`
	Measurement  []string `json:"measurement"`
	Products     Products `json:"products"`
	SingleSocket bool     `json:"single_socket,omitempty"`
	VMPL         []int    `json:"vmpl"`
}

// Products are lines of processors with the oldest firmware of each, by its parts.
type Products map[string]map[string]int

// TDX are guests of Intel TDX.
type TDX struct {
	Allow []string            `json:"allow,omitempty"` // debug and migrate
	MRTD  []string            `json:"mrtd"`
	RTMR  map[string][]string `json:"rtmr"` // by register, 0 to 3; [any] takes any
}

// Any is what a register of [TDX] may hold if it does not matter.
const Any = "any"

// Canonical is the policy as JSON without freedom: sorted names, no spaces.
func (p *Policy) Canonical() []byte {
	text, err := json.Marshal(p)
	if err != nil {
		panic(err) // numbers, times of four digits and plain texts
	}
	return text
}

// ID tells the policy from all others: SHA-256 of its canonical JSON.
func (p *Policy) ID() string {
	sum := sha256.Sum256(p.Canonical())
	return hex.EncodeToString(sum[:])
}

// maxAge is how old collateral may be.
func (p *Policy) maxAge() (age time.Duration, limited bool) {
	age, err := days(p.CollateralMaxAge)
	return age, err == nil
}

// Signed is a policy with its owner's signature.
type Signed struct {
	Policy    json.RawMessage `json:"policy"`
	Signature []byte          `json:"signature"`
	Signer    string          `json:"signer"`
}

// scope begins what is signed, so that no signature of another kind passes for one.
const scope = "tandem policy v1\n"

// signerPrefix is how a public key of an owner begins.
const signerPrefix = "ed25519:"

// Signer is the owner's public key as text.
func Signer(key ed25519.PublicKey) string {
	return signerPrefix + base64.StdEncoding.EncodeToString(key)
}

// ReadSigner reads a public key that [Signer] wrote.
func ReadSigner(text string) (ed25519.PublicKey, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(text, signerPrefix))
	if err != nil || len(key) != ed25519.PublicKeySize || !strings.HasPrefix(text, signerPrefix) {
		return nil, fmt.Errorf("%q is no public key: it must be %s and %d characters", text, signerPrefix, base64.StdEncoding.EncodedLen(ed25519.PublicKeySize))
	}
	return key, nil
}

// Sign signs the policy.
func (p *Policy) Sign(key ed25519.PrivateKey) Signed {
	public, _ := key.Public().(ed25519.PublicKey)
	text := p.Canonical()
	return Signed{Policy: text, Signature: ed25519.Sign(key, append([]byte(scope), text...)), Signer: Signer(public)}
}

// Open reads a signed policy, and refuses one that the owner did not sign. Without an
// owner any signature that is good will do: whose it is, is in [Signed].
func Open(data []byte, owner string) (*Policy, Signed, error) {
	var signed Signed
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&signed); err != nil {
		return nil, signed, evidence.Refuse("policy_unsigned", "it is no signed policy (%v): 'tandem policy sign' makes one", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, signed, evidence.Refuse("policy_unsigned", "something follows the signed policy: take it out")
	}
	key, err := ReadSigner(signed.Signer)
	switch {
	case err != nil:
		return nil, signed, evidence.Refuse("policy_unsigned", "signer: %v", err)
	case owner != "" && owner != signed.Signer:
		return nil, signed, evidence.Refuse("policy_unsigned", "%s signed it, not the owner, %s", signed.Signer, owner)
	}
	found, err := Parse(signed.Policy)
	if err != nil {
		return nil, signed, err
	}
	if !ed25519.Verify(key, append([]byte(scope), found.Canonical()...), signed.Signature) {
		return nil, signed, evidence.Refuse("policy_unsigned", "the signature is not of this policy: sign it again")
	}
	return found, signed, nil
}
