package ui_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/similarity"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/study/system"
)

// learnedRuns is the ground truth of so many runs of three workloads, which
// differ in what they do to the machine and in how many threads are best.
func learnedRuns(machine string, runs int, newest time.Time) []similarity.Record {
	random := rand.New(rand.NewPCG(3, uint64(runs)))
	var records []similarity.Record
	for i := range runs {
		workload := []int{0, 1, 1, 2, 0, 1}[i%6]
		record := similarity.Record{ID: fmt.Sprintf("record-%d-%04d", runs, i), Machine: machine, Updated: newest.Add(-time.Duration(runs-1-i) * 13 * time.Minute)}
		for at, threads := range []int64{8, 1, 2, 4}[:1+i%4] {
			cell := similarity.Cell{
				Configuration: system.Configuration{system.CPUThreads: space.Int(threads)}, Epochs: 2, Profiles: 3,
				LogSeconds: float64(workload) + 0.3*float64((at+workload)%4) + 0.02*random.NormFloat64(), Features: map[string]float64{},
			}
			for feature := range 8 {
				cell.Features[fmt.Sprintf("feature-%d", feature)] = float64((workload*5+feature*3)%7)/3 + 0.05*random.NormFloat64()
			}
			record.Cells = append(record.Cells, cell)
		}
		records = append(records, record)
	}
	return records
}

func (s *stage) learn(records ...similarity.Record) {
	s.t.Helper()
	reply, err := s.studies.ImportGroundTruth(s.t.Context(), protocol.GroundTruth{Version: protocol.GroundTruthVersion, Records: records})
	if err != nil || reply.Skipped > 0 {
		s.t.Fatalf("%+v, %v", reply, err)
	}
}

func tryGroundTruth(_ *testing.T, s *stage, browser context.Context) {
	p := s.enter(browser, "/ground-truth")
	p.seeText("#empty", "system: auto")
	p.seeText("#empty", "tandem ground-truth import ground-truth.json --server "+s.url)
	p.see(`document.getElementById("content").hidden`, true)
	p.see(`document.querySelector("nav [aria-current=page]").textContent`, "Ground truth")

	now := time.Now()
	s.learn(learnedRuns("x86, 8 cores", 12, now.Add(-time.Hour))...)
	p.do(chromedp.Reload())
	p.seeText("#count", "12 runs, 4 configurations, 60 epochs timed")
	p.see(`document.getElementById("empty").hidden`, true)
	p.see(`document.querySelectorAll("#plane canvas").length`, 1)
	p.see(`document.getElementById("plane").ariaLabel.startsWith("12 runs in 3 workloads: ")`, true)
	p.see(`[...document.querySelectorAll("#workload-table tbody tr")].map(row => row.cells[1].textContent)`, []string{"6", "4", "2"})
	p.seeText("#workload-table", "cpu_threads=8\t3 of 5 runs that timed several")
	p.see(`document.querySelectorAll("#runs tbody tr").length`, 12)
	p.see(`[...document.querySelectorAll("#runs tbody tr")].at(-1).lastChild.textContent`, "the only one timed")
	p.seeText("#runs tbody tr", "as fast as the slowest of 4")
	p.see(`[...document.getElementById("configuration").options].map(one => one.textContent)`,
		[]string{"cpu_threads=8 (12 runs)", "cpu_threads=1 (9 runs)", "cpu_threads=2 (6 runs)", "cpu_threads=4 (3 runs)"})

	// Another configuration, and another type of machine, are in the address.
	p.choose("#configuration", "cpu_threads=2")
	p.see(`document.getElementById("plane").ariaLabel.startsWith("6 runs in ")`, true)
	p.see(`new URLSearchParams(location.search).get("configuration")`, "cpu_threads=2")
	s.learn(learnedRuns("arm, 4 cores", 1, now)...)
	p.visit("/ground-truth?machine=" + url.QueryEscape("x86, 8 cores"))
	p.seeText("#count", "12 runs")
	p.choose("#machine", "arm, 4 cores")
	p.seeText("#count", "1 run, 1 configuration, 2 epochs timed")
	p.see(`document.getElementById("plane").ariaLabel.startsWith("1 run in 1 workload: ")`, true)
	p.see("location.search", "?machine=arm%2C+4+cores")
	p.visit("/ground-truth") // the type with the newest report
	p.seeText("#count", "1 run,")

	// A machine that never profiled, and one that has more runs than are listed.
	s.learn(similarity.Record{ID: "record-blind", Machine: "blind", Updated: now.Add(time.Second)})
	p.do(chromedp.Reload())
	p.seeText("#workloads-note", "--no-profile")
	p.seeText("#runs", "no epoch was timed")
	s.learn(similarity.Record{ID: "record-blind", Machine: "blind", Updated: now.Add(2 * time.Second), Cells: []similarity.Cell{
		{Configuration: system.Configuration{system.Cores: space.Int(2)}, Profiles: 1},
	}})
	p.do(chromedp.Reload())
	p.seeText("#workloads-note", "nothing in them that could be compared")
	p.see(`document.getElementById("workloads").hidden`, true)
	s.learn(learnedRuns("many, 2 cores", 120, now.Add(3*time.Second))...)
	p.do(chromedp.Reload())
	p.seeText("#runs-note", "The newest 100 of 120 runs")
	p.quiet()

	if _, err := s.studies.ForgetGroundTruth(s.t.Context(), ""); err != nil {
		s.t.Fatal(err)
	}
	p.do(chromedp.Reload())
	p.seeText("#empty", "Nothing is known yet")
	p.quiet()
}
