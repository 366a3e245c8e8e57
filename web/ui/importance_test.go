package ui_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/tandem-tune/tandem/internal/protocol"
)

func tryImportance(t *testing.T, s *stage, browser context.Context) {
	p := s.enter(browser, "/studies/broken-script")
	p.seeText("#description", "No module named 'torch'")
	p.see(`document.getElementById("importance").hidden`, true) // nothing was measured
	p.visit("/studies/boosted-or-linear")
	answer, err := s.studies.Importance(t.Context(), "boosted-or-linear", protocol.ImportanceQuery{})
	if err != nil || len(answer.Rungs) < 2 {
		t.Fatalf("%+v, %v", answer, err)
	}
	names := func(rung int) []string {
		var list []string
		for _, p := range answer.Rungs[rung].Parameters {
			list = append(list, p.Name)
		}
		return list
	}
	most := 0 // the rung where most trials were measured is shown first
	for i, rung := range answer.Rungs {
		if rung.Trials > answer.Rungs[most].Trials {
			most = i
		}
	}
	const shown = `[...document.querySelectorAll("#importance .share-name")].map(name => name.textContent)`
	p.see(shown, names(most))
	p.get(`document.querySelector("#importance .choice").lastElementChild.click()`)
	p.see(shown, names(0))
	p.see(`[...document.querySelectorAll("#importance progress")].reduce((sum, bar) => sum + bar.value, 0) > 95`, true)
	p.see(`document.getElementById("ladder-agreement").textContent.startsWith("Rank correlation with the next rung, an estimate: 0\u21921: ")`, true)
	advice, err := s.studies.Advice(t.Context(), "boosted-or-linear")
	if err != nil {
		t.Fatal(err)
	}
	found := make([]string, len(advice.Pieces))
	for i, one := range advice.Pieces {
		found[i] = one.Found
	}
	p.see(`[...document.querySelectorAll("#advice h3")].map(h => h.textContent)`, found)
	p.see(`document.getElementById("advice").hidden`, len(found) == 0)
	p.quiet()
}

// tryAdvice looks at studies in which one parameter says which way the other is better,
// in which one or nothing matters, and in which later trials are better.
func tryAdvice(_ *testing.T, s *stage, browser context.Context) {
	r, h := rand.New(rand.NewPCG(1, 5)), s.hand()
	number := func(lease protocol.Lease, name string) float64 {
		value, _ := lease.Params[name].Number()
		return value - 0.5
	}
	const titles = `[...document.querySelectorAll("#advice h3")].map(h => h.textContent.replace(/\b[ab]\b/g, "one"))` // either may be named first
	const turns = "Which one is better depends on one."
	p := s.enter(browser, "/studies")
	for _, c := range []struct {
		name  string
		worth func(lease protocol.Lease, number int) float64
		found []string
	}{
		{"turning", func(l protocol.Lease, _ int) float64 { return number(l, "a") * number(l, "b") }, []string{turns}},
		{"climbing", func(_ protocol.Lease, n int) float64 { return float64(n) }, []string{"The search was still getting better when it ended."}},
		{"settled", func(l protocol.Lease, _ int) float64 { return -number(l, "a")*number(l, "a") + 0.01*r.NormFloat64() }, []string{"one decides less than 10% of how trials rank."}},
		{"idle", func(protocol.Lease, int) float64 { return r.NormFloat64() }, []string{}},
	} {
		s.create(fmt.Sprintf(`
name: advised-%s
command: [python3, train.py]
objective: {metric: loss, direction: maximize}
space: {a: {type: float, low: 0, high: 1}, b: {type: float, low: 0, high: 1}}
search: {method: random}
budget: {policy: epochs, epochs: {min: 1, max: 1}}
stop: {trials: 60}
`, c.name))
		for n := range 60 {
			lease := h.lease("advised-" + c.name)
			h.train(lease, c.worth(lease, n))
		}
		p.visit("/studies/advised-" + c.name)
		p.see(titles, c.found)
	}
	p.visit("/studies/advised-climbing")
	p.see(titles, []string{"The search was still getting better when it ended."})
	p.click("#advice button")
	p.see(`document.querySelector("dialog[open] h2").textContent.startsWith("Run more trials")`, true)
	p.visit("/studies/advised-settled")
	p.click("#advice .button")
	p.see("location.pathname", "/studies/new")
	p.visit("/studies/advised-turning")
	p.see(titles, []string{turns})
	p.click("#advice .button")
	p.see("location.pathname", "/studies/advised-turning/charts")
	p.see(`["x", "y"].map(axis => document.getElementById("contour-" + axis).selectedOptions[0].textContent).sort()`, []string{"a", "b"})
	p.quiet()
}
