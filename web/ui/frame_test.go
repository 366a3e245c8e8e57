package ui_test

import (
	"context"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/tandem-tune/tandem/web/auth"
)

func tryConnection(_ *testing.T, s *stage, browser context.Context) {
	s.create(smallFile)
	h := s.hand()
	lease := h.lease("small")
	p := s.enter(browser, "/studies/small")
	p.see(`document.getElementById("link-state").textContent`, "live")
	p.get("(window.here = true, 1)")
	s.vanish()
	p.seeText("#lost", "No connection to the server")
	p.show(390, 860, "light")
	p.see(tooWide, "fits")
	h.train(lease, 0.125) // happens while nobody can see it
	s.comeBack()
	p.see(boardRow(0, 3), "0.1250")
	p.see(`document.getElementById("lost").hidden`, true)
	p.see("window.here", true) // it is still the same page

	// Where the first request fails and the next one finds nothing, the page says that.
	p.do(func(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, t, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: `{
			const real = window.fetch;
			window.fetch = (...call) => {
				if (sessionStorage.failed) return real(...call);
				sessionStorage.failed = "once";
				return Promise.reject(new TypeError("no connection"));
			};
		}`})
		return chromedp.Void{}, err
	})
	p.visit("/studies/small/trials/99")
	p.seeText("#gone-title", "There is no trial 99")
	p.see("sessionStorage.failed", "once")
}

func tryKeys(_ *testing.T, s *stage, browser context.Context) {
	s.create(smallFile)
	story(s.hand())
	p := s.enter(browser, "/studies/small")
	p.see(boardNumbers, "1 3 0 2 4 5")
	p.key("j")
	p.key("j")
	p.see("document.activeElement.textContent", "#3")
	p.key("k")
	p.see("document.activeElement.textContent", "#1")
	p.key("/")
	p.see("document.activeElement.id", "filter-query")
	p.key("j") // is text now
	p.see(`document.getElementById("filter-query").value`, "j")
	p.do(chromedp.KeyEvent(kb.Escape))
	p.key("?")
	p.seeText("dialog", "find in the list")
	p.do(chromedp.KeyEvent(kb.Escape))
	p.see(`document.querySelector("dialog") === null`, true)
	p.visit("/studies/small/trials/3")
	p.see(`document.getElementById("next").hidden`, false)
	p.key("n")
	p.see("location.pathname", "/studies/small/trials/4")
	p.see(`document.getElementById("previous").hidden`, false)
	p.key("p")
	p.see("location.pathname", "/studies/small/trials/3")
	p.see(`document.getElementById("previous").hidden`, false)
	p.key("u")
	p.see("location.pathname", "/studies/small")
	p.quiet()
}

func tryColours(_ *testing.T, s *stage, browser context.Context) {
	const ground = `getComputedStyle(document.body).backgroundColor`
	const light, dark = "rgb(245, 246, 248)", "rgb(14, 18, 24)"
	p := s.open(browser, 1280, 900, "dark")
	p.visit("/login")
	p.see(ground, dark)
	p.click("#theme")
	p.see(ground, light)
	p.do(chromedp.Reload())
	p.see(ground, light)
	p.click("#theme")
	p.click("#theme")
	p.see(ground, dark)
	p.see(`document.getElementById("theme").ariaLabel`, "Colours: as the system has them")
	p.quiet()
}

func tryNothing(_ *testing.T, s *stage, browser context.Context) {
	p := s.enter(browser, "/studies")
	p.seeText("#empty", "tandem worker --server "+s.url)
	p.visit("/workers")
	p.seeText("#empty", "tandem worker --server "+s.url)
	s.create(smallFile)
	p.visit("/studies/small")
	p.seeText("#no-worker", "tandem worker --server "+s.url)
	p.seeText("#board-empty", "No trial yet")
	p.seeText("#best-chart", "No trial has been measured yet.")
	p.see(`document.getElementById("waits").hidden`, true)
	s.launches(auth.Admin, "jobs of others go first")
	p.do(chromedp.Reload())
	p.seeText("#waits", "The next trial waits. No worker is connected; the launcher tandem has 2 workers pending in slurm: jobs of others go first.")
	p.see(`document.getElementById("no-worker").hidden`, true)
	p.quiet()
	p.visit("/nowhere")
	p.seeText("main", "There is no such page")
	p.visit("/studies/none")
	p.seeText("#gone", "There is no study none on this server")
	p.visit("/studies/small/trials/7")
	p.seeText("#gone", "There is no trial 7")
	p.click("#gone-study")
	p.see("location.pathname", "/studies/small")
}
