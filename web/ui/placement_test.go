package ui_test

import (
	"context"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/web/auth"
)

// severalTypes is a pool in which everything that placement does has happened: it
// takes machines of several types, of which a stage has none.
func severalTypes() *protocol.Pool {
	const fast, frugal, fresh = "AMD EPYC 7763 64-Core Processor, 64 cores, governor performance", "Intel N100, 4 cores, governor powersave", "Ampere Altra, 80 cores"
	at := time.Date(2026, 11, 20, 9, 30, 0, 0, time.UTC)
	options := func(waiting int) []trial.PlacementOption {
		return []trial.PlacementOption{
			{Machine: fast, Waiting: waiting, Score: 0.82, Epoch: &trial.Estimate{Seconds: 2, Joules: 180}, Basis: trial.OwnEpochs},
			{Machine: frugal, Score: 0.47, Epoch: &trial.Estimate{Seconds: 14, Joules: 90}, Basis: trial.ProbesOnly, Estimated: true},
			{Machine: fresh, Basis: trial.Unknown},
		}
	}
	three := 3
	off, wide := trial.Float(0.034), trial.Float(0.21)
	moved := trial.Migration{
		At: at, From: "small-1", FromType: frugal, To: "big-1", ToType: fast, Stays: trial.Estimate{Seconds: 140, Joules: 900}, Goes: trial.Estimate{Seconds: 27, Joules: 1800},
		Here: 0.47, There: 0.82, Why: "moves", Arrived: "big-1", ArrivedType: fast, Epochs: 4, Seconds: 8.4, Energy: trial.Energy{Joules: 731, Method: "estimate: a model"},
	}
	underway := trial.Migration{At: at.Add(-time.Hour), From: "big-1", FromType: fast, To: "small-1", ToType: frugal, Stays: trial.Estimate{Seconds: 60}, Goes: trial.Estimate{Seconds: 40}, Here: 0.2, There: 0.9, Why: "moves"}
	return &protocol.Pool{
		Machines: []protocol.PoolMachine{
			{ID: "worker-big", Name: "big-1", Host: "big", Type: fast, Alive: true, Slots: 2, Running: []protocol.PoolRun{
				{Trial: "lenet-3", Study: "lenet", StudyID: "lenet", Number: 3, Rung: 1, LastEpoch: 2, Epochs: 9,
					Placement: &trial.Assignment{Energy: 0.3, Machine: fast, Why: "placed", Options: options(1), Instead: frugal, Saved: &trial.Saving{Seconds: 108, Joules: -810}}},
				{Trial: "digits-0", Study: "digits", StudyID: "digits", Number: 0, Epochs: 3, GPU: &protocol.PoolGPU{
					Places: []int{1}, Beside: []trial.ID{"lenet-3"}, Others: 1, Use: &trial.GPUUse{Utilization: 0.28, Seconds: 70, Alone: true, MemoryBytes: 7 << 29},
					Share: &trial.GPUShare{Utilization: 0.3, MemoryBytes: 4 << 30, Basis: "it was observed alone for 70 s"},
				}},
			}},
			{ID: "worker-fresh", Name: "fresh-1", Host: "fresh", Type: fresh, Alive: true, Slots: 1, Running: []protocol.PoolRun{
				{Trial: "lenet-5", Study: "lenet", StudyID: "lenet", Number: 5, Epochs: 3, Placement: &trial.Assignment{Energy: 0.3, Machine: fresh, Why: "placed", Options: options(0)}},
			}},
			{ID: "worker-gone", Name: "gone-1", Host: "gone", Type: frugal, Slots: 1, Running: []protocol.PoolRun{}},
			{ID: "worker-small", Name: "small-1", Host: "small", Type: frugal, Alive: true, Waiting: 1, Slots: 2, Reserved: "user ada until 2026-11-21 08:00 UTC", Running: []protocol.PoolRun{
				{Trial: "lenet-4", Study: "lenet", StudyID: "lenet", Number: 4, LastEpoch: 1, Epochs: 3, Moves: "moves from small-1 to big-1: what is left should take 27 s there with the move, and 140 s here (an estimate)",
					Placement: &trial.Assignment{Energy: 0.3, ByTime: true, Machine: frugal, Why: "placed", Options: options(0)}},
			}},
		},
		Waiting: []protocol.PoolTask{
			{Study: "lenet", StudyID: "lenet", Energy: 0.3, Number: &three, Why: "it moved, and is kept for big-1", Options: options(1)},
			{Study: "digits", StudyID: "digits", Priority: -1, New: 12, Why: "no worker that waits may run it and has room for it", Options: []trial.PlacementOption{{Machine: fresh, Basis: trial.Unknown}}},
		},
		Models: []protocol.PoolModel{
			{Study: "lenet", StudyID: "lenet", Machine: fast, Basis: trial.OwnEpochs, Epochs: 212, Learned: 31, SecondsError: &off, JoulesError: &wide},
			{Study: "lenet", StudyID: "lenet", Machine: frugal, Basis: trial.ProbesOnly, Epochs: 9, Learned: 9, SecondsError: &wide, JoulesError: &off, Estimated: true},
			{Study: "lenet", StudyID: "lenet", Machine: fresh, Basis: trial.Unknown},
		},
		GPUModels: []protocol.PoolGPUModel{
			{
				GPU: "NVIDIA A100-SXM4-40GB", Trainings: 41, Architectures: 5, LearnedFrom: 37, Known: &protocol.GPUErrors{Utilization: 0.02, Memory: 0.03, RMSLE: 0.081}, Unseen: &protocol.GPUErrors{Utilization: 0.06, Memory: 0.12, RMSLE: 0.2},
				Pairs: protocol.PoolGPUPairs{Kinds: 6, Seen: 14, Learned: []protocol.GPUPairModel{{Basis: "factors", Pairs: 14, Off: 0.03, PlainOff: 0.11}}},
			},
			{GPU: "Tesla T4", Trainings: 3, Architectures: 1, Reason: "3 trainings were seen alone on such a GPU with their architecture known: at least 12 are needed", Pairs: protocol.PoolGPUPairs{Reason: "0 pairs were seen for long enough: at least 8 are needed to tell others"}},
		},
		Migrations: []protocol.PoolMigration{{Study: "lenet", StudyID: "lenet", Number: 3, Migration: moved}, {Study: "lenet", StudyID: "lenet", Number: 4, Migration: underway}},
		Placed:     3, Saved: &trial.Saving{Seconds: 340, Joules: -1200},
	}
}

func tryPlacement(_ *testing.T, s *stage, browser context.Context) {
	// No worker, then one: as the server says it.
	p := s.enter(browser, "/pool?details=1")
	p.seeText("#placement-note", "No worker is known.")
	p.see(`["placement-frame", "placement-waiting-card", "placement-moves-card", "placement-models-card", "gpu-models-card"].map(id => document.getElementById(id).hidden)`, []bool{true, true, true, true, true})
	view := s.create(smallFile)
	h := s.hand()
	h.lease("small")
	p.do(chromedp.Reload())
	p.seeText("#placement-note", "All connected workers are of one type of machine")
	p.seeText("#placement-count", "1 trial on 1 worker")
	p.seeText("#placement-runs", "there was nothing to choose")
	p.see(`[...document.querySelectorAll("#placement-runs a")].map(link => link.getAttribute("href"))`, []string{"/workers?worker=" + handID, "/studies/" + view.ID + "/trials/0"})
	p.seeText("#placement-waiting", "no worker has room for another trial now")
	p.seeText("#placement-waiting", "nothing is known yet of an epoch on any type of machine")
	p.seeText("#placement-models", "nothing yet")

	// Several types of machine.
	s.placed.Store(severalTypes())
	p.do(chromedp.Reload())
	p.seeText("#placement-count", "4 trials on 4 workers")
	p.seeText("#placement-note", "placement should have saved 5 min 40 s and cost 1.200 kJ more: an estimate.")
	p.see(`[...document.querySelectorAll("#placement-runs tbody tr")].map(row => row.cells[0].innerText)`, []string{"big-1\nbusy", "big-1\nbusy", "fresh-1\nbusy", "gone-1\nsilent", "small-1\nwaits for 1 trial; reserved for user ada until 2026-11-21 08:00 UTC"})
	p.seeText("#placement-runs", "Score 0.82 of 3 types, weight of energy 0.3.")
	p.seeText("#placement-runs", "that should have saved 1 min 48 s and cost 810.0 J more (an estimate).")
	p.seeText("#placement-runs", "Nothing was known of this type: this is how it becomes known.")
	p.seeText("#placement-runs", "energy is not known of all, so time alone decided")
	p.seeText("#placement-runs", "GPU 1, with lenet #3, 1 trial of other users. Should keep it busy for 30\u00a0% of the time and hold 4 GiB estimate: it was observed alone for 70 s. Seen: busy for 28\u00a0% of 1 min 10 s alone, at most 3.5 GiB held.")
	p.seeText("#placement-runs .moving", "what is left should take 27 s there")
	p.see(`[...document.querySelector("#placement-runs .scores").children].map(one => one.innerText.split("\n")[1])`, []string{
		"an epoch should take 2.00 s, 180.0 J, by its epochs there", "an epoch should take 14.0 s, 90.00 J, by its epochs elsewhere, and probes; joules learned from estimates", "nothing is known yet",
	})
	p.seeText("#placement-waiting", "it moved, and is kept for big-1")
	p.seeText("#placement-waiting", "up to 12 new")
	p.seeText("#placement-moves", "27.0 s, 1.800 kJ instead of 2 min 20 s, 900.0 J")
	p.see(`[...document.querySelectorAll("#placement-moves tbody tr")].map(row => row.cells[5].textContent)`, []string{"4 epochs: 8.40 s, 731.0 Jestimate", "has not gone on yet"})
	p.see(`[...document.querySelectorAll("#placement-models tbody tr")].map(row => [...row.cells].slice(3).map(cell => cell.textContent).join(" "))`, []string{
		"31 of 212 3.4\u00a0% 21\u00a0%", "9 of 9 21\u00a0% 3.4\u00a0%of estimates", "0 of 0 – –",
	})
	p.see(`[...document.querySelectorAll("#gpu-models tbody tr")].map(row => [...row.cells].slice(0, 5).map(cell => cell.innerText.replaceAll("\n", ", ")).join("; "))`, []string{
		"NVIDIA A100-SXM4-40GB; 41, of 5 architectures, learned from 37; 0.02, memory 3\u00a0%; 0.06, memory 12\u00a0%; 14", "Tesla T4; 3, of 1 architecture, not learned; –; –; 0",
	})
	p.seeText("#gpu-models", "predicted from the slowdown of each with others, learned from 14 pairs. Error on held-out pairs: 0.03; of the mean: 0.11.")
	p.seeText("#gpu-models", "What a training uses is not predicted: 3 trainings were seen alone")
	p.see(`document.querySelectorAll("main .placed [tabindex='0']").length`, 8)

	// What has the focus keeps it when its row is written anew.
	changed := severalTypes()
	changed.Machines[0].Running[0].LastEpoch = 3
	p.get(`(document.querySelector("#placement-runs td a").focus(), 1)`)
	s.placed.Store(changed)
	p.choose("#span", "720") // asks again
	p.seeText("#placement-runs", "rung 1, epoch 3 of 9")
	p.see(`document.activeElement === document.querySelector("#placement-runs td a")`, true)
	p.quiet()

	// A user sees it too.
	q := s.open(browser, 390, 860, "dark")
	q.carry(auth.User)
	q.visit("/pool")
	q.seeText("#placement-count", "4 trials on 4 workers")
	q.see("document.documentElement.scrollWidth - innerWidth", 0)
	q.quiet()
}
