package ui_test

import (
	"context"
	"testing"

	"github.com/tandem-tune/tandem/protocol"
)

// tryWorkers shows what holds the commands of workers, and what these refuse.
func tryWorkers(t *testing.T, s *stage, browser context.Context) {
	s.create(smallFile)
	for id, sandbox := range map[string]*protocol.Sandbox{
		"worker-whole": {Mode: "strict", Layers: []string{"limits", "files"}}, "worker-open": {Mode: "off"}, "worker-old": nil,
		"worker-part": {Mode: "auto", Layers: []string{"limits"}, Missing: []string{"files: the kernel has no Landlock", "signals: nor scopes"}},
	} {
		s.register(protocol.WorkerRegistration{ID: id, Name: id, Slots: 1, Machine: protocol.Machine{Host: "rack"}, Sandbox: sandbox})
	}
	reply, err := s.studies.Lease(t.Context(), protocol.LeaseRequest{Worker: "worker-part"})
	if err != nil || reply.Lease == nil {
		t.Fatalf("%+v, %v", reply, err)
	}
	_, err = s.studies.Finish(t.Context(), reply.Lease.Trial, protocol.FinishRequest{LeaseEpoch: reply.Lease.LeaseEpoch, Outcome: protocol.Refused, Reason: "its owner does not allow python3"})
	if err != nil {
		t.Fatal(err)
	}
	p := s.enter(browser, "/workers")
	p.see(`[...document.querySelectorAll("#workers tbody tr")].map(row => row.cells[0].firstChild.textContent + ": " + row.cells[4].innerText.split("\n").join(", "))`, []string{
		"worker-old: –", "worker-open: off", "worker-part: auto, without files, signals, refuses small", "worker-whole: strict, all layers",
	})
	p.see(`[...document.querySelectorAll("#workers [title]")].map(cell => cell.title).filter(title => title.includes("Landlock") || title.includes("owner"))`, []string{
		"files: the kernel has no Landlock\nsignals: nor scopes", "its owner does not allow python3",
	})
}
