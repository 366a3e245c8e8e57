package ui_test

import (
	"context"
	"fmt"
	"strings"
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
	tryPath(t, s, p, answer.Rungs[0].Rung)
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

// tryPath compares the path that the card shows for the rung with the server's.
func tryPath(t *testing.T, s *stage, p *tab, rung int) {
	t.Helper()
	for _, rung := range []int{0, rung} {
		p.get(fmt.Sprintf(`[...document.querySelectorAll("#importance .choice button")].find(b => b.textContent === "rung %d").click()`, rung))
		answer, err := s.studies.Ablation(t.Context(), "boosted-or-linear", protocol.AblationQuery{Rung: &rung})
		if err != nil {
			t.Fatal(err)
		}
		if answer.From == nil { // the surrogate predicts nothing there, and the card says so
			p.seeText("#importance .path", answer.Notes[0])
			p.see(`document.querySelectorAll("#importance .waterfall").length`, 0)
			continue
		}
		changed, worse := []string{"start"}, 0
		for _, step := range answer.Steps {
			names := make([]string, len(step.Switched))
			for i, change := range step.Switched {
				names[i] = change.Parameter
			}
			changed = append(changed, strings.Join(names, ", "))
			if step.Gain < 0 {
				worse++
			}
		}
		p.see(`[...document.querySelectorAll(".waterfall tbody th")].map(th => th.firstChild.textContent)`, changed)
		p.see(`document.querySelectorAll(".waterfall .worse").length`, worse)
		p.seeText("#importance .path", fmt.Sprintf("predicted for rung %d by a model of %d trials", rung, answer.Surrogate.Used))
		p.seeText("#importance .path", fmt.Sprintf("trial %d", answer.From.Trial))
		if answer.From.Measured == nil {
			t.Fatal("the median trial was measured")
		}
		p.seeText(".waterfall tbody tr:first-child", "measured")
		// Each bar hangs from where the one before ended: its one end is the value before, the other the value after.
		p.see(`(() => {
			const span = ".fall i", ends = [...document.querySelectorAll(span)].map(i => [parseFloat(i.style.left), parseFloat(i.style.left) + parseFloat(i.style.width)]);
			const near = (a, b) => Math.abs(a - b) < 0.01;
			return ends.length > 0 && ends.slice(1).every((e, k) => e.some(x => ends[k].some(y => near(x, y)))) && near(Math.min(...ends.flat()), 0) && near(Math.max(...ends.flat()), 100);
		})()`, true)
	}
	p.see(`document.querySelector("#importance .choice [aria-pressed=true]").textContent`, fmt.Sprintf("rung %d", rung))
}
