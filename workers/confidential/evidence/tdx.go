package evidence

import (
	"bytes"
	"crypto/x509"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/google/go-tdx-guest/abi"
	pb "github.com/google/go-tdx-guest/proto/tdx"
	"github.com/google/go-tdx-guest/verify"
)

// isQuote reports whether this is the head of a TDX quote, version 4.
func isQuote(raw []byte) bool {
	return len(raw) >= 8 && binary.LittleEndian.Uint16(raw) == 4 && binary.LittleEndian.Uint32(raw[4:]) == abi.TeeTDX
}

func readTDX(raw []byte) (*pb.QuoteV4, []*x509.Certificate, error) {
	parsed, err := abi.QuoteToProto(raw)
	quote, is := parsed.(*pb.QuoteV4)
	switch {
	case err != nil || !is:
		return nil, nil, Refuse("malformed_evidence", "the TDX quote: %v: version 4 can be read", err)
	case !isQuote(raw):
		return nil, nil, Refuse("malformed_evidence", "the quote is not of a TDX guest")
	case len(bytes.Trim(quote.GetExtraBytes(), "\x00")) > 0:
		return nil, nil, Refuse("malformed_evidence", "%d bytes follow the TDX quote: cut them off", len(quote.GetExtraBytes()))
	}
	chain, err := certificates(quote.GetSignedData().GetCertificationData().GetQeReportCertificationData().GetPckCertificateChainData().GetPckCertChain())
	if err != nil || len(chain) != 3 {
		return nil, nil, Refuse("malformed_evidence", "the TDX quote has %d certificates in its chain, not 3: %v", len(chain), err)
	}
	return quote, chain, nil
}

// certificates reads a chain as PEM.
func certificates(chain []byte) (list []*x509.Certificate, err error) {
	for block, rest := pem.Decode(chain); block != nil; block, rest = pem.Decode(rest) {
		one, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		list = append(list, one)
	}
	return list, nil
}

func (e *Evidence) verifyTDX(roots *Roots, now time.Time) (*Claims, error) {
	quote, chain, err := readTDX(e.Report)
	if err != nil {
		return nil, err
	}
	between := x509.NewCertPool()
	between.AddCert(chain[1])
	if err := chained(chain[0], x509.VerifyOptions{Roots: roots.Intel, Intermediates: between, CurrentTime: now}); err != nil {
		return nil, err
	}
	if err := verify.TdxQuote(quote, &verify.Options{TrustedRoots: roots.Intel, Now: now}); err != nil {
		return nil, Refuse("bad_signature", "%v", err)
	}
	claims := claimsTDX(quote.GetTdQuoteBody())
	if len(e.Collateral) == 0 {
		return claims, nil
	}
	for _, name := range Documents[TDX] {
		if len(e.Collateral[name].Body) == 0 {
			return nil, Refuse("malformed_evidence", "collateral.%s is missing: give all of %v, or none", name, Documents[TDX])
		}
	}
	if claims.Collateral, err = e.dated(chain, now); err != nil {
		return nil, err
	}
	options := &verify.Options{TrustedRoots: roots.Intel, Now: now, GetCollateral: true, CheckRevocations: true, Getter: cache(e.Collateral)}
	if err := verify.TdxQuote(quote, options); err != nil && strings.Contains(strings.ToLower(err.Error()), "tcb status") {
		return nil, Refuse("tcb_too_low", "%v", err)
	} else if err != nil {
		return nil, Refuse("malformed_evidence", "Intel's collateral: %v", err)
	}
	return claims, nil
}

// dated is when the oldest document was issued. The library checks all signatures
// afterwards; what is found here names the reason.
func (e *Evidence) dated(chain []*x509.Certificate, now time.Time) (oldest time.Time, err error) {
	for i, name := range []string{PCKRevoked, RootRevoked} {
		found, err := list(name, e.Collateral[name].Body, chain[i+1], now)
		if err == nil {
			err = revoked(found, chain[i])
		}
		if err != nil {
			return oldest, err
		}
		oldest = earlier(oldest, found.ThisUpdate)
	}
	var said struct {
		TCBInfo, EnclaveIdentity struct{ IssueDate, NextUpdate time.Time }
	}
	for _, name := range []string{TCBInfo, QEIdentity} {
		if err := json.Unmarshal(e.Collateral[name].Body, &said); err != nil {
			return oldest, Refuse("malformed_evidence", "collateral.%s: %v: it must be as Intel published it", name, err)
		}
	}
	for name, one := range map[string]struct{ IssueDate, NextUpdate time.Time }{TCBInfo: said.TCBInfo, QEIdentity: said.EnclaveIdentity} {
		if err := fresh(name, one.IssueDate, one.NextUpdate, now); err != nil {
			return oldest, err
		}
		oldest = earlier(oldest, one.IssueDate)
	}
	return oldest, nil
}

func earlier(one, other time.Time) time.Time {
	if one.IsZero() || other.Before(one) {
		return other
	}
	return one
}

// cache answers what the library would ask Intel, from the evidence. No request leaves.
type cache map[string]Document

// Get is the library's interface: headers and the body of what is at the address.
func (c cache) Get(address string) (map[string][]string, []byte, error) {
	name, header := RootRevoked, ""
	switch {
	case strings.Contains(address, "/tcb?"):
		name, header = TCBInfo, "Tcb-Info-Issuer-Chain"
	case strings.Contains(address, "/qe/identity"):
		name, header = QEIdentity, "Sgx-Enclave-Identity-Issuer-Chain"
	case strings.Contains(address, "/pckcrl?"):
		name, header = PCKRevoked, "Sgx-Pck-Crl-Issuer-Chain"
	}
	chain := strings.TrimSpace(string(c[name].Chain))
	if !strings.Contains(chain, "BEGIN%20") { // as it stands in Intel's header
		chain = url.QueryEscape(chain)
	}
	return map[string][]string{header: {chain}}, c[name].Body, nil
}

// What a TD's attributes may have: nothing of it opens the guest to the host.
const (
	harmless    = 1<<28 | 1<<30 | 1<<63 // no faults by unaccepted pages, protection keys, counters
	migratable  = 1 << 29
	registersOf = 4
)

func claimsTDX(body *pb.TDQuoteBody) *Claims {
	attributes := binary.LittleEndian.Uint64(body.GetTdAttributes())
	claims := &Claims{
		TEE: TDX, Migration: attributes&migratable != 0, Debug: attributes&^(harmless|migratable) != 0,
		Measurements: map[string]string{"mrtd": hex.EncodeToString(body.GetMrTd())},
		ReportData:   bytes.Clone(body.GetReportData()),
	}
	for i, one := range body.GetRtmrs()[:registersOf] {
		claims.Measurements[fmt.Sprintf("rtmr%d", i)] = hex.EncodeToString(one)
	}
	return claims
}
