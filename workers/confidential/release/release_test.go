package release_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/workers/confidential/evidence"
	"github.com/tandem-tune/tandem/workers/confidential/release"
)

var start = time.Date(2026, 10, 1, 12, 0, 0, 0, time.UTC)

func code(err error) string {
	if refused, ok := errors.AsType[*evidence.Refusal](err); ok {
		return refused.Code
	}
	return fmt.Sprint(err)
}

// seen is what the test knows of one attempt.
type seen struct {
	attempt            *release.Attempt
	request            release.Request
	asked              time.Time
	appraised, current bool
	released           bool
}

// In every history of challenges, answers, replays, delays and leases that end, a key
// goes only where the policy was kept, the challenge was new and the lease the latest.
func TestAKeyGoesOnlyByTheRules(t *testing.T) {
	const histories = 10_000
	outcomes := map[string]int{}
	for seed := range histories {
		random := rand.New(rand.NewPCG(uint64(seed), 7))
		limits := release.Limits{PerHour: 2 + random.IntN(6), Total: 1 + random.IntN(6)}
		ledger, now := release.New("p", limits), start
		asked := map[string]time.Time{}
		requests := map[string]release.Request{}
		presented := map[string]bool{}
		newest := map[int]int64{}
		var nonces []string
		var attempts []*seen
		var gone []time.Time
		for range 100 {
			now = now.Add(time.Duration(random.IntN(9)) * time.Second)
			if random.IntN(40) == 0 {
				now = now.Add(time.Duration(random.IntN(70)) * time.Minute)
			}
			switch random.IntN(5) {
			case 0:
				request := release.Request{Worker: "w", Study: "s", Trial: random.IntN(2), Lease: 1 + int64(random.IntN(4)), Policy: "p"}
				nonce := fmt.Sprint(len(nonces))
				if _, err := ledger.Challenge(request, []byte(nonce), now); err != nil {
					outcomes[code(err)]++
					continue
				}
				nonces, asked[nonce], requests[nonce] = append(nonces, nonce), now, request
			case 1, 2:
				nonce := "foreign"
				if len(nonces) > 0 && random.IntN(10) > 0 {
					nonce = nonces[len(nonces)-1-random.IntN(min(2, len(nonces)))]
				}
				attempt, err := ledger.Present([]byte(nonce), now)
				if err == nil && (presented[nonce] || asked[nonce].IsZero() || now.Sub(asked[nonce]) >= release.Lifetime) {
					t.Fatalf("history %d: a challenge is taken that is foreign, old or used", seed)
				}
				if outcomes[code(err)]++; code(err) != "too_many_requests" {
					presented[nonce] = true
				}
				if attempt != nil {
					attempts = append(attempts, &seen{attempt: attempt, request: requests[nonce], asked: asked[nonce]})
				}
			case 3:
				if len(attempts) > 0 {
					one := attempts[len(attempts)-1]
					if random.IntN(4) > 0 {
						one.attempt.Appraised()
						one.appraised = true
					}
					if random.IntN(4) > 0 {
						one.attempt.Current()
						one.current = true
					}
				}
			case 4:
				if len(attempts) == 0 {
					continue
				}
				one := attempts[len(attempts)-1-random.IntN(min(2, len(attempts)))]
				err := ledger.Release(one.attempt, now)
				if outcomes["release "+code(err)]++; err != nil {
					continue
				}
				inHour := 0
				for _, at := range gone {
					if now.Sub(at) < time.Hour {
						inHour++
					}
				}
				switch {
				case !one.appraised || !one.current || one.released:
					t.Fatalf("history %d: released without being examined, or twice: %+v", seed, one)
				case now.Sub(one.asked) >= release.Lifetime || one.request.Lease < newest[one.request.Trial]:
					t.Fatalf("history %d: released by an old challenge or lease", seed)
				case len(gone) >= limits.Total || inHour >= limits.PerHour:
					t.Fatalf("history %d: released beyond the limits", seed)
				}
				one.released = true
				gone, newest[one.request.Trial] = append(gone, now), one.request.Lease
			}
		}
	}
	for _, one := range []string{"<nil>", "nonce_unknown", "nonce_used", "nonce_expired", "too_many_requests", "release <nil>", "release nonce_used", "release nonce_expired", "release stale_lease", "release too_many_releases"} {
		if outcomes[one] < 20 {
			t.Errorf("%s happened %d times: %v", one, outcomes[one], outcomes)
		}
	}
}

func TestWhatWasReleasedBeforeCounts(t *testing.T) {
	ledger := release.New("p", release.Limits{PerHour: 1, Total: 3})
	request := release.Request{Worker: "w", Study: "s", Trial: 1, Lease: 5, Policy: "p"}
	ledger.Recall(request, start.Add(-2*time.Hour))
	try := func(lease int64, now time.Time) error {
		nonce := fmt.Append(nil, now, lease)
		request.Lease = lease
		if _, err := ledger.Challenge(request, nonce, now); err != nil {
			return err
		}
		attempt, err := ledger.Present(nonce, now)
		if err != nil {
			return err
		}
		attempt.Appraised()
		attempt.Current()
		return ledger.Release(attempt, now)
	}
	for _, one := range []struct {
		lease int64
		after time.Duration
		code  string
	}{{4, 0, "stale_lease"}, {5, 0, "<nil>"}, {6, time.Minute, "too_many_releases"}, {6, 61 * time.Minute, "<nil>"}, {7, 200 * time.Minute, "too_many_releases"}} {
		if err := try(one.lease, start.Add(one.after)); code(err) != one.code {
			t.Errorf("lease %d after %v: %v, not %s", one.lease, one.after, err, one.code)
		}
	}
	if _, err := release.New("p", release.Limits{PerHour: 1, Total: 1}).Challenge(release.Request{Policy: "q"}, nil, start); code(err) != "policy_changed" {
		t.Error(err)
	}
}

// Each part of what a machine signs changes it, also where texts only move.
func TestWhatIsSignedNamesEverything(t *testing.T) {
	one := release.Request{Worker: "ab", Study: "c", Trial: 1, Lease: 2, Policy: "p"}
	all := map[[64]byte]bool{one.Data([]byte("n"), []byte("k")): true}
	for _, other := range []release.Request{{"a", "bc", 1, 2, "p"}, {"ab", "c", 2, 2, "p"}, {"ab", "c", 1, 3, "p"}, {"ab", "c", 1, 2, "q"}, {"ac", "c", 1, 2, "p"}} {
		all[other.Data([]byte("n"), []byte("k"))] = true
	}
	all[one.Data([]byte("m"), []byte("k"))] = true
	all[one.Data([]byte("n"), []byte("l"))] = true
	all[one.Data([]byte("nk"), nil)] = true
	if len(all) != 9 {
		t.Errorf("%d of 9 differ", len(all))
	}
	data := one.Data([]byte("n"), []byte("k"))
	if release.Bind(data, nil) != data || release.Bind(data, make([]byte, 32)) == data {
		t.Error("GPUs are not bound, or none are")
	}
	if first := release.GPUNonce(data, 0); first == release.GPUNonce(data, 1) || first == release.GPUNonce(one.Data([]byte("m"), []byte("k")), 0) {
		t.Error("two GPUs, or two requests, have one nonce")
	}
}

func TestResultsAreSigned(t *testing.T) {
	public, private, _ := ed25519.GenerateKey(nil)
	other, _, _ := ed25519.GenerateKey(nil)
	made := release.NewResult(release.Request{Worker: "w", Study: "s", Trial: 3, Lease: 4, Policy: "p"}, []byte{1}, "", "", start)
	token, err := made.Sign(private)
	if err != nil {
		t.Fatal(err)
	}
	found, err := release.Read(token, public)
	if err != nil || found.Request != made.Request || !bytes.Equal(found.Nonce, made.Nonce) || found.Submods["machine"].Status != "affirming" {
		t.Errorf("%+v, %v", found, err)
	}
	for name, one := range map[string]string{"none": "", "another header": strings.Replace(token, token[:10], "eyJhbGciOi", 1) + "x", "changed": token[:60] + "A" + token[61:], "cut": token[:len(token)-2]} {
		if _, err := release.Read(one, public); err == nil {
			t.Errorf("%s is believed", name)
		}
	}
	if _, err := release.Read(token, other); err == nil {
		t.Error("another broker's key fits")
	}
	refused := release.NewResult(made.Request, nil, "debug_guest", "why", start)
	if one := refused.Submods["machine"]; one.Status != "contraindicated" || one.Vector != nil {
		t.Errorf("%+v", refused)
	}
}

// Another program writes a token's header in its own way. One by another algorithm, or with a
// part that must be understood, is refused.
func TestTokensOfOthersAreRead(t *testing.T) {
	public, private, _ := ed25519.GenerateKey(nil)
	body := base64.RawURLEncoding.EncodeToString([]byte(`{"eat_nonce":"AQID","submods":{"cpu":{"ear.status":"affirming"}},"exp":1}`))
	for header, good := range map[string]bool{
		`{"kid":"7", "alg":"EdDSA"}`: true, `{"typ":"JWT","alg":"EdDSA"}`: true,
		`{"alg":"none"}`: false, `{"alg":"HS256"}`: false, `{}`: false, `{"alg":"EdDSA","crit":["exp"]}`: false, `[]`: false,
	} {
		signed := base64.RawURLEncoding.EncodeToString([]byte(header)) + "." + body
		found, err := release.Read(signed+"."+base64.RawURLEncoding.EncodeToString(ed25519.Sign(private, []byte(signed))), public)
		if (err == nil) != good || good && (!found.Affirms() || !bytes.Equal(found.Nonce, []byte{1, 2, 3})) {
			t.Errorf("%s: %+v, %v", header, found, err)
		}
	}
	for _, one := range []release.Result{{}, {Submods: map[string]release.Appraisal{"cpu": {Status: "affirming"}, "gpu": {Status: "none"}}}, {Code: "revoked", Submods: map[string]release.Appraisal{"cpu": {Status: "affirming"}}}} {
		if one.Affirms() {
			t.Errorf("%+v affirms", one)
		}
	}
}
