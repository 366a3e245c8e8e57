package ui_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/trial"
)

const tunedFile = `
name: tuned
objective: {metric: loss, direction: minimize}
space: {rate: {type: float, low: 0, high: 1}}
system: {cpu_threads: {values: [1, 2]}}
budget: {epochs: 81}
search: {method: random, seed: 5}
stop: {trials: 3}
`

// tunes trains a trial whose epochs take 2.02 s with two threads and 1.21 s with
// one, up to the epoch.
func (h hand) tunes(lease protocol.Lease, from, to int) {
	h.t.Helper()
	h.tunesIn(lease, from, to, 1.21)
}

// tunesIn is the same with other seconds with one thread.
func (h hand) tunesIn(lease protocol.Lease, from, to int, one trial.Float) {
	h.t.Helper()
	for epoch := from; epoch <= to; epoch++ {
		detail, err := h.studies.TrialDetail(h.t.Context(), lease.Study, lease.Number)
		if err != nil {
			h.t.Fatal(err)
		}
		configuration := detail.Trial.Setting.Configuration
		seconds, joules := trial.Float(2.02), trial.Float(20.2)
		if configuration["cpu_threads"] == space.Int(1) {
			seconds, joules = one, 12.1
		}
		_, err = h.studies.Report(h.t.Context(), lease.Trial, protocol.Report{
			LeaseEpoch: lease.LeaseEpoch, Epoch: epoch, Seconds: seconds, Metrics: map[string]trial.Float{"loss": 0.5},
			Energy: &trial.Energy{Joules: joules, Method: modelled}, System: configuration,
		})
		if err != nil {
			h.t.Fatal(err)
		}
	}
}

const systemColumn = `[...document.querySelectorAll("#system tbody tr")].map(row => row.cells[%d].textContent)`

func trySystem(t *testing.T, s *stage, browser context.Context) {
	s.create(tunedFile)
	s.register(protocol.WorkerRegistration{ID: handID, Name: "by-hand", Slots: 1, Machine: protocol.Machine{Host: "here", Cores: 2}})
	h := hand{s}
	p := s.enter(browser, "/studies/tuned")
	p.seeText("#setup", "tuned for least seconds: cpu_threads 1, 2")
	p.see(`document.querySelector("#system-card").hidden`, true)
	lease := h.lease("tuned")
	h.tunes(lease, 1, 2)
	p.seeText(`[data-figure="saved"]`, "not compared with the default yet")
	h.tunes(lease, 3, 80)

	detail, err := s.studies.TrialDetail(t.Context(), "tuned", lease.Number)
	if err != nil {
		t.Fatal(err)
	}
	var ran, phases, whys []string
	for _, report := range detail.Reports {
		ran = append(ran, "cpu_threads="+report.System["cpu_threads"].String())
		phases, whys = append(phases, string(report.SystemPhase)), append(whys, report.SystemWhy)
	}
	if saved := detail.Trial.Saved; saved == nil || saved.SecondsLow == nil || *saved.SecondsLow <= 0 || phases[0] != "default" || phases[79] != "decided" || !slices.Contains(phases, "control") {
		t.Fatalf("the trial ran under %v and saved %+v", phases, detail.Trial.Saved)
	}
	p.seeText(`[data-figure="saved"]`, "interval")
	p.seeText(`[data-figure="saved"]`, "; ≈ ") // joules, which are estimated here
	p.seeText("#system tbody", "≈ ")
	p.seeText("#system-phases", "1 default (1 %)")
	p.seeText("#system-phases", "control (4 %)")
	p.see(`[...document.querySelectorAll("#system tbody tr")].reduce((sum, row) => sum + Number(row.cells[2].textContent), 0)`, 80)

	p.visit(fmt.Sprintf("/studies/tuned/trials/%d", lease.Number))
	p.see(fmt.Sprintf(systemColumn, 2), ran)
	p.see(fmt.Sprintf(systemColumn, 3), phases)
	p.see(fmt.Sprintf(systemColumn, 6), whys)
	p.seeText("#system tbody tr:last-child", "0.81 s")
	p.seeText("#system-next", "Next: cpu_threads=1 decided")
	p.seeText(`[data-figure="saved"]`, "interval")
	p.seeText("#params", "system, tuned")
	h.tunes(lease, 81, 81)
	h.finish(lease, protocol.BudgetReached, "")
	p.see(`document.querySelector("#system-next").hidden`, true)
	p.see(`document.querySelectorAll("#system tbody tr").length`, 81)

	s.create(strings.NewReplacer("name: tuned", "name: cooler", "{cpu_threads", "{objective: joules, cpu_threads").Replace(tunedFile))
	h.tunesIn(h.lease("cooler"), 1, 80, 2.02) // as long with one thread as with two
	p.visit("/studies/cooler")
	p.seeText(`[data-figure="saved"]`, "no difference in time found; ≈ ")
	p.quiet()
}
