package policy_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-sev-guest/abi"

	"github.com/tandem-tune/tandem/workers/confidential/evidence"
	"github.com/tandem-tune/tandem/workers/confidential/evidencetest"
	"github.com/tandem-tune/tandem/workers/confidential/policy"
)

var now = evidencetest.Now

const zero48 = "000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"

// rules is a policy that allows what evidencetest makes.
var rules = `
version: 1
expires: 2027-03-01T00:00:00+01:00
tee:
  sev-snp:
    products: {genoa: {bootloader: 0, tee: 0, snp: 0, microcode: 0}}
    measurement: [` + zero48 + `, ` + strings.Repeat("AB", 48) + `]
  tdx:
    mrtd: [` + zero48 + `]
    rtmr: {0: [any], 1: [` + zero48 + `], 2: [` + zero48 + `]}
`

func parsed(t testing.TB, text string) *policy.Policy {
	t.Helper()
	found, err := policy.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func code(err error) string {
	if refused, ok := errors.AsType[*evidence.Refusal](err); ok {
		return refused.Code
	}
	return fmt.Sprint(err)
}

// Each rule refuses what breaks it, and what keeps all of them is allowed.
func TestMachinesAreAppraised(t *testing.T) {
	amd, intel := evidencetest.NewAMD(t, "Genoa"), evidencetest.NewIntel(t)
	roots := amd.Roots()
	roots.Intel = intel.Roots().Intel
	type guest = evidencetest.Guest
	type domain = evidencetest.Domain
	other := [48]byte{1}
	for name, one := range map[string]struct {
		change [2]string
		guest  any
		want   []byte
		code   string
	}{
		"a good guest":             {guest: guest{}},
		"what it had to sign":      {guest: guest{}, want: make([]byte, 64)},
		"another request":          {guest: guest{}, want: bytes.Repeat([]byte{1}, 64), code: "wrong_binding"},
		"debug":                    {guest: guest{Policy: abi.SnpPolicy{Debug: true}}, code: "debug_guest"},
		"migration":                {guest: guest{Policy: abi.SnpPolicy{MigrateMA: true}}, code: "debug_guest"},
		"SMT":                      {guest: guest{Policy: abi.SnpPolicy{SMT: true}}, code: "debug_guest"},
		"SMT, allowed":             {change: [2]string{"    products", "    allow: [smt]\n    products"}, guest: guest{Policy: abi.SnpPolicy{SMT: true}}},
		"debug with smt allowed":   {change: [2]string{"    products", "    allow: [smt]\n    products"}, guest: guest{Policy: abi.SnpPolicy{Debug: true}}, code: "debug_guest"},
		"sockets":                  {change: [2]string{"    products", "    single_socket: true\n    products"}, guest: guest{}, code: "debug_guest"},
		"one socket":               {change: [2]string{"    products", "    single_socket: true\n    products"}, guest: guest{Policy: abi.SnpPolicy{SingleSocket: true}}},
		"another image":            {guest: guest{Measurement: other}, code: "unknown_measurement"},
		"other host data":          {change: [2]string{"    products", "    host_data: [" + zero48[:64] + "]\n    products"}, guest: guest{HostData: [32]byte{1}}, code: "unknown_measurement"},
		"the host data":            {change: [2]string{"    products", "    host_data: [" + zero48[:64] + "]\n    products"}, guest: guest{}},
		"a low privilege":          {guest: guest{VMPL: 2}, code: "unknown_measurement"},
		"a low privilege, allowed": {change: [2]string{"    products", "    vmpl: [0, 2]\n    products"}, guest: guest{VMPL: 2}},
		"old firmware":             {change: [2]string{"microcode: 0", "microcode: 1"}, guest: guest{}, code: "tcb_too_low"},
		"another line":             {change: [2]string{"genoa", "milan"}, guest: guest{}, code: "product_not_allowed"},
		"another key":              {guest: guest{VLEK: true}, code: "product_not_allowed"},
		"no AMD":                   {change: [2]string{rules[strings.Index(rules, "  sev-snp"):strings.Index(rules, "  tdx")], ""}, guest: guest{}, code: "product_not_allowed"},
		"ended":                    {change: [2]string{"2027", "2025"}, guest: guest{}, code: "policy_expired"},
		"old lists":                {change: [2]string{"tee:", "collateral_max_age: 9d\ntee:"}, guest: guest{}, code: "collateral_stale"},
		"lists in time":            {change: [2]string{"tee:", "collateral_max_age: 10d\ntee:"}, guest: guest{}},
		"a good domain":            {guest: domain{RTMR: [4][48]byte{other, {}, {}, other}}},
		"another request to it":    {guest: domain{}, want: bytes.Repeat([]byte{1}, 64), code: "wrong_binding"},
		"a domain for debugging":   {guest: domain{Attributes: 1}, code: "debug_guest"},
		"unknown attributes":       {guest: domain{Attributes: 1 << 40}, code: "debug_guest"},
		"harmless attributes":      {guest: domain{Attributes: 1 << 28}},
		"a domain that moves":      {guest: domain{Attributes: 1 << 29}, code: "debug_guest"},
		"other firmware":           {guest: domain{MRTD: other}, code: "unknown_measurement"},
		"another kernel":           {guest: domain{RTMR: [4][48]byte{{}, other}}, code: "unknown_measurement"},
		"old firmware's settings":  {change: [2]string{"0: [any]", "0: [" + zero48 + "]"}, guest: domain{RTMR: [4][48]byte{other}}, code: "unknown_measurement"},
		"debugging, allowed":       {change: [2]string{"    mrtd", "    allow: [debug]\n    mrtd"}, guest: domain{Attributes: 1}},
		"no Intel":                 {change: [2]string{rules[strings.Index(rules, "  tdx"):], ""}, guest: domain{}, code: "product_not_allowed"},
		"ended for domains":        {change: [2]string{"2027", "2025"}, guest: domain{}, code: "policy_expired"},
		"old word of Intel":        {change: [2]string{"tee:", "collateral_max_age: 9d\ntee:"}, guest: domain{}, code: "collateral_stale"},
	} {
		var made *evidence.Evidence
		switch guest := one.guest.(type) {
		case evidencetest.Guest:
			made = amd.SNP(t, guest, [64]byte{})
		case evidencetest.Domain:
			made = intel.TDX(t, guest, [64]byte{})
		}
		claims, err := made.Verify(roots, now)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if one.change[0] != "" && !strings.Contains(rules, one.change[0]) {
			t.Fatalf("%s: there is no %q", name, one.change[0])
		}
		if err := parsed(t, strings.Replace(rules, one.change[0], one.change[1], 1)).Appraise(claims, one.want, now); one.code != "" && code(err) != one.code || one.code == "" && err != nil {
			t.Errorf("%s: %v, not %q", name, err, one.code)
		}
		if claims.Collateral = (time.Time{}); one.code == "" {
			if err := parsed(t, rules).Appraise(claims, nil, now); err == nil {
				t.Errorf("%s: without lists of what was revoked it is allowed", name)
			}
		}
	}
}

// A learned policy allows the machine that it was learned from, but never a weak one.
func TestPoliciesAreLearnedFromAMachine(t *testing.T) {
	amd, intel := evidencetest.NewAMD(t, "Milan"), evidencetest.NewIntel(t)
	roots := amd.Roots()
	roots.Intel = intel.Roots().Intel
	for _, made := range []*evidence.Evidence{
		amd.SNP(t, evidencetest.Guest{Policy: abi.SnpPolicy{SMT: true}, Measurement: [48]byte{5}, HostData: [32]byte{1}, VLEK: true}, [64]byte{}),
		intel.TDX(t, evidencetest.Domain{MRTD: [48]byte{7}, RTMR: [4][48]byte{{1}, {2}, {3}, {4}}}, [64]byte{}),
	} {
		claims, err := made.Verify(roots, now)
		if err != nil {
			t.Fatal(err)
		}
		text := policy.Learned(claims, now)
		if err := parsed(t, text).Appraise(claims, nil, now); err != nil || !strings.HasPrefix(text, "# learned, check it") {
			t.Errorf("%v: %s", err, text)
		}
		claims.Debug = true
		if err := parsed(t, policy.Learned(claims, now)).Appraise(claims, nil, now); code(err) != "debug_guest" {
			t.Errorf("one for debugging: %v", err)
		}
	}
}

func TestFaultsNameFieldValueAndFix(t *testing.T) {
	for old, one := range map[string][2]string{
		"version: 1":                       {"version: 2", "version (line 2): must be 1"},
		"expires: 2027-03-01T00:00:00+01:": {"expires: soon #", "expires (line 3): must be a time such as 2027-03-01T00:00:00Z (got soon)"},
		"    measurement":                  {"    measurment", "tee.sev-snp.measurment (line 7): is not a field of tee.sev-snp: did you mean measurement?"},
		"genoa":                            {"turin", "tee.sev-snp.products.turin (line 6): is not a field of tee.sev-snp.products: it has genoa, milan"},
		"bootloader: 0":                    {"bootloader: 256", "tee.sev-snp.products.genoa.bootloader (line 6): must be a whole number between 0 and 255 (got 256)"},
		", snp: 0":                         {"", "tee.sev-snp.products.genoa.snp (line 6): is missing"},
		"mrtd: [0":                         {"mrtd: [0, 0", "tee.tdx.mrtd[0] (line 9): must be one of: hashes of 96 hexadecimal digits (got 0)"},
		"{0: [any], 1":                     {"{1", "tee.tdx.rtmr.0 (line 10): is missing"},
		"0: [any]":                         {"0: [any, any]", "tee.tdx.rtmr.0[1] (line 10): is there twice"},
		"2: [":                             {"2: [any, ", "tee.tdx.rtmr.2 (line 10): has any and hashes"},
		"tee:":                             {"gpus: {}\ntee:", "gpus (line 4): is not a field of a policy"},
		"tee:\n":                           {"collateral_max_age: none\ntee:\n", "tee.tdx (line 10): needs collateral_max_age in days"},
		"  tdx":                            {"    allow: [fast]\n  tdx", "tee.sev-snp.allow[0] (line 8): must be one of: debug, migrate, smt (got fast)"},
		rules:                              {"", "the policy has 0 bytes"},
		rules[1:]:                          {"version: 1\nexpires: 2027-03-01T00:00:00Z\ntee: {}", "tee (line 4): allows no machine"},
		"version: 1\nexpires":              {"- 1\nexpires", "the policy cannot be read"},
	} {
		if _, err := policy.Parse([]byte(strings.Replace(rules, old, one[0], 1))); err == nil || !strings.Contains(err.Error(), one[1]) {
			t.Errorf("%q for %q: %v, not %q", one[0], old, err, one[1])
		}
	}
}

// The same rules have the same id, however they are written; any other rule has another.
func TestIdsAreOfTheRules(t *testing.T) {
	one := parsed(t, rules)
	same := parsed(t, strings.NewReplacer("00:00:00+01:00", "23:00:00Z", "2027-03-01", "2027-02-28", "tee:\n", "collateral_max_age: 30d\ntee:\n", "    products", "    keys: [vcek]\n    products").Replace(rules))
	again := parsed(t, string(one.Canonical()))
	if one.ID() != same.ID() || one.ID() != again.ID() || len(one.ID()) != 64 {
		t.Errorf("%s\n%s\n%s", one.Canonical(), same.Canonical(), again.Canonical())
	}
	for _, change := range [][2]string{{"microcode: 0", "microcode: 1"}, {"[any]", "[" + zero48 + "]"}, {"2027", "2028"}, {"AB", "AC"}} {
		if other := parsed(t, strings.Replace(rules, change[0], change[1], 1)); other.ID() == one.ID() {
			t.Errorf("%v: the same id", change)
		}
	}
}

func TestOnlyTheOwnersPolicyIsOpened(t *testing.T) {
	_, owner, _ := ed25519.GenerateKey(nil)
	_, stranger, _ := ed25519.GenerateKey(nil)
	public := policy.Signer(owner.Public().(ed25519.PublicKey))
	good := parsed(t, rules).Sign(owner)
	foreign := parsed(t, rules).Sign(stranger)
	forged := foreign
	forged.Signer = good.Signer
	changed := good
	changed.Policy = bytes.Replace(good.Policy, []byte(`"microcode":0`), []byte(`"microcode":1`), 1)
	for name, one := range map[string]struct {
		signed policy.Signed
		owner  string
		good   bool
	}{"the owner's": {good, public, true}, "anybody's": {foreign, "", true}, "a stranger's": {foreign, public, false}, "a forged one": {forged, "", false}, "a changed one": {changed, "", false}} {
		text := fmt.Sprintf(`{"policy":%s,"signature":%q,"signer":%q}`, one.signed.Policy, encoded(one.signed.Signature), one.signed.Signer)
		found, _, err := policy.Open([]byte(text), one.owner)
		if (err == nil) != one.good || one.good && found.ID() != parsed(t, rules).ID() || !one.good && code(err) != "policy_unsigned" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := policy.Open([]byte(rules), ""); code(err) != "policy_unsigned" {
		t.Errorf("without a signature: %v", err)
	}
}

func TestAPolicySaysWhatItTrusts(t *testing.T) {
	trusted, limits, warnings := parsed(t, strings.Replace(rules, "genoa", "milan", 1)).Explain()
	all := strings.Join(append(append(trusted, limits...), warnings...), "\n")
	for _, want := range []string{"SEV-SNP on milan, with at least bootloader 0", "one of 2: " + zero48, "Intel TDX", "RTMR1 is " + zero48, "rtmr 0: it may hold anything", "keys that sign reports of Milan", "GPUs are not looked at", "lists of at most 30d", "2027-02-28T23:00:00Z"} {
		if !strings.Contains(all, want) {
			t.Errorf("it does not say %q:\n%s", want, all)
		}
	}
}

// What is read is the same when it is read again, and has the same id.
func FuzzPolicy(f *testing.F) {
	f.Add([]byte(rules))
	f.Add(parsed(f, rules).Canonical())
	f.Add([]byte(withGPUs))
	f.Add([]byte("version: 1\nexpires: 2027-03-01T00:00:00Z\ncollateral_max_age: none\ntee: {sev-snp: {products: {milan: {bootloader: 1, tee: 0, snp: 2, microcode: 3}}, vmpl: [1, 0], allow: [smt], keys: [vlek], measurement: [" + zero48 + "]}}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		found, err := policy.Parse(text)
		if err != nil {
			return
		}
		again, err := policy.Parse(found.Canonical())
		if err != nil || again.ID() != found.ID() {
			t.Fatalf("%v: %s", err, found.Canonical())
		}
		found.Explain()
	})
}

func encoded(signature []byte) string { return base64.StdEncoding.EncodeToString(signature) }
