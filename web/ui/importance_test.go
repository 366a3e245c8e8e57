package ui_test

import (
	"context"
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
