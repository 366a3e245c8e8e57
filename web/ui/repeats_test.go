package ui_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/protocol"
)

const repeatsFile = `
name: again
objective: {metric: loss, direction: minimize}
space: {rate: {type: float, low: 0, high: 1}}
budget: {epochs: 1}
search: {method: random, seed: 5, repeats: {trials: 2, times: 2}}
stop: {trials: 3}
`

func tryRepeats(t *testing.T, s *stage, browser context.Context) {
	s.create(repeatsFile)
	h := s.hand()
	p := s.enter(browser, "/studies/again")
	for _, loss := range []float64{0.2, 0.3, 0.4} {
		h.train(h.lease("again"), loss)
	}
	p.see(boardNumbers, "0 1 2")
	p.seeText("#answer", "Trial 0")
	for _, loss := range []float64{0.42, 0.28} { // trial 0 was lucky
		h.train(h.lease("again"), loss)
	}
	p.seeText("#answer", "Trial 1")
	p.seeText("#answer", "0.2900 ± 0.01")
	p.seeText("#answer", "mean of 2")
	p.seeText(`[data-figure="best"]`, "0.2900")
	p.seeText(`[data-figure="trials"]`, "3 of 3, 2 repeats")
	p.seeText("#setup", "the best 2 are trained 2 times")
	// The page has the order of the server.
	page, err := s.studies.Trials(t.Context(), "again", protocol.TrialQuery{})
	if err != nil {
		t.Fatal(err)
	}
	var numbers, ranks []string
	for _, one := range page.Trials {
		numbers = append(numbers, fmt.Sprint(one.Number))
		rank := fmt.Sprint(one.Rank)
		if one.Rank == 0 {
			rank = "–"
		}
		ranks = append(ranks, rank)
	}
	p.see(boardNumbers, strings.Join(numbers, " "))
	p.see(`[...document.querySelectorAll("#board tbody tr")].map(row => row.cells[0].textContent).join(" ")`, strings.Join(ranks, " "))
	p.see(boardValues, "0.2900 ± 0.01 0.3100 ± 0.11 0.4000 0.4200 0.2800")
	p.see(`document.querySelector("#board tr[data-number='4'] th").textContent`, "#4repeats #1")
	p.visit("/studies/again/trials/4")
	p.seeText("#facts", "trial 1")
	p.seeText("#facts", "another trial, trained again")
	p.seeText(`[data-figure="rank"]`, "a repeat: trial 1 has the rank")
	p.visit("/studies/again/trials/1")
	p.seeText("#facts", "0.2900 ± 0.01, of 2 trainings")
	p.quiet()
}
