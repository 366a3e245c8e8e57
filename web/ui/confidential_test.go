package ui_test

import (
	"context"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

const (
	itsPolicy  = "9f2c6a0e12345678901234567890123456789012345678901234567890123456"
	itsKey     = "encryption: {recipients: [age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p]}\n"
	closedFile = smallFile + itsKey + "confidential: {policy: " + itsPolicy + ", metrics: {loss: {low: 0, high: 4, round: 0.01}}}\n"
)

// named is a study file with another name.
func named(name, file string) string { return strings.Replace(file, "name: small", "name: "+name, 1) }

// closed is a confidential machine that a test moves step by step.
func (s *stage) closed(id string) func(end *protocol.FinishRequest) *protocol.Lease {
	s.t.Helper()
	s.register(protocol.WorkerRegistration{ID: id, Name: id, Slots: 1, Confidential: &protocol.Claim{TEE: "tdx", Policy: itsPolicy}, Sandbox: &protocol.Sandbox{Mode: "strict", Layers: []string{"all"}}})
	return func(end *protocol.FinishRequest) *protocol.Lease {
		s.t.Helper()
		reply, err := s.studies.Lease(s.t.Context(), protocol.LeaseRequest{Worker: id})
		if err != nil || reply.Lease == nil {
			s.t.Fatalf("%s has %+v, %v", id, reply, err)
		}
		if end != nil {
			end.LeaseEpoch, end.Outcome = reply.Lease.LeaseEpoch, protocol.Interrupted
			if _, err := s.studies.Finish(s.t.Context(), reply.Lease.Trial, *end); err != nil {
				s.t.Fatal(err)
			}
		}
		return reply.Lease
	}
}

// keyed is a heartbeat that says that the key is there.
func (s *stage) keyed(worker string, lease *protocol.Lease) {
	s.t.Helper()
	if _, err := s.studies.Heartbeat(s.t.Context(), worker, protocol.Heartbeat{Leases: []protocol.HeldLease{{Trial: lease.Trial, LeaseEpoch: lease.LeaseEpoch, Keyed: true}}}); err != nil {
		s.t.Fatal(err)
	}
}

// closedStory has a confidential study with a trial that has its key and reported, one that
// is asking, and one that was refused it.
func closedStory(s *stage) (asking *protocol.Lease) {
	s.t.Helper()
	s.create(named("scans", closedFile))
	first := s.closed("rack-1")(nil)
	s.keyed("rack-1", first)
	if _, err := s.studies.Report(s.t.Context(), first.Trial, protocol.Report{LeaseEpoch: first.LeaseEpoch, Epoch: 1, Seconds: 1, Metrics: map[string]trial.Float{"loss": 0.5}}); err != nil {
		s.t.Fatal(err)
	}
	asking = s.closed("rack-2")(nil)
	s.closed("rack-3")(&protocol.FinishRequest{Reason: protocol.CannotRun + "the broker released no key: unknown_measurement: " + strings.Repeat("0", 96), KeyRefused: "unknown_measurement"})
	return asking
}

// keyCells are the leaderboard's states and keys, without the time of day.
const keyCells = `[...document.querySelectorAll("#board tbody tr")].map(row => row.dataset.number + ": " + [...row.querySelectorAll("td")].map(cell => cell.textContent).filter((_, at) => at === 1 || at === 4).join("; ").replace(/, \d\d:\d\d:\d\d$/, "")).sort()`

// tryConfidential shows what an encrypted and a confidential study tell, and how far each
// trial is with its key.
func tryConfidential(_ *testing.T, s *stage, browser context.Context) {
	s.create(smallFile)
	s.create(named("sealed", smallFile+itsKey))
	s.create(named("waiting", closedFile))
	p := s.enter(browser, "/studies/waiting")
	p.seeText("#waits", "No worker is connected: start one with 'tandem worker --confidential auto --broker URL --policy "+itsPolicy)
	p.see(`document.getElementById("no-worker").hidden`, true) // whose command would start another kind
	p.visit("/studies/sealed")
	p.seeText("#confidential", "Encrypted. Checkpoints can be read with 1 key only. The server sees parameters, metrics, output, times and sizes (docs/encryption.md).")
	p.seeText("#waits", "start one with 'tandem worker --identity FILE'")
	if err := s.studies.Delete(s.t.Context(), "waiting"); err != nil {
		s.t.Fatal(err)
	}

	asking := closedStory(s)
	p.visit("/studies/scans")
	p.seeText("#confidential", "Confidential. The key goes only to machines of the policy 9f2c6a0e1234. Scripts there tell only loss (0 to 4 in steps of 0.01). No output leaves the machine. Metrics of 1 epoch can have told at most 9 bits (2 B). The key was released to 1 lease, refused to 1, asked for by 1 trial now. It does not protect from whoever has a machine in their hands, nor from flaws of firmware that the policy takes. Timing, sizes, joules and the study file are not hidden (docs/confidential.md).")
	p.see(`document.querySelector("#confidential code").title`, itsPolicy)
	p.see(keyCells, []string{"0: running; released", "1: leasedattesting; asked for", "2: queued; refused: unknown_measurement"})
	p.see(`[...document.querySelectorAll("#board th")].find(head => head.textContent === "Key").querySelector("button")`, nil) // nothing sorts by it
	p.visit("/studies/scans/trials/1")
	p.seeText("#status", "leasedattesting")
	p.seeText("#reason", "asks the broker for its key")
	p.seeText("#facts", "asked for")
	p.seeText("#facts", "by the policy 9f2c6a0e1234")
	p.seeText("#log-note", "No output leaves the machine.")
	s.keyed("rack-2", asking) // the page hears of it
	p.seeText("#reason", "The broker released the key")
	p.see(`document.getElementById("status").textContent`, "leased")
	p.seeText("#facts", "released")
	p.visit("/studies/scans/trials/2")
	p.seeText("#facts", "refused: unknown_measurement")

	// An ordinary study has nothing of it.
	s.hand().train(s.hand().lease("small"), 0.5)
	p.visit("/studies/small")
	p.see(`document.querySelectorAll("#board tbody tr").length`, 1)
	p.see(`document.getElementById("confidential").hidden`, true)
	p.see(`[...document.querySelectorAll("#board th")].filter(head => head.textContent === "Key").length`, 0)
	p.visit("/studies/small/trials/0")
	p.seeText("#status", "paused")
	p.see(`[...document.querySelectorAll("#facts dt")].filter(term => term.textContent === "Key").length`, 0)
	p.quiet()
}
