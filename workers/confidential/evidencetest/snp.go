// Package evidencetest makes evidence of machines that do not exist, signed below roots
// of its own: what no real machine near the tests can show. No program links it.
package evidencetest

import (
	"crypto/rand"
	"crypto/x509"
	"encoding/binary"
	"encoding/pem"
	"math/big"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-sev-guest/abi"
	fake "github.com/google/go-sev-guest/testing"
	"github.com/google/go-sev-guest/verify/trust"

	"github.com/tandem-tune/tandem/workers/confidential/evidence"
)

// Now is when the evidence is good.
var Now = time.Date(2026, 10, 1, 12, 0, 0, 0, time.UTC)

// AMD is a maker of processors.
type AMD struct {
	signer *fake.AmdSigner
	now    time.Time
	Line   string
	once   sync.Once
	none   []byte // the list of what it revoked, of nothing
}

// NewAMD makes one whose processors are of the line: Milan or Genoa.
func NewAMD(t testing.TB, line string) *AMD { return NewAMDAt(t, line, Now) }

// NewAMDAt is NewAMD for evidence that is good at the time.
func NewAMDAt(t testing.TB, line string, now time.Time) *AMD {
	t.Helper()
	signer, err := fake.DefaultTestOnlyCertChain(line+"-B0", now.AddDate(-1, 0, 0))
	if err != nil {
		t.Fatal(err)
	}
	return &AMD{signer: signer, now: now, Line: line}
}

// Roots are the maker's.
func (a *AMD) Roots() *evidence.Roots {
	root := trust.AMDRootCertsProduct(a.Line)
	root.ProductCerts = &trust.ProductCerts{Ask: a.signer.Ask, Asvk: a.signer.Asvk, Ark: a.signer.Ark}
	return &evidence.Roots{AMD: map[string][]*trust.AMDRootCerts{a.Line: {root}}}
}

// Guest is an SEV-SNP guest as its report shows it.
type Guest struct {
	Policy      abi.SnpPolicy
	VMPL        uint32
	TCB         uint64
	Measurement [48]byte
	HostData    [32]byte
	VLEK        bool
	FMS         uint32 // of a report of version 3
}

// SNP is the evidence of a guest that asked to sign the data.
func (a *AMD) SNP(t testing.TB, guest Guest, data [64]byte) *evidence.Evidence {
	t.Helper()
	options := &fake.TestReportOptions{ReportData: data[:], FMS: guest.FMS}
	if guest.FMS != 0 {
		options.Version = 3
	}
	certificate := a.signer.Vcek
	if options.SignerInfo.SigningKey = abi.VcekReportSigner; guest.VLEK {
		options.SignerInfo.SigningKey, certificate = abi.VlekReportSigner, a.signer.Vlek
	}
	whole := fake.CreateRawReport(options)
	report := whole[:abi.ReportSize]
	binary.LittleEndian.PutUint64(report[0x08:], abi.SnpPolicyToBytes(guest.Policy))
	binary.LittleEndian.PutUint32(report[0x30:], guest.VMPL)
	copy(report[0x90:], guest.Measurement[:])
	copy(report[0xC0:], guest.HostData[:])
	for _, at := range []int{0x38, 0x180, 0x1E0, 0x1F0} {
		binary.LittleEndian.PutUint64(report[at:], guest.TCB)
	}
	r, s, err := a.signer.Sign(abi.SignedComponent(report))
	if err == nil {
		err = abi.SetSignature(r, s, report)
	}
	if err != nil {
		t.Fatal(err)
	}
	a.once.Do(func() { a.none = a.Revoked(t, a.now.AddDate(0, 0, -10), a.now.AddDate(0, 6, 0)) })
	return &evidence.Evidence{
		Version: 1, TEE: evidence.SNP, Report: report, Certificate: certificate.Raw,
		Collateral: map[string]evidence.Document{evidence.AMDRevoked: {Body: slices.Clone(a.none)}},
	}
}

// Intermediate is what signs the processors' keys.
func (a *AMD) Intermediate() *x509.Certificate { return a.signer.Ask }

// Revoked is the maker's list of what it revoked.
func (a *AMD) Revoked(t testing.TB, issued, next time.Time, which ...*x509.Certificate) []byte {
	t.Helper()
	list := &x509.RevocationList{Number: big.NewInt(1), ThisUpdate: issued, NextUpdate: next, SignatureAlgorithm: x509.SHA384WithRSAPSS}
	for _, one := range which {
		list.RevokedCertificateEntries = append(list.RevokedCertificateEntries, x509.RevocationListEntry{SerialNumber: one.SerialNumber, RevocationTime: issued})
	}
	issuer := *a.signer.Ark // the double's root lacks what a signer of lists has
	issuer.KeyUsage, issuer.SubjectKeyId = x509.KeyUsageCRLSign, []byte{1}
	raw, err := x509.CreateRevocationList(rand.Reader, list, &issuer, a.signer.Keys.Ark)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// Chain is the maker's root as a file: for --test-root.
func (a *AMD) Chain() []byte {
	var text []byte
	for _, one := range []*x509.Certificate{a.signer.Ask, a.signer.Ark} {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: one.Raw})...)
	}
	return text
}
