package evidence_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-sev-guest/abi"
	"github.com/google/go-sev-guest/verify/testdata"
	tdxsample "github.com/google/go-tdx-guest/testing/testdata"

	"github.com/tandem-tune/tandem/workers/confidential/evidence"
	"github.com/tandem-tune/tandem/workers/confidential/evidencetest"
)

// day is when recorded evidence was good.
var day = time.Date(2023, 7, 1, 0, 0, 0, 0, time.UTC)

func pinned(t testing.TB) *evidence.Roots {
	t.Helper()
	roots, err := evidence.Pinned()
	if err != nil {
		t.Fatal(err)
	}
	return roots
}

func code(err error) string {
	if refused, ok := errors.AsType[*evidence.Refusal](err); ok {
		return refused.Code
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// Reports of real processors are believed by the makers' real roots, and by no others.
func TestRecordedReportsOfRealProcessors(t *testing.T) {
	milan, err := evidence.Pack(testdata.AttestationBytes, testdata.VcekBytes, nil)
	if err != nil {
		t.Fatal(err)
	}
	rapids, err := evidence.Pack(evidencetest.RecordedQuote(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, one := range map[string]*evidence.Evidence{"milan": milan, "": rapids} {
		claims, err := one.Verify(pinned(t), day)
		if err != nil || claims.Product != name || !claims.Collateral.IsZero() {
			t.Errorf("%s: %+v, %v", one.TEE, claims, err)
		}
		if _, err := one.Verify(pinned(t), day.AddDate(60, 0, 0)); code(err) != "expired_chain" {
			t.Errorf("%s: sixty years on: %v", one.TEE, err)
		}
		if _, err := one.Verify(evidencetest.NewIntel(t).Roots(), day); err == nil {
			t.Errorf("%s: another root vouches for it", one.TEE)
		}
		for _, at := range []int{0x60, 0xa0, 0x240} { // report data, measurements, reserved or report data
			bad := *one
			bad.Report = bytes.Clone(one.Report)
			bad.Report[at] ^= 1
			if _, err := bad.Verify(pinned(t), day); code(err) != "bad_signature" && code(err) != "malformed_evidence" {
				t.Errorf("%s: a bit at %#x: %v", one.TEE, at, err)
			}
		}
		text, _ := json.Marshal(one)
		if again, err := evidence.Parse(text); err != nil || !bytes.Equal(again.Report, one.Report) {
			t.Errorf("%s: as a file: %v", one.TEE, err)
		}
	}
	if milan, _ := milan.Verify(pinned(t), day); !milan.Debug || milan.Key != "vcek" || milan.TCB["microcode"] != 68 || !strings.HasPrefix(milan.Measurements["measurement"], "b07af9620f3b") {
		t.Errorf("the recorded Milan is another: %+v", milan)
	}
}

func TestReportsAreRefusedByTheirFaults(t *testing.T) {
	amd, other := evidencetest.NewAMD(t, "Genoa"), evidencetest.NewAMD(t, "Milan")
	guest := evidencetest.Guest{}
	for want, change := range map[string]func(*evidence.Evidence){
		"":                   func(*evidence.Evidence) {},
		"bad_signature":      func(e *evidence.Evidence) { e.Report[0x91] ^= 1 },
		"malformed_evidence": func(e *evidence.Evidence) { e.Report = e.Report[:100] },
		"malformed_evidence ": func(e *evidence.Evidence) { // the policy's reserved bit is 0
			e.Report = make([]byte, abi.ReportSize)
		},
		"malformed_evidence  ":  func(e *evidence.Evidence) { e.Report = append(e.Report, 0) },
		"malformed_evidence   ": func(e *evidence.Evidence) { e.Certificate = []byte("none") },
		"malformed_evidence list": func(e *evidence.Evidence) {
			e.Collateral = map[string]evidence.Document{evidence.AMDRevoked: {Body: other.Revoked(t, evidencetest.Now, evidencetest.Now.AddDate(0, 0, 1))[:40]}}
		},
		"product_not_allowed": func(e *evidence.Evidence) { *e = *other.SNP(t, guest, [64]byte{}) },
		"product_not_allowed differs": func(e *evidence.Evidence) {
			*e = *amd.SNP(t, evidencetest.Guest{FMS: 0x00a00f10}, [64]byte{}) // a Milan's report with a Genoa's certificate
		},
		"revoked": func(e *evidence.Evidence) {
			e.Collateral[evidence.AMDRevoked] = evidence.Document{Body: amd.Revoked(t, evidencetest.Now.AddDate(0, 0, -1), evidencetest.Now.AddDate(0, 0, 1), amd.Intermediate())}
		},
		"collateral_stale": func(e *evidence.Evidence) {
			e.Collateral[evidence.AMDRevoked] = evidence.Document{Body: amd.Revoked(t, evidencetest.Now.AddDate(0, 0, -9), evidencetest.Now.AddDate(0, 0, -1))}
		},
		"tcb_too_low": func(e *evidence.Evidence) { *e = *amd.SNP(t, evidencetest.Guest{TCB: 1}, [64]byte{}) }, // not the certificate's
	} {
		made := amd.SNP(t, guest, [64]byte{1})
		change(made)
		if _, err := made.Verify(amd.Roots(), evidencetest.Now); code(err) != strings.Fields(want + " .")[0] && (want != "" || err != nil) {
			t.Errorf("%q: %v", want, err)
		}
	}
	made := amd.SNP(t, guest, [64]byte{})
	if _, err := made.Verify(pinned(t), evidencetest.Now); code(err) != "untrusted_root" {
		t.Errorf("by AMD's real roots: %v", err)
	}
	if _, err := made.Verify(amd.Roots(), evidencetest.Now.AddDate(60, 0, 0)); code(err) != "expired_chain" {
		t.Errorf("sixty years on: %v", err)
	}
	claims, err := amd.SNP(t, evidencetest.Guest{VLEK: true, FMS: 0x00a10f10}, [64]byte{7}).Verify(amd.Roots(), evidencetest.Now)
	if err != nil || claims.Key != "vlek" || claims.ReportData[0] != 7 || claims.Debug {
		t.Errorf("a report by a VLEK: %+v, %v", claims, err)
	}
}

func TestQuotesAreRefusedByTheirFaults(t *testing.T) {
	intel := evidencetest.NewIntel(t)
	for want, change := range map[string]func(*evidence.Evidence){
		"":                          func(*evidence.Evidence) {},
		"bad_signature":             func(e *evidence.Evidence) { e.Report[0x30+0x88] ^= 1 },
		"malformed_evidence":        func(e *evidence.Evidence) { e.Report = e.Report[:700] },
		"malformed_evidence zeros":  func(e *evidence.Evidence) { e.Report = make([]byte, 5000) },
		"malformed_evidence long":   func(e *evidence.Evidence) { e.Report = append(e.Report, "more"...) },
		"malformed_evidence remark": func(e *evidence.Evidence) { e.Report = tdxsample.RawQuote },
		"malformed_evidence part":   func(e *evidence.Evidence) { delete(e.Collateral, evidence.PCKRevoked) },
		"malformed_evidence other's": func(e *evidence.Evidence) {
			e.Collateral = evidencetest.NewIntel(t).Collateral(t, evidencetest.Now, "UpToDate")
		},
		"malformed_evidence signature": func(e *evidence.Evidence) { replace(e, "issueDate", "issuedate") },
		"tcb_too_low":                  func(e *evidence.Evidence) { e.Collateral = intel.Collateral(t, evidencetest.Now, "OutOfDate") },
		"tcb_too_low hardening":        func(e *evidence.Evidence) { e.Collateral = intel.Collateral(t, evidencetest.Now, "SWHardeningNeeded") },
		"collateral_stale": func(e *evidence.Evidence) {
			e.Collateral = intel.Collateral(t, evidencetest.Now.AddDate(0, 0, -31), "UpToDate")
		},
		"collateral_stale future": func(e *evidence.Evidence) {
			e.Collateral = intel.Collateral(t, evidencetest.Now.AddDate(0, 0, 1), "UpToDate")
		},
		"revoked": func(e *evidence.Evidence) {
			e.Collateral = intel.Collateral(t, evidencetest.Now, "UpToDate", intel.PCK())
		},
	} {
		made := intel.TDX(t, evidencetest.Domain{}, [64]byte{1})
		change(made)
		if _, err := made.Verify(intel.Roots(), evidencetest.Now); code(err) != strings.Fields(want + " .")[0] && (want != "" || err != nil) {
			t.Errorf("%q: %v", want, err)
		}
	}
	if _, err := intel.TDX(t, evidencetest.Domain{}, [64]byte{}).Verify(pinned(t), evidencetest.Now); code(err) != "untrusted_root" {
		t.Errorf("by Intel's real root: %v", err)
	}
	claims, err := intel.TDX(t, evidencetest.Domain{Attributes: 1<<29 | 1}, [64]byte{7}).Verify(intel.Roots(), evidencetest.Now)
	if err != nil || !claims.Debug || !claims.Migration || claims.ReportData[0] != 7 || claims.Collateral.IsZero() {
		t.Errorf("%+v, %v", claims, err)
	}
}

func replace(e *evidence.Evidence, old, with string) {
	document := e.Collateral[evidence.TCBInfo]
	document.Body = bytes.Replace(document.Body, []byte(old), []byte(with), 1)
	e.Collateral[evidence.TCBInfo] = document
}

func TestFilesOfEvidenceHaveAClosedForm(t *testing.T) {
	for _, text := range []string{
		``, `{}`, `[]`, `{"version":2,"tee":"tdx","report":"AAAA"}`, `{"version":1,"tee":"sgx","report":"AAAA"}`, `{"version":1,"tee":"tdx","report":""}`,
		`{"version":1,"tee":"tdx","report":"AAAA","more":1}`, `{"version":1,"tee":"tdx","report":"AAAA"}{}`, `{"version":1,"tee":"tdx","report":"AAAA","collateral":{"amd_crl":{}}}`,
		strings.Repeat(" ", evidence.MaxBytes+1),
	} {
		if _, err := evidence.Parse([]byte(text)); code(err) != "malformed_evidence" {
			t.Errorf("%.60q: %v", text, err)
		}
	}
}

// A stranger's bytes that a library quotes do not fill a broker's log.
func TestReasonsAreShort(t *testing.T) {
	if err := evidence.Refuse("malformed_evidence", "%s", strings.Repeat("é", 1<<20)); len(err.Error()) > 600 || !strings.HasSuffix(err.Error(), "é...") {
		t.Errorf("%d bytes", len(err.Error()))
	}
}

// signedBytes are at the head of both kinds of reports, before the signature.
const signedBytes = 0x278

// Whatever a stranger sends, it is refused or believed, and nothing panics.
func FuzzEvidence(f *testing.F) {
	amd, intel := evidencetest.NewAMD(f, "Genoa"), evidencetest.NewIntel(f)
	roots := amd.Roots()
	roots.Intel = intel.Roots().Intel
	good := map[string]bool{}
	for _, one := range []*evidence.Evidence{amd.SNP(f, evidencetest.Guest{}, [64]byte{}), intel.TDX(f, evidencetest.Domain{}, [64]byte{})} {
		text, _ := json.Marshal(one)
		good[string(one.Report[:signedBytes])] = true
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		found, err := evidence.Parse(text)
		if err != nil {
			return
		}
		claims, err := found.Verify(roots, evidencetest.Now)
		if (err == nil) == (claims == nil) || err != nil && code(err) == err.Error() {
			t.Fatalf("%v, %v", claims, err)
		}
		if err == nil && !good[string(found.Report[:signedBytes])] {
			t.Fatal("a report is believed that nobody signed")
		}
	})
}

// The same for the reports themselves, which a file has in base64: those of real processors
// are changed, and nothing that these signed is another's.
func FuzzReport(f *testing.F) {
	roots := pinned(f)
	f.Add(testdata.AttestationBytes, testdata.VcekBytes)
	f.Add(evidencetest.RecordedQuote(), []byte(nil))
	f.Fuzz(func(t *testing.T, report, certificate []byte) {
		made := &evidence.Evidence{Version: 1, TEE: evidence.TDX, Report: report}
		if packed, err := evidence.Pack(report, certificate, nil); err == nil {
			made = packed
		}
		claims, err := made.Verify(roots, day)
		switch signed := report[:min(len(report), signedBytes)]; {
		case (err == nil) == (claims == nil) || err != nil && code(err) == err.Error():
			t.Fatalf("%v, %v", claims, err)
		case err == nil && !bytes.Equal(signed, testdata.AttestationBytes[:signedBytes]) && !bytes.Equal(signed, evidencetest.RecordedQuote()[:signedBytes]):
			t.Fatal("a report is believed that nobody signed")
		}
	})
}
