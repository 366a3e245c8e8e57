package evidencetest

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha512"
	"crypto/x509"
	"crypto/x509/pkix"
	_ "embed" // a recorded report
	"encoding/asn1"
	"encoding/binary"
	"math/big"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/workers/confidential/evidence"
)

// The report of a real GPU, an H100 of 2024, and its certificates: see testdata/README.md.
var (
	//go:embed testdata/hopper.bin
	hopperReport []byte
	//go:embed testdata/hopper.pem
	hopperChain []byte
)

// RecordedGPU is what a real GPU showed.
func RecordedGPU() evidence.GPU {
	return evidence.GPU{Report: bytes.Clone(hopperReport), Chain: bytes.Clone(hopperChain)}
}

// NVIDIA is a maker of GPUs.
type NVIDIA struct {
	now                         time.Time
	root, architecture, factory *x509.Certificate
	keys                        [3]*ecdsa.PrivateKey // theirs
	chip                        string
}

// NewNVIDIA makes one whose GPUs have the chip, such as GH100, good at the time.
func NewNVIDIA(t testing.TB, chip string, now time.Time) *NVIDIA {
	t.Helper()
	m := &NVIDIA{now: now, chip: chip}
	for i := range m.keys {
		m.keys[i] = p384(t)
	}
	m.root = certify(t, named(now, pkix.Name{CommonName: "NVIDIA Device Identity CA"}), nil, [2]*ecdsa.PrivateKey{m.keys[0], m.keys[0]})
	m.architecture = certify(t, named(now, pkix.Name{CommonName: "NVIDIA " + chip + " Identity"}), m.root, [2]*ecdsa.PrivateKey{m.keys[1], m.keys[0]})
	m.factory = certify(t, named(now, pkix.Name{CommonName: "NVIDIA " + chip + " Provisioner ICA 1"}), m.architecture, [2]*ecdsa.PrivateKey{m.keys[2], m.keys[1]})
	return m
}

func p384(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	made, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// Root are the maker's.
func (m *NVIDIA) Root() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(m.root)
	return pool
}

// Chain is the maker's root as a file: for --test-root.
func (m *NVIDIA) Chain() []byte { return chain(m.root) }

// Collateral are the lists of what the maker revoked, of the time; whether it revoked who
// provisions its GPUs, too.
func (m *NVIDIA) Collateral(t testing.TB, issued time.Time, revoked bool) map[string]evidence.Document {
	t.Helper()
	list := func(issuer *x509.Certificate, key *ecdsa.PrivateKey, which ...*x509.Certificate) evidence.Document {
		made := &x509.RevocationList{Number: big.NewInt(1), ThisUpdate: issued, NextUpdate: issued.AddDate(0, 0, 60)}
		for _, one := range which {
			made.RevokedCertificateEntries = append(made.RevokedCertificateEntries, x509.RevocationListEntry{SerialNumber: one.SerialNumber, RevocationTime: issued})
		}
		raw, err := x509.CreateRevocationList(rand.Reader, made, issuer, key)
		if err != nil {
			t.Fatal(err)
		}
		return evidence.Document{Body: raw}
	}
	found := map[string]evidence.Document{evidence.GPURootRevoked: list(m.root, m.keys[0]), evidence.GPURevoked: list(m.architecture, m.keys[1])}
	if revoked {
		found[evidence.GPURevoked] = list(m.architecture, m.keys[1], m.factory)
	}
	return found
}

// Card is one GPU as its reports show it.
type Card struct {
	Driver       string
	VBIOS        [8]byte
	Measurements [64][48]byte
	Feature      byte // 2 is Protected PCIe
	DevTools     bool
	// Firmware is for what its key was made, Runs what its reports name.
	Firmware, Runs [48]byte

	maker     *NVIDIA
	key       *ecdsa.PrivateKey
	chip, own *x509.Certificate
	first     *ecdsa.PrivateKey
}

// Card makes a GPU. Its versions are those of the recorded one.
func (m *NVIDIA) Card(t testing.TB) *Card {
	t.Helper()
	c := &Card{maker: m, Driver: "550.90.07", VBIOS: [8]byte{0, 0x9f, 0, 0x96, 1}, Firmware: [48]byte{7}, Runs: [48]byte{7}, key: p384(t), first: p384(t)}
	c.Measurements[9] = [48]byte{9}
	said, err := asn1.Marshal(struct{ Digest []byte }{c.Firmware[:]})
	if err != nil {
		t.Fatal(err)
	}
	c.chip = certify(t, named(m.now, pkix.Name{CommonName: m.chip + " A01 GSP BROM"}), m.factory, [2]*ecdsa.PrivateKey{c.first, m.keys[2]})
	c.own = certify(t, named(m.now, pkix.Name{CommonName: m.chip + " A01 GSP FMC LF"}), c.chip, [2]*ecdsa.PrivateKey{c.key, c.first}, pkix.Extension{Id: asn1.ObjectIdentifier{2, 23, 133, 5, 4, 1}, Value: said})
	return c
}

// Shows is the GPU's evidence with the nonce.
func (c *Card) Shows(t testing.TB, nonce [32]byte) evidence.GPU {
	t.Helper()
	var record, said, whole bytes.Buffer
	for i, one := range c.Measurements {
		record.Write([]byte{byte(i + 1), 1, 51, 0, 1, 48, 0})
		record.Write(one[:])
	}
	for _, one := range []struct {
		kind  uint16
		value []byte
	}{{3, append([]byte(c.Driver), 0)}, {6, c.VBIOS[:]}, {20, c.Runs[:]}, {36, []byte{c.Feature}}} {
		_ = binary.Write(&said, binary.LittleEndian, []uint16{one.kind, uint16(len(one.value))})
		said.Write(one.value)
	}
	whole.Write(append([]byte{0x11, 0xe0, 1, 0xff}, nonce[:]...))
	whole.Write([]byte{0, 0x11, 0x60, 0, 0, byte(len(c.Measurements)), byte(record.Len()), byte(record.Len() >> 8), byte(record.Len() >> 16)})
	whole.Write(record.Bytes())
	whole.Write(make([]byte, 32))
	_ = binary.Write(&whole, binary.LittleEndian, uint16(said.Len()))
	whole.Write(said.Bytes())
	sum := sha512.Sum384(whole.Bytes())
	r, s, err := ecdsa.Sign(rand.Reader, c.key, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	whole.Write(append(r.FillBytes(make([]byte, 48)), s.FillBytes(make([]byte, 48))...))
	return evidence.GPU{Report: whole.Bytes(), Chain: chain(c.own, c.chip, c.maker.factory, c.maker.architecture, c.maker.root), DevTools: c.DevTools}
}
