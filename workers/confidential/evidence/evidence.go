// Package evidence reads what a confidential machine shows of itself, and checks it
// without a network: a report that AMD's or Intel's processor signed, and those of its
// GPUs by NVIDIA, against roots that are pinned here and at a time that the caller names.
//
// It is the one door to go-sev-guest and go-tdx-guest. Their word is what counts; what
// is added here is a code for each refusal. Whether the owner of the data wants such a
// machine is decided in package policy.
package evidence

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
)

// MaxBytes bounds a file of evidence: Intel's collateral has some 30 kB.
const MaxBytes = 256 << 10

// MaxReport bounds the signed report itself.
const MaxReport = 64 << 10

// The kinds of machines.
const (
	SNP = "sev-snp"
	TDX = "tdx"
)

// The documents of collateral: lists of what was revoked, and what Intel says of its
// firmware. AMD's and Intel's signatures vouch for them, not who carries them.
const (
	AMDRevoked  = "amd_crl"
	TCBInfo     = "tcb_info"
	QEIdentity  = "qe_identity"
	PCKRevoked  = "pck_crl"
	RootRevoked = "root_crl"
)

// Documents are the names of collateral, by the kind of the machine.
var Documents = map[string][]string{SNP: {AMDRevoked}, TDX: {TCBInfo, QEIdentity, PCKRevoked, RootRevoked}}

// Evidence is what a machine shows.
type Evidence struct {
	Version int    `json:"version"`
	TEE     string `json:"tee"`
	// Report is the signed report of SEV-SNP, or the quote of TDX.
	Report []byte `json:"report"`
	// Certificate is that of the key that signed an SEV-SNP report; a quote has its own.
	Certificate []byte              `json:"certificate,omitempty"`
	Collateral  map[string]Document `json:"collateral,omitempty"`
	GPU         []GPU               `json:"gpu,omitempty"`
}

// Document is a piece of collateral as its issuer published it.
type Document struct {
	Body []byte `json:"body"`
	// Chain are the certificates of its signer, as PEM; AMD's needs none.
	Chain []byte `json:"chain,omitempty"`
}

// Claims is what a report says whose signature was found good.
type Claims struct {
	TEE string
	// Product is the line of the processor in lower case, empty with TDX; Key is what
	// signed the report, vcek or vlek.
	Product, Key string
	// Debug says that the host may read the guest's memory, Migration that it may be
	// moved to another machine, SMT that threads of others may share its cores.
	Debug, Migration, SMT, SingleSocket bool
	VMPL                                int
	// TCB are versions of AMD's firmware, as [Firmware] names them.
	TCB map[string]int
	// Measurements are hashes in hexadecimal: measurement and host_data of SEV-SNP;
	// mrtd, and rtmr0 to rtmr3, of TDX.
	Measurements map[string]string
	// ReportData is what the guest asked the processor to sign.
	ReportData []byte
	// Collateral is when the oldest document was issued; zero where there is none, and
	// then nobody looked whether something was revoked.
	Collateral time.Time
	GPUs       []GPUClaims
	// GPUDigest is [Evidence.Digest], which the guest may have asked to sign too.
	GPUDigest []byte
}

// Firmware are the parts of AMD's firmware.
var Firmware = []string{"bootloader", "microcode", "snp", "tee"}

// Refusal is why no key is released: a code that programs compare, and the reason.
type Refusal struct{ Code, Detail string }

func (r *Refusal) Error() string { return r.Code + ": " + r.Detail }

// maxDetail bounds the reason: libraries quote what they read, and a broker logs it.
const maxDetail = 500

// Refuse is a new refusal.
func Refuse(code, format string, args ...any) error {
	detail := fmt.Sprintf(format, args...)
	if len(detail) > maxDetail {
		detail = strings.ToValidUTF8(detail[:maxDetail], "") + "..."
	}
	return &Refusal{Code: code, Detail: detail}
}

// Parse reads a file of evidence.
func Parse(data []byte) (*Evidence, error) {
	if len(data) > MaxBytes {
		return nil, Refuse("malformed_evidence", "it has %d bytes: at most %d", len(data), MaxBytes)
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	found := &Evidence{}
	if err := decoder.Decode(found); err != nil {
		return nil, Refuse("malformed_evidence", "it is no evidence: %v: 'tandem policy evidence' writes such a file", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, Refuse("malformed_evidence", "something follows the evidence: take it out")
	}
	return found, found.check()
}

// check refuses what no report can be in.
func (e *Evidence) check() error {
	switch {
	case e.Version != 1:
		return Refuse("malformed_evidence", "version must be 1, not %d", e.Version)
	case Documents[e.TEE] == nil:
		return Refuse("malformed_evidence", "tee must be %s or %s, not %q", SNP, TDX, e.TEE)
	case len(e.Report) == 0 || len(e.Report) > MaxReport:
		return Refuse("malformed_evidence", "report has %d bytes: 1 to %d", len(e.Report), MaxReport)
	}
	for name := range e.Collateral {
		if known := slices.Concat(Documents[e.TEE], GPUDocuments); !slices.Contains(known, name) {
			return Refuse("malformed_evidence", "collateral.%s: of %s there are %v", name, e.TEE, known)
		}
	}
	if len(e.GPU) > mostGPUs {
		return Refuse("malformed_evidence", "gpu has %d reports: at most %d", len(e.GPU), mostGPUs)
	}
	return nil
}

// Pack is evidence of the parts. The report tells the kind of the machine.
func Pack(report, certificate []byte, collateral map[string]Document) (*Evidence, error) {
	made := &Evidence{Version: 1, TEE: SNP, Report: report, Certificate: certificate, Collateral: collateral}
	if isQuote(report) {
		made.TEE = TDX
	}
	if made.TEE == SNP {
		one, err := signer(report, certificate)
		if err != nil {
			return nil, problem.New(problem.Invalid, "--certificate: %w", err)
		}
		made.Certificate = one
	}
	return made, made.check()
}

// Verify checks signatures and chains at the time, and tells what was signed. Without
// collateral nothing is known of what was revoked, nor of Intel's firmware: the claims
// say so, and a policy decides.
func (e *Evidence) Verify(roots *Roots, now time.Time) (claims *Claims, err error) {
	defer func() {
		if broken := recover(); broken != nil { // the parsers are others', and what they read is a stranger's
			claims, err = nil, Refuse("malformed_evidence", "the report cannot be read: %v", broken)
		}
	}()
	if err := e.check(); err != nil {
		return nil, err
	}
	verify := e.verifySNP
	if e.TEE == TDX {
		verify = e.verifyTDX
	}
	if claims, err = verify(roots, now); err == nil {
		err = e.verifyGPUs(roots, now, claims)
	}
	if err != nil {
		return nil, err
	}
	return claims, nil
}
