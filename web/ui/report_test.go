package ui_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/web/auth"
	"github.com/tandem-tune/tandem/web/ui"
)

// report writes a report of a study to a file, as the command line does.
func (s *stage) report(study string) (path string) {
	s.t.Helper()
	client, err := rest.New(rest.Options{URL: s.url, Token: s.tokens[auth.Viewer]})
	if err != nil {
		s.t.Fatal(err)
	}
	view, err := client.Study(s.t.Context(), study)
	if err != nil {
		s.t.Fatal(err)
	}
	whole, err := json.Marshal(view)
	if err != nil {
		s.t.Fatal(err)
	}
	report := ui.Report{Study: view.ID, Name: view.Name, View: whole, Definition: `{"name": "` + view.Name + `"}`, Objectives: len(view.Definition.Objectives), Rungs: len(view.Rungs),
		Server: s.url, Written: s.clock.now(), Program: "test", Over: view.Status.Over()}
	if err := report.Gather(func(path string) (json.RawMessage, error) { return client.StudyDocument(s.t.Context(), view.ID, path) }); err != nil {
		s.t.Fatal(err)
	}
	path = filepath.Join(s.t.TempDir(), "report of "+view.ID+".html")
	file, err := os.Create(path)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := ui.WriteReport(file, report); err != nil {
		s.t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		s.t.Fatal(err)
	}
	return path
}

// tryReport opens the file of a report where there is no server any more: it shows
// what the study's page and its charts show, and asks nobody for anything.
func tryReport(t *testing.T, s *stage, chromium context.Context) {
	boosted(s)
	asked := s.enter(chromium, "/studies/boosted-or-linear")
	asked.seeText("#pager", "60 trials")
	asked.see(`document.querySelector("#answer-body .answer-lead") !== null && document.querySelectorAll("#importance-body .shares li").length > 0`, true)
	same := []string{`document.getElementById("board").tBodies[0].innerText`, `document.querySelector("#answer-body .answer-lead").innerText`, `document.getElementById("setup").innerText`, `document.getElementById("best-chart").ariaLabel`}
	var shown []string
	for _, one := range same {
		shown = append(shown, asked.get(one))
	}
	file := s.report("boosted-or-linear")
	s.vanish()
	p := s.open(chromium, 1280, 900, "light")
	p.do(chromedp.Navigate((&url.URL{Scheme: "file", Path: file}).String()))
	p.see(`document.getElementById("content")?.hidden ?? true`, false)
	for i, one := range same {
		p.wait(one, func(have string) bool { return have == shown[i] }, shown[i])
	}
	p.see(`["best-chart", "rung-chart", "parallel-chart", "contour-chart", "rank-chart", "edf-chart", "curves-chart", "gantt-chart"].filter(id => { const label = document.getElementById(id).ariaLabel; return !label || label.startsWith("Nothing") })`, []string{})
	p.seeText("#importance-body", "For being among the best")
	p.seeText("#definition", `"name": "boosted-or-linear"`)
	p.choose("#rung", "1")
	p.see(`document.getElementById("rung").value + document.getElementById("parallel-state").textContent.slice(0, 3)`, "1All")
	p.choose("#curves-metric", "auc")
	p.wait(`document.getElementById("curves-chart").ariaLabel`, func(have string) bool { return strings.HasPrefix(have, `"auc over the epochs of`) }, "a chart of auc")
	p.see(`document.querySelector("#board tbody a").href.startsWith(`+fmt.Sprintf("%q", s.url)+`)`, true)
	p.see(`performance.getEntriesByType("resource").filter(one => !one.name.startsWith("data:")).map(one => one.name)`, []string{})
	p.see(`[...document.querySelectorAll("#error, #board-error")].filter(one => !one.hidden).map(one => one.textContent)`, []string{})
	p.accessible("report", wholeRules)
	yes := true
	paper, err := chromedp.Call(p.ctx, page.PrintToPDF, page.PrintToPDFParams{PreferCSSPageSize: &yes})
	if err != nil || !strings.HasPrefix(string(paper.Data), "%PDF-") {
		t.Fatalf("%.20q: %v", paper.Data, err)
	}
	p.quiet()
	if folder := screenshots(t); folder != "" {
		p.picture(filepath.Join(folder, "report.png"), chromedp.FullScreenshot(100))
		if err := os.WriteFile(filepath.Join(folder, "print-report.pdf"), paper.Data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAReportOfNothing is of a study with two objectives that was never trained.
func TestAReportOfNothing(t *testing.T) {
	s := newStage(t)
	s.create(severalFile)
	content, err := os.ReadFile(s.report("several"))
	if text := string(content); err != nil || !strings.Contains(text, "The study is not over") || !strings.Contains(text, "/columns?objective=1") {
		t.Errorf("the report is %.300s: %v", text, err)
	}
}
