package api_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/web/api"
	"github.com/tandem-tune/tandem/web/auth"
	"github.com/tandem-tune/tandem/web/oidc"
)

// issuer is a small OpenID provider whose ID tokens a test spoils. e2e/oidc has a real one.
type issuer struct {
	*httptest.Server
	t      *testing.T
	key    *ecdsa.PrivateKey
	claims map[string]any             // of the next ID token
	sign   func(claims []byte) string // how it is signed
	form   url.Values                 // of the last request for a token
	answer string                     // an error instead of a token
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	i := &issuer{t: t, key: key}
	i.sign = func(claims []byte) string { return i.signed(jose.ES256, i.key, claims) }
	mux := http.NewServeMux()
	tell := func(w http.ResponseWriter, status int, value any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		if err := json.NewEncoder(w).Encode(value); err != nil {
			t.Error(err)
		}
	}
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		tell(w, 200, map[string]any{"issuer": i.URL, "authorization_endpoint": i.URL + "/auth", "token_endpoint": i.URL + "/token", "jwks_uri": i.URL + "/keys", "device_authorization_endpoint": i.URL + "/device"})
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		tell(w, 200, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: &key.PublicKey, KeyID: "one", Algorithm: "ES256", Use: "sig"}}})
	})
	mux.HandleFunc("/device", func(w http.ResponseWriter, _ *http.Request) {
		tell(w, 200, map[string]any{"device_code": "device", "user_code": "ABCD", "verification_uri": i.URL + "/code", "expires_in": 600, "interval": 1})
	})
	mux.HandleFunc("/token", func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil {
			t.Error(err)
		}
		i.form = r.PostForm
		if i.answer != "" {
			tell(w, 400, map[string]string{"error": i.answer})
			return
		}
		claims, err := json.Marshal(i.claims)
		if err != nil {
			t.Error(err)
		}
		tell(w, 200, map[string]any{"access_token": "access", "token_type": "Bearer", "id_token": i.sign(claims)})
	})
	i.Server = httptest.NewServer(mux)
	t.Cleanup(i.Close)
	return i
}

func (i *issuer) signed(algorithm jose.SignatureAlgorithm, key any, claims []byte) string {
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: jose.JSONWebKey{Key: key, KeyID: "one"}}, nil)
	if err != nil {
		i.t.Error(err)
		return ""
	}
	object, err := signer.Sign(claims)
	if err != nil {
		i.t.Error(err)
		return ""
	}
	text, err := object.CompactSerialize()
	if err != nil {
		i.t.Error(err)
	}
	return text
}

// alices are the claims of an ID token of alice.
func (i *issuer) alices(nonce string) map[string]any {
	return map[string]any{
		"iss": i.URL, "aud": "tandem", "sub": "1", "nonce": nonce, "exp": time.Now().Add(time.Hour).Unix(), "iat": time.Now().Unix(),
		"email": "alice@example.org", "email_verified": true, "groups": []string{"ml", "staff"},
	}
}

// signing is a stage that takes the provider's word.
func (i *issuer) stage(adapt func(*oidc.Rules)) *stage {
	rules := oidc.Rules{Issuer: i.URL, Client: "tandem", UserClaim: "email", GroupsClaim: "groups", Domains: []string{"example.org"}}
	if adapt != nil {
		adapt(&rules)
	}
	if err := rules.Check(); err != nil {
		i.t.Fatal(err)
	}
	return newStage(i.t, func(c *api.Config) { c.SignIn = oidc.New(rules, nil, time.Now) })
}

// begin begins a sign-in in a browser; it returns the cookie, the state and the nonce.
func (s *stage) begin() (cookie *http.Cookie, query url.Values) {
	s.t.Helper()
	got := s.do(ask{method: "POST", path: "/api/v1/session/provider"})
	var start protocol.SignInStart
	if err := json.Unmarshal(got.body, &start); got.status != 200 || err != nil {
		s.t.Fatalf("%d %s: %v", got.status, got.body, err)
	}
	address, err := url.Parse(start.Address)
	if err != nil {
		s.t.Fatal(err)
	}
	cookies := (&http.Response{Header: got.header}).Cookies()
	if len(cookies) != 1 || !cookies[0].HttpOnly || cookies[0].SameSite != http.SameSiteStrictMode {
		s.t.Fatalf("cookies %v", cookies)
	}
	return cookies[0], address.Query()
}

// finish ends it as the page does.
func (s *stage) finish(cookie *http.Cookie, state string) answer {
	s.t.Helper()
	request := ask{method: "POST", path: "/api/v1/session/provider/finish", body: fmt.Sprintf(`{"code":"code","state":%q}`, state)}
	if cookie != nil {
		request.header = map[string]string{"Cookie": cookie.Name + "=" + cookie.Value}
	}
	return s.do(request)
}

func TestPeopleSignInWithTheProvider(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	s := i.stage(nil)
	enter := func(change func(map[string]any)) (answer, *http.Cookie) {
		cookie, query := s.begin()
		if query.Get("code_challenge_method") != "S256" || query.Get("redirect_uri") != s.server.URL+"/login" || query.Get("response_type") != "code" {
			t.Errorf("the browser is sent with %v", query)
		}
		i.claims = i.alices(query.Get("nonce"))
		if change != nil {
			change(i.claims)
		}
		got := s.finish(cookie, query.Get("state"))
		for _, one := range (&http.Response{Header: got.header}).Cookies() {
			if one.Name == auth.SessionCookie {
				return got, one
			}
		}
		return got, nil
	}
	got, session := enter(nil)
	if got.status != 204 || session == nil {
		t.Fatalf("%d %s", got.status, got.body)
	}
	if i.form.Get("code_verifier") == "" || i.form.Get("code") != "code" {
		t.Errorf("the code was exchanged with %v", i.form)
	}
	who := s.do(withCookie("GET", "/api/v1/session", "tandem_session="+session.Value))
	if !strings.Contains(string(who.body), `"owner":"alice"`) {
		t.Errorf("the session is %s", who.body)
	}
	// A group of the provider gives the role that a group of that name says.
	if _, err := s.client(auth.Admin).SetGroup(t.Context(), "ml", protocol.UserGroupRequest{Members: map[string]string{}, Provided: "viewer"}); err != nil {
		t.Fatal(err)
	}
	view, err := s.client(auth.Admin).CreateStudy(t.Context(), []byte(smallStudy), "application/yaml")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.client(auth.Admin).ShareStudy(t.Context(), view.ID, "ml"); err != nil {
		t.Fatal(err)
	}
	if got := s.do(withCookie("GET", "/api/v1/studies/"+view.ID, "tandem_session="+session.Value)); got.status != 200 {
		t.Errorf("a study of the group: %d %s", got.status, got.body)
	}
	if got, again := enter(func(claims map[string]any) { claims["groups"] = []string{} }); got.status != 204 {
		t.Errorf("%d %s", got.status, got.body)
	} else if got := s.do(withCookie("GET", "/api/v1/studies/"+view.ID, "tandem_session="+again.Value)); got.status != 404 {
		t.Errorf("who left the group at the provider: %d %s", got.status, got.body)
	}
	// The name stays this identity's, whatever the claim says later; another one has it not.
	if got, renamed := enter(func(claims map[string]any) { claims["email"] = "alicia@example.org" }); got.status != 204 {
		t.Errorf("%d %s", got.status, got.body)
	} else if who := s.do(withCookie("GET", "/api/v1/session", "tandem_session="+renamed.Value)); !strings.Contains(string(who.body), `"owner":"alice"`) {
		t.Errorf("under another address alice is %s", who.body)
	}
	got, _ = enter(func(claims map[string]any) { claims["sub"] = "2" })
	got.problem(t, 409, problem.Conflict)
	s.issue(auth.Request{Name: "bob", Scope: auth.User})
	got, _ = enter(func(claims map[string]any) { claims["sub"], claims["email"] = "3", "bob@example.org" })
	got.problem(t, 409, problem.Conflict)
	// A user who is removed is out at once.
	if err := s.client(auth.Admin).RemoveUser(t.Context(), "alice"); err != nil {
		t.Fatal(err)
	}
	s.do(withCookie("GET", "/api/v1/session", "tandem_session="+session.Value)).problem(t, 401, problem.Unauthorized)
	if users, err := s.client(auth.Admin).Users(t.Context()); err != nil || len(users) != 2 { // bob and test
		t.Errorf("%+v: %v", users, err)
	}
}

// Each spoils one thing of a sign-in that is well otherwise; the last one spoils nothing.
func TestSpoiltSignIns(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	foreign, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	own := i.sign
	for name, c := range map[string]struct {
		claims map[string]any
		sign   func([]byte) string
		rules  func(*oidc.Rules)
		want   int
	}{
		"another issuer":       {claims: map[string]any{"iss": "https://elsewhere.example"}, want: 401},
		"another audience":     {claims: map[string]any{"aud": "other"}, want: 401},
		"of several audiences": {claims: map[string]any{"aud": []string{"tandem", "other"}, "azp": "other"}, want: 401},
		"expired":              {claims: map[string]any{"exp": time.Now().Add(-time.Hour).Unix()}, want: 401},
		"another nonce":        {claims: map[string]any{"nonce": "other"}, want: 401},
		"no nonce":             {claims: map[string]any{"nonce": nil}, want: 401},
		"another key":          {sign: func(b []byte) string { return i.signed(jose.ES256, foreign, b) }, want: 401},
		"a shared key":         {sign: func(b []byte) string { return i.signed(jose.HS256, []byte(strings.Repeat("k", 32)), b) }, want: 401},
		"no signature":         {sign: func(b []byte) string { return "eyJhbGciOiJub25lIn0." + base64.RawURLEncoding.EncodeToString(b) + "." }, want: 401},
		"no token":             {sign: func([]byte) string { return "" }, want: 401},
		"unverified e-mail":    {claims: map[string]any{"email_verified": false}, want: 403},
		"verified as a word":   {claims: map[string]any{"email_verified": "true"}, want: 403},
		"another domain":       {claims: map[string]any{"email": "alice@example.org.example.com"}, want: 403},
		"no e-mail":            {claims: map[string]any{"email": nil}, rules: func(r *oidc.Rules) { r.UserClaim = "sub" }, want: 403},
		"an administrator":     {claims: map[string]any{"email": "admin@example.org"}, want: 403},
		"a name that is none":  {claims: map[string]any{"email": "a:b@example.org"}, want: 403},
		"no allowed group":     {rules: func(r *oidc.Rules) { r.Groups = []string{"others"} }, want: 403},
		"an allowed group":     {rules: func(r *oidc.Rules) { r.Groups = []string{"others", "staff"} }, want: 204},
		"nothing":              {want: 204},
	} {
		s := i.stage(c.rules)
		cookie, query := s.begin()
		i.claims, i.sign = i.alices(query.Get("nonce")), own
		maps.Copy(i.claims, c.claims)
		if c.sign != nil {
			i.sign = c.sign
		}
		got := s.finish(cookie, query.Get("state"))
		if got.status != c.want {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
		if signedIn := strings.Contains(strings.Join(got.header.Values("Set-Cookie"), " "), auth.SessionCookie+"=tandem"); signedIn != (c.want == 204) {
			t.Errorf("%s: signed in %v", name, signedIn)
		}
	}
	i.sign = own
	s := i.stage(nil)
	cookie, query := s.begin()
	other, _ := s.begin()
	i.claims = i.alices(query.Get("nonce"))
	s.finish(nil, query.Get("state")).problem(t, 401, problem.Unauthorized)
	s.finish(other, query.Get("state")).problem(t, 401, problem.Unauthorized)
	s.finish(cookie, "made-up").problem(t, 401, problem.Unauthorized)
	i.answer = "invalid_grant"
	s.finish(cookie, query.Get("state")).problem(t, 401, problem.Unauthorized)
	i.Close()
	newOne := newStage(t, func(c *api.Config) {
		c.SignIn = oidc.New(oidc.Rules{Issuer: i.URL, Client: "tandem", UserClaim: "email", Domains: []string{"example.org"}}, nil, time.Now)
	})
	newOne.do(ask{method: "POST", path: "/api/v1/session/provider"}).problem(t, 503, problem.Unavailable)
	newStage(t).do(ask{method: "POST", path: "/api/v1/session/provider"}).problem(t, 404, problem.NotFound)
}

func TestDevicesSignIn(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	s := i.stage(nil)
	ctx, client := t.Context(), s.client("")
	begun, err := client.StartDeviceSignIn(ctx)
	if err != nil || begun.UserCode != "ABCD" {
		t.Fatalf("%+v: %v", begun, err)
	}
	for _, waits := range []string{"authorization_pending", "slow_down"} {
		i.answer = waits
		if got, err := client.FinishDeviceSignIn(ctx, begun.DeviceCode); err != nil || got.Issued != nil {
			t.Errorf("%s: %+v, %v", waits, got, err)
		}
	}
	for _, over := range []string{"access_denied", "expired_token"} {
		i.answer = over
		if _, err := client.FinishDeviceSignIn(ctx, begun.DeviceCode); !problem.Is(err, problem.Unauthorized) {
			t.Errorf("%s: %v", over, err)
		}
	}
	i.answer, i.claims = "", i.alices("")
	delete(i.claims, "nonce")
	got, err := client.FinishDeviceSignIn(ctx, begun.DeviceCode)
	if err != nil || got.Issued == nil || got.Issued.Name != "alice" || got.Issued.Scope != "user" || got.Issued.Expires == nil {
		t.Fatalf("%+v: %v", got, err)
	}
	if i.form.Get("grant_type") != "urn:ietf:params:oauth:grant-type:device_code" || i.form.Get("device_code") != "device" {
		t.Errorf("asked with %v", i.form)
	}
	s.secrets["alice"] = got.Issued.Token
	if identity, err := s.as("alice").Identity(ctx); err != nil || identity.Owner != "alice" {
		t.Errorf("%+v: %v", identity, err)
	}
	i.claims["email_verified"] = false
	if _, err := client.FinishDeviceSignIn(ctx, begun.DeviceCode); !problem.Is(err, problem.Forbidden) {
		t.Errorf("an unverified address: %v", err)
	}
}
