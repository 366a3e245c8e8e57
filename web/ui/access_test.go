package ui_test

import (
	"context"
	"testing"

	"github.com/tandem-tune/tandem/web/auth"
)

func tryAccess(t *testing.T, s *stage, browser context.Context) {
	p := s.enter(browser, "/access")
	p.seeText("#tokens", "browser")
	p.see(`document.getElementById("groups-card").hidden`, false)
	p.click("#make-group")
	p.fill("dialog input", "ml")
	p.fill("dialog textarea", "browser:reader")
	p.click("dialog button[type=submit]")
	p.seeText("dialog", "must be viewer or editor") // the server's own words
	p.fill("dialog textarea", "browser:viewer")
	p.click("dialog button[type=submit]")
	p.seeText("#groups", "browser (viewer)")
	p.click("#make-token")
	p.fill("dialog input", "carol")
	p.click("dialog button[type=submit]")
	p.see(`document.querySelector("dialog input[readonly]")?.value.startsWith("tandem_user_") === true`, true)
	p.click("dialog .actions button")
	p.seeText("#users", "carol")

	user := s.open(browser, 1280, 900, "light")
	user.signIn(auth.User)
	user.visit("/access")
	user.seeText("#groups", "browser (viewer)")
	user.see(`["users-card", "tokens-card", "audit-card", "make-token", "make-group", "make-quota"].filter(id => !document.getElementById(id).hidden)`, []string{})
	user.see(`document.querySelectorAll("#groups button").length`, 0)
	user.quiet()

	p.click("#groups button")
	p.confirm("Remove")
	p.see(`document.querySelectorAll("#groups tbody tr").length`, 0)
	if groups, err := s.studies.Groups(t.Context()); err != nil || len(groups) != 0 {
		t.Errorf("%v: %v", groups, err)
	}
	user.visit("/access")
	user.see(`document.querySelectorAll("#groups tbody tr").length`, 0)
}
