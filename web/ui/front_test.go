package ui_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

const severalFile = `
name: several
objective:
  - {metric: accuracy, direction: maximize, reference: 0}
  - {expression: latency * 1000, name: latency_ms, direction: minimize}
constraints: {metric: size, max: 10}
space: {rate: {type: float, low: 0, high: 1}}
budget: {epochs: 1, data_fraction: 1}
search: {method: random, seed: 5}
stop: {trials: 40}
`

// tell trains the next trial of the study to these metrics.
func (h hand) tell(study string, accuracy, latency, size float64) {
	h.t.Helper()
	lease := h.lease(study)
	_, err := h.studies.Report(h.t.Context(), lease.Trial, protocol.Report{
		LeaseEpoch: lease.LeaseEpoch, Epoch: 1, Seconds: 2,
		Metrics: map[string]trial.Float{"accuracy": trial.Float(accuracy), "latency": trial.Float(latency), "size": trial.Float(size)},
	})
	if err != nil {
		h.t.Fatal(err)
	}
	h.finish(lease, protocol.BudgetReached, "")
}

func tryFront(t *testing.T, s *stage, browser context.Context) {
	s.create(smallFile)
	s.create(severalFile)
	h := s.hand()
	story(h)
	p := s.enter(browser, "/studies/small")
	p.seeText("#answer", "Trial 1")
	p.see(`document.getElementById("front").hidden`, true) // it has one objective
	p.visit("/studies/several")
	p.see(`document.getElementById("front").hidden`, true) // nothing was measured
	h.tell("several", 0.99, 0.001, 20)
	p.seeText("#answer", "infeasible by 1")
	for i, one := range [][3]float64{{0.9, 0.05, 10}, {0.5, 0.01, 1}, {0.85, 0.015, 2}, {0.8, 0.02, 1}, {math.NaN(), 1, 1}, {0.2, 0.03, 1}, {0.85, 0.015, 1}, {0.7, 0.012, 15}} {
		h.tell("several", one[0], one[1], one[2])
		p.seeText("#pager", fmt.Sprintf("%d trials", i+2))
		if i == 0 {
			p.see(`document.querySelector("#front .table-frame") !== null`, true)
			p.get(`(document.querySelector("#front .table-frame").focus(), 1)`)
		}
	}
	const shown = `[...document.querySelectorAll("#front tbody th")].map(cell => cell.textContent)`
	p.see(shown, []string{"#3", "#7", "#2", "#1"}) // 50 ms is unusual, and far from the best
	p.seeText("#front", "Hypervolume")
	p.seeText("#front", "accuracy 0, latency_ms 50.00 (worst so far)")
	p.see(`document.querySelectorAll("#front canvas").length`, 1)
	p.see(`document.getElementById("front-chart").ariaLabel.includes("4 of 6 trials of rung 0 are on the Pareto front of accuracy and latency_ms")`, true)
	p.see(`document.activeElement.classList.contains("table-frame")`, true) // through all changes
	// The page has the order of the server.
	page, err := s.studies.Trials(t.Context(), "several", protocol.TrialQuery{})
	if err != nil {
		t.Fatal(err)
	}
	var numbers []string
	for _, one := range page.Trials {
		numbers = append(numbers, fmt.Sprint(one.Number))
	}
	p.see(boardNumbers, strings.Join(numbers, " "))
	p.see(`[...document.querySelectorAll("#board thead th")].slice(3, 6).map(head => head.textContent)`, []string{"accuracy", "latency_ms", "Violation"})
	p.see(`[...document.querySelectorAll("#board tbody tr:first-child td")].slice(2, 5).map(cell => cell.textContent)`, []string{"0.8500", "15.00", "none"})
	p.seeText("#setup", "size at most 10.00")
	p.seeText("#answer", "latency_ms 15.00")
	// Trial 1 has the highest accuracy: the leading trial is not called that.
	p.seeText("#figures", "Best compromise: accuracy")
	p.seeText("#figures", "latency_ms 15.00, trial 3")
	p.visit("/studies")
	const row = `[...document.querySelectorAll("#studies tbody tr")].find(row => row.textContent.includes("several"))`
	p.see(`[...`+row+`.cells].slice(4, 6).map(cell => cell.innerText)`, []string{"0.8500\n15.00", "accuracy\nlatency_ms"})
	p.quiet()
}
