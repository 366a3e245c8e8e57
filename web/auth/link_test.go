package auth_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/handclock"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/store/memory"
	"github.com/tandem-tune/tandem/web/auth"
)

func TestSessionsOfALinkOpenItsStudyOnly(t *testing.T) {
	t.Parallel()
	store, watch := memory.New(), handclock.New()
	authenticator := auth.NewAuthenticator(store, watch.Now)
	secret, link := issue(t, store, auth.Link, time.Hour)
	shown, err := authenticator.Token(t.Context(), auth.Secret(secret))
	if err != nil || shown.Subject != "s1" {
		t.Fatalf("%+v: %v", shown, err)
	}
	first, opened, err := authenticator.StartSession(t.Context(), shown)
	if err != nil || opened.Scope != auth.Link || opened.Subject != "s1" || !opened.Expires.Equal(*link.Expires) {
		t.Fatalf("%+v: %v", opened, err)
	}
	for range 40 { // many people open one link, and nobody is signed out by the next
		if _, _, err := authenticator.StartSession(t.Context(), shown); err != nil {
			t.Fatal(err)
		}
	}
	if again, err := authenticator.Session(t.Context(), first); err != nil || again.Subject != "s1" {
		t.Errorf("%+v: %v", again, err)
	}
	if err := authenticator.Delete(t.Context(), link.ID); err != nil {
		t.Fatal(err)
	}
	refused(t, authenticator, first.Reveal())
	refused(t, authenticator, secret)
}

// keeper is a store that cannot delete sessions, or whose caller is gone once it
// has deleted one token.
type keeper struct {
	auth.Store
	sessions map[string]bool
	leave    context.CancelFunc
}

func (k *keeper) DeleteToken(ctx context.Context, id string) error {
	if k.sessions[id] {
		return errors.New("the disk is full")
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	defer k.leave()
	return k.Store.DeleteToken(ctx, id)
}

// What was revoked is closed, whatever becomes of the rest.
func TestRevocationClosesTheTokenFirst(t *testing.T) {
	t.Parallel()
	for name, full := range map[string]bool{"the sessions stay": true, "the caller goes": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			store := &keeper{Store: memory.New(), sessions: map[string]bool{}, leave: cancel}
			authenticator := auth.NewAuthenticator(store, time.Now)
			secret, link := issue(t, store, auth.Link, time.Hour)
			shown, session, err := authenticator.StartSession(t.Context(), link)
			if err != nil {
				t.Fatal(err)
			}
			for _, secret := range []auth.Secret{auth.Secret(secret), shown} { // both are in memory then
				_, ofToken := authenticator.Token(t.Context(), secret)
				_, ofSession := authenticator.Session(t.Context(), secret)
				if ofToken != nil && ofSession != nil {
					t.Fatal(ofToken, ofSession)
				}
			}
			store.sessions[session.ID] = full
			if err := authenticator.Delete(ctx, link.ID); (err != nil) != full {
				t.Errorf("revoked: %v", err)
			}
			refused(t, authenticator, secret)
			refused(t, authenticator, shown.Reveal())
			if _, err := store.Token(t.Context(), session.ID); problem.Is(err, problem.NotFound) == full {
				t.Errorf("the session: %v", err)
			}
		})
	}
}
