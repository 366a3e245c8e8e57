package broker_test

import (
	"bytes"
	"context"
	"crypto/hpke"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-sev-guest/abi"

	"github.com/tandem-tune/tandem/internal/handclock"
	"github.com/tandem-tune/tandem/workers/confidential/broker"
	"github.com/tandem-tune/tandem/workers/confidential/evidence"
	"github.com/tandem-tune/tandem/workers/confidential/evidencetest"
	"github.com/tandem-tune/tandem/workers/confidential/policy"
	"github.com/tandem-tune/tandem/workers/confidential/release"
)

const zero48 = "000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"

const rules = `{"version": 1, "expires": "2099-01-01T00:00:00Z", "collateral_max_age": "20d", "releases": {"per_hour": 5, "total": 3},
	"tee": {"sev-snp": {"products": {"genoa": {"bootloader": 0, "tee": 0, "snp": 0, "microcode": 0}}, "measurement": ["` + zero48 + `"]},
	"tdx": {"mrtd": ["` + zero48 + `"], "rtmr": {"0": ["any"], "1": ["any"], "2": ["any"]}}}}`

const key = "AGE-SECRET-KEY-CANARY"

func parsed(t testing.TB) *policy.Policy {
	t.Helper()
	found, err := policy.Parse([]byte(rules))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// machine asks a broker for a key as a worker in a guest would.
type machine struct {
	t          testing.TB
	amd        *evidencetest.AMD
	intel      *evidencetest.Intel
	nvidia     *evidencetest.NVIDIA
	tee        string // empty: sev-snp
	url, token string
	guest      evidencetest.Guest
	domain     evidencetest.Domain
	request    release.Request
	cards      []*evidencetest.Card
}

// show has the machine's processor sign the data.
func (m *machine) show(data [64]byte) evidence.Evidence {
	if m.tee == evidence.TDX {
		return *m.intel.TDX(m.t, m.domain, data)
	}
	return *m.amd.SNP(m.t, m.guest, data)
}

// post sends a document and reads the answer, or the code of a refusal. An error is one
// of the connection.
func (m *machine) post(path string, given, into any) (string, error) {
	text, err := json.Marshal(given)
	if err != nil {
		m.t.Fatal(err)
	}
	request, err := http.NewRequest("POST", m.url+path, bytes.NewReader(text))
	if err != nil {
		m.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+m.token)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return "", err
	}
	if answer.StatusCode == http.StatusOK {
		return "", json.Unmarshal(body, into)
	}
	var refused struct{ Code string }
	err = json.Unmarshal(body, &refused)
	return refused.Code, err
}

// asked is a challenge with the machine's answer to it, and what opens the box.
type asked struct {
	answer  broker.Answer
	private hpke.PrivateKey
	data    [64]byte
}

func (m *machine) ask() (made asked, code string, err error) {
	var challenge broker.Challenge
	if code, err = m.post("/v1/challenges", m.request, &challenge); err != nil || code != "" {
		return made, code, err
	}
	made.private, err = hpke.MLKEM768X25519().GenerateKey()
	if err != nil {
		m.t.Fatal(err)
	}
	public := made.private.PublicKey().Bytes()
	made.data = m.request.Data(challenge.Nonce, public)
	var shown evidence.Evidence
	for i, card := range m.cards {
		shown.GPU = append(shown.GPU, card.Shows(m.t, release.GPUNonce(made.data, i)))
	}
	made.data = release.Bind(made.data, shown.Digest())
	made.answer = broker.Answer{Nonce: challenge.Nonce, Key: public, Evidence: m.show(made.data)}
	made.answer.Evidence.GPU = shown.GPU
	return made, "", nil
}

// get goes the whole way, with the change before the answer is sent.
func (m *machine) get(change func(*asked)) (key, code string, err error) {
	made, code, err := m.ask()
	if err != nil || code != "" {
		return "", code, err
	}
	if change != nil {
		change(&made)
	}
	var released broker.Released
	if code, err = m.post("/v1/releases", made.answer, &released); err != nil || code != "" {
		return "", code, err
	}
	opened, err := hpke.Open(made.private, hpke.HKDFSHA256(), hpke.AES256GCM(), made.data[:], released.Box)
	return string(opened), "", err
}

// started is a broker on the folder, with a machine that it allows.
func started(t *testing.T, folder string, clock *handclock.Clock, current func(context.Context, release.Request) error) (*broker.Broker, *machine) {
	t.Helper()
	return startedWith(t, broker.Options{Folder: folder, Now: clock.Now, Current: current})
}

// startedWith is started with options of which some are left out.
func startedWith(t *testing.T, options broker.Options) (*broker.Broker, *machine) {
	t.Helper()
	amd, intel, nvidia := evidencetest.NewAMD(t, "Genoa"), evidencetest.NewIntel(t), evidencetest.NewNVIDIA(t, "GH100", evidencetest.Now)
	if options.Roots == nil {
		options.Roots = amd.Roots()
		options.Roots.Intel, options.Roots.NVIDIA = intel.Roots().Intel, nvidia.Root()
	}
	if options.Policy == nil {
		options.Policy = parsed(t)
	}
	options.Key, options.Build, options.Logger = []byte(key), "test", slog.New(slog.DiscardHandler)
	one, err := broker.Open(options)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(one)
	t.Cleanup(func() { server.Close(); _ = one.Close() })
	return one, &machine{t: t, amd: amd, intel: intel, nvidia: nvidia, url: server.URL, token: token(t, options.Folder), request: release.Request{Worker: "w", Study: "s", Trial: 1, Lease: 1, Policy: options.Policy.ID()}}
}

func token(t testing.TB, folder string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, "token"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// years are more than any certificate is good for.
const years = 30 * 365 * 24 * time.Hour

// clock stands at the day of the evidence.
func clock() *handclock.Clock {
	made := handclock.New()
	made.Pass(evidencetest.Now.Sub(made.Now()))
	return made
}

// For machines of both makers, each code that a broker refuses with.
func TestTheKeyGoesOnlyToTheMachineThatAsked(t *testing.T) {
	for _, tee := range []string{evidence.SNP, evidence.TDX} {
		t.Run(tee, func(t *testing.T) { refusals(t, tee) })
	}
}

func refusals(t *testing.T, tee string) {
	var held error
	watch := clock()
	folder := t.TempDir()
	one, m := started(t, folder, watch, func(context.Context, release.Request) error { return held })
	m.tee = tee
	pinned, err := evidence.Pinned()
	if err != nil {
		t.Fatal(err)
	}
	_, real := startedWith(t, broker.Options{Folder: t.TempDir(), Now: watch.Now, Roots: pinned})
	if got, code, err := m.get(nil); got != key || code != "" || err != nil {
		t.Fatalf("%q, %s, %v", got, code, err)
	}
	var before asked
	for _, test := range []struct {
		code   string
		before func(*machine)
		change func(*asked)
	}{
		{code: "worker_not_confidential", before: func(m *machine) { m.token = "guessed" }},
		{code: "policy_changed", before: func(m *machine) { m.request.Policy = "another" }},
		{code: "invalid", before: func(m *machine) { m.request.Lease = 0 }},
		{code: "invalid", before: func(m *machine) { m.request.Worker = "a\nb" }},
		{code: "nonce_unknown", change: func(a *asked) { a.answer.Nonce = []byte("foreign") }},
		{code: "nonce_expired", change: func(*asked) { watch.Pass(release.Lifetime) }},
		{code: "wrong_binding", change: func(a *asked) { // a key pair of another's
			other, _ := hpke.MLKEM768X25519().GenerateKey()
			a.answer.Key = other.PublicKey().Bytes()
		}},
		{code: "wrong_binding", change: func(a *asked) { before = *a; a.answer.Evidence = m.show([64]byte{}) }},
		{code: "nonce_used", change: func(a *asked) { *a = before }}, // the good evidence, after a bad try
		{code: "malformed_evidence", change: func(a *asked) { a.answer.Key = a.answer.Key[1:] }},
		{code: "malformed_evidence", change: func(a *asked) { a.answer.Evidence.Report = a.answer.Evidence.Report[1:] }},
		{code: "bad_signature", change: func(a *asked) { a.answer.Evidence.Report[0x91] ^= 1 }},
		{code: "untrusted_root", before: func(m *machine) { m.url, m.token = real.url, real.token }},
		{code: "expired_chain", before: func(*machine) { watch.Pass(years) }},
		{code: "collateral_stale", before: func(*machine) { watch.Pass(15 * 24 * time.Hour) }}, // of 25 days
		{code: "collateral_stale", change: func(a *asked) { a.answer.Evidence.Collateral = nil }},
		{code: "revoked", change: func(a *asked) {
			if tee == evidence.TDX {
				a.answer.Evidence.Collateral = m.intel.Collateral(t, evidencetest.Now, "UpToDate", m.intel.PCK())
				return
			}
			a.answer.Evidence.Collateral[evidence.AMDRevoked] = evidence.Document{Body: m.amd.Revoked(t, evidencetest.Now, evidencetest.Now.AddDate(0, 1, 0), m.amd.Intermediate())}
		}},
		{code: "tcb_too_low", before: func(m *machine) { m.guest.TCB = 1 }, change: func(a *asked) {
			if tee == evidence.TDX {
				a.answer.Evidence.Collateral = m.intel.Collateral(t, evidencetest.Now, "OutOfDate")
			}
		}},
		{code: "debug_guest", before: func(m *machine) { m.guest.Policy, m.domain.Attributes = abi.SnpPolicy{Debug: true}, 1 }},
		{code: "unknown_measurement", before: func(m *machine) { m.guest.Measurement[0], m.domain.MRTD[0] = 1, 1 }},
		{code: "stale_lease", before: func(*machine) { held = evidence.Refuse("stale_lease", "lease 2 is held") }},
		{code: "unavailable", before: func(*machine) { held = errors.New("the study server is gone") }},
		{code: "", before: func(m *machine) { held, m.request.Lease = nil, 3 }},
		{code: "stale_lease", before: func(m *machine) { m.request.Lease = 2 }},
		{code: "", before: func(m *machine) { m.request.Trial = 2 }},
		{code: "too_many_releases", before: func(m *machine) { m.request.Trial = 3 }},
	} {
		held = nil
		watch.Pass(evidencetest.Now.Sub(watch.Now()))
		tried := *m
		if test.before != nil {
			test.before(&tried)
		}
		got, code, err := tried.get(test.change)
		if err != nil || code != test.code || (got == key) != (code == "") {
			t.Errorf("%q: %q, %q, %v", test.code, got, code, err)
		}
	}
	codes := map[string]int{}
	if _, _, err := broker.ReadLog(folder, one.Public(), func(_ broker.Line, result release.Result) { codes[result.Code]++ }); err != nil {
		t.Fatal(err)
	}
	// What names no challenge, and failures of others, have no line.
	if codes[""] != 3 || codes["wrong_binding"] != 2 || codes["stale_lease"] != 2 || codes["nonce_used"] != 1 || codes["too_many_releases"] != 1 || codes["unavailable"] != 0 {
		t.Errorf("the log has %v", codes)
	}
}

// A broker that was started anew counts what went before, and knows no old challenge.
func TestARestartForgetsChallengesAndNoRelease(t *testing.T) {
	folder, watch := t.TempDir(), clock()
	one, m := started(t, folder, watch, nil)
	m.request.Lease = 5
	if _, code, err := m.get(nil); code != "" || err != nil {
		t.Fatal(code, err)
	}
	open, _, err := m.ask()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := broker.Open(broker.Options{Folder: folder, Policy: parsed(t)}); err == nil || !strings.Contains(err.Error(), "another broker uses") {
		t.Errorf("a second broker: %v", err)
	}
	if err := one.Close(); err != nil {
		t.Fatal(err)
	}
	torn, err := os.OpenFile(filepath.Join(folder, "audit.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = torn.WriteString(`{"time":"2026-`) // the power went
	_ = torn.Close()
	again, next := started(t, folder, watch, nil)
	if again.Public() == nil || !again.Public().Equal(one.Public()) || next.token != m.token {
		t.Error("its keys are others")
	}
	var released broker.Released
	if code, err := next.post("/v1/releases", open.answer, &released); code != "nonce_unknown" || err != nil {
		t.Errorf("an old challenge: %s, %v", code, err)
	}
	for lease, want := range map[int64]string{4: "stale_lease", 5: ""} {
		next.request.Lease = lease
		if _, code, err := next.get(nil); code != want || err != nil {
			t.Errorf("lease %d: %q, %v", lease, code, err)
		}
	}
	next.request.Lease = 6
	for _, want := range []string{"", "too_many_releases"} { // 3 in all, 1 before
		if _, code, err := next.get(nil); code != want || err != nil {
			t.Errorf("%q: %q, %v", want, code, err)
		}
	}
}

func TestALogThatWasChangedIsFound(t *testing.T) {
	folder := t.TempDir()
	one, m := started(t, folder, clock(), nil)
	for range 3 {
		if _, code, err := m.get(nil); code != "" || err != nil {
			t.Fatal(code, err)
		}
	}
	path := filepath.Join(folder, "audit.jsonl")
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(good), "\n")
	if strings.Contains(string(good), key) {
		t.Error("the key is in the log")
	}
	foreign, _ := started(t, t.TempDir(), clock(), nil)
	none := func(broker.Line, release.Result) {}
	if _, _, err := broker.ReadLog(folder, one.Public(), none); err != nil {
		t.Error(err)
	}
	if _, _, err := broker.ReadLog(folder, foreign.Public(), none); err == nil {
		t.Error("another broker's key fits")
	}
	for name, bad := range map[string]string{
		"a line less":       lines[0] + lines[2],
		"the first is gone": lines[1] + lines[2],
		"another order":     lines[1] + lines[0] + lines[2],
		"a bit":             strings.Replace(string(good), `"result":"eyJh`, `"result":"eyJi`, 1),
		"another time":      strings.Replace(string(good), "2026-10-01", "2026-10-02", 1),
		"no JSON":           lines[0] + "{}\n" + lines[1],
	} {
		if err := os.WriteFile(path, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := broker.ReadLog(folder, one.Public(), none); err == nil {
			t.Errorf("%s is not found", name)
		}
	}
}

// A file that stands in for a full disk: what cannot be written down is not released.
func TestWithoutALogNoKeyGoes(t *testing.T) {
	folder := t.TempDir()
	one, m := started(t, folder, clock(), nil)
	_ = one.Close() // writes fail from now on
	for range 2 {
		if got, code, err := m.get(nil); got != "" || code != "unavailable" || err != nil {
			t.Errorf("%q, %q, %v", got, code, err)
		}
	}
}

func TestRequestsAreBounded(t *testing.T) {
	_, m := started(t, t.TempDir(), clock(), nil)
	code := ""
	for range 51 { // ten for each key of an hour
		var err error
		if code, err = m.post("/v1/challenges", m.request, &broker.Challenge{}); err != nil {
			t.Fatal(err)
		}
	}
	if code != "too_many_requests" {
		t.Errorf("got %q", code)
	}
	if code, err := m.post("/v1/keys", m.request, nil); code != "not_found" || err != nil {
		t.Errorf("%q, %v", code, err)
	}
}

func encode(signed policy.Signed) ([]byte, error) { return json.Marshal(signed) }
