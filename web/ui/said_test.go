package ui_test

import (
	"context"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/access"
	"github.com/tandem-tune/tandem/study/studyfile"
	"github.com/tandem-tune/tandem/trial"
)

// trySaid looks for what pages of a study have to say beside its numbers.
func trySaid(t *testing.T, s *stage, browser context.Context) {
	def, err := studyfile.Parse([]byte(tunedFile+"preempt: true\nretry: {failures: 0}\n"), studyfile.YAML)
	if err != nil {
		t.Fatal(err)
	}
	ada := access.WithCaller(t.Context(), access.Caller{Owner: "ada", Sight: access.Own, Holder: "user:ada"})
	view, err := s.studies.CreateWarm(ada, def, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.register(protocol.WorkerRegistration{ID: handID, Name: "by-hand", Slots: 1, Machine: protocol.Machine{Host: "here", Cores: 2}})
	p := s.enter(browser, "/studies/"+view.ID)
	p.seeText("#waits", "Without effect: no trial makes way for it (preempt), as user ada may not ask for that")
	h := hand{s}
	lease := h.lease(view.ID)
	h.finish(lease, protocol.CommandFailed, "exit code 1")
	p.visit("/studies/" + view.ID + "/trials/0")
	p.seeText("#curves-empty", "No epoch was reported.")
	p.see(`document.querySelector("#system-card").hidden`, true)
	p.see(`/ yet/.test(document.querySelector("#content").innerText)`, false)

	for h.fails(view.ID) {
	}
	if _, err := s.studies.Extend(ada, view.ID, protocol.ExtendRequest{RetryFailed: true}); err != nil {
		t.Fatal(err)
	}
	h.train(h.lease(view.ID), 0.5)
	p.visit("/studies")
	p.seeText("#studies", "retried)")
	// A chart of progress leaves out what would press the rest into one line, and nothing else.
	p.visit("/studies/" + view.ID)
	p.get(`(import(new URL("chart.js", document.querySelector("script[type=module]").src)).then(({ goodRange }) => {
		const values = Array.from({ length: 30 }, (_, at) => 0.5 + at / 100);
		window.outside = [goodRange(values, "maximize"), goodRange([...values, -40], "maximize"), goodRange([...values, 40], "minimize")].map((one) => one.outside);
	}), "")`)
	p.see(`window.outside ?? []`, []int{0, 1, 1})

	s.create(strings.Replace(smallFile, "name: small", "name: far", 1) + "resources: {cores: 1, labels: {zone: moon}, tolerates: [old, spot]}\n")
	p.visit("/studies/far")
	p.seeText("#waits", "The next trial waits. resources.labels is zone=moon, and no connected worker has that (by-hand: no label zone)")
	p.seeText("#setup", "cores 1, labels zone=moon, tolerates old/spot")
	p.quiet()
}

// fails ends a trial of the study as failed; false: it has none to run.
func (h hand) fails(study string) bool {
	h.t.Helper()
	reply, err := h.studies.Lease(h.t.Context(), protocol.LeaseRequest{Worker: handID, Study: study})
	if err != nil || reply.Lease == nil {
		return false
	}
	h.finish(*reply.Lease, protocol.CommandFailed, "exit code 1")
	return true
}

// The page has the words for phases that the command line and the documents have.
func TestThePageNamesPhasesAsTheyAre(t *testing.T) {
	text, err := os.ReadFile("assets/system.js")
	if err != nil {
		t.Fatal(err)
	}
	for _, phase := range trial.Phases() {
		if !regexp.MustCompile(`(?m)^  ` + string(phase) + `: "`).Match(text) {
			t.Errorf("assets/system.js does not say what %s means", phase)
		}
	}
}
