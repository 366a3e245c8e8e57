// Package enclave is a worker inside a confidential machine. At each lease it has the
// machine's processor sign for a key pair made for that lease, and a broker release the
// study's key to it. The key is never written anywhere.
package enclave

import (
	"bytes"
	"context"
	"crypto/hpke"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/internal/sealed"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/workers/agent/clock"
	"github.com/tandem-tune/tandem/workers/agent/retry"
	"github.com/tandem-tune/tandem/workers/confidential/broker"
	"github.com/tandem-tune/tandem/workers/confidential/evidence"
	"github.com/tandem-tune/tandem/workers/confidential/policy"
	"github.com/tandem-tune/tandem/workers/confidential/release"
)

// Options are what a worker is told of its broker.
type Options struct {
	// Broker is its URL, Token what it takes, Policy the id by which it releases keys.
	Broker, Token, Policy string
	// Authorities vouch for it; nil: those of the system.
	Authorities *x509.CertPool
	// Collateral goes with each report.
	Collateral map[string]evidence.Document
	// Metrics are all that studies may declare; none: what they like.
	Metrics map[string]definition.Told
	// Trusted are recipients besides that may read what is encrypted here.
	Trusted []string
	// Root is where the kernel's files are.
	Root   string
	Logger *slog.Logger
}

// Enclave asks the broker. Nil is a worker outside of any: it has no claim, and the keys
// that it was started with.
type Enclave struct {
	options Options
	sign    device
	gpus    graphics
	tee     string
	client  *http.Client

	mutex sync.Mutex // of what follows
	known *policy.Policy
	// failed is why no key was released last; until then nobody asks again.
	failed error
	until  time.Time
	pause  time.Duration
}

// Open finds out whether this machine can show what it is.
func Open(ctx context.Context, options Options) (*Enclave, error) {
	client, err := broker.Reach("--broker", options.Broker, options.Authorities)
	if err != nil {
		return nil, err
	}
	sign, tee, err := Find(options.Root)
	if err != nil {
		return nil, err
	}
	options.Broker = strings.TrimSuffix(options.Broker, "/")
	made := &Enclave{options: options, sign: sign, gpus: GPUs, tee: tee, client: client}
	return made, made.look(ctx)
}

// Claim is what the study server is told.
func (e *Enclave) Claim() *protocol.Claim {
	if e == nil {
		return nil
	}
	return &protocol.Claim{TEE: e.tee, Policy: e.options.Policy}
}

// Refuses says why the lease is none for this machine; empty: it is one.
func (e *Enclave) Refuses(lease protocol.Lease) string {
	switch {
	case e == nil:
		return ""
	case lease.Confidential == nil:
		return "it has --confidential and so runs confidential studies only: start another worker for this one"
	case lease.Confidential.Policy != e.options.Policy:
		return fmt.Sprintf("its broker releases keys by the policy %s, not %s", e.options.Policy, lease.Confidential.Policy)
	}
	for name, told := range lease.Confidential.Metrics {
		if allowed, has := e.options.Metrics[name]; len(e.options.Metrics) > 0 && (!has || allowed != told) {
			return fmt.Sprintf("its owner does not let the metric %s be told as %v:%v:%v (--allow-metric)", name, told.Low, told.High, told.Round)
		}
	}
	return ""
}

// Away is that the broker did not answer, which no machine is to blame for.
type Away struct{ error }

// codes are those that a study server takes.
var codes = regexp.MustCompile(`^[a-z0-9_]{1,64}$`)

// Refused is the code by which a broker released no key; empty: it is none of its refusals.
func Refused(err error) string {
	var refusal *evidence.Refusal
	if errors.As(err, &refusal) && codes.MatchString(refusal.Code) {
		return refusal.Code
	}
	return ""
}

// patience is how long a broker may be away before the lease is given back.
const patience = 30 * time.Second

// Keys are those of the lease: outside of an enclave the ones that are held, else what the
// broker releases to this machine for this lease, with its signed word for that.
func (e *Enclave) Keys(ctx context.Context, worker string, lease protocol.Lease, held *sealed.Keys) (keys *sealed.Keys, result string, err error) {
	if e == nil {
		return held, "", nil
	}
	if err := e.resting(); err != nil {
		return nil, "", err // another slot has just found out
	}
	keys, result, err = e.keys(ctx, worker, lease)
	e.note(ctx, err)
	return keys, result, err
}

func (e *Enclave) keys(ctx context.Context, worker string, lease protocol.Lease) (keys *sealed.Keys, result string, err error) {
	asking, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	request := release.Request{Worker: worker, Study: lease.StudyID, Trial: lease.Number, Lease: int64(lease.LeaseEpoch), Policy: e.options.Policy}
	var last error
	err = retry.Do(asking, retry.CallPatience, func(err error) { last = err }, func(ctx context.Context) (err error) {
		keys, result, err = e.exchange(ctx, request)
		return err
	})
	switch {
	case ctx.Err() != nil:
		return nil, "", ctx.Err()
	case asking.Err() != nil && last != nil:
		return nil, "", Away{fmt.Errorf("the broker %s did not answer for %v: %w", e.options.Broker, patience, last)}
	case err != nil:
		return nil, "", fmt.Errorf("the broker %s released no key: %w", e.options.Broker, err)
	}
	e.options.Logger.Info("the broker released the key", "trial", lease.Trial, "lease", lease.LeaseEpoch)
	return keys, result, nil
}

// A machine that got no key rests, with all its slots: at first, and at most.
const firstRest, longestRest = 5 * time.Second, 2 * time.Minute

func (e *Enclave) note(ctx context.Context, err error) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	switch {
	case err == nil:
		e.failed, e.pause = nil, 0
	case ctx.Err() == nil:
		e.pause = min(max(2*e.pause, firstRest), longestRest)
		e.failed, e.until = err, time.Now().Add(e.pause)
	}
}

// resting is why the machine rests; nil: it does not.
func (e *Enclave) resting() error {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	if time.Now().Before(e.until) {
		return e.failed
	}
	return nil
}

// Rest returns when the machine may ask for trials again, or the context ends.
func (e *Enclave) Rest(ctx context.Context) {
	if e == nil {
		return
	}
	e.mutex.Lock()
	left := time.Until(e.until)
	e.mutex.Unlock()
	if e.resting() != nil {
		clock.Sleep(ctx, left)
	}
}

// exchange is a challenge and its answer. What was released is gone with the box: a second
// attempt takes a new challenge.
func (e *Enclave) exchange(ctx context.Context, request release.Request) (*sealed.Keys, string, error) {
	var challenge broker.Challenge
	if err := e.call(ctx, http.MethodPost, "/v1/challenges", request, &challenge); err != nil {
		return nil, "", err
	}
	own, err := hpke.MLKEM768X25519().GenerateKey()
	if err != nil {
		return nil, "", retry.Local{Err: err}
	}
	public := own.PublicKey().Bytes()
	data := request.Data(challenge.Nonce, public)
	gpus, err := e.shown(ctx, func(number int) [32]byte { return release.GPUNonce(data, number) })
	if none := (blind{}); errors.As(err, &none) { // if the policy requires them, the broker refuses
		e.options.Logger.Warn("no GPU shows a report", "error", none)
	} else if err != nil {
		return nil, "", err
	}
	data = release.Bind(data, (&evidence.Evidence{GPU: gpus}).Digest())
	report, certificates, err := e.sign(data)
	if err != nil {
		return nil, "", retry.Local{Err: fmt.Errorf("no report can be had: %w", err)}
	}
	shown, err := evidence.Pack(report, certificates, e.options.Collateral)
	if err != nil {
		return nil, "", retry.Local{Err: err}
	}
	shown.GPU = gpus
	var released broker.Released
	if err := e.call(ctx, http.MethodPost, "/v1/releases", broker.Answer{Nonce: challenge.Nonce, Key: public, Evidence: *shown}, &released); err != nil {
		return nil, "", err
	}
	identity, err := hpke.Open(own, hpke.HKDFSHA256(), hpke.AES256GCM(), data[:], released.Box)
	if err != nil {
		return nil, "", retry.Local{Err: fmt.Errorf("what the broker sent cannot be opened: %w", err)}
	}
	defer clear(identity)
	keys, err := sealed.Parse(identity, e.options.Trusted)
	if err != nil {
		return nil, "", retry.Local{Err: fmt.Errorf("what the broker released: %w", err)}
	}
	return keys, released.Result, nil
}

// maxAnswer bounds what a broker says.
const maxAnswer = 64 << 10

// call is one request. A refusal keeps the broker's code, and is not tried again.
func (e *Enclave) call(ctx context.Context, method, path string, body, into any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return retry.Local{Err: err}
	}
	request, err := http.NewRequestWithContext(ctx, method, e.options.Broker+path, bytes.NewReader(text))
	if err != nil {
		return retry.Local{Err: err}
	}
	request.Header.Set("Authorization", "Bearer "+e.options.Token)
	request.Header.Set("Content-Type", "application/json")
	answer, err := e.client.Do(request)
	if err != nil {
		if wrong := new(tls.CertificateVerificationError); errors.As(err, &wrong) {
			return retry.Local{Err: err}
		}
		return err
	}
	defer answer.Body.Close()
	said, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err != nil {
		return err
	}
	if answer.StatusCode == http.StatusOK {
		if err := json.Unmarshal(said, into); err != nil {
			return retry.Local{Err: fmt.Errorf("its answer cannot be read: %w", err)}
		}
		return nil
	}
	var refusal struct{ Code, Detail string }
	if err := json.Unmarshal(said, &refusal); err != nil || refusal.Code == "" || answer.StatusCode >= http.StatusInternalServerError {
		return problem.New(problem.Unavailable, "it answered %s %s %s", answer.Status, refusal.Code, refusal.Detail)
	}
	return retry.Local{Err: evidence.Refuse(refusal.Code, "%s", refusal.Detail)}
}
