package evidencetest

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/binary"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"math/big"
	"slices"
	"testing"
	"time"

	"github.com/google/go-tdx-guest/pcs"
	recorded "github.com/google/go-tdx-guest/testing/testdata"

	"github.com/tandem-tune/tandem/workers/confidential/evidence"
)

// RecordedQuote is that of a real processor, a Sapphire Rapids of 2023, without the
// remark that follows it in its file.
func RecordedQuote() []byte {
	size := binary.LittleEndian.Uint32(recorded.RawQuote[0x278:])
	return bytes.Clone(recorded.RawQuote[:0x27c+size])
}

// Intel is a maker of processors.
type Intel struct {
	now                      time.Time
	root, platform, pck, tcb *x509.Certificate
	rootKey, platformKey     *ecdsa.PrivateKey
	pckKey, tcbKey, quoteKey *ecdsa.PrivateKey
}

// NewIntel makes one. Its processors are like the recorded one.
func NewIntel(t testing.TB) *Intel { return NewIntelAt(t, Now) }

// NewIntelAt is NewIntel for evidence that is good at the time.
func NewIntelAt(t testing.TB, now time.Time) *Intel {
	t.Helper()
	m := &Intel{now: now}
	for _, key := range []**ecdsa.PrivateKey{&m.rootKey, &m.platformKey, &m.pckKey, &m.tcbKey, &m.quoteKey} {
		made, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		*key = made
	}
	m.root = m.certify(t, "Intel SGX Root CA", nil, [2]*ecdsa.PrivateKey{m.rootKey, m.rootKey})
	m.platform = m.certify(t, "Intel SGX PCK Platform CA", m.root, [2]*ecdsa.PrivateKey{m.platformKey, m.rootKey})
	m.tcb = m.certify(t, "Intel SGX TCB Signing", m.root, [2]*ecdsa.PrivateKey{m.tcbKey, m.rootKey})
	block, _ := pem.Decode(RecordedQuote()[bytes.Index(RecordedQuote(), []byte("-----BEGIN")):])
	like, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(like.Extensions, func(one pkix.Extension) bool { return one.Id.Equal(pcs.OidSgxExtension) })
	m.pck = m.certify(t, "Intel SGX PCK Certificate", m.platform, [2]*ecdsa.PrivateKey{m.pckKey, m.platformKey}, like.Extensions[at])
	return m
}

func (m *Intel) certify(t testing.TB, name string, parent *x509.Certificate, keys [2]*ecdsa.PrivateKey, extensions ...pkix.Extension) *x509.Certificate {
	t.Helper()
	return certify(t, named(m.now, pkix.Name{CommonName: name, Organization: []string{"Intel Corporation"}}), parent, keys, extensions...)
}

// named is the beginning of a certificate.
func named(now time.Time, name pkix.Name) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(int64(len(name.CommonName))), Subject: name, SubjectKeyId: []byte(name.CommonName),
		NotBefore: now.AddDate(-1, 0, 0), NotAfter: now.AddDate(7, 0, 0), BasicConstraintsValid: true,
		CRLDistributionPoints: []string{"https://certificates.trustedservices.intel.com/IntelSGXRootCA.der"},
	}
}

// certify makes a certificate; one without extensions is an authority's. The keys are its
// own and its issuer's.
func certify(t testing.TB, template, parent *x509.Certificate, keys [2]*ecdsa.PrivateKey, extensions ...pkix.Extension) *x509.Certificate {
	t.Helper()
	template.IsCA, template.KeyUsage, template.ExtraExtensions = len(extensions) == 0, x509.KeyUsageDigitalSignature, extensions
	if template.IsCA {
		template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign
	}
	if parent == nil {
		parent = template
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, keys[0].Public(), keys[1])
	if err != nil {
		t.Fatal(err)
	}
	made, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// Roots are the maker's.
func (m *Intel) Roots() *evidence.Roots {
	pool := x509.NewCertPool()
	pool.AddCert(m.root)
	return &evidence.Roots{Intel: pool}
}

func chain(list ...*x509.Certificate) (text []byte) {
	for _, one := range list {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: one.Raw})...)
	}
	return text
}

// sign makes the signature of 64 bytes that quotes and collateral have.
func sign(t testing.TB, key *ecdsa.PrivateKey, text []byte) []byte {
	t.Helper()
	sum := sha256.Sum256(text)
	der, err := ecdsa.SignASN1(rand.Reader, key, sum[:])
	var both struct{ R, S *big.Int }
	if err == nil {
		_, err = asn1.Unmarshal(der, &both)
	}
	if err != nil {
		t.Fatal(err)
	}
	return append(both.R.FillBytes(make([]byte, 32)), both.S.FillBytes(make([]byte, 32))...)
}

// Domain is a TDX guest as its quote shows it.
type Domain struct {
	Attributes uint64
	MRTD       [48]byte
	RTMR       [4][48]byte
}

// TDX is the evidence of a guest that asked to sign the data.
func (m *Intel) TDX(t testing.TB, domain Domain, data [64]byte) *evidence.Evidence {
	t.Helper()
	quote := RecordedQuote()
	head := bytes.Clone(quote[:0x278])
	body := head[0x30:]
	binary.LittleEndian.PutUint64(body[0x78:], domain.Attributes)
	copy(body[0x88:], domain.MRTD[:])
	for i, one := range domain.RTMR {
		copy(body[0x148+48*i:], one[:])
	}
	copy(body[0x208:], data[:])
	point, err := m.quoteKey.PublicKey.Bytes() // 04, x, y
	if err != nil {
		t.Fatal(err)
	}
	public, known := point[1:], []byte("0123456789abcdef0123456789abcdef")
	enclave := bytes.Clone(quote[0x27c+0x80+6:][:0x180]) // the recorded quoting enclave
	sum := sha256.Sum256(append(bytes.Clone(public), known...))
	copy(enclave[0x140:], append(sum[:], make([]byte, 32)...))

	var inner bytes.Buffer
	inner.Write(enclave)
	inner.Write(sign(t, m.pckKey, enclave))
	_ = binary.Write(&inner, binary.LittleEndian, uint16(len(known)))
	inner.Write(known)
	certificates := chain(m.pck, m.platform, m.root)
	_ = binary.Write(&inner, binary.LittleEndian, uint16(5))
	_ = binary.Write(&inner, binary.LittleEndian, uint32(len(certificates)))
	inner.Write(certificates)

	var signed bytes.Buffer
	signed.Write(sign(t, m.quoteKey, head))
	signed.Write(public)
	_ = binary.Write(&signed, binary.LittleEndian, uint16(6))
	_ = binary.Write(&signed, binary.LittleEndian, uint32(inner.Len()))
	signed.Write(inner.Bytes())
	whole := binary.LittleEndian.AppendUint32(head, uint32(signed.Len()))
	return &evidence.Evidence{
		Version: 1, TEE: evidence.TDX, Report: append(whole, signed.Bytes()...),
		Collateral: m.Collateral(t, m.now.AddDate(0, 0, -10), "UpToDate"),
	}
}

// Collateral is what the maker said on the day of its processors' firmware; whether it
// revoked the processor's key, too.
func (m *Intel) Collateral(t testing.TB, issued time.Time, status string, revoked ...int64) map[string]evidence.Document {
	t.Helper()
	next := issued.AddDate(0, 0, 30)
	body := RecordedQuote()[0x30:]
	zeros := slices.Repeat([]byte(`{"svn":0},`), 16)
	zeros = zeros[:len(zeros)-1]
	level := fmt.Sprintf(`"tcbDate":"2026-01-01T00:00:00Z","tcbStatus":%q`, status)
	dates := fmt.Sprintf(`"issueDate":%q,"nextUpdate":%q,"tcbEvaluationDataNumber":15`, issued.Format(time.RFC3339), next.Format(time.RFC3339))
	tcb := fmt.Sprintf(`{"id":"TDX","version":3,%s,"fmspc":"50806f000000","pceId":"0000","tcbType":0,"tdxModule":{"mrsigner":%q,"attributes":"0000000000000000","attributesMask":"FFFFFFFFFFFFFFFF"},`+
		`"tcbLevels":[{"tcb":{"sgxtcbcomponents":[%s],"pcesvn":0,"tdxtcbcomponents":[%s]},%s}]}`, dates, hex.EncodeToString(body[0x40:0x70]), zeros, zeros, level)
	enclave := fmt.Sprintf(`{"id":"TD_QE","version":2,%s,"miscselect":"00000000","miscselectMask":"FFFFFFFF","attributes":"11000000000000000000000000000000","attributesMask":"FBFFFFFFFFFFFFFF0000000000000000",`+
		`"mrsigner":"DC9E2A7C6F948F17474E34A7FC43ED030F7C1563F1BABDDF6340C82E0E54A8C5","isvprodid":2,"tcbLevels":[{"tcb":{"isvsvn":0},"tcbDate":"2026-01-01T00:00:00Z","tcbStatus":"UpToDate"}]}`, dates)
	said := func(name, text string) evidence.Document {
		return evidence.Document{Body: fmt.Appendf(nil, `{%q:%s,"signature":"%x"}`, name, text, sign(t, m.tcbKey, []byte(text))), Chain: chain(m.tcb, m.root)}
	}
	list := func(issuer *x509.Certificate, key *ecdsa.PrivateKey, serials ...int64) []byte {
		made := &x509.RevocationList{Number: big.NewInt(1), ThisUpdate: issued, NextUpdate: next}
		for _, one := range serials {
			made.RevokedCertificateEntries = append(made.RevokedCertificateEntries, x509.RevocationListEntry{SerialNumber: big.NewInt(one), RevocationTime: issued})
		}
		raw, err := x509.CreateRevocationList(rand.Reader, made, issuer, key)
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	return map[string]evidence.Document{
		evidence.TCBInfo: said("tcbInfo", tcb), evidence.QEIdentity: said("enclaveIdentity", enclave),
		evidence.PCKRevoked:  {Body: list(m.platform, m.platformKey, revoked...), Chain: chain(m.platform, m.root)},
		evidence.RootRevoked: {Body: list(m.root, m.rootKey)},
	}
}

// Chain is the maker's root as a file: for --test-root.
func (m *Intel) Chain() []byte { return chain(m.root) }

// PCK is the serial number of the processor's certificate.
func (m *Intel) PCK() int64 { return m.pck.SerialNumber.Int64() }
