package auth_test

import (
	"testing"
	"time"

	"github.com/tandem-tune/tandem/store/memory"
	"github.com/tandem-tune/tandem/web/auth"
)

func TestSessionsOfALinkOpenItsStudyOnly(t *testing.T) {
	t.Parallel()
	store, watch := memory.New(), newClock()
	authenticator := auth.NewAuthenticator(store, watch.now)
	secret, link := issue(t, store, auth.Link, time.Hour)
	shown, err := authenticator.Token(t.Context(), auth.Secret(secret))
	if err != nil || shown.Study != "s1" {
		t.Fatalf("%+v: %v", shown, err)
	}
	first, opened, err := authenticator.StartSession(t.Context(), shown)
	if err != nil || opened.Scope != auth.Link || opened.Study != "s1" || !opened.Expires.Equal(*link.Expires) {
		t.Fatalf("%+v: %v", opened, err)
	}
	for range 40 { // many people open one link, and nobody is signed out by the next
		if _, _, err := authenticator.StartSession(t.Context(), shown); err != nil {
			t.Fatal(err)
		}
	}
	if again, err := authenticator.Session(t.Context(), first); err != nil || again.Study != "s1" {
		t.Errorf("%+v: %v", again, err)
	}
	if err := authenticator.Delete(t.Context(), link.ID); err != nil {
		t.Fatal(err)
	}
	refused(t, authenticator, first.Reveal())
	refused(t, authenticator, secret)
}
