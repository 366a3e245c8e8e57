package ui_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/tandem-tune/tandem/inference_emu/backend"
	"github.com/tandem-tune/tandem/inference_emu/tuning"
	"github.com/tandem-tune/tandem/internal/protocol"
)

// twoStudies plays the small study and another one like it, of half the length.
func twoStudies(s *stage) {
	s.create(smallFile)
	h := s.hand()
	story(h)
	s.create(strings.NewReplacer("name: small", "name: other", "seed: 5", "seed: 6").Replace(smallFile))
	for _, loss := range []float64{0.6, 0.3, 0.35} {
		h.train(h.lease("other"), loss)
	}
}

func tryCompareStudies(t *testing.T, s *stage, browser context.Context) {
	twoStudies(s)
	s.create(strings.NewReplacer("name: small", "name: elsewhere", "metric: loss, direction: minimize", "metric: accuracy, direction: maximize").Replace(smallFile))
	p := s.enter(browser, "/studies")
	p.click(`a[href="/compare"]`)
	p.seeText("#empty", "Add two or more")
	p.see(`document.getElementById("add").options.length`, 3)
	p.choose("#add", "small")
	p.click("#add-button")
	p.see("location.search", "?study=small")
	const here = `location.search.replaceAll("&", " ")`
	p.choose("#add", "other")
	p.click("#add-button")
	p.see(here, "?study=small study=other")
	const first = `[...document.querySelectorAll("#numbers tbody tr")].map(row => row.cells[%s].firstChild.textContent)`
	p.see(strings.Replace(first, "%s", "1", 1), []string{"0.4500", "0.3000"})
	p.see(strings.Replace(first, "%s", "3", 1), []string{"6", "3"})
	p.see(`document.querySelectorAll("#path-chart canvas").length`, 1)
	p.see(`document.getElementById("path-chart").ariaLabel.includes("A, small: 0.4500; B, other: 0.3000")`, true)
	p.see(`[...document.querySelectorAll("#winners tbody th")].map(head => head.firstChild.textContent)`, []string{"rate", "width"})
	p.see(`[...document.querySelectorAll("#winners .tag")].length > 0`, true)
	p.see(`document.getElementById("caution").hidden`, true)

	// Prices are in the address, and whoever gets it sees the same.
	var costs []string // at 1 a joule
	for _, name := range []string{"small", "other"} {
		view, err := s.studies.Study(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		costs = append(costs, fmt.Sprintf("≈ %.2f", float64(view.Progress.Energy.Joules)))
	}
	p.fill("#kilowatt-hour", "3600000")
	p.do(chromedp.KeyEvent(kb.Tab))
	p.see(strings.Replace(first, "%s", "8", 1), costs)
	p.see(here, "?study=small study=other kilowatt_hour=3600000")
	p.fill("#hour", "much")
	p.do(chromedp.KeyEvent(kb.Tab))
	p.seeText("#error", `The price "much" must be a number of at least 0`)
	p.do(chromedp.Reload())
	p.see(strings.Replace(first, "%s", "8", 1), costs)

	// What does not compare is said, and so is what does not exist.
	p.visit("/compare?study=small&study=elsewhere&study=gone")
	p.seeText("#caution", "They measure different things (loss, accuracy)")
	p.seeText("#picked", "gone: there is no such study on this server")
	p.seeText("#winners-note", "No trial was measured yet: elsewhere")
	p.click(`#picked [aria-label="Take gone out"]`)
	p.see(here, "?study=small study=elsewhere")
	p.quiet()

	// A study that goes on is drawn anew.
	h := s.hand()
	h.train(h.lease("elsewhere"), 0.75)
	p.do(chromedp.Reload())
	p.see(strings.Replace(first, "%s", "1", 1), []string{"0.4500", "0.7500"})
	p.visit("/studies/small")
	p.see(`document.getElementById("compare-link").getAttribute("href")`, "/compare?study=small")
	p.see(`document.getElementById("edge-link").hidden`, true)
	p.quiet()
}

func tryEdge(t *testing.T, s *stage, browser context.Context) {
	s.create(smallFile)
	s.create(strings.NewReplacer("constraint: \"latency_ms <= 0.0001\"", "constraint: \"latency_ms <= 10000\"").Replace(deployedFile))
	p := s.enter(browser, "/studies/small/edge")
	p.seeText("#empty", "This study is not about inference")
	p.visit("/studies/deployed")
	p.more("#edge-link")
	p.see("location.pathname", "/studies/deployed/edge")
	p.seeText("#empty", "No model yet")
	h := s.hand()
	lease := h.lease("deployed")
	h.saves(lease)
	h.train(lease, 0.5)
	second := h.lease("deployed")
	h.savesWide(second, 512)
	h.train(second, 0.4)
	p.do(chromedp.Reload())
	p.seeText("#count", "2 architectures on 2 devices")
	answer, err := s.studies.EdgeOverview(t.Context(), "deployed")
	if err != nil || len(answer.Trials) != 2 || *answer.Recommended != 1 {
		t.Fatalf("%+v: %v", answer, err)
	}
	p.see(`[...document.querySelectorAll("#edge-trials tbody th a")].map(link => link.textContent)`, []string{"#1", "#0"})
	p.see(`[...document.querySelectorAll("#edge-trials tbody tr")].map(row => row.cells[1].textContent)`, []string{"0.4000", "0.5000"})
	p.see(`document.querySelectorAll("#scatter canvas").length`, 1)
	p.see(`[...document.querySelectorAll("#edge-trials tbody tr, #configurations tbody tr, #deploy-table tbody tr")].every(row => row.querySelector(".tag"))`, true) // each says that it is an estimate
	p.seeText("#deploy-title", "Deploy the model of trial 1, which is recommended")
	p.seeText("#deploy-programs pre", "# raspberry-pi-4: a batch of")
	p.seeText("#selected", "Selected: Trial 1")
	rows := 0
	for _, one := range answer.Trials[0].Deployments {
		rows += len(one.Front)
		if !slices.ContainsFunc(one.Front, func(e tuning.Evaluation) bool { return e.Configuration == one.Configuration }) {
			rows++
		}
	}
	p.see(`document.querySelectorAll("#configurations tbody tr").length`, rows)

	// A backend is a row, and what no board measured is an estimate.
	p.see(`document.getElementById("backends").hidden`, true)
	if _, err := s.studies.SetBackend(t.Context(), "rack", backend.BackendOffer{Device: "raspberry-pi-4", PricePerHour: 0.2}); err != nil {
		t.Fatal(err)
	}
	p.do(chromedp.Reload())
	p.seeText("#backends-title", "trial 1")
	p.seeText("#backend-table", "estimate")
	p.seeText("#backends-note", "No backend was measured to keep the bounds. rack is estimated to keep them: that promises nothing")
	p.see(`document.querySelector("#backend-table tbody th .tag").textContent`, "likely")
	p.accessible("the card of backends", wholeRules)

	// Keys go from point to point; the choice is in the address.
	p.get(`(document.getElementById("scatter").focus(), 1)`)
	p.do(chromedp.KeyEvent(kb.ArrowRight))
	p.see(`new URLSearchParams(location.search).has("trial")`, true)
	p.do(chromedp.KeyEvent(kb.ArrowLeft), chromedp.KeyEvent(kb.ArrowLeft))
	p.see(`document.activeElement.id`, "scatter")
	p.click(`#edge-trials tbody tr:last-child a`)
	p.seeText("#deploy-title", "Deploy the model of trial 0")
	p.see(`new URLSearchParams(location.search).get("trial")`, "0")
	p.choose("#device", "this-machine")
	p.seeText("#trials-title", "Trials on this-machine")
	p.choose("#axes", "energy-latency")
	p.do(chromedp.Reload())
	p.seeText("#trials-title", "Trials on this-machine")
	p.seeText("#deploy-title", "Deploy the model of trial 0")
	p.see(`document.getElementById("axes").value`, "energy-latency")
	p.quiet()
	p.visit("/studies/none/edge")
	p.seeText("#gone", "There is no study none on this server")
}

func tryReuse(_ *testing.T, s *stage, browser context.Context) {
	s.create(smallFile)
	p := s.enter(browser, "/ground-truth")
	p.see(`document.getElementById("reuse").hidden`, true) // nothing tunes the system
	s.create(tunedFile)
	s.register(protocol.WorkerRegistration{ID: handID, Name: "by-hand", Slots: 1, Machine: protocol.Machine{Host: "here", Cores: 2}})
	h := hand{s}
	lease := h.lease("tuned")
	h.tunes(lease, 1, 8)
	p.do(chromedp.Reload())
	p.seeText("#reuse", "measured")
	p.see(`[...document.querySelectorAll("#savings tbody tr")].map(row => [row.cells[0].textContent, row.cells[1].textContent, row.cells[6].textContent].join())`, []string{"tuned,8,–"}) // nothing was compared
	p.click("#savings tbody a")
	p.see("location.pathname", "/studies/tuned")
	p.quiet()
}
