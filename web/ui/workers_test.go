package ui_test

import (
	"context"
	"testing"

	"github.com/chromedp/chromedp"

	emu "github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/internal/build"
	"github.com/tandem-tune/tandem/internal/protocol"
)

// tryWorkers shows what holds the commands of workers, what these refuse, how busy
// they are, and what they can measure.
func tryWorkers(t *testing.T, s *stage, browser context.Context) {
	s.create(smallFile)
	for id, sandbox := range map[string]*protocol.Sandbox{
		"worker-whole": {Mode: "strict", Layers: []string{"limits", "files"}}, "worker-open": {Mode: "off"}, "worker-old": nil,
		"worker-part": {Mode: "auto", Layers: []string{"limits"}, Missing: []string{"files: the kernel has no Landlock", "signals: nor scopes"}},
	} {
		registration := protocol.WorkerRegistration{ID: id, Name: id, Slots: 1, Machine: protocol.Machine{Host: id + ".rack", EnergyMethod: modelled}, Sandbox: sandbox}
		if id == "worker-old" {
			registration.Program = build.Build{Version: "1.1", ServerVersion: "1.2"}
		}
		if id == "worker-part" {
			registration.Program = build.Build{Version: "1.2"}
			registration.Measures = []protocol.Measure{
				{Name: "perf counters", Available: true, Detail: "8 at once", Reason: "user mode only"},
				{Name: "rapl", Reason: "there is no powercap", Remedy: "load the module intel_rapl"},
			}
			registration.Machine.Cores, registration.Machine.CPUQuota, registration.Machine.MemoryBytes, registration.Machine.MemoryLimitBytes = 2, 1.5, 1<<30, 1<<30
			registration.Probes = []protocol.Probe{
				{Workload: "k-means-compute", Seconds: 0.25, Joules: 2.5, Method: "rapl"}, {Workload: "k-means-compute", Setting: "cpu_governor=powersave", Seconds: 0.5, Joules: 1.25, Method: modelled},
			}
		}
		s.register(registration)
	}
	reply, err := s.studies.Lease(t.Context(), protocol.LeaseRequest{Worker: "worker-part"})
	if err != nil || reply.Lease == nil {
		t.Fatalf("%+v, %v", reply, err)
	}
	_, err = s.studies.Finish(t.Context(), reply.Lease.Trial, protocol.FinishRequest{LeaseEpoch: reply.Lease.LeaseEpoch, Outcome: protocol.Refused, Reason: "its owner does not allow python3"})
	if err != nil {
		t.Fatal(err)
	}
	for id, load := range map[string]protocol.Load{
		"worker-part": {CPUUtilization: 0.25, MemoryUtilization: 0.5, Watts: 40, Method: "rapl"}, "worker-whole": {CPUUtilization: 1, MemoryUtilization: 0.1, Watts: 8.25, Method: modelled},
	} {
		if _, err := s.studies.Heartbeat(t.Context(), id, protocol.Heartbeat{Load: &load}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.studies.AskBoard(t.Context(), emu.BoardAsk{Board: "cam", Device: "board/camera-2", Site: emu.Site{Processor: "model", Cores: 2, LowestHertz: 2e9, HighestHertz: 2e9, MemoryBytes: 4 << 30, MemoryBytesPerSecond: 1e10}}); err != nil {
		t.Fatal(err)
	}
	p := s.enter(browser, "/workers")
	p.seeText("#boards-note", "Boards that measure models: cam (board/camera-2, cpu) waits for models, 0 measured since the server started.")
	p.get(`(Date.now = () => 4e12, 0)`)
	p.seeText("#boards-note", "cam (board/camera-2, cpu) has not asked since ")
	column := func(at string) string {
		return `[...document.querySelectorAll("#workers tbody tr")].map(row => row.cells[0].firstChild.textContent + ": " + row.cells[` + at + `].innerText.split("\n").join(", "))`
	}
	p.see(column("5"), []string{
		"worker-old: –", "worker-open: off", "worker-part: auto, without files, signals, refuses small", "worker-whole: strict, all layers",
	})
	p.see(column("3"), []string{"worker-old: –", "worker-open: –", "worker-part: CPU 25\u00a0%, memory 50\u00a0%", "worker-whole: CPU 100\u00a0%, memory 10\u00a0%"})
	p.see(column("4"), []string{"worker-old: a model estimate", "worker-open: a model estimate", "worker-part: 40 W, rapl", "worker-whole: 8.3 Westimate"})
	p.seeText("#count", "48 W (an estimate)")
	p.see(`[...document.querySelectorAll("#workers th .sub")].map(one => one.textContent).filter(text => text.includes("1."))`, []string{"tandem 1.1, and the server is 1.2: upgrade the older"})
	p.see(`[...document.querySelectorAll("#workers [title]")].map(cell => cell.title).filter(title => title.includes("Landlock") || title.includes("owner"))`, []string{
		"files: the kernel has no Landlock\nsignals: nor scopes", "its owner does not allow python3",
	})

	// The panel of one, by keys; it is in the address.
	p.see(`document.getElementById("panel").hidden`, true)
	p.key("j")
	p.key("j")
	p.key("j")
	p.see("document.activeElement.textContent", "worker-part")
	p.get("(document.activeElement.click(), 1)")
	p.see("location.search", "?worker=worker-part")
	p.see("document.activeElement.id", "panel")
	p.see(`[...document.querySelectorAll("#measures tbody tr")].map(row => [...row.cells].map(cell => cell.textContent).join("; "))`, []string{
		"perf counters; yes; 8 at once. user mode only", "rapl; no; there is no powercap. To have it: load the module intel_rapl",
		"sandbox: limits; yes; holds", "sandbox: files; no; the kernel has no Landlock", "sandbox: signals; no; nor scopes",
	})
	p.see(`[...document.querySelectorAll("#probes tbody tr")].map(row => [...row.cells].map(cell => cell.textContent).join("; "))`, []string{
		"k-means-compute; as it is; 0.25; 2.5", "k-means-compute; cpu_governor=powersave; 0.5; 1.25",
	})
	p.seeText("#probes-note", "Joules: rapl; "+modelled)
	p.seeText("#machine", "2 cores, 1.5 of time")
	p.seeText("#machine", "of its control group")
	p.seeText("#machine", "its owner does not allow python3")
	p.seeText("#machine", "40.00 W, rapl")
	p.see(`[...document.querySelectorAll("#history dd")].map(one => one.querySelector("span").textContent.split(" in the hour")[0].replaceAll("\u00a0", " "))`, []string{
		"25 % in the last minute, 25 % to 25 %", "50 % in the last minute, 50 % to 50 %", "40 W in the last minute, 40 W to 40 W",
	})
	p.see(`[...document.querySelectorAll("#history svg")].map(one => one.querySelectorAll("rect").length)`, []int{1, 1, 1})
	p.seeText("#history-note", "Heartbeats in 1 of 60 minutes")
	p.see(`document.querySelector("#history .tag")`, nil)
	p.do(chromedp.Reload())
	p.seeText("#panel-title", "worker-part: alive")
	p.visit("/workers?worker=worker-whole")
	p.seeText("#history", "estimate")
	p.visit("/workers?worker=worker-old")
	p.seeText("#history-note", "No heartbeat in the last hour")
	p.seeText("#measures-note", "of an earlier version")
	p.see(`document.getElementById("probes").hidden`, true)
	p.seeText("#probes-note", "--probe once")

	// A worker is drained, and says so to whoever waits for it.
	p.click("#drain")
	p.confirm("Cancel")
	p.seeText("#panel-title", "worker-old: alive")
	p.click("#drain")
	p.confirm("Drain")
	p.seeText("#panel-title", "worker-old: drained")
	p.seeText("#machine", "since ")
	p.see(`document.getElementById("drain").hidden && document.getElementById("drain-now").hidden`, true)
	for _, name := range []string{"worker-open", "worker-whole"} {
		if _, err := s.studies.Drain(t.Context(), name, protocol.DrainRequest{Reason: "new disk"}); err != nil {
			t.Fatal(err)
		}
	}
	p.see(column("1"), []string{"worker-old: drained", "worker-open: drained, new disk", "worker-part: alive", "worker-whole: drained, new disk"})
	p.visit("/studies/small")
	p.seeText("#waits", "Worker worker-open is drained: new disk.")
	p.visit("/workers?worker=worker-old")
	p.click("#undrain")
	p.confirm("Undrain")
	p.seeText("#panel-title", "worker-old: alive")
	p.click("#close-panel")
	p.see("location.search", "")
	p.quiet()
}
