package ui_test

import (
	"context"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/tandem-tune/tandem/web/auth"
)

func trySignIn(t *testing.T, s *stage, browser context.Context) {
	s.create(smallFile)
	p := s.open(browser, 1280, 900, "light")
	p.visit("/studies")
	p.see("location.pathname", "/login")
	p.signIn(auth.Admin)
	p.seeText("#studies", "small")
	history, err := chromedp.Run(p.ctx, chromedp.NavigationEntries())
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range history.Entries {
		if strings.Contains(entry.URL, s.tokens[auth.Admin]) {
			t.Errorf("the history has the token: %s", entry.URL)
		}
	}
	p.see("document.cookie", "") // no script can read the session
	// Where "next" leads after signing in is a page of this server, whatever it says.
	p.get(`import("/assets/session.js").then(session => window.lead = next => session.destination("?next=" + encodeURIComponent(next), location.origin))`)
	p.see(`window.lead && ["//elsewhere.example", "https://elsewhere.example/", "/\\elsewhere.example", "javascript:alert(1)", "/login?next=/login", ""].map(window.lead)`,
		[]string{"/studies", "/studies", "/studies", "/studies", "/studies", "/studies"})
	p.see(`["/workers", "/.//elsewhere.example/x"].map(window.lead).map(address => new URL(address, location.href).origin === location.origin)`, []bool{true, true})
	p.click("#sign-out")
	p.see("location.pathname", "/login")
	p.visit("/studies/small")
	p.see("location.pathname", "/login")
	p.quiet()
}

func tryWrongToken(_ *testing.T, s *stage, browser context.Context) {
	p := s.open(browser, 1280, 900, "light")
	p.visit("/login")
	p.fill("#token", "tandem_not-a-token")
	p.click("#login button")
	p.seeText("#login-error", "Check that all of it was copied")
	p.visit("/login?next=%2Fworkers#token=tandem_not-a-token-either")
	p.seeText("#login-error", "Check that all of it was copied")
	p.see("location.hash + location.search", "?next=%2Fworkers")
	p.fill("#token", s.tokens[auth.Viewer]+kb.Enter)
	p.see("location.pathname", "/workers")
}

func tryEndedSession(_ *testing.T, s *stage, browser context.Context) {
	s.create(smallFile)
	p := s.enter(browser, "/studies/small?sort=number")
	p.seeText("#board-empty", "No trial yet")
	p.get(`fetch("/api/v1/session", {method: "DELETE"})`) // as in another tab
	p.wait(`0`, func(string) bool { return s.sessions() == 0 }, "signed out")
	s.hand().lease("small") // an event makes the page ask again
	p.see("location.pathname", "/login")
	p.fill("#token", s.tokens[auth.Viewer]+kb.Enter)
	p.see("location.pathname + location.search", "/studies/small?sort=number")
}

// sessions counts the browsers that are signed in.
func (s *stage) sessions() int {
	s.t.Helper()
	tokens, err := s.store.Tokens(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	count := 0
	for _, token := range tokens {
		if token.Session() {
			count++
		}
	}
	return count
}
