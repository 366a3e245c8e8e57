package auth_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/handclock"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/store/memory"
	"github.com/tandem-tune/tandem/web/auth"
)

// counting counts the look-ups of tokens.
type counting struct {
	auth.Store
	lookUps int
}

func (c *counting) Token(ctx context.Context, id string) (auth.Token, error) {
	c.lookUps++
	return c.Store.Token(ctx, id)
}

func issue(t testing.TB, store auth.Store, scope auth.Scope, ttl time.Duration) (string, auth.Token) {
	t.Helper()
	request := auth.Request{Name: "test", Scope: scope, Life: ttl}
	if scope == auth.Link {
		request.Subject, request.Life = "s1", cmp.Or(ttl, time.Hour)
	}
	if scope == auth.Launcher {
		request.Name = auth.AnyWorker
	}
	if scope == auth.Enrolment {
		_, parent := issue(t, store, auth.Launcher, 0)
		request.Subject, request.Life, request.Parent = "L-0", cmp.Or(ttl, time.Hour), parent.ID
	}
	secret, token, err := auth.Issue(t.Context(), store, request)
	if err != nil {
		t.Fatal(err)
	}
	return secret, token
}

func TestIssuedTokensOpen(t *testing.T) {
	t.Parallel()
	store := memory.New()
	authenticator := auth.NewAuthenticator(store, time.Now)
	seen := map[string]bool{}
	for _, scope := range auth.Scopes() {
		secret, issued := issue(t, store, scope, 0)
		if !strings.HasPrefix(secret, "tandem_"+string(scope)+"_"+issued.ID+"_") || seen[secret] {
			t.Errorf("secret %s", secret)
		}
		seen[secret] = true
		token, err := authenticator.Token(t.Context(), auth.Secret(secret))
		if err != nil || token.ID != issued.ID || token.Scope != scope || token.Session() {
			t.Errorf("%s: %+v, %v", scope, token, err)
		}
	}
	refusal := func(request auth.Request) error {
		_, _, err := auth.Issue(t.Context(), store, request)
		return err
	}
	for name, err := range map[string]error{
		"no name": refusal(auth.Request{Scope: auth.Admin}), "long name": refusal(auth.Request{Name: strings.Repeat("x", 129), Scope: auth.Admin}),
		"scope": refusal(auth.Request{Name: "x", Scope: "root"}), "life": refusal(auth.Request{Name: "x", Scope: auth.Admin, Life: -1}),
		"a user's worker": refusal(auth.Request{Name: "x", Scope: auth.User, Worker: "rack"}), "long worker": refusal(auth.Request{Name: "x", Scope: auth.Worker, Worker: strings.Repeat("x", 129)}),
		"reserved": refusal(auth.Request{Name: "admin", Scope: auth.User}), "capital": refusal(auth.Request{Name: "Alice", Scope: auth.User}),
		"colon": refusal(auth.Request{Name: "a:b", Scope: auth.User}), "hidden": refusal(auth.Request{Name: ".a", Scope: auth.User}),
		"a link to nothing": refusal(auth.Request{Name: "x", Scope: auth.Link, Life: time.Hour}), "a link without an end": refusal(auth.Request{Name: "x", Scope: auth.Link, Subject: "s1"}),
		"an enrolment of nobody": refusal(auth.Request{Name: "x", Scope: auth.Enrolment, Subject: "L-0", Life: time.Hour}), "a launcher of nobody": refusal(auth.Request{Name: "Alice", Scope: auth.Launcher}),
		"a viewer of one study":   refusal(auth.Request{Name: "x", Scope: auth.Viewer, Subject: "s1"}),
		"letters that look alike": refusal(auth.Request{Name: "аlice", Scope: auth.User}), "long user": refusal(auth.Request{Name: strings.Repeat("x", 65), Scope: auth.User}),
	} {
		if !problem.Is(err, problem.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestEveryOtherSecretIsRefused(t *testing.T) {
	t.Parallel()
	store := memory.New()
	authenticator := auth.NewAuthenticator(store, time.Now)
	secret, _ := issue(t, store, auth.Viewer, 0)
	other, _ := issue(t, store, auth.Admin, 0)
	foreign, _ := issue(t, memory.New(), auth.Viewer, 0)
	parts, others := strings.Split(secret, "_"), strings.Split(other, "_")
	for i := range len(secret) {
		flipped := []byte(secret)
		flipped[i] ^= 1
		refused(t, authenticator, string(flipped))
	}
	sealed := func(parts ...string) string { return seal(strings.Join(parts, "_")) }
	if seal(strings.Join(parts[:4], "_")) != secret {
		t.Fatal("the tests do not know how a token is sealed")
	}
	for _, wrong := range []string{
		sealed("tandem", "viewer", parts[2], others[3]), sealed("tandem", "viewer", parts[2], strings.Repeat("0", 43)), sealed("tandem", "viewer", others[2], parts[3]),
		sealed("tandem", "admin", parts[2], parts[3]), sealed("tandem", "session", parts[2], parts[3]), sealed("tandem", "", parts[2], parts[3]),
		sealed("tanden", "viewer", parts[2], parts[3]), sealed("tandem", "viewer", parts[2], ""), sealed("tandem", "viewer", "", parts[3]), sealed("tandem", "viewer", parts[2], parts[3], ""),
		"", "_", "tandem", secret[1:], secret[:len(secret)-1], secret + "x", " " + secret, strings.ToUpper(secret), foreign,
		strings.Join([]string{parts[0], "admin", parts[2], parts[3], parts[4]}, "_"), strings.Join([]string{parts[0], parts[1], others[2], parts[3], parts[4]}, "_"),
		strings.Repeat("_", 300), secret + "\x00",
	} {
		refused(t, authenticator, wrong)
	}
}

// seal appends the checksum that anybody can compute.
func seal(text string) string {
	const letters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	sum, checksum := crc32.ChecksumIEEE([]byte(text)), ""
	for range 6 {
		checksum += string(letters[sum%62])
		sum /= 62
	}
	return text + "_" + checksum
}

func refused(t *testing.T, authenticator *auth.Authenticator, secret string) {
	t.Helper()
	if token, err := authenticator.Token(t.Context(), auth.Secret(secret)); !problem.Is(err, problem.Unauthorized) {
		t.Errorf("%q opens %+v: %v", secret, token, err)
	}
	if token, err := authenticator.Session(t.Context(), auth.Secret(secret)); !problem.Is(err, problem.Unauthorized) {
		t.Errorf("%q opens the session %+v: %v", secret, token, err)
	}
}

func TestTokensExpire(t *testing.T) {
	t.Parallel()
	store, watch := memory.New(), handclock.New()
	authenticator := auth.NewAuthenticator(store, watch.Now)
	secret, token := issue(t, store, auth.Admin, time.Hour)
	if _, err := authenticator.Token(t.Context(), auth.Secret(secret)); err != nil {
		t.Fatal(err)
	}
	watch.Pass(token.Expires.Sub(watch.Now()) - 1)
	if _, err := authenticator.Token(t.Context(), auth.Secret(secret)); err != nil {
		t.Fatalf("a moment before its end: %v", err)
	}
	watch.Pass(1)
	refused(t, authenticator, secret)
	if err := authenticator.Valid(t.Context(), token.ID); !problem.Is(err, problem.Unauthorized) {
		t.Errorf("still valid: %v", err)
	}
}

func TestDeletedTokensAreForgottenAtOnce(t *testing.T) {
	t.Parallel()
	store, watch := &counting{Store: memory.New()}, handclock.New()
	authenticator := auth.NewAuthenticator(store, watch.Now)
	keep, _ := issue(t, store, auth.Admin, 0)
	secret, token := issue(t, store, auth.Viewer, 0)
	for range 10 {
		if _, err := authenticator.Token(t.Context(), auth.Secret(secret)); err != nil {
			t.Fatal(err)
		}
	}
	if store.lookUps != 1 {
		t.Errorf("%d look-ups for ten requests", store.lookUps)
	}
	session, _, err := authenticator.StartSession(t.Context(), token)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := authenticator.Session(t.Context(), session); err != nil {
		t.Fatal(err)
	}
	if err := authenticator.Delete(t.Context(), token.ID); err != nil {
		t.Fatal(err)
	}
	refused(t, authenticator, secret)
	refused(t, authenticator, session.Reveal())
	if err := authenticator.Delete(t.Context(), token.ID); !problem.Is(err, problem.NotFound) {
		t.Errorf("deleted twice: %v", err)
	}
	if _, err := authenticator.Token(t.Context(), auth.Secret(keep)); err != nil {
		t.Errorf("another token: %v", err)
	}
}

// meeting lets those who list the tokens at once wait for each other, for a
// moment: whoever is let in alone goes on alone.
type meeting struct {
	auth.Store
	inside sync.WaitGroup
}

func (m *meeting) Tokens(ctx context.Context) ([]auth.Token, error) {
	tokens, err := m.Store.Tokens(ctx)
	m.inside.Done()
	all := make(chan struct{})
	go func() {
		m.inside.Wait()
		close(all)
	}()
	select {
	case <-all:
	case <-time.After(10 * time.Millisecond):
	}
	return tokens, err
}

func TestTheLastAdminStays(t *testing.T) {
	t.Parallel()
	store := &meeting{Store: memory.New()}
	authenticator := auth.NewAuthenticator(store, time.Now)
	var ids []string
	for range 8 {
		_, token := issue(t, store, auth.Admin, 0)
		ids = append(ids, token.ID)
	}
	issue(t, store, auth.Admin, time.Hour) // ends: nobody could make another one then
	store.inside.Add(len(ids))
	var all sync.WaitGroup
	refusals := make(chan error, len(ids))
	for _, id := range ids {
		all.Go(func() {
			if err := authenticator.Delete(t.Context(), id); err != nil {
				refusals <- err
			}
		})
	}
	all.Wait()
	close(refusals)
	count := 0
	for err := range refusals {
		count++
		if !problem.Is(err, problem.Conflict) {
			t.Error(err)
		}
	}
	if count != 1 {
		t.Fatalf("%d of %d deletions were refused", count, len(ids))
	}
}

func TestSessions(t *testing.T) {
	t.Parallel()
	store, watch := memory.New(), handclock.New()
	authenticator := auth.NewAuthenticator(store, watch.Now)
	_, viewer := issue(t, store, auth.Viewer, 0)
	_, worker := issue(t, store, auth.Worker, 0)
	if _, _, err := authenticator.StartSession(t.Context(), worker); !problem.Is(err, problem.Forbidden) {
		t.Errorf("a worker's session: %v", err)
	}
	first, opened, err := authenticator.StartSession(t.Context(), viewer)
	if err != nil || !opened.Session() || opened.Scope != auth.Viewer {
		t.Fatalf("%+v: %v", opened, err)
	}
	if _, err := authenticator.Token(t.Context(), first); !problem.Is(err, problem.Unauthorized) {
		t.Errorf("a session's secret is a token: %v", err)
	}
	watch.Pass(auth.SessionLife - 1)
	if _, err := authenticator.Session(t.Context(), first); err != nil {
		t.Errorf("a moment before its end: %v", err)
	}
	watch.Pass(1)
	refused(t, authenticator, first.Reveal())
	for range 40 {
		if _, _, err := authenticator.StartSession(t.Context(), viewer); err != nil {
			t.Fatal(err)
		}
		watch.Pass(1)
	}
	tokens, err := store.Tokens(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if kept := len(tokens) - 2; kept != 32 {
		t.Errorf("%d sessions of one token are kept", kept)
	}
	_, last, err := authenticator.StartSession(t.Context(), viewer)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // that it is gone already is fine
		if err := authenticator.EndSession(t.Context(), last); err != nil {
			t.Error(err)
		}
	}
	if err := authenticator.EndSession(t.Context(), viewer); !problem.Is(err, problem.Invalid) {
		t.Errorf("a token was ended as a session: %v", err)
	}
	_, short := issue(t, store, auth.Viewer, time.Hour)
	if _, opened, err := authenticator.StartSession(t.Context(), short); err != nil || !opened.Expires.Equal(*short.Expires) {
		t.Errorf("a session outlives its token: %+v, %v", opened, err)
	}
}

func TestSecretsDoNotShow(t *testing.T) {
	t.Parallel()
	secret := auth.Secret("hunter2")
	encoded, err := json.Marshal(map[string]any{"a": secret})
	if err != nil {
		t.Fatal(err)
	}
	var logged strings.Builder
	slog.New(slog.NewJSONHandler(&logged, nil)).Info("x", "token", secret, "in", struct{ S auth.Secret }{secret})
	for _, text := range []string{fmt.Sprint(secret), fmt.Sprintf("%s %v %q %x %#v %d", secret, secret, secret, secret, secret, secret),
		fmt.Sprintf("%+v", struct{ S auth.Secret }{secret}), string(encoded), logged.String()} {
		if strings.Contains(text, "hunter2") || strings.Contains(text, "68756e74657232") || !strings.Contains(text, "***") {
			t.Errorf("shown: %s", text)
		}
	}
	if secret.Reveal() != "hunter2" {
		t.Error("it does not even know itself")
	}
}

// FuzzToken looks for a text that opens something besides the token itself.
func FuzzToken(f *testing.F) {
	store := memory.New()
	authenticator := auth.NewAuthenticator(store, time.Now)
	secret, token := issue(f, store, auth.Admin, 0)
	session, _, err := authenticator.StartSession(f.Context(), token)
	if err != nil {
		f.Fatal(err)
	}
	parts := strings.Split(secret, "_")
	for _, seed := range []string{secret, session.Reveal(), "", "tandem_admin___", strings.Repeat("_", 5), strings.Join(parts[:4], "_"),
		strings.Join([]string{"tandem", "session", parts[2], parts[3], parts[4]}, "_"), secret + "_" + secret} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if seal(text) != secret && seal(text) != session.Reveal() {
			refused(t, authenticator, seal(text))
		}
		_, err := authenticator.Token(context.Background(), auth.Secret(text))
		if (err == nil) != (text == secret) || err != nil && !problem.Is(err, problem.Unauthorized) {
			t.Fatalf("%q as a token: %v", text, err)
		}
		_, err = authenticator.Session(context.Background(), auth.Secret(text))
		if (err == nil) != (text == session.Reveal()) || err != nil && !problem.Is(err, problem.Unauthorized) {
			t.Fatalf("%q as a session: %v", text, err)
		}
	})
}

func TestUsesAreWrittenDownLater(t *testing.T) {
	t.Parallel()
	store, watch := memory.New(), handclock.New()
	authenticator := auth.NewAuthenticator(store, watch.Now)
	secret, token := issue(t, store, auth.Admin, 0)
	gone, revoked := issue(t, store, auth.Viewer, 0)
	used := func(tokens []auth.Token, err error) *time.Time {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range tokens {
			if one.ID == token.ID {
				return one.Used
			}
		}
		t.Fatal("the token is not listed")
		return nil
	}
	for range 2 {
		watch.Pass(time.Minute)
		for _, one := range []string{secret, gone} {
			if _, err := authenticator.Token(t.Context(), auth.Secret(one)); err != nil && one == secret {
				t.Fatal(err)
			}
		}
		if at := used(authenticator.Tokens(t.Context())); at == nil || !at.Equal(watch.Now()) {
			t.Errorf("used at %v, shown as %v", watch.Now(), at)
		}
		if at := used(store.Tokens(t.Context())); at != nil && at.Equal(watch.Now()) {
			t.Error("a request has waited for it to be stored")
		}
		if err := store.DeleteToken(t.Context(), revoked.ID); err != nil && !problem.Is(err, problem.NotFound) {
			t.Fatal(err)
		}
		if err := authenticator.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if at := used(store.Tokens(t.Context())); at == nil || !at.Equal(watch.Now()) {
			t.Errorf("used at %v, stored as %v", watch.Now(), at)
		}
	}
}
