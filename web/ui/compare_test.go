package ui_test

import (
	"context"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

func tryCompare(_ *testing.T, s *stage, browser context.Context) {
	s.create(smallFile)
	h := s.hand()
	running := story(h)
	p := s.enter(browser, "/studies/small")
	p.see(boardNumbers, "1 3 0 2 4 5")
	p.see(`document.getElementById("compare-bar").hidden`, true)
	p.click(`#board tr[data-number="3"] .pick`)
	p.seeText("#compare-note", "Trial 3 is chosen. Choose others to compare.")
	p.see(`document.getElementById("compare").hidden`, true)
	p.click(`#board tr[data-number="1"] .pick`)
	p.see("location.search", "?compare=1%2C3")
	p.do(chromedp.Reload())
	p.see(`[...document.querySelectorAll("#board .pick:checked")].map(box => box.dataset.number)`, []string{"1", "3"})
	p.pick(head("rate")) // what is chosen stays chosen
	p.see(`[document.querySelectorAll("#board .pick:checked").length, document.getElementById("compare").textContent]`, []any{2, "Compare 2 trials"})
	p.click("#compare")

	const chips = `[...document.querySelectorAll("#chips li")].map(one => one.innerText.replaceAll(/\s+/g, " "))`
	p.see("location.pathname + location.search", "/studies/small/compare?trials=1,3")
	p.see(chips, []string{"Trial 1 completed ×", "Trial 3 paused ×"})
	p.seeText("#params-note", "2 of 2 differ, marked ≠.")
	const results = `[...document.querySelectorAll("#results tbody tr")].map(row => [...row.cells].slice(1).map(cell => cell.textContent.replace("best: ", "")).join(" "))`
	p.see(results, []string{"★ 0.2000 0.4000", "0.4500 –", "0.4500 ★ 0.4000"}) // two rungs, and the newest epoch
	p.see(`document.querySelectorAll("#curves canvas").length`, 1)
	p.see(`document.getElementById("curves").ariaLabel`, "loss: trial 1 from 0.2000 to 0.4500; trial 3 from 0.4000 to 0.4000. The tables below have the results.")

	p.fill("#add-number", "99")
	p.do(chromedp.KeyEvent(kb.Enter))
	p.seeText("#add-error", "Study small has no trial 99.")
	p.fill("#add-number", "5")
	p.do(chromedp.KeyEvent(kb.Enter))
	p.see(chips, []string{"Trial 1 completed ×", "Trial 3 paused ×", "Trial 5 leased ×"})
	const epochs = `[...document.querySelectorAll("#facts tbody tr")].find(row => row.cells[0].textContent === "Epochs").cells[3].textContent`
	p.see(epochs, "0")
	h.report(running, 1, 0.3) // it is followed
	p.see(epochs, "1")
	p.see(`document.getElementById("curves").ariaLabel.includes("trial 5 from 0.3000 to 0.3000")`, true)

	p.choose("#over", "seconds")
	p.see(`location.search.replace("&", " ")`, "?trials=1%2C3%2C5 over=seconds")
	p.click(`#chips li:nth-child(2) .drop`)
	p.see(`location.search.replace("&", " ")`, "?trials=1%2C5 over=seconds")
	p.see(`document.getElementById("over").value`, "seconds")
	p.see(chips, []string{"Trial 1 completed ×", "Trial 5 running ×"})
	p.quietBut(func(said string) bool { return strings.Contains(said, "404") && strings.Contains(said, "/trials/99") })

	p.visit("/studies/small/compare?trials=1,77")
	p.seeText("#gone", "Not all of the trials 1, 77 are in the study small")
	p.visit("/studies/small/compare?trials=x,-1,1e3")
	p.seeText("#few", "Add the numbers of two to six trials")
	p.visit("/studies/small/compare?trials=1,1,2,3,4,5,0,0")
	p.see(`document.querySelectorAll("#chips li").length`, 6)
	p.see(`document.getElementById("add").hidden`, true)
}

func tryColumns(_ *testing.T, s *stage, browser context.Context) {
	s.create(smallFile)
	story(s.hand())
	p := s.enter(browser, "/studies/small")
	const titles = `[...document.querySelectorAll("#board thead th")].map(head => head.textContent).join(" ")`
	p.see(titles, "Rank Trial State loss Rung rate width Budget Latest Epochs Time Energy")
	p.click("#columns summary")
	for _, column := range []string{"Rung", "Energy", "rate"} {
		p.pick(`//details[@id="columns"]//label[.="` + column + `"]/input`)
	}
	const without = "Rank Trial State loss width Budget Latest Epochs Time"
	p.see(titles, without)
	p.seeText("#columns summary", "Columns (3 hidden)")
	p.show(390, 860, "light")
	p.see(`(box => box.left >= 0 && box.right <= innerWidth)(document.querySelector("#columns fieldset").getBoundingClientRect())`, true)
	p.show(1280, 900, "light")
	p.see("location.search", "?hide=rung%2Cparams.rate%2Cjoules")
	p.do(chromedp.KeyEvent(kb.Escape))
	p.see(`[document.getElementById("columns").open, document.activeElement.textContent]`, []any{false, "Columns (3 hidden)"})
	p.see(`document.querySelector('#board tr[data-number="1"]').cells.length`, 9)
	p.visit("/studies/small") // without it in the address, the browser remembers
	p.see(titles, without)
	p.visit("/studies/small?hide=state,nonsense,number") // the address has the last word
	p.see(titles, "Rank Trial loss Rung rate width Budget Latest Epochs Time Energy")
	p.click("#columns summary")
	p.pick(`//details[@id="columns"]//button[.="Show all"]`)
	p.see(titles, "Rank Trial State loss Rung rate width Budget Latest Epochs Time Energy")
	p.quiet()
}
