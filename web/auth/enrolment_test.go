package auth_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/handclock"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/store/memory"
	"github.com/tandem-tune/tandem/web/auth"
)

// enrolled makes an enrolment of a launch, as it is when it is shown.
func enrolled(t *testing.T, authenticator *auth.Authenticator, launcher auth.Token, launch string, life time.Duration) (string, auth.Token) {
	t.Helper()
	secrets, err := authenticator.Enrol(t.Context(), launcher, []string{launch}, life)
	if err != nil || len(secrets) != 1 {
		t.Fatalf("%v, %v", secrets, err)
	}
	shown, err := authenticator.Token(t.Context(), auth.Secret(secrets[0]))
	if err != nil || shown.Scope != auth.Enrolment || shown.Subject != launch || shown.Session() || !shown.Launched() {
		t.Fatalf("it opens %+v, %v", shown, err)
	}
	return secrets[0], shown
}

func TestAnEnrolmentIsUsedOnce(t *testing.T) {
	t.Parallel()
	store, watch, ctx := memory.New(), handclock.New(), t.Context()
	authenticator := auth.NewAuthenticator(store, watch.Now)
	_, launcher := issue(t, store, auth.Launcher, 0)
	_, enrolment := enrolled(t, authenticator, launcher, "L-0", time.Hour)
	secrets := make([]auth.Secret, 8)
	var all sync.WaitGroup
	for i := range secrets {
		all.Go(func() {
			secret, token, err := authenticator.Exchange(ctx, enrolment, auth.Secret(strings.Repeat(string(rune('a'+i)), 26)))
			switch {
			case problem.Is(err, problem.Forbidden) && strings.Contains(err.Error(), "the enrolment of the launch L-0 was used already"):
			case err != nil, token.Scope != auth.Worker, token.Subject != "L-0", token.Name != launcher.Name, token.Parent() != launcher.ID, !token.Expires.Equal(*enrolment.Expires):
				t.Errorf("it is exchanged for %+v, %v", token, err)
			default:
				secrets[i] = secret
			}
		})
	}
	all.Wait()
	winner := -1
	for i, secret := range secrets {
		if secret == "" {
			continue
		}
		if winner >= 0 {
			t.Error("two workers had a token for it")
		}
		winner = i
	}
	if winner < 0 {
		t.Fatal("nobody had a token for it")
	}
	// An answer that was lost is had again, and is the same.
	again, _, err := authenticator.Exchange(ctx, enrolment, auth.Secret(strings.Repeat(string(rune('a'+winner)), 26)))
	if err != nil || again.Reveal() != secrets[winner].Reveal() {
		t.Errorf("again: %v, another one: %v", err, again.Reveal() != secrets[winner].Reveal())
	}
	worker, err := authenticator.Token(ctx, again)
	if err != nil || !worker.Launched() || worker.Session() {
		t.Errorf("the worker's token opens %+v, %v", worker, err)
	}
	refused(t, authenticator, strings.Replace(again.Reveal(), "tandem_worker_", "tandem_enrolment_", 1))
	watch.Pass(2 * time.Hour)
	refused(t, authenticator, again.Reveal())
}

func TestWhatWasLaunchedEndsWithItsLaunch(t *testing.T) {
	t.Parallel()
	store, ctx := memory.New(), t.Context()
	authenticator := auth.NewAuthenticator(store, time.Now)
	_, launcher := issue(t, store, auth.Launcher, 0)
	_, other := issue(t, store, auth.Launcher, 0)
	spare, _ := enrolled(t, authenticator, launcher, "L-1", time.Hour)
	renewed, _ := enrolled(t, authenticator, launcher, "L-1", time.Hour)
	refused(t, authenticator, spare) // only the newest of a launch is good
	_, enrolment := enrolled(t, authenticator, launcher, "L-0", time.Hour)
	secret, _, err := authenticator.Exchange(ctx, enrolment, "0123456789abcdef0123456789")
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range []auth.Token{other, launcher} {
		if _, err := authenticator.Token(ctx, secret); err != nil {
			t.Fatalf("another launcher ended it: %v", err)
		}
		if err := authenticator.EndLaunches(ctx, []string{"L-0"}, func(token auth.Token) bool { return token.Parent() == of.ID }); err != nil {
			t.Fatal(err)
		}
	}
	refused(t, authenticator, secret.Reveal())
	if _, err := authenticator.Token(ctx, auth.Secret(renewed)); err != nil {
		t.Errorf("the enrolment of another launch: %v", err)
	}
	if err := authenticator.Delete(ctx, launcher.ID); err != nil {
		t.Fatal(err)
	}
	refused(t, authenticator, renewed)
	if _, err := authenticator.Enrol(ctx, other, make([]string, 10_001), time.Hour); !problem.Is(err, problem.Exhausted) {
		t.Errorf("10001 enrolments: %v", err)
	}
}
