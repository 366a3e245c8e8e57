package policy

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tandem-tune/tandem/workers/confidential/evidence"
)

// Appraise refuses a machine that the policy does not allow, by the first rule that it
// breaks. want is what the machine had to have signed; nil: anything.
func (p *Policy) Appraise(claims *evidence.Claims, want []byte, now time.Time) error {
	if now.After(p.Expires) {
		return evidence.Refuse("policy_expired", "the policy ended at %s: sign a new one", p.Expires.Format(time.RFC3339))
	}
	if want != nil && !bytes.Equal(want, claims.ReportData) {
		return evidence.Refuse("wrong_binding", "the report was not made for this request: it has other report data")
	}
	switch {
	case claims.TEE == evidence.SNP && p.TEE.SNP != nil:
		if err := p.TEE.SNP.appraise(claims); err != nil {
			return err
		}
	case claims.TEE == evidence.TDX && p.TEE.TDX != nil:
		if err := p.TEE.TDX.appraise(claims); err != nil {
			return err
		}
	default:
		return evidence.Refuse("product_not_allowed", "the machine is a guest of %s, which the policy does not name", claims.TEE)
	}
	if err := p.fresh(claims.Collateral, evidence.Documents[claims.TEE], now); err != nil {
		return err
	}
	return p.GPU.appraise(p, claims, now)
}

// fresh refuses collateral that is missing, or of another time than the policy takes.
func (p *Policy) fresh(issued time.Time, documents []string, now time.Time) error {
	age, limited := p.maxAge()
	switch {
	case !limited:
		return nil
	case issued.IsZero():
		return evidence.Refuse("collateral_stale", "the evidence has no collateral, so nobody knows what was revoked: add %v", documents)
	case now.Sub(issued) > age:
		return evidence.Refuse("collateral_stale", "the collateral is of %s, and the policy takes none older than %s: fetch it anew", issued.Format(time.DateOnly), p.CollateralMaxAge)
	}
	return nil
}

func (s *SNP) appraise(claims *evidence.Claims) error {
	minimum, allowed := s.Products[claims.Product]
	switch {
	case !allowed:
		return evidence.Refuse("product_not_allowed", "the processor is %s, and the policy allows %v", claims.Product, slices.Sorted(maps.Keys(s.Products)))
	case !slices.Contains(s.Keys, claims.Key):
		return evidence.Refuse("product_not_allowed", "the report is signed by a %s, and the policy allows %v", claims.Key, s.Keys)
	}
	if err := weak(claims, s.Allow); err != nil {
		return err
	}
	switch {
	case claims.SMT && !slices.Contains(s.Allow, "smt"):
		return evidence.Refuse("debug_guest", "the guest lets threads of others share its cores: forbid SMT in its launch, or allow: [smt]")
	case s.SingleSocket && !claims.SingleSocket:
		return evidence.Refuse("debug_guest", "the guest may run on several sockets, and the policy wants one")
	case !slices.Contains(s.VMPL, claims.VMPL):
		return evidence.Refuse("unknown_measurement", "the report is of privilege level %d, and the policy allows %v", claims.VMPL, s.VMPL)
	}
	if err := measured(claims, "measurement", s.Measurement); err != nil {
		return err
	}
	if len(s.HostData) > 0 {
		if err := measured(claims, "host_data", s.HostData); err != nil {
			return err
		}
	}
	for _, part := range evidence.Firmware {
		if claims.TCB[part] < minimum[part] {
			return evidence.Refuse("tcb_too_low", "%s is of version %d, and the policy wants %d: update the machine's firmware", part, claims.TCB[part], minimum[part])
		}
	}
	return nil
}

func (t *TDX) appraise(claims *evidence.Claims) error {
	if err := weak(claims, t.Allow); err != nil {
		return err
	}
	if err := measured(claims, "mrtd", t.MRTD); err != nil {
		return err
	}
	for _, register := range slices.Sorted(maps.Keys(t.RTMR)) {
		if t.RTMR[register][0] == Any {
			continue
		}
		if err := measured(claims, "rtmr"+register, t.RTMR[register]); err != nil {
			return err
		}
	}
	return nil
}

func weak(claims *evidence.Claims, allow []string) error {
	switch {
	case claims.Debug && !slices.Contains(allow, "debug"):
		return evidence.Refuse("debug_guest", "the guest was started for debugging, so the host can read its memory: start it without")
	case claims.Migration && !slices.Contains(allow, "migrate"):
		return evidence.Refuse("debug_guest", "the guest may be moved to another machine: start it without a migration agent")
	}
	return nil
}

func measured(claims *evidence.Claims, name string, allowed []string) error {
	if slices.Contains(allowed, claims.Measurements[name]) {
		return nil
	}
	return evidence.Refuse("unknown_measurement", "%s is %s, and the policy allows %s: update the policy or the machine", name, claims.Measurements[name], few(allowed))
}

// few names what is allowed in short.
func few(allowed []string) string {
	if len(allowed) > 1 {
		return fmt.Sprintf("%d others", len(allowed))
	}
	return allowed[0]
}
