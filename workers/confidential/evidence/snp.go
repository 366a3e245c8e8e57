package evidence

import (
	"bytes"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/go-sev-guest/abi"
	"github.com/google/go-sev-guest/kds"
	spb "github.com/google/go-sev-guest/proto/sevsnp"
	"github.com/google/go-sev-guest/validate"
	"github.com/google/go-sev-guest/verify"
	"github.com/google/go-sev-guest/verify/trust"
)

// readSNP takes a report apart, and tells which kind of key signed it.
func readSNP(raw []byte) (*spb.Report, abi.ReportSigner, error) {
	if len(raw) != abi.ReportSize {
		return nil, 0, Refuse("malformed_evidence", "an SEV-SNP report has %d bytes, not %d", abi.ReportSize, len(raw))
	}
	report, err := abi.ReportToProto(raw)
	if err = errors.Join(err, abi.ValidateReportFormat(raw)); err != nil {
		return nil, 0, Refuse("malformed_evidence", "the SEV-SNP report: %v", err)
	}
	info, err := abi.ParseSignerInfo(report.GetSignerInfo())
	if err != nil || info.SigningKey != abi.VcekReportSigner && info.SigningKey != abi.VlekReportSigner {
		return nil, 0, Refuse("malformed_evidence", "the SEV-SNP report is signed by neither VCEK nor VLEK")
	}
	return report, info.SigningKey, nil
}

// signer finds the certificate of the key that signed the report, in what was given: the
// certificate itself, or the table that Linux hands out as auxblob.
func signer(report, given []byte) ([]byte, error) {
	_, key, err := readSNP(report)
	if err != nil {
		return nil, err
	}
	if one, err := trust.ParseCert(given); err == nil {
		return one.Raw, nil
	}
	table := new(abi.CertTable)
	if err := table.Unmarshal(given); err != nil {
		return nil, fmt.Errorf("it is neither a certificate nor a table of them: give the VCEK or VLEK, or the auxblob: %w", err)
	}
	wanted := abi.VcekGUID
	if key == abi.VlekReportSigner {
		wanted = abi.VlekGUID
	}
	found, err := table.GetByGUIDString(wanted)
	if err != nil {
		return nil, fmt.Errorf("the table has no %s: %w", key, err)
	}
	return found, nil
}

func (e *Evidence) verifySNP(roots *Roots, now time.Time) (*Claims, error) {
	report, key, err := readSNP(e.Report)
	if err != nil {
		return nil, err
	}
	certificate, err := trust.ParseCert(e.Certificate)
	if err != nil {
		return nil, Refuse("malformed_evidence", "certificate: %v", err)
	}
	line := lines[certificate.Issuer.CommonName]
	switch fms := report.GetCpuid1EaxFms(); {
	case line == "" || len(roots.AMD[line]) != 1:
		return nil, Refuse("product_not_allowed", "the certificate is of %q: reports of Milan and Genoa can be read", certificate.Issuer.CommonName)
	case fms != 0 && kds.ProductLineFromFms(fms) != line:
		return nil, Refuse("product_not_allowed", "the report is of %s and its certificate of %s", kds.ProductLineFromFms(fms), line)
	}
	root := roots.AMD[line][0]
	if err := chained(certificate, *root.X509Options(now, key)); err != nil {
		return nil, err
	}
	if err := verify.SnpReportSignature(e.Report, certificate); err != nil {
		return nil, Refuse("bad_signature", "%v", err)
	}
	attestation := &spb.Attestation{Report: report, CertificateChain: &spb.CertificateChain{}}
	if key == abi.VlekReportSigner {
		attestation.CertificateChain.VlekCert = certificate.Raw
	} else {
		attestation.CertificateChain.VcekCert = certificate.Raw
	}
	if err := verify.SnpAttestation(attestation, &verify.Options{DisableCertFetching: true, Now: now, TrustedRoots: roots.AMD}); err != nil {
		return nil, Refuse("untrusted_root", "%v", err)
	}
	// What is left to a policy is permitted here: this asks whether versions and chip are the certificate's.
	any := abi.SnpPolicy{SMT: true, MigrateMA: true, Debug: true, CXLAllowed: true}
	if err := validate.SnpAttestation(attestation, &validate.Options{GuestPolicy: any}); err != nil {
		return nil, Refuse("tcb_too_low", "%v", err)
	}
	claims := claimsSNP(report, line, key)
	if document, has := e.Collateral[AMDRevoked]; has {
		claims.Collateral, err = notRevoked(document.Body, root, now)
	}
	return claims, err
}

func notRevoked(raw []byte, root *trust.AMDRootCerts, now time.Time) (time.Time, error) {
	found, err := list(AMDRevoked, raw, root.ProductCerts.Ark, now)
	if err != nil {
		return time.Time{}, err
	}
	var intermediate []*x509.Certificate
	for _, one := range []*x509.Certificate{root.ProductCerts.Ask, root.ProductCerts.Asvk} {
		if one != nil {
			intermediate = append(intermediate, one)
		}
	}
	return found.ThisUpdate, revoked(found, intermediate...)
}

func claimsSNP(report *spb.Report, line string, key abi.ReportSigner) *Claims {
	guest, _ := abi.ParseSnpPolicy(report.GetPolicy()) // readSNP has parsed it
	tcb := kds.DecomposeTCBVersion(kds.TCBVersion(report.GetReportedTcb()))
	return &Claims{
		TEE: SNP, Product: strings.ToLower(line), Key: strings.ToLower(key.String()),
		Debug: guest.Debug, Migration: guest.MigrateMA, SMT: guest.SMT, SingleSocket: guest.SingleSocket,
		VMPL: int(report.GetVmpl()),
		TCB:  map[string]int{"bootloader": int(tcb.BlSpl), "tee": int(tcb.TeeSpl), "snp": int(tcb.SnpSpl), "microcode": int(tcb.UcodeSpl)},
		Measurements: map[string]string{
			"measurement": hex.EncodeToString(report.GetMeasurement()), "host_data": hex.EncodeToString(report.GetHostData()),
		},
		ReportData: bytes.Clone(report.GetReportData()),
	}
}
