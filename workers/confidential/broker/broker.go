// Package broker releases the key of an owner's data to confidential machines that the
// owner's policy allows, over HTTP. It is a process apart from the study server, which
// never sees the key.
package broker

import (
	"context"
	"crypto/ed25519"
	"crypto/hpke"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/tandem-tune/tandem/internal/failpoint"
	"github.com/tandem-tune/tandem/workers/confidential/evidence"
	"github.com/tandem-tune/tandem/workers/confidential/policy"
	"github.com/tandem-tune/tandem/workers/confidential/release"
)

// Options are what a broker is started with.
type Options struct {
	Folder string
	Policy *policy.Policy
	// Key is what is released.
	Key   []byte
	Roots *evidence.Roots
	// Test says that a root is among these that proves nothing.
	Test bool
	// Current says why the worker does not hold the lease; nil: nobody is asked.
	Current func(context.Context, release.Request) error
	// Verifier must allow a machine besides the policy; nil: none is asked.
	Verifier *Verifier
	Build    string
	Now      func() time.Time
	Logger   *slog.Logger
}

// Broker answers machines.
type Broker struct {
	options Options
	id      string
	signing ed25519.PrivateKey
	token   [sha256.Size]byte

	mutex  sync.Mutex // of what follows
	ledger *release.Ledger
	log    *Log
}

// Open starts a broker on its folder. At its first start it makes the key of its
// signatures and the token that workers show.
func Open(options Options) (*Broker, error) {
	if err := os.MkdirAll(options.Folder, 0o700); err != nil {
		return nil, err
	}
	seed, err := secret(options.Folder, signingFile, true)
	if err != nil {
		return nil, err
	}
	key := ed25519.NewKeyFromSeed(seed)
	token, err := secret(options.Folder, tokenFile, true)
	if err != nil {
		return nil, err
	}
	b := &Broker{options: options, id: options.Policy.ID(), signing: key, token: sha256.Sum256([]byte(hex.EncodeToString(token)))}
	b.ledger = release.New(b.id, release.Limits(options.Policy.Releases))
	b.log, err = openLog(options.Folder, b.Public(), b.ledger)
	return b, err
}

// Public is the key that checks the results of the folder's broker.
func Public(folder string) (ed25519.PublicKey, error) {
	seed, err := secret(folder, signingFile, false)
	if err != nil {
		return nil, err
	}
	return ed25519.NewKeyFromSeed(seed).Public().(ed25519.PublicKey), nil
}

// Public is the key that checks the broker's results.
func (b *Broker) Public() ed25519.PublicKey { return b.signing.Public().(ed25519.PublicKey) }

// Close ends the broker.
func (b *Broker) Close() error { return b.log.file.Close() }

// ServeHTTP answers the requests of a machine. All need the broker's token.
func (b *Broker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	shown := sha256.Sum256([]byte(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")))
	var answer any
	var err error
	switch path := r.Method + " " + r.URL.Path; {
	case path != "GET /v1/policy" && path != "POST /v1/challenges" && path != "POST /v1/releases":
		refuse(w, http.StatusNotFound, "not_found", "there are GET /v1/policy, POST /v1/challenges and POST /v1/releases")
		return
	case subtle.ConstantTimeCompare(shown[:], b.token[:]) != 1:
		refuse(w, http.StatusUnauthorized, "worker_not_confidential", "show the token in the broker's folder: Authorization: Bearer ...")
		return
	case path == "GET /v1/policy":
		answer = b.options.Policy
	case path == "POST /v1/challenges":
		var request release.Request
		if err = read(w, r, &request); err == nil {
			answer, err = b.challenge(request)
		}
	default:
		var given Answer
		if err = read(w, r, &given); err == nil {
			answer, err = b.release(r.Context(), given)
		}
	}
	var refused *evidence.Refusal
	switch {
	case errors.As(err, &refused) && strings.HasPrefix(refused.Code, "too_many"):
		refuse(w, http.StatusTooManyRequests, refused.Code, refused.Detail)
	case errors.As(err, &refused) && refused.Code == "invalid":
		refuse(w, http.StatusBadRequest, refused.Code, refused.Detail)
	case refused != nil && (refused.Code == verifierAway || refused.Code == verifierWrong):
		refuse(w, http.StatusServiceUnavailable, refused.Code, refused.Detail)
	case refused != nil:
		refuse(w, http.StatusForbidden, refused.Code, refused.Detail)
	case err != nil:
		b.options.Logger.Error("a request failed", "error", err)
		refuse(w, http.StatusServiceUnavailable, "unavailable", "the broker cannot answer now: its log says why")
	default:
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer) // who is gone asks again
	}
}

// refuse writes a problem document (RFC 9457).
func refuse(w http.ResponseWriter, status int, code, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"title": http.StatusText(status), "status": status, "code": code, "detail": detail})
}

func read(w http.ResponseWriter, r *http.Request, into any) error {
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, 2*evidence.MaxBytes))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return evidence.Refuse("invalid", "the request: %v", err)
	}
	return nil
}

// Challenge is what a machine answers with evidence.
type Challenge struct {
	Nonce   []byte    `json:"nonce"`
	Expires time.Time `json:"expires"`
}

var name = regexp.MustCompile(`^[ -~]{1,128}$`)

func (b *Broker) challenge(request release.Request) (Challenge, error) {
	if !name.MatchString(request.Worker) || !name.MatchString(request.Study) || len(request.Policy) > 128 || request.Trial < 0 || request.Lease < 1 {
		return Challenge{}, evidence.Refuse("invalid", "worker and study must have 1 to 128 characters of ASCII, trial be from 0 and lease from 1")
	}
	nonce := make([]byte, 32)
	_, _ = rand.Read(nonce) // never fails
	b.mutex.Lock()
	defer b.mutex.Unlock()
	expires, err := b.ledger.Challenge(request, nonce, b.options.Now())
	return Challenge{Nonce: nonce, Expires: expires}, err
}

// Answer is a machine's to a challenge.
type Answer struct {
	Nonce    []byte            `json:"nonce"`
	Key      []byte            `json:"key"` // public, of HPKE's MLKEM768-X25519, made for this answer
	Evidence evidence.Evidence `json:"evidence"`
}

// Released is the key in a box that the machine alone can open.
type Released struct {
	Box    []byte `json:"box"`    // of hpke.Seal, with the signed data as info
	Result string `json:"result"` // a signed token
}

// release takes one attempt to its outcome. What it finds is durable before anything of
// it is told, and the key is touched last.
func (b *Broker) release(ctx context.Context, given Answer) (*Released, error) {
	b.mutex.Lock()
	attempt, err := b.ledger.Present(given.Nonce, b.options.Now())
	b.mutex.Unlock()
	if attempt == nil {
		return nil, err
	}
	if err == nil {
		err = failpoint.Here(failpoint.BrokerTaken)
	}
	asked := attempt.Request.Data(given.Nonce, given.Key)
	data := release.Bind(asked, given.Evidence.Digest())
	public, invalid := hpke.MLKEM768X25519().NewPublicKey(given.Key)
	if err == nil && invalid != nil {
		err = evidence.Refuse("malformed_evidence", "key: %v", invalid)
	}
	var claims *evidence.Claims
	if err == nil {
		if claims, err = given.Evidence.Verify(b.options.Roots, b.options.Now()); err == nil {
			err = release.Bound(asked, claims)
		}
	}
	if err == nil {
		err = b.examine(ctx, attempt, given, claims, data[:])
	}
	result, err := b.conclude(attempt, given, claims, err)
	if err != nil {
		return nil, err
	}
	if err := failpoint.Here(failpoint.BrokerWritten); err != nil {
		return nil, err
	}
	box, err := hpke.Seal(public, hpke.HKDFSHA256(), hpke.AES256GCM(), data[:], b.options.Key)
	if err == nil {
		err = failpoint.Here(failpoint.BrokerSealed)
	}
	return &Released{Box: box, Result: result}, err
}

func (b *Broker) examine(ctx context.Context, attempt *release.Attempt, given Answer, claims *evidence.Claims, data []byte) error {
	if err := b.options.Policy.Appraise(claims, data, b.options.Now()); err != nil {
		return err
	}
	if err := b.options.Verifier.allow(ctx, Question{Nonce: data, Request: attempt.Request, Evidence: given.Evidence}); err != nil {
		return err
	}
	attempt.Appraised()
	if b.options.Current != nil {
		if err := b.options.Current(ctx, attempt.Request); err != nil {
			return err
		}
	}
	attempt.Current()
	return nil
}

// conclude writes the outcome down, with its signature; err is what was found wrong.
func (b *Broker) conclude(attempt *release.Attempt, given Answer, claims *evidence.Claims, err error) (string, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	now := b.options.Now()
	if err == nil {
		err = b.ledger.Release(attempt, now)
	}
	var refused *evidence.Refusal
	if err != nil && !errors.As(err, &refused) {
		return "", err // a failure of ours: the challenge is used up all the same
	}
	if refused == nil {
		refused = &evidence.Refusal{}
	}
	result := release.NewResult(attempt.Request, given.Nonce, refused.Code, refused.Detail, now)
	if claims != nil {
		for _, one := range claims.GPUs {
			result.GPUs = append(result.GPUs, one.String())
		}
	}
	sum := sha256.Sum256(given.Evidence.Report)
	result.Evidence, result.Test = hex.EncodeToString(sum[:]), b.options.Test
	if v := b.options.Verifier; v != nil && (refused.Code == "" || strings.HasPrefix(refused.Code, "verifier_")) {
		result.Asked = v.URL
	}
	result.Verifier = release.Verifier{Developer: "https://github.com/tandem-tune/tandem", Build: b.options.Build}
	token, failed := result.Sign(b.signing)
	if failed == nil {
		failed = b.log.append(token, now)
	}
	if failed != nil {
		return "", fmt.Errorf("conclude an attempt: %w", failed)
	}
	outcome := "the key goes"
	if err != nil {
		outcome = "no key goes: " + err.Error()
	}
	b.options.Logger.Info(outcome, "worker", attempt.Request.Worker, "study", attempt.Request.Study, "trial", attempt.Request.Trial, "lease", attempt.Request.Lease)
	return token, err
}
