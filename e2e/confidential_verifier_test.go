package e2e_test

import (
	"crypto/ed25519"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/confidential/broker"
	"github.com/tandem-tune/tandem/workers/confidential/evidencetest"
	"github.com/tandem-tune/tandem/workers/confidential/policy"
	"github.com/tandem-tune/tandem/workers/confidential/release"
)

// TestASitesOwnVerifierDecidesToo: of two machines that the policy allows, the site's verifier
// refuses one, which runs nothing. The broker's log says who decided. A broker without the
// verifier lets that machine in.
func TestASitesOwnVerifierDecidesToo(t *testing.T) {
	t.Parallel()
	s, at := newSealed(t, "verifier", "epochs, epochs: {min: 1, max: 1}, eta: 3", 4), newTap(t)
	k := s.confidential(t, at, s.encrypted(t, at), "")
	public, private, _ := ed25519.GenerateKey(nil)
	verifier := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var question broker.Question
		_ = json.NewDecoder(r.Body).Decode(&question)
		said := release.Result{Nonce: question.Nonce, Submods: map[string]release.Appraisal{"cpu": {Status: "affirming"}}}
		if strings.HasPrefix(question.Request.Worker, "doubted-") {
			said.Submods["cpu"], said.Detail = release.Appraisal{Status: "contraindicated"}, "not in our rack"
		}
		token, _ := said.Sign(private)
		_, _ = io.WriteString(w, token)
	}))
	t.Cleanup(verifier.Close)
	k.start(t, "--verifier", verifier.URL, "--verifier-key", policy.Signer(public))
	at.must("study", "create", s.file)
	doubted := k.machine(t, "doubted", evidencetest.Guest{})
	until(t, "the verifier's refusal", func() bool {
		waits := read[protocol.StudyView](t, at.must("study", "show", s.name, "--json")).Waits
		return slices.ContainsFunc(waits, func(one protocol.Wait) bool {
			return strings.Contains(one.Reason, "verifier_refused") && strings.Contains(one.Reason, "not in our rack")
		})
	})
	trusted := k.machine(t, "trusted", evidencetest.Guest{})
	at.must("study", "watch", s.name)
	if err := trusted.Stop(); err != nil {
		t.Error(err)
	}
	audit := func() string { return cli(t, nil, "keys", "audit", "--data", filepath.Join(k.folder, "broker")).stdout }
	said := audit()
	for _, line := range strings.Split(said, "\n") {
		if strings.Contains(line, " doubted-") != strings.Contains(line, "refused: verifier_refused by "+verifier.URL) ||
			strings.Contains(line, " trusted-") != strings.Contains(line, "released by the policy and "+verifier.URL) {
			t.Errorf("the broker's log has %q in\n%s", line, said)
		}
	}
	if err := doubted.Stop(); err != nil {
		t.Error(err)
	}
	k.process.Kill()
	k.start(t) // without it
	k.machine(t, "doubted", evidencetest.Guest{})
	at.must("study", "extend", s.name, "--trials", "2")
	found := read[result](t, at.must("study", "watch", s.name, "--json"))
	if p := found.Study.Progress; p.Trials[trial.Completed] != 6 || p.Trials[trial.Failed] > 0 {
		t.Errorf("the study ended with %+v", p)
	}
	if said := strings.TrimPrefix(audit(), said); !strings.Contains(said, " doubted-") || !strings.Contains(said, "TEST released") {
		t.Errorf("without the verifier the broker's log goes on with\n%s", said)
	}
}
