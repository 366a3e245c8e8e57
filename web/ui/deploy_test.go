package ui_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/inference_emu/graph"
	"github.com/tandem-tune/tandem/inference_emu/graph/graphtest"
	"github.com/tandem-tune/tandem/internal/protocol"
)

const deployedFile = `
name: deployed
objective: {metric: loss, direction: minimize}
space: {rate: {type: float, low: 0, high: 1}}
inference: {devices: [raspberry-pi-4, this-machine], providers: auto, batch_size: {low: 1, high: 8}, objective: {metric: throughput, constraint: "latency_ms <= 0.0001"}}
budget: {epochs: 3}
search: {method: random, seed: 5}
stop: {trials: 3}
`

// saves tells what the lease's script trains.
func (h hand) saves(lease protocol.Lease) {
	h.t.Helper()
	h.savesWide(lease, 256)
}

// savesLarge tells it of a network that fits into no device of the study.
func (h hand) savesLarge(lease protocol.Lease) {
	h.t.Helper()
	h.savesNetwork(lease, 128, 1<<45)
}

// savesWide tells it of a network with so many hidden units.
func (h hand) savesWide(lease protocol.Lease, width int64) {
	h.t.Helper()
	h.savesNetwork(lease, width, 2048)
}

// savesNetwork tells it how much memory the activations of a sample take, too.
func (h hand) savesNetwork(lease protocol.Lease, width, activationBytes int64) {
	h.t.Helper()
	b := graphtest.NewBuilder("network")
	b.Output(b.Linear(b.Relu(b.Linear(b.Input("x", graph.Float32, 1, 64), width)), 10))
	g, err := b.Graph()
	if err != nil {
		h.t.Fatal(err)
	}
	_, err = h.studies.Architecture(h.t.Context(), lease.Trial, protocol.ArchitectureReport{
		LeaseEpoch: lease.LeaseEpoch, Key: keyOf(width), Graph: emu.Anonymous(g), ActivationBytes: activationBytes, StoredBytes: g.StoredBytes(),
		Site: &emu.Site{Processor: "model", Cores: 2, LowestHertz: 2e9, HighestHertz: 2e9, MemoryBytes: 4 << 30, MemoryBytesPerSecond: 1e10, Features: []string{"avx2", "fma"}},
	})
	if err != nil {
		h.t.Fatal(err)
	}
}

func tryDeploy(t *testing.T, s *stage, browser context.Context) {
	s.create(deployedFile)
	h := s.hand()
	lease := h.lease("deployed")
	p := s.enter(browser, "/studies/deployed/trials/0")
	p.see(`document.querySelector("#deploy").hidden`, true)
	h.saves(lease)
	h.report(lease, 1, 0.5)
	devices := `[...document.querySelectorAll("#deploy-table tbody tr")].map(row => row.dataset.device)`
	p.see(devices, []string{"raspberry-pi-4", "this-machine"})
	p.seeText("#deploy-table", "estimate")
	p.seeText("#deploy-table", "misses the constraints")
	p.seeText("#deploy-note", "raspberry-pi-4: nothing keeps to the constraints")
	p.seeText("#deploy-note", "raspberry-pi-4: openvino, not recommended: no machine of the device says")
	p.seeText("#deploy-table", ", cpu, ")
	p.seeText("#deploy-programs pre", "# raspberry-pi-4: a batch of")
	p.click(`#deploy-programs [data-device="this-machine"]`)
	p.seeText("#deploy-programs pre", "# this-machine: a batch of")
	p.seeText("#deploy-command", "tandem study deployments deployed --trial 0 --device this-machine --output deployment")
	p.seeText("#facts", "on raspberry-pi-4")

	runs := protocol.InferenceReport{LeaseEpoch: lease.LeaseEpoch, Key: keyOf(256), Runs: []emu.Run{
		{Batch: 1, Threads: 1, Seconds: 2e-5, Low: 1.9e-5, High: 2.1e-5, P90: 3e-5, P99: 4e-5, Repetitions: 100, Joules: 1e-3, EnergyMethod: "meter"},
		{Batch: 1, Threads: 2, Seconds: 1.5e-5, Low: 1.4e-5, High: 1.6e-5, P90: 2e-5, P99: 3e-5, Repetitions: 100, Joules: 1e-3, EnergyMethod: "estimate: 10 W per busy core"},
		{Batch: 8, Threads: 2, Seconds: 4e-5, Low: 3.9e-5, High: 4.1e-5, P90: 5e-5, P99: 6e-5, Repetitions: 100, Joules: 1e-3, EnergyMethod: "meter"},
	}}
	if _, err := h.studies.Inferences(t.Context(), lease.Trial, runs); err != nil {
		t.Fatal(err)
	}
	p.seeText(`#deploy-table [data-device="this-machine"]`, "measured")
	p.see(`document.querySelector('#deploy-table [data-device="this-machine"] td .tag[title^="estimate: 10 W"]').textContent`, "estimate") // of the energy, which no meter told
	p.seeText("#deploy-note", "raspberry-pi-4: an estimate: from what the device is made of.")
	p.seeText("#history", "inference on raspberry-pi-4")
	p.see(`document.getElementById("deploy-table").textContent.includes("drifted")`, false)
	for i := range runs.Runs {
		run := &runs.Runs[i]
		run.Seconds, run.Low, run.High = 2*run.Seconds, 2*run.Low, 2*run.High
	}
	if _, err := h.studies.Inferences(t.Context(), lease.Trial, runs); err != nil {
		t.Fatal(err)
	}
	h.report(lease, 2, 0.4)
	h.report(lease, 3, 0.3)
	p.visit("/studies/deployed")
	p.see(devices, []string{"raspberry-pi-4", "this-machine"})
	p.seeText("#setup", "raspberry-pi-4, this-machine; cpu, openvino; samples_per_second, latency_ms <= 0.0001")
	p.seeText(`#deploy-table [data-device="this-machine"]`, "It drifted: it took 15 µs until")
	tryEstimatedObjective(s, p)
	large := h.lease("deployed") // a page of a trial that does not exist yet stays empty
	p.visit("/studies/deployed/trials/1")
	h.savesLarge(large)
	p.see(`[...document.querySelectorAll("#deploy-table tbody td")].map(cell => cell.textContent)`, []string{"it does not run there", "it does not run there"})
	p.seeText("#deploy-note", "raspberry-pi-4: no configuration can run the model: a batch of 1 needs")
	p.see(`document.querySelector("#deploy-programs").hidden`, true)
	tryLoad(s, p)
	p.quiet()
}

// tryLoad looks whether the pages name a board that the study file describes, and how
// samples are put together under its load.
func tryLoad(s *stage, p *tab) {
	content, err := os.ReadFile("../../inference_emu/device/testdata/my-board.yaml")
	if err != nil {
		p.t.Fatal(err)
	}
	own := "\n    - " + strings.ReplaceAll(strings.TrimSpace(string(content)), "\n", "\n      ")
	s.create(strings.NewReplacer("name: deployed", "name: loaded", "epochs: 3", "epochs: 1",
		`inference: {devices: [raspberry-pi-4, this-machine], providers: auto, batch_size: {low: 1, high: 8}, objective: {metric: throughput, constraint: "latency_ms <= 0.0001"}}`,
		"inference:\n  objective: energy\n  scenario: {server: {rate: 20000/s, p99_ms: 40}}\n  devices:"+own+"\n    - raspberry-pi-4\n").Replace(deployedFile))
	h := s.hand()
	lease := h.lease("loaded")
	h.savesWide(lease, 300)
	h.report(lease, 1, 0.5)
	h.finish(lease, protocol.BudgetReached, "")
	for _, page := range []string{"/studies/loaded/trials/0", "/studies/loaded", "/studies/loaded/edge"} {
		p.visit(page)
		p.seeText(`#deploy-table [data-device="my-board"] td`, "together, wait")
		p.seeText(`#deploy-table [data-device="my-board"] td`, "at 20,000 requests/s (estimate)")
		p.seeText("#deploy-programs pre", "# my-board: a batch of")
		p.seeText("#deploy-programs pre", "max_batch, wait_seconds = ")
	}
	p.seeText("#edge-trials", "at 20,000 requests/s (estimate)")
}

// tryEstimatedObjective looks whether the leaderboard says of each objective by itself
// whether it is an estimate.
func tryEstimatedObjective(s *stage, p *tab) {
	s.create(strings.NewReplacer("name: deployed", "name: weighed", "objective: {metric: loss, direction: minimize}", "objective: [{metric: loss, direction: minimize}, {metric: edge.latency_ms, direction: minimize}]", "epochs: 3", "epochs: 1").Replace(deployedFile))
	h := s.hand()
	lease := h.lease("weighed")
	h.saves(lease)
	h.report(lease, 1, 0.5)
	h.finish(lease, protocol.BudgetReached, "")
	p.visit("/studies/weighed")
	const row = `[...document.querySelectorAll("#board tbody td")].filter(cell => cell.title.startsWith("estimate: from what")).map(cell => cell.textContent.slice(0, 2))`
	p.see(row, []string{"≈ "})
}

// keyOf names the network with so many hidden units.
func keyOf(width int64) string { return fmt.Sprintf("architecture-%d", width) }
