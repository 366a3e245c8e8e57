package evidence

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/x509"
	_ "embed" // the makers' roots
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	"github.com/google/go-sev-guest/verify/trust"
)

// intelRoot is Intel's SGX Root CA, which signs for TDX too, valid until 2049.
//
//go:embed intel_sgx_root.pem
var intelRoot []byte

// nvidiaRoot is NVIDIA's Device Identity CA, which signs for GPUs, as nvtrust has it.
//
//go:embed nvidia_device_root.pem
var nvidiaRoot []byte

// Roots are whom reports are believed from: AMD's keys by the line of the processor,
// and the roots of Intel and NVIDIA.
type Roots struct {
	AMD           map[string][]*trust.AMDRootCerts
	Intel, NVIDIA *x509.CertPool
}

// lines are AMD's processors whose reports can be read. Turin is not among them: its
// certificates have another form, which go-sev-guest v0.15.0 does not read.
var lines = map[string]string{"SEV-Milan": "Milan", "SEV-VLEK-Milan": "Milan", "SEV-Genoa": "Genoa", "SEV-VLEK-Genoa": "Genoa"}

// Pinned are the roots that this program holds; it asks nobody for others.
func Pinned() (*Roots, error) {
	roots := &Roots{AMD: map[string][]*trust.AMDRootCerts{}, Intel: x509.NewCertPool(), NVIDIA: x509.NewCertPool()}
	for line, chains := range map[string][2][]byte{
		"Milan": {trust.AskArkMilanVcekBytes, trust.AskArkMilanVlekBytes},
		"Genoa": {trust.AskArkGenoaVcekBytes, trust.AskArkGenoaVlekBytes},
	} {
		both := trust.AMDRootCertsProduct(line)
		vlek := trust.AMDRootCertsProduct(line)
		if err := errors.Join(both.FromKDSCertBytes(chains[0]), vlek.FromKDSCertBytes(chains[1])); err != nil {
			return nil, fmt.Errorf("AMD's root of %s: %w", line, err)
		}
		both.ProductCerts.Asvk = vlek.ProductCerts.Asvk
		roots.AMD[line] = []*trust.AMDRootCerts{both}
	}
	if !roots.Intel.AppendCertsFromPEM(intelRoot) || !roots.NVIDIA.AppendCertsFromPEM(nvidiaRoot) {
		return nil, errors.New("the roots of Intel and NVIDIA cannot be read")
	}
	return roots, nil
}

// Try believes roots for tests too, as PEM: a Genoa's ASK and ARK, a root in Intel's form,
// which has the elliptic curve P-256, one in NVIDIA's, of P-384, or several. What they vouch
// for proves nothing.
func (r *Roots) Try(chain []byte) error {
	list, err := certificates(chain)
	if err != nil || len(list) == 0 {
		return errors.Join(errors.New("it has no certificates that can be read"), err)
	}
	var amd []byte
	for _, one := range list {
		switch key, is := one.PublicKey.(*ecdsa.PublicKey); {
		case is && key.Curve == elliptic.P384():
			r.NVIDIA.AddCert(one)
		case is:
			r.Intel.AddCert(one)
		default:
			amd = append(amd, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: one.Raw})...)
		}
	}
	if len(amd) == 0 {
		return nil
	}
	root := trust.AMDRootCertsProduct("Genoa")
	r.AMD["Genoa"] = []*trust.AMDRootCerts{root}
	return root.FromKDSCertBytes(amd)
}

// chained refuses a certificate that the roots do not vouch for at the time.
func chained(certificate *x509.Certificate, options x509.VerifyOptions) error {
	if options.Roots == nil { // else the system's would do
		options.Roots = x509.NewCertPool()
	}
	_, err := certificate.Verify(options)
	var invalid x509.CertificateInvalidError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return Refuse("expired_chain", "at %s a certificate of the report's chain is not valid: %v", options.CurrentTime.UTC().Format(time.RFC3339), err)
	}
	return Refuse("untrusted_root", "the chain of %q does not end in a pinned root: %v", certificate.Subject.CommonName, err)
}

// list reads a list of what the issuer revoked.
func list(name string, raw []byte, issuer *x509.Certificate, now time.Time) (*x509.RevocationList, error) {
	if block, _ := pem.Decode(raw); block != nil {
		raw = block.Bytes
	}
	found, err := x509.ParseRevocationList(raw)
	if err != nil {
		return nil, Refuse("malformed_evidence", "collateral.%s: %v: it must be a list in DER or PEM", name, err)
	}
	if err := found.CheckSignatureFrom(issuer); err != nil {
		return nil, Refuse("malformed_evidence", "collateral.%s is not signed by %q: %v", name, issuer.Subject.CommonName, err)
	}
	return found, fresh(name, found.ThisUpdate, found.NextUpdate, now)
}

// fresh refuses collateral that its issuer has replaced, or not issued yet.
func fresh(name string, issued, next, now time.Time) error {
	if now.Before(issued) || now.After(next) {
		return Refuse("collateral_stale", "collateral.%s is of %s to %s: fetch it anew", name, issued.UTC().Format(time.DateOnly), next.UTC().Format(time.DateOnly))
	}
	return nil
}

// revoked refuses certificates that the list names.
func revoked(found *x509.RevocationList, certificates ...*x509.Certificate) error {
	for _, entry := range found.RevokedCertificateEntries {
		for _, one := range certificates {
			if entry.SerialNumber.Cmp(one.SerialNumber) == 0 {
				return Refuse("revoked", "the certificate %q was revoked on %s", one.Subject.CommonName, entry.RevocationTime.UTC().Format(time.DateOnly))
			}
		}
	}
	return nil
}
