package ui_test

import (
	"context"
	"testing"
)

const expectedFile = `
name: expects
objective: {metric: loss, direction: minimize}
space: {rate: {type: float, low: 0, high: 1, expect: {value: 0.25, sure: high}}}
budget: {epochs: 1}
search: {method: bohb, seed: 5}
stop: {trials: 9}
`

func tryExpected(_ *testing.T, s *stage, browser context.Context) {
	s.create(expectedFile)
	h := s.hand()
	p := s.enter(browser, "/studies/expects")
	p.seeText("#setup", "rate float 0 to 1, expected at 0.25 (high)")
	p.seeText("#setup", "what is expected, not tested yet")
	for range 6 {
		lease := h.lease("expects")
		rate, _ := lease.Params["rate"].Number()
		h.train(lease, (rate-0.25)*(rate-0.25))
	}
	p.seeText("#setup", "what is expected, trusted after a test (rank correlation 1.00 with 6 own results)")
	p.visit("/studies/expects/trials/0")
	p.seeText("#facts", "what is expected")
}
