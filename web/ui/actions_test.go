package ui_test

import (
	"context"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/web/auth"
)

// confirm answers the open question.
func (p *tab) confirm(button string) {
	p.t.Helper()
	p.pick(`//dialog[@open]//button[.="` + button + `"]`)
	p.see(`document.querySelector("dialog") === null`, true)
}

func (s *stage) status(want protocol.StudyStatus) {
	s.t.Helper()
	view, err := s.studies.Study(s.t.Context(), "small")
	if err != nil {
		s.t.Fatal(err)
	}
	if view.Status != want {
		s.t.Errorf("the study is %s, want %s", view.Status, want)
	}
}

func tryActions(_ *testing.T, s *stage, browser context.Context) {
	s.create(smallFile)
	h := s.hand()
	lease := h.lease("small")
	p := s.enter(browser, "/studies/small")
	p.seeText("#status", "running")

	p.click("#pause")
	p.confirm("Cancel")
	s.status(protocol.StudyRunning)
	p.click("#pause")
	p.confirm("Pause")
	p.seeText("#status", "paused")
	s.status(protocol.StudyPaused)
	p.see(`["pause", "resume", "stop"].map(id => document.getElementById(id).hidden)`, []bool{true, false, false})
	p.click("#resume")
	p.confirm("Resume")
	p.seeText("#status", "running")
	s.status(protocol.StudyRunning)

	p.click("#more summary")
	p.click("#adjust")
	p.see(`document.querySelector("dialog h2").textContent`, "Change the priority of small")
	p.accessible("the question for the priority", wholeRules)
	p.get(`(one => { one.value = "1001"; one.dispatchEvent(new Event("input")) })(document.querySelector("dialog input"))`)
	p.pick(`//dialog[@open]//button[.="Change"]`)
	p.see(`document.querySelector("dialog input").getAttribute("aria-invalid")`, "true")
	p.get(`(one => { one.value = "4"; one.dispatchEvent(new Event("input")) })(document.querySelector("dialog input"))`)
	p.confirm("Change")
	p.see(`document.getElementById("setup").textContent.includes("priority 4, any number of trials at once")`, true)

	p.click("#stop")
	p.confirm("Stop the study")
	p.seeText("#status", "stopped")
	s.status(protocol.StudyStopped)
	p.see(boardRow(lease.Number, 2), "cancelled")
	p.see(`["pause", "resume", "stop", "extend", "delete"].map(id => document.getElementById(id).hidden)`, []bool{true, true, true, false, false})

	p.click("#extend")
	p.see(`document.querySelector("dialog h2").textContent`, "Run more trials of small")
	p.accessible("the question how many more trials", wholeRules)
	p.get(`(one => { one.value = "-1"; one.dispatchEvent(new Event("input")) })(document.querySelector("dialog input"))`)
	p.pick(`//dialog[@open]//button[.="Go on"]`)
	p.see(`document.querySelector("dialog input").getAttribute("aria-invalid")`, "true")
	p.get(`(one => { one.value = "3"; one.dispatchEvent(new Event("input")) })(document.querySelector("dialog input"))`)
	p.confirm("Go on")
	p.seeText("#status", "running")
	s.status(protocol.StudyRunning)
	p.see(boardRow(lease.Number, 2), "queued")
	p.see(`["pause", "resume", "stop", "extend"].map(id => document.getElementById(id).hidden)`, []bool{false, true, false, true})
	p.quietBut(func(said string) bool { return strings.Contains(said, "422") }) // what was refused
}

func tryFailed(t *testing.T, s *stage, browser context.Context) {
	s.create(strings.Replace(smallFile, "trials: 40", "trials: 1", 1))
	h := s.hand()
	p := s.enter(browser, "/studies/small")
	p.seeText("#status", "running")
	lease := h.lease("small")
	request := protocol.FinishRequest{LeaseEpoch: lease.LeaseEpoch, Outcome: protocol.CommandFailed, Reason: "exit code 1: no data"}
	if _, err := s.studies.Finish(t.Context(), lease.Trial, request); err != nil {
		t.Fatal(err)
	}
	reply, err := s.studies.Lease(t.Context(), protocol.LeaseRequest{Worker: handID, Study: "small"})
	if err != nil || reply.Lease != nil {
		t.Fatalf("there is another trial: %+v, %v", reply.Lease, err)
	}
	p.seeText("#status", "failed")
	s.status(protocol.StudyFailed)
	const bad = `(() => { const [dot, bad] = [document.querySelector("SELECTOR"), document.createElement("i")];
		bad.style.background = "var(--bad)"; document.body.append(bad);
		const same = dot !== null && getComputedStyle(dot, "::before").backgroundColor === getComputedStyle(bad).backgroundColor;
		bad.remove(); return same })()`
	p.see(strings.Replace(bad, "SELECTOR", "#status .badge", 1), true)
	p.see(`document.getElementById("description").textContent.includes("1 of 1 failed; the commonest reason (1 of 1): exit code 1: no data; see trial 0")`, true)
	p.visit("/")
	p.see(strings.Replace(bad, "SELECTOR", ".badge[data-state=failed]", 1), true)
	p.quiet()
}

func tryDelete(t *testing.T, s *stage, browser context.Context) {
	s.create(smallFile)
	p := s.enter(browser, "/studies/small")
	p.more("#delete")
	p.see(`document.activeElement.textContent`, "Cancel") // Enter alone deletes nothing
	p.confirm("Cancel")
	p.see(`document.activeElement.textContent`, "More") // where the menu is
	p.more("#delete")
	p.confirm("Delete the study")
	p.see("location.pathname", "/studies")
	p.seeText("#empty", "No study yet")
	if _, err := s.studies.Study(t.Context(), "small"); err == nil {
		t.Error("the study is still there")
	}
	p.quiet()
}

func tryViewer(_ *testing.T, s *stage, browser context.Context) {
	s.create(smallFile)
	p := s.open(browser, 1280, 900, "light")
	p.carry(auth.Viewer)
	p.visit("/studies/small")
	p.click("#stop")
	p.confirm("Stop the study")
	p.seeText("#action-error", "The study was not changed. A token with the scope viewer")
	s.status(protocol.StudyRunning)
}

func tryDeleted(t *testing.T, s *stage, browser context.Context) {
	s.create(smallFile)
	p := s.enter(browser, "/studies/small")
	p.see(`document.getElementById("link-state").textContent`, "live")
	if err := s.studies.Delete(t.Context(), "small"); err != nil {
		t.Fatal(err)
	}
	p.seeText("#gone", "The study small was deleted")
	p.click("#gone a:last-child")
	p.seeText("#empty", "No study yet")
}

func tryRecommendation(_ *testing.T, s *stage, browser context.Context) {
	s.create(smallFile)
	story(s.hand())
	p := s.enter(browser, "/studies/small")
	p.seeText("#answer", "full budget")
	p.get(`(Object.defineProperty(navigator, "clipboard", {value: {writeText: async text => { window.copied = text }}}), 1)`)
	p.pick(`//div[@id="answer-body"]//button[.="Copy"]`)
	p.see(`(copied => [Object.keys(copied), copied.width === Number(document.querySelector('tr[data-number="1"]').cells[6].title), copied.rate === Number(document.querySelector('tr[data-number="1"]').cells[5].title)])(JSON.parse(window.copied ?? "{}"))`,
		[]any{[]string{"rate", "width"}, true, true})
	for form, words := range map[string]string{"Python": "tandem.current_trial(", "Shell": "TANDEM_EPOCHS=3 "} {
		p.pick(`//div[@id="answer-body"]//button[.="` + form + `"]`)
		p.seeText("#answer .code", words)
	}
	p.seeText("#answer .notes", "The joules are an estimate, not a measurement")
	p.quiet()
}
