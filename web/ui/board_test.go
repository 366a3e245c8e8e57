package ui_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/web/auth"
)

// What the leaderboard shows, from top to bottom.
const (
	boardNumbers = `[...document.querySelectorAll("#board tbody tr")].map(row => row.dataset.number).join(" ")`
	boardValues  = `[...document.querySelectorAll("#board tbody tr")].map(row => row.cells[3].textContent).join(" ")`
)

func tryOrder(t *testing.T, s *stage, browser context.Context) {
	s.create(smallFile)
	story(s.hand())
	p := s.enter(browser, "/studies/small")
	// The highest rung first; NaN is worse than any number; what was never
	// measured comes last.
	p.see(boardValues, "0.4500 0.4000 0.5000 NaN – –")
	page, err := s.studies.Trials(t.Context(), "small", protocol.TrialQuery{})
	if err != nil {
		t.Fatal(err)
	}
	var numbers []string
	for _, one := range page.Trials {
		numbers = append(numbers, fmt.Sprint(one.Number))
	}
	p.see(boardNumbers, strings.Join(numbers, " "))
	p.seeText(`[data-figure="best"]`, "0.4500")
	p.seeText(`[data-figure="trials"]`, "6 of 40")
	p.seeText(`[data-figure="epochs"]`, "7 epochs")
	p.seeText("#setup", "random, promotion: asynchronous, seed 5")
	p.seeText(`[data-figure="energy"]`, "estimate")
	p.seeText(`[data-figure="workers"]`, "1 trial in training · 7 slots free")
	p.see(`[...document.querySelectorAll("#ladder tbody tr")].map(row => [...row.cells].slice(2).map(cell => cell.textContent).join(" "))`,
		[]string{"1 3 4 1", "0 0 1 –"})
	p.see(`["best-chart", "rung-chart"].map(id => document.querySelectorAll("#" + id + " canvas").length)`, []int{1, 1})
	p.see(`document.getElementById("best-chart").ariaLabel.includes("0.4500, from 5 measurements")`, true)
	p.quiet()
}

func tryLive(t *testing.T, s *stage, browser context.Context) {
	s.create(smallFile)
	h := s.hand()
	h.train(h.lease("small"), 0.5)
	var last protocol.Lease
	for range 30 {
		last = h.lease("small")
	}
	p := s.enter(browser, "/studies/small")
	p.seeText("#pager", "31 trials")
	p.see(`document.getElementById("link-state").textContent`, "live")
	p.get(`(window.kept = document.querySelector('tr[data-number="20"]'), 1)`)
	p.get(`(document.getElementById("board-frame").scrollTop = 160, document.querySelector('tr[data-number="20"] a').focus({preventScroll: true}), 1)`)
	if p.get(`document.getElementById("board-frame").scrollTop`) == "0" {
		t.Fatal("the leaderboard does not scroll")
	}
	const place = `Math.round(window.kept.getBoundingClientRect().top / 4)`
	before := p.get(place)

	h.train(last, 0.25)
	p.see(boardNumbers+`.split(" ").slice(0, 2)`, []string{"30", "0"})
	p.seeText("#answer", "Trial 30")
	p.seeText(`[data-figure="best"]`, "0.2500")
	p.see(`[window.kept?.isConnected, document.activeElement.textContent]`, []any{true, "#20"})
	if after := p.get(place); after != before {
		t.Errorf("the row that was read moved on the screen, from %s to %s", before, after)
	}
	h.next(31, 0)
	p.seeText("#pager", "32 trials")
	p.see(boardRow(31, 2), "leased")
	p.quiet()
}

// head is the path of a column's button, by its title.
func head(title string) string {
	return fmt.Sprintf(`//table[@id="board"]//th/button[.=%q]`, title)
}

func trySort(_ *testing.T, s *stage, browser context.Context) {
	s.create(smallFile)
	story(s.hand())
	p := s.enter(browser, "/studies/small")
	for _, one := range []struct{ title, expression, want string }{
		{"Trial", boardNumbers, "0 1 2 3 4 5"},
		{"Trial", boardNumbers, "5 4 3 2 1 0"},
		{"loss", boardNumbers, "3 1 0 2 4 5"},
		{"loss", boardNumbers, "0 1 3 2 4 5"}, // NaN and nothing stay behind
		{"Epochs", boardNumbers + `.split(" ")[0]`, "1"},
		{"State", `document.querySelector("#board tbody tr").cells[2].textContent`, "completed"},
	} {
		p.pick(head(one.title))
		p.see(one.expression, one.want)
	}
	p.pick(head("rate"))
	ordered := `(rates => rates.every((rate, at) => at === 0 || rates[at - 1] <= rate))([...document.querySelectorAll("#board tbody tr")].map(row => Number(row.cells[5].title)))`
	p.see(ordered, true)
	p.see("location.search", "?sort=params.rate")
	p.do(chromedp.Reload())
	p.see(ordered, true)
	p.see(`document.querySelector("#board th[aria-sort]").textContent`, "rate")
	p.quiet()
}

func tryFilter(_ *testing.T, s *stage, browser context.Context) {
	s.create(smallFile)
	story(s.hand())
	p := s.enter(browser, "/studies/small")
	p.see(boardNumbers, "1 3 0 2 4 5")
	p.choose("#filter-state", "failed")
	p.see(boardNumbers, "4")
	p.seeText("#board .failure", "out of paper")
	p.choose("#filter-state", "active")
	p.see(boardNumbers, "5")
	p.choose("#filter-state", "")
	p.choose("#filter-rung", "1")
	p.see(boardNumbers, "1")
	p.see("location.search", "?rung=1")
	p.choose("#filter-rung", "")
	ask := func(query string) {
		p.fill("#filter-query", query)
		p.do(chromedp.SendKeys(chromedp.CSS("#filter-query"), kb.Enter))
	}
	ask("loss > 0.3 order by loss desc")
	p.see(boardNumbers, "0 1 3")
	p.see("location.search", "?query=loss+%3E+0.3+order+by+loss+desc")
	p.do(chromedp.Reload())
	p.see(boardNumbers, "0 1 3")
	ask("")
	p.see("location.search", "")
	ask("PAPER")
	p.see(boardNumbers, "4") // the reason of its failure
	ask("number = 3")
	p.see(boardNumbers, "3")
	p.seeText("#pager", "1 trial (6 in all)")
	p.do(chromedp.SendKeys(chromedp.CSS("#filter-query"), "33"+kb.Enter))
	p.seeText("#board-empty", "No trial matches")
	p.quiet()
	p = s.enter(browser, "/studies/small?query=los+%3E+0.42") // a wrong one, in the address
	p.seeText("#query-error", "at character 1, los is no field of study small, and no trial has reported it: did you mean loss?")
	p.see(boardNumbers, "1 3 0 2 4 5")
	ask("loss is null limit 1")
	p.see(boardNumbers, "4")
	p.see(`document.getElementById("query-error").hidden`, true)

	s.create(strings.NewReplacer("name: small", "name: spaced", "metric: loss", "metric: val loss").Replace(smallFile))
	for _, value := range []float64{0.4, 0.2} {
		s.hand().report(s.hand().lease("spaced"), 1, value)
	}
	p.visit("/studies/spaced")
	ask(`"val loss" < 0.3`)
	p.see(boardNumbers, "1")
	p.see(`[...document.querySelectorAll("#board th")].map(th => th.textContent).includes("val loss")`, true)
}

func tryStudies(_ *testing.T, s *stage, browser context.Context) {
	names := `[...document.querySelectorAll("#studies tbody th a")].map(link => link.textContent)`
	s.create(smallFile)
	p := s.enter(browser, "/studies")
	p.see(names, []string{"small"})
	p.see(`document.getElementById("filters").hidden`, true) // of one study there is nothing to find
	story(s.hand())
	for _, name := range []string{"paper-b", "paper-a"} {
		s.create(strings.Replace(strings.Replace(smallFile, "name: small", "name: "+name, 1), "two rungs", "the second draft", 1))
	}
	p.see(names, []string{"paper-a", "paper-b", "small"})
	p.pick(`//table[@id="studies"]//button[.="Study"]`)
	p.see(names, []string{"paper-a", "paper-b", "small"})
	p.pick(`//table[@id="studies"]//button[.="Best"]`)
	p.see(names, []string{"small", "paper-a", "paper-b"})
	p.see("location.search", "?sort=best")
	p.fill("#find", "DRAFT paper")
	p.see(names, []string{"paper-a", "paper-b"})
	p.seeText("#count", "2 of 3")
	p.pick(`//table[@id="studies"]//button[.="Study"]`)
	p.pick(`//table[@id="studies"]//button[.="Study"]`)
	p.see(names, []string{"paper-b", "paper-a"})
	p.do(chromedp.Reload())
	p.see(names, []string{"paper-b", "paper-a"})
	p.see(`document.querySelector("#studies th[aria-sort]").ariaSort`, "descending")
	p.fill("#find", "thesis")
	p.seeText("#none", "No study matches")
	p.click("#show-all")
	p.see(names, []string{"small", "paper-b", "paper-a"})

	// Groups are in the address, too; one that is closed shows its name only.
	s.users("mine")
	p.visit("/studies?group=owner&sort=study")
	const heads = `[...document.querySelectorAll("#studies .group")].map(row => row.innerText.trim().replace(/\s+/g, " "))`
	p.see(heads, []string{"admin 3 studies, 3 running", "browser 1 study, 1 running"})
	p.see(names, []string{"paper-a", "paper-b", "small", "mine"})
	p.choose("#owner", "browser")
	p.see(heads, []string{"browser 1 study, 1 running"})
	p.see(`location.search.replaceAll("&", " ")`, "?group=owner sort=study owner=browser")
	p.do(chromedp.Reload())
	p.see(names, []string{"mine"})
	p.click("#studies .group button")
	p.see(names, []string{})
	p.see(heads, []string{"browser 1 study, 1 running"})
	p.quiet()
}

// tryBulk stops two of three studies: neither before it is asked nor after a
// Cancel, and not the third.
func tryBulk(t *testing.T, s *stage, browser context.Context) {
	for _, name := range []string{"one", "two", "three"} {
		s.create(strings.Replace(smallFile, "name: small", "name: "+name, 1))
	}
	states := func(want ...protocol.StudyStatus) {
		t.Helper()
		for at, name := range []string{"one", "two", "three"} {
			if view, err := s.studies.Study(t.Context(), name); err != nil || view.Status != want[at] {
				t.Errorf("the study %s is %s, want %s: %v", name, view.Status, want[at], err)
			}
		}
	}
	const running, stopped = protocol.StudyRunning, protocol.StudyStopped
	p := s.open(browser, 1280, 900, "light")
	p.carry(auth.Viewer)
	p.visit("/studies")
	p.seeText("#studies", "three")
	p.see(`performance.getEntriesByType("resource").some(one => one.name.endsWith("/session"))`, true)
	p.see(`document.querySelectorAll("#studies .pick").length`, 0) // a viewer may change nothing
	p.carry(auth.Admin)
	p.visit("/studies")
	p.see(`document.querySelectorAll("#studies .pick").length`, 4)

	p.click(`#studies [aria-label="Choose one"]`)
	p.get(`[...document.querySelectorAll("#studies a")].find(link => link.textContent === "two").focus()`)
	p.key("x") // chooses the row with the focus
	p.seeText("#chosen", "2 studies chosen")
	p.accessible("a list with chosen studies", wholeRules)
	p.click(`[data-act="stop"]`)
	p.seeText("dialog h2", "Stop 2 studies?")
	p.see(`[...document.querySelectorAll("dialog li")].map(one => one.textContent).sort()`, []string{"one", "two"})
	p.accessible("a question about several studies", wholeRules)
	p.confirm("Cancel")
	states(running, running, running)
	p.click(`[data-act="stop"]`)
	p.confirm("Stop 2 studies")
	p.seeText("#outcome", "Stopped 2 studies")
	states(stopped, stopped, running)
	p.see(`document.querySelectorAll("#studies .badge[data-state=stopped]").length`, 2)

	p.click("#clear")
	p.click("#studies thead .pick")
	p.click(`[data-act="tag"]`)
	p.fill("dialog input", "draft ?")
	p.confirm("Tag 3 studies")
	p.seeText("#failures", "one")
	p.seeText("#outcome", "Tagged 0 of 3 studies; 3 failed:")
	p.quietBut(func(said string) bool { return strings.Contains(said, "422") }) // what was refused
}

func tryGallery(_ *testing.T, s *stage, browser context.Context) {
	beat(s)
	p := s.enter(browser, "/studies")
	p.see(`[...document.querySelectorAll("#studies tbody th a")].map(link => link.textContent)`,
		[]string{"digits", "lenet-fashion-mnist", "boosted-or-linear", "broken-script"})
	p.pick(`//a[.="boosted-or-linear"]`)
	p.seeText("#pager", "1 to 100 of 300 trials")
	p.pick(`//div[@id="pager"]/button[.="Next"]`)
	p.seeText("#pager", "101 to 200 of 300 trials")
	// Each page comes from the server, and nothing else of the trials does.
	p.see(`[...new Set(performance.getEntriesByType("resource").map(one => new URL(one.name)).filter(one => one.pathname.endsWith("/trials")).map(one => one.searchParams.get("limit") + " from " + one.searchParams.get("offset")))]`,
		[]string{"100 from 0", "100 from 100"})
	p.see(`performance.getEntriesByType("resource").some(one => one.name.includes("events?after=0"))`, false)
	p.choose("#filter-state", "failed")
	p.seeText("#pager", "8 trials (300 in all)")
	p.choose("#filter-state", "")
	p.fill("#filter-query", "model = linear")
	p.do(chromedp.SendKeys(chromedp.CSS("#filter-query"), kb.Enter))
	// A linear model has a penalty, and neither a depth nor a shrinkage.
	p.see(`[...new Set([...document.querySelectorAll("#board tbody tr")].map(row => [5, 6, 7, 8].map(at => row.cells[at].textContent === "–").join(" ")))]`,
		[]string{"false true true false"})
	p.seeText("#best-note", "not a finite number")
	p.see(`/null|undefined/.test(document.querySelector("#board tbody").textContent + document.querySelector("#answer-body").textContent)`, false)
	p.visit("/studies/broken-script")
	p.seeText("#description", "No module named 'torch'")
	p.pick(`//div[@id="answer-body"]//a`)
	p.seeText("#reason", "No module named 'torch'")
	// What stands behind a reason's first line is in the log below.
	p.see(`[...document.querySelectorAll("#reason, #history .reason")].filter(one => one.title.includes("Traceback")).length > 1`, true)
	p.see(`[...document.querySelectorAll("#reason, #history .reason")].some(one => one.textContent.includes("Traceback"))`, false)
	p.visit("/workers")
	p.seeText("#workers", "NVIDIA A30")
	p.seeText("#count", "2 connected, 6 of 6 slots in use")
	p.quiet()
}

// tryStalled lets a script show no sign of life, and then report again.
func tryStalled(t *testing.T, s *stage, browser context.Context) {
	s.create(smallFile + "stall_seconds: 600\n")
	h := s.hand()
	lease := h.lease("small")
	p := s.enter(browser, "/studies/small")
	p.see(boardRow(lease.Number, 2), "leased")
	_, err := s.studies.Heartbeat(t.Context(), handID, protocol.Heartbeat{Leases: []protocol.HeldLease{{Trial: lease.Trial, LeaseEpoch: lease.LeaseEpoch, QuietSeconds: 601}}})
	if err != nil {
		t.Fatal(err)
	}
	p.see(boardRow(lease.Number, 2), "leasedstalled")
	p.visit(fmt.Sprintf("/studies/small/trials/%d", lease.Number))
	p.seeText("#reason", "no report, no output and next to no CPU time for 601 s")
	p.seeText("#history", "no report, no output and next to no CPU time for 601 s")
	p.visit("/studies/small")
	h.train(lease, 0.5)
	p.see(boardRow(lease.Number, 2), "paused")
	p.quiet()
}
