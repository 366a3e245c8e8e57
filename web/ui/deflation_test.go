package ui_test

import (
	"context"
	"testing"
	"time"
)

const priorityFile = `
command: [train]
objective: {metric: loss, direction: minimize}
space: {rate: {type: float, low: 0, high: 1}}
budget: {epochs: 1}
search: {method: random, seed: 5}
stop: {trials: 20}
`

// tryPriorities shows a study that leaves data out while another runs.
func tryPriorities(t *testing.T, s *stage, browser context.Context) {
	s.create(priorityFile + "name: patient\npriority: -1\napproximation: {most_drop: 0.4}\n")
	s.create(priorityFile + "name: urgent\npriority: 5\nresponse_seconds: {mean: 0.001}\nsprint: {auto: true}\n")
	h := s.hand()
	now := time.Now()
	s.clock.pin(now)
	later := func(span time.Duration) {
		now = now.Add(span)
		s.clock.pin(now)
		if err := s.studies.Tick(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	later(time.Second)
	for _, study := range []string{"patient", "urgent"} {
		lease := h.lease(study)
		later(10 * time.Second)
		h.train(lease, 0.5)
	}
	later(6 * time.Second)
	p := s.enter(browser, "/studies/patient")
	p.seeText("#deflation-facts", "40")
	p.seeText("#deflation-why", "no share keeps all response_seconds")
	p.seeText("#deflation-facts", "estimate")
	p.inspect(screen{name: "priority"}, "light", 1280, wholeRules)
	p.show(390, 860, "dark")
	p.inspect(screen{name: "priority"}, "dark", 390, wholeRules)
	p.show(1280, 900, "light")
	lease := h.lease("patient")
	later(5 * time.Second)
	h.train(lease, 0.4)
	p.seeText("#answer", "40% less data than its rung has")
	p.visit("/studies/patient/trials/1")
	p.seeText("#facts", "of the rung’s data")
	p.visit("/studies/urgent")
	p.seeText("#deflation-facts", "Trials do not sprint: no worker that is heard of allows any")
	p.inspect(screen{name: "sprints"}, "light", 1280, wholeRules)
	p.show(390, 860, "dark")
	p.inspect(screen{name: "sprints"}, "dark", 390, wholeRules)
	p.show(1280, 900, "light")
	if _, err := s.studies.Stop(t.Context(), "urgent"); err != nil {
		t.Fatal(err)
	}
	later(6 * time.Second)
	p.visit("/studies/patient")
	p.seeText("#deflation-why", "no study of a higher priority is running")
	p.visit("/studies/urgent")
	p.seeText("#deflation-facts", "Wanted")
	p.quiet()
}
