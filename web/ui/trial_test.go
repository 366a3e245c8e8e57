package ui_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/trial/series"
	"github.com/tandem-tune/tandem/web/auth"
)

// boardRow is the text of one cell of a trial's row.
func boardRow(number, cell int) string {
	return fmt.Sprintf(`document.querySelector('#board tr[data-number="%d"]')?.cells[%d].textContent`, number, cell)
}

const historyWhat = `[...document.querySelectorAll("#history tbody tr")].map(row => row.cells[1].textContent).join(", ")`

// expectedHere is what a trial should use of two types of GPU, of one of which
// nothing is known.
func expectedHere() *protocol.GPUExpected {
	return &protocol.GPUExpected{Architecture: "architecture", Basis: "its script has said so", GPUs: []protocol.GPUEstimate{
		{GPU: "NVIDIA A100", Utilization: 0.42, UtilizationLow: 0.3, UtilizationHigh: 0.55, MemoryBytes: 3 << 30, MemoryLow: 2 << 30, MemoryHigh: 4 << 30, Trainings: 37, UtilizationOff: 0.04, MemoryOff: 0.08, Unseen: true},
		{GPU: "Tesla T4", Reason: "3 trainings were seen"},
	}}
}

// sample keeps a sample of a second for each of the epochs, with 20 W and a core more in each.
func (h hand) sample(lease protocol.Lease, epochs ...int) {
	h.t.Helper()
	s := series.Series{Method: modelled}
	for i, epoch := range epochs {
		s.Add(1, epoch, map[string]trial.Float{"tree.cpu_user": trial.Float(i), "tree.cpu_system": 0.5, "tree.resident_bytes": 1 << 30, series.Watts: 20 * trial.Float(i+1)})
	}
	data, err := s.Encode()
	if err != nil {
		h.t.Fatal(err)
	}
	client, err := rest.New(rest.Options{URL: h.url, Token: h.tokens[auth.Admin], Patience: -1})
	if err == nil {
		err = client.KeepSamples(h.t.Context(), lease.Trial, protocol.SampleBatch{LeaseEpoch: lease.LeaseEpoch, Data: data})
	}
	if err != nil {
		h.t.Fatal(err)
	}
}

const sampleCharts = `[...document.querySelectorAll("#samples .chart")].map(chart => chart.ariaLabel)`

func tryTrial(_ *testing.T, s *stage, browser context.Context) {
	s.create(smallFile)
	h := s.hand()
	for number, loss := range []float64{0.5, 0.2, 0.6} {
		h.train(h.next(number, 0), loss)
	}
	p := s.enter(browser, "/studies/small/trials/1")
	p.seeText("#status", "paused")
	p.see(historyWhat, "queued, leased, running, epoch 1 reported, paused")
	p.seeText("#log-note", "Nothing was printed so far")
	p.see(`document.querySelectorAll("#curves canvas").length`, 1)
	p.seeText(`[data-figure="energy"]`, "15.00 J")
	p.seeText(`[data-figure="energy"]`, "estimate")
	p.seeText("#params", "rate")
	p.see(`document.getElementById("facts").textContent.includes("GPU use")`, false) // no worker has one
	p.see(`document.querySelector('[data-figure="cost"]')`, nil)
	s.expected.Store(expectedHere())
	p.do(chromedp.Reload())
	p.seeText("#facts", "GPU use, NVIDIA A100\n0.42 (0.30 to 0.55), 3 GiB estimate\nfrom 37 trainings, none of its architecture; usually off by 0.04 and 8\u00a0% of the memory")
	p.seeText(`[data-figure="cost"]`, "0.4213 EUR")
	p.seeText(`[data-figure="cost"]`, "estimate")
	p.seeText(`[data-figure="cost"]`, "12.50 g CO₂")
	p.seeText("#facts", "GPU use, Tesla T4\nnot known: 3 trainings were seen")

	p.see(`document.querySelectorAll("#profile tbody tr").length`, 2)
	p.seeText("#profile", "Counted: user mode only")
	p.seeText("#profile", "Always 0: major-faults")
	p.seeText("#profile", "the values are estimates")
	p.get(`(document.querySelector("#profile .heat-frame").focus(), 1)`)

	lease := h.next(1, 1)
	p.seeText("#status", "leased")
	h.print(lease, 0, "loading <b>everything</b>")
	h.report(lease, 1, 0.19)
	h.report(lease, 2, 0.18)
	p.seeText("#status", "running")
	p.seeText("#log", "loading <b>everything</b>")
	h.report(lease, 3, 0.17)
	h.print(lease, 26, "done")
	p.see(`document.getElementById("samples-card").hidden`, true)
	h.sample(lease, 1, 1, 2, 3)
	h.finish(lease, protocol.BudgetReached, "")
	p.seeText("#status", "completed")
	p.seeText("#log", "done") // printed after the last report, and still there
	p.see(historyWhat, "queued, leased, running, epoch 1 reported, paused, leased, running, epochs 1 to 3 reported, completed")
	p.seeText(`[data-figure="value"]`, "0.1700")
	p.see(sampleCharts, []string{"Processor in 4 samples: 0.5000 to 3.500 cores, over 3 epochs", "Memory in 4 samples: 1.000 to 1.000 GiB, over 3 epochs", "Power of the machine in 4 samples: 20.00 to 80.00 W, over 3 epochs"})
	p.see(`document.querySelectorAll("#samples canvas").length`, 3)
	p.seeText("#samples", "Power of the machine estimate")
	p.seeText("#samples-note", "4 samples of 4.00 s. Power: "+modelled)
	p.see(`[...document.querySelectorAll("#results tbody tr")].map(row => row.cells[2].textContent)`, []string{"0.2000", "0.1700"})
	p.see(`document.querySelector("#curves .chart").ariaLabel`, "loss over 4 epochs, from 0.2000 to 0.1700")
	p.see(`[...document.querySelectorAll("#profile thead th.heat")].map(cell => cell.textContent)`, []string{"1", "1", "2", "3"})
	p.see(`document.activeElement.classList.contains("heat-frame")`, true) // through all changes
	p.see(`[...document.querySelectorAll("#profile tbody tr")].map(row => row.cells[0].textContent)`, []string{"instructions", "tree.threads"})
	p.see(`[...document.querySelectorAll("#profile tbody tr:first-child td.heat")].map(cell => cell.dataset.shade)`, []string{"0", "0", "4", "8"})
	p.see(`[...document.querySelectorAll("#profile tbody tr:last-child td.heat")].map(cell => cell.dataset.shade)`, []string{"steady", "steady", "steady", "steady"})
	p.see(`document.querySelector("#profile tbody td.heat").textContent`, "1.000e9")
	p.click("#profile-numbers")
	p.see(`document.querySelector("#profile").className`, "numbers")
	p.click("#previous")
	p.seeText("h1", "Trial 0")
	p.quiet()
}
