package release

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"time"
)

// Result is what came of an attempt, in the shape of an EAT Attestation Result
// (draft-ietf-rats-ear), with what a broker of keys adds.
type Result struct {
	Profile  string               `json:"eat_profile"`
	Issued   int64                `json:"iat"`
	Nonce    []byte               `json:"eat_nonce"`
	Verifier Verifier             `json:"ear.verifier-id"`
	Submods  map[string]Appraisal `json:"submods"`
	Request  Request              `json:"tandem.request"`
	Evidence string               `json:"tandem.evidence"` // its SHA-256
	Code     string               `json:"tandem.code,omitempty"`
	Detail   string               `json:"tandem.detail,omitempty"`
	Test     bool                 `json:"tandem.test,omitempty"` // by a root for tests: it proves nothing
	// Asked is the site's own verifier that refused, or allowed the machine too.
	Asked string `json:"tandem.asked,omitempty"`
	// GPUs are those that the machine showed, as they say of themselves.
	GPUs []string `json:"tandem.gpus,omitempty"`
}

// Verifier is who appraised.
type Verifier struct {
	Developer string `json:"developer"`
	Build     string `json:"build"`
}

// Appraisal is of one machine.
type Appraisal struct {
	Status string         `json:"ear.status"`
	Vector map[string]int `json:"ear.trustworthiness-vector,omitempty"`
	Policy string         `json:"ear.appraisal-policy-id"`
}

// NewResult is that of an attempt; without a code the key goes.
func NewResult(request Request, nonce []byte, code, detail string, now time.Time) Result {
	one := Appraisal{Status: "contraindicated", Policy: "sha-256:" + request.Policy}
	if code == "" {
		one.Status, one.Vector = "affirming", map[string]int{"instance-identity": 2, "configuration": 2, "executables": 2, "hardware": 2}
	}
	return Result{Profile: "tag:github.com,2023:veraison/ear", Issued: now.Unix(), Nonce: nonce, Submods: map[string]Appraisal{"machine": one}, Request: request, Code: code, Detail: detail}
}

var plain = base64.RawURLEncoding

// header is that of a JSON Web Token by Ed25519. Others write theirs in other ways.
var header = plain.EncodeToString([]byte(`{"alg":"EdDSA","typ":"JWT"}`))

// Sign is the result as a signed token.
func (r Result) Sign(key ed25519.PrivateKey) (string, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return "", err
	}
	signed := header + "." + plain.EncodeToString(text)
	return signed + "." + plain.EncodeToString(ed25519.Sign(key, []byte(signed))), nil
}

// Read checks a signed token and reads its result.
func Read(token string, key ed25519.PublicKey) (found Result, err error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return found, errors.New("it is no token of a broker")
	}
	var about struct {
		Algorithm string          `json:"alg"`
		Critical  json.RawMessage `json:"crit"`
	}
	if err := decode(parts[0], &about); err != nil || about.Algorithm != "EdDSA" || about.Critical != nil {
		return found, errors.New("it is no token by Ed25519")
	}
	signature, err := plain.DecodeString(parts[2])
	if err != nil || !ed25519.Verify(key, []byte(parts[0]+"."+parts[1]), signature) {
		return found, errors.New("its signature is not the broker's")
	}
	return found, decode(parts[1], &found)
}

func decode(part string, into any) error {
	text, err := plain.DecodeString(part)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	return err
}

// Affirms reports whether the result is a good one, of each part of a machine.
func (r Result) Affirms() bool {
	for _, one := range r.Submods {
		if one.Status != "affirming" {
			return false
		}
	}
	return len(r.Submods) > 0 && r.Code == ""
}
