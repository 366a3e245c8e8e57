package ui_test

import (
	"context"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/hook"
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
	s.create(priorityFile + "name: patient\npriority: -1\napproximation: {most_drop: 0.1}\n")
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
	s.create(priorityFile + "name: urgent\npriority: 5\nresponse_seconds: {mean: 4}\nsprint: {auto: true}\n")
	s.register(protocol.WorkerRegistration{ID: "spare-worker", Name: "spare", Slots: 1}) // hand asks for one study at a time
	held := h.lease("patient")
	for range 5 {
		later(6 * time.Second)
		lease := h.lease("urgent")
		later(time.Second)
		h.train(lease, 0.5)
	}
	later(6 * time.Second)
	told := hook.HookRequest{Hook: definition.Hook{Name: "team"}, Kind: hook.Slack, URL: "https://example.org/hidden", All: true}
	if _, err := s.hooks.Create(t.Context(), told); err != nil {
		t.Fatal(err)
	}
	p := s.enter(browser, "/studies/patient")
	p.seeText("#hooks-facts", "0 messages told")
	p.seeText("#deflation-facts", "10")
	p.seeText("#deflation-why", "10% of the data is left out: trials of priority 5 took ")
	p.seeText("#deflation-why", "4 s in the mean is wanted")
	p.inspect(screen{name: "priority"}, "light", 1280, wholeRules)
	p.show(390, 860, "dark")
	p.inspect(screen{name: "priority"}, "dark", 390, wholeRules)
	p.show(1280, 900, "light")
	lease := h.lease("patient")
	later(5 * time.Second)
	h.train(held, 0.5)
	h.train(lease, 0.4)
	p.seeText("#answer", "10% less data than its rung has")
	p.visit("/studies/patient/trials/1")
	p.seeText("#facts", "of the rung’s data")
	p.visit("/studies/urgent")
	p.seeText("#deflation-facts", "Trials of priority 5 took ")
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
