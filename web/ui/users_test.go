package ui_test

import (
	"context"
	"slices"
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

// tryTransfer gives a study away as an administrator and as its owner; who only looks at it,
// or edits it, is offered neither that nor a removal.
func tryTransfer(t *testing.T, s *stage, browser context.Context) {
	own := s.users("mine")
	if _, err := s.studies.SetGroup(t.Context(), "ml", protocol.UserGroupRequest{Members: map[string]string{"browser": "editor"}}); err != nil {
		t.Fatal(err)
	}
	small := s.create(smallFile)
	if _, err := s.studies.Share(t.Context(), "small", protocol.Sharing{Groups: []string{"ml"}}); err != nil {
		t.Fatal(err)
	}
	offered := func(p *tab, study string, want ...string) {
		t.Helper()
		p.visit("/studies/" + study)
		p.see(`document.getElementById("actions").hidden`, false)
		p.see(`["share", "transfer", "delete"].filter(id => !document.getElementById(id).hidden)`, append([]string{}, want...))
	}
	viewer, user, admin := s.open(browser, 1280, 900, "light"), s.open(browser, 1280, 900, "light"), s.enter(browser, "/studies")
	viewer.carry(auth.Viewer)
	user.carry(auth.User)
	offered(viewer, own.ID)
	offered(user, small.ID)
	offered(user, "mine", "share", "transfer", "delete")
	offered(admin, "browser:mine", "share", "transfer", "delete")

	admin.visit("/studies/small")
	admin.see(`document.getElementById("link-state").textContent`, "live")
	other := s.enter(browser, "/studies/small")
	other.see(`document.getElementById("link-state").textContent`, "live")
	admin.more("#transfer")
	admin.accessible("the question who gets a study", wholeRules)
	admin.enter("dialog", "User who gets it", "zoe")
	admin.pick(`//dialog[@open]//button[.="Give it away"]`)
	admin.seeText("dialog .field", "must be a user of this server") // the server's own words
	admin.confirm("Cancel")
	admin.more("#transfer")
	admin.enter("dialog", "User who gets it", "browser")
	admin.enter("dialog", "Its name from then on", "mine")
	admin.pick(`//dialog[@open]//button[.="Give it away"]`)
	admin.seeText("dialog .field:last-child", "has a study of this name already")
	admin.enter("dialog", "Its name from then on", "given")
	admin.pick(`//dialog[@open]//button[.="Give it away"]`)
	for _, p := range []*tab{admin, other} { // it goes where the study is, and so does who had it open
		p.seeText("#name", "given")
		p.seeText("#setup", "browser")
	}
	if view, err := s.studies.Study(t.Context(), "browser:given"); err != nil || view.Owner != "browser" {
		t.Errorf("it is %s's: %v", view.Owner, err)
	}

	offered(user, "mine", "share", "transfer", "delete")
	user.see(`document.getElementById("link-state").textContent`, "live")
	user.more("#transfer")
	user.enter("dialog", "User who gets it", "admin")
	user.confirm("Give it away")
	user.see("location.pathname", "/studies")
	user.see(`[...document.querySelectorAll("#studies tbody th a")].map(a => a.textContent).join()`, "given")
	if view, err := s.studies.Study(t.Context(), own.ID); err != nil || view.Owner != access.Administrators {
		t.Errorf("it is %s's: %v", view.Owner, err)
	}
	for _, p := range []*tab{user, other, admin} { // what was refused, and what was asked of it once more
		p.quietBut(func(said string) bool {
			return slices.ContainsFunc([]string{"404", "409", "422"}, func(status string) bool { return strings.Contains(said, status) })
		})
	}
}
