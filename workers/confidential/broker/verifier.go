package broker

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"io"
	"net/http"
	"time"

	"github.com/tandem-tune/tandem/workers/confidential/evidence"
	"github.com/tandem-tune/tandem/workers/confidential/release"
)

// Verifier is a site's own, which must allow a machine too. It is asked about those only that
// the policy allows, so it can take a key back, and give none away.
type Verifier struct {
	URL string
	// Key must have signed its answers.
	Key      ed25519.PublicKey
	Client   *http.Client
	Patience time.Duration
}

// The codes of a verifier that refused, that did not answer, and whose answer counts for
// nothing. The latter two are no fault of the machine.
const (
	verifierRefused = "verifier_refused"
	verifierAway    = "verifier_away"
	verifierWrong   = "verifier_wrong"
)

// maxVerdict bounds what a verifier says.
const maxVerdict = 64 << 10

// Question is what a verifier is asked.
type Question struct {
	// Nonce is what the report must have signed, and the answer repeat.
	Nonce    []byte            `json:"nonce"`
	Request  release.Request   `json:"request"`
	Evidence evidence.Evidence `json:"evidence"`
}

// allow refuses what the verifier does not allow.
func (v *Verifier) allow(ctx context.Context, asked Question) error {
	if v == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, v.Patience)
	defer cancel()
	text, err := json.Marshal(asked)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, v.URL, bytes.NewReader(text))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := v.Client.Do(request)
	if err != nil {
		return evidence.Refuse(verifierAway, "%v", err)
	}
	defer answer.Body.Close()
	said, err := io.ReadAll(io.LimitReader(answer.Body, maxVerdict+1))
	switch {
	case err != nil:
		return evidence.Refuse(verifierAway, "%s: %v", v.URL, err)
	case answer.StatusCode != http.StatusOK:
		return evidence.Refuse(verifierAway, "%s answered %s", v.URL, answer.Status)
	case len(said) > maxVerdict:
		return evidence.Refuse(verifierWrong, "%s: its answer has more than %d bytes", v.URL, maxVerdict)
	}
	found, err := release.Read(string(bytes.TrimSpace(said)), v.Key)
	switch {
	case err != nil:
		return evidence.Refuse(verifierWrong, "%s: its answer: %v", v.URL, err)
	case !bytes.Equal(found.Nonce, asked.Nonce):
		return evidence.Refuse(verifierWrong, "%s: its answer is to another question: eat_nonce must be the nonce", v.URL)
	case !found.Affirms():
		return evidence.Refuse(verifierRefused, "%s refused the machine: %.200q", v.URL, found.Detail)
	}
	return nil
}
