package broker_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/workers/confidential/broker"
	"github.com/tandem-tune/tandem/workers/confidential/release"
)

// site is a verifier of a site's own.
type site struct {
	url   string
	key   ed25519.PublicKey
	close func() // waits for what it was asked
	// says is what it answers to the question, with what it would if it allowed it.
	says func(w http.ResponseWriter, question broker.Question, allowed release.Result, sign func(release.Result) string)
}

func newSite(t *testing.T) *site {
	t.Helper()
	public, private, _ := ed25519.GenerateKey(nil)
	s := &site{key: public}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var question broker.Question
		if err := json.NewDecoder(r.Body).Decode(&question); err != nil || r.Method != http.MethodPost {
			w.WriteHeader(http.StatusBadRequest) // as also to who went away meanwhile
			return
		}
		allowed := release.Result{Nonce: question.Nonce, Submods: map[string]release.Appraisal{"cpu": {Status: "affirming"}}}
		s.says(w, question, allowed, func(one release.Result) string {
			text, err := one.Sign(private)
			if err != nil {
				t.Error(err)
			}
			return text
		})
	}))
	t.Cleanup(server.Close)
	s.url, s.close = server.URL, server.Close
	return s
}

// A site's own verifier must allow a machine besides the policy. Whatever else it says or does
// not say is a refusal with a code, which the log has with its address.
func TestASitesOwnVerifierIsAskedToo(t *testing.T) {
	other, _, _ := ed25519.GenerateKey(nil)
	type result = release.Result
	say := func(change func(one *result) string) func(http.ResponseWriter, broker.Question, result, func(result) string) {
		return func(w http.ResponseWriter, _ broker.Question, allowed result, sign func(result) string) {
			after := change(&allowed)
			_, _ = io.WriteString(w, sign(allowed)+after)
		}
	}
	status := func(which string) func(*result) string {
		return func(one *result) string {
			one.Submods["gpu"], one.Detail = release.Appraisal{Status: which}, "no\nGPU"
			return ""
		}
	}
	for name, one := range map[string]struct {
		says   func(http.ResponseWriter, broker.Question, result, func(result) string)
		change func(*broker.Verifier)
		code   string
	}{
		"allows":            {says: say(func(*result) string { return "\n" })},
		"allows each part":  {says: say(status("affirming"))},
		"refuses a part":    {says: say(status("contraindicated")), code: "verifier_refused"},
		"warns":             {says: say(status("warning")), code: "verifier_refused"},
		"names no part":     {says: say(func(one *result) string { one.Submods = nil; return "" }), code: "verifier_refused"},
		"another question":  {says: say(func(one *result) string { one.Nonce = one.Nonce[1:]; return "" }), code: "verifier_wrong"},
		"another's key":     {says: say(func(*result) string { return "" }), change: func(v *broker.Verifier) { v.Key = other }, code: "verifier_wrong"},
		"more than a token": {says: say(func(*result) string { return ".AAAA" }), code: "verifier_wrong"},
		"too much":          {says: say(func(*result) string { return strings.Repeat(" ", 64<<10) }), code: "verifier_wrong"},
		"garbage": {says: func(w http.ResponseWriter, _ broker.Question, _ result, _ func(result) string) {
			_, _ = io.WriteString(w, `{"allowed": true}`)
		}, code: "verifier_wrong"},
		"fails": {says: func(w http.ResponseWriter, _ broker.Question, allowed result, sign func(result) string) {
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = io.WriteString(w, sign(allowed))
		}, code: "verifier_away"},
		"sends elsewhere": {says: func(w http.ResponseWriter, _ broker.Question, _ result, _ func(result) string) {
			w.Header().Set("Location", "/allowed")
			w.WriteHeader(http.StatusTemporaryRedirect)
		}, code: "verifier_away"},
		"is away": {change: func(v *broker.Verifier) { v.URL = "http://127.0.0.1:1" }, code: "verifier_away"},
		"never answers": {says: func(http.ResponseWriter, broker.Question, result, func(result) string) {
			time.Sleep(300 * time.Millisecond)
		}, change: func(v *broker.Verifier) { v.Patience = time.Millisecond }, code: "verifier_away"},
	} {
		t.Run(name, func(t *testing.T) {
			s, folder, watch := newSite(t), t.TempDir(), clock()
			s.says = one.says
			client, err := broker.Reach("--verifier", s.url, nil)
			if err != nil {
				t.Fatal(err)
			}
			verifier := &broker.Verifier{URL: s.url, Key: s.key, Client: client, Patience: time.Minute}
			if one.change != nil {
				one.change(verifier)
			}
			made, m := startedWith(t, broker.Options{Folder: folder, Now: watch.Now, Verifier: verifier})
			if got, code, err := m.get(nil); err != nil || code != one.code || (got == key) != (code == "") {
				t.Errorf("%q, %q, %v", got, code, err)
			}
			bad := *m
			bad.guest.Measurement[0] = 1
			s.close() // so that asking it would be another refusal
			if _, code, err := bad.get(nil); err != nil || code != "unknown_measurement" {
				t.Errorf("a machine that the policy refuses: %q, %v", code, err)
			}
			var lines []release.Result
			if _, _, err := broker.ReadLog(folder, made.Public(), func(_ broker.Line, line release.Result) { lines = append(lines, line) }); err != nil {
				t.Error(err)
			}
			if len(lines) != 2 || lines[0].Code != one.code || lines[0].Asked != verifier.URL || lines[1].Asked != "" || strings.Contains(lines[0].Detail, "\n") {
				t.Errorf("the log has %+v", lines)
			}
		})
	}
}

// What a verifier is asked has all that it needs to appraise the machine itself.
func TestAVerifierSeesWhatTheBrokerSees(t *testing.T) {
	s, watch := newSite(t), clock()
	client, _ := broker.Reach("--verifier", s.url, nil)
	_, m := startedWith(t, broker.Options{Folder: t.TempDir(), Now: watch.Now, Verifier: &broker.Verifier{URL: s.url, Key: s.key, Client: client, Patience: time.Minute}})
	var got broker.Question
	s.says = func(w http.ResponseWriter, question broker.Question, allowed release.Result, sign func(release.Result) string) {
		got = question
		_, _ = io.WriteString(w, sign(allowed))
	}
	if _, code, err := m.get(nil); code != "" || err != nil {
		t.Fatal(code, err)
	}
	claims, err := got.Evidence.Verify(m.amd.Roots(), watch.Now())
	if err != nil || !bytes.Equal(claims.ReportData, got.Nonce) || got.Request != m.request {
		t.Errorf("it sees %+v and %+v, %v", claims, got.Request, err)
	}
}

func TestVerifiersAreReachedOverTLSOnly(t *testing.T) {
	for _, address := range []string{"", "keys.example.org", "http://keys.example.org", "ftp://127.0.0.1", "https://keys.example.org?x=1", "https://me:secret@keys.example.org"} {
		if _, err := broker.Reach("--verifier", address, nil); err == nil || !strings.Contains(err.Error(), "--verifier") {
			t.Errorf("%q: %v", address, err)
		}
	}
	for _, address := range []string{"https://keys.example.org/appraise", "http://127.0.0.1:7173", "http://[::1]:7173"} {
		if _, err := broker.Reach("--verifier", address, nil); err != nil {
			t.Error(err)
		}
	}
}
