package ui_test

import (
	"context"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/access"
	"github.com/tandem-tune/tandem/study/studyfile"
	"github.com/tandem-tune/tandem/web/auth"
)

// users is the study of the user that the stage's token of that scope is of.
func (s *stage) users(name string) protocol.StudyView {
	s.t.Helper()
	def, err := studyfile.Parse([]byte(strings.Replace(smallFile, "name: small", "name: "+name, 1)), studyfile.YAML)
	if err != nil {
		s.t.Fatal(err)
	}
	ctx := access.WithCaller(s.t.Context(), access.Caller{Owner: "browser", Sight: access.Own, Holder: "user:browser"})
	view, err := s.studies.CreateWarm(ctx, def, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return view
}

func tryUsers(t *testing.T, s *stage, browser context.Context) {
	s.create(smallFile)
	own := s.users("mine")
	h := s.hand()
	h.train(h.lease("browser:mine"), 0.5)

	p := s.open(browser, 1280, 900, "light")
	p.signIn(auth.User)
	p.see(`[...document.querySelectorAll("#studies tbody th a")].map(a => a.textContent).join()`, "mine")
	p.see(`document.querySelector("#studies tbody td").textContent`, "browser")
	p.click("#studies tbody th a")
	p.seeText("#name", "mine")
	p.seeText("#setup", "Owner")
	p.seeText("#setup", "browser")
	p.seeText("#setup", "tuned while trials train")
	p.click("#stop") // what is its own it may change
	p.confirm("Stop the study")
	p.seeText("#status", "stopped")
	p.quiet()
	p.visit("/studies/small")
	p.seeText("#gone", "There is no study small on this server")

	admin := s.enter(browser, "/studies")
	admin.see(`[...document.querySelectorAll("#studies tbody tr")].map(row => row.cells[0].querySelector("a").textContent + " of " + row.cells[1].textContent).sort().join()`, "mine of browser,small of admin")
	admin.get(`[...document.querySelectorAll("#studies tbody a")].find(a => a.textContent === "mine").click()`)
	admin.seeText("#name", "mine")
	admin.see("decodeURIComponent(location.pathname)", "/studies/browser:mine")
	admin.visit("/studies/browser:mine/trials/0")
	admin.seeText("#study-link", "mine")
	admin.click("#study-link")
	admin.see("decodeURIComponent(location.pathname)", "/studies/browser:mine")
	admin.quiet()
	if view, err := s.studies.Study(t.Context(), own.ID); err != nil || view.Status != protocol.StudyStopped {
		t.Errorf("the study is %s: %v", view.Status, err)
	}
}
