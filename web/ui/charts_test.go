package ui_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/tandem-tune/tandem/internal/protocol"
)

// boosted plays 60 trials with conditions, categories, crashes and values that
// are none, on two workers.
func boosted(s *stage) {
	s.t.Helper()
	now := time.Now()
	c := newCrew(s, map[string]script{"boosted-or-linear": boost})
	s.clock.pin(now.Add(-80 * time.Minute))
	s.create(strings.Replace(boostFile, "trials: 300", "trials: 60", 1))
	for _, worker := range crewMembers() {
		c.join(worker)
	}
	c.play(now)
}

func (s *stage) columns(ref string, query protocol.ColumnsQuery) protocol.Columns {
	s.t.Helper()
	columns, err := s.studies.Columns(s.t.Context(), ref, query)
	if err != nil {
		s.t.Fatal(err)
	}
	return columns
}

// drag moves the pressed mouse between two places of an element, in its pixels.
func (p *tab) drag(selector string, fromX, fromY, toX, toY float64) {
	p.t.Helper()
	var corner struct{ Left, Top float64 }
	text := p.get(fmt.Sprintf(`(e => { e.scrollIntoView({block: "center", behavior: "instant"}); const {left, top} = e.getBoundingClientRect(); return {Left: left, Top: top} })(document.querySelector(%q))`, selector))
	if err := json.Unmarshal([]byte(text), &corner); err != nil {
		p.t.Fatalf("%s: %v", text, err)
	}
	at := func(kind input.DispatchMouseEventType, x, y float64, pressed int64) chromedp.Action[chromedp.Void] {
		return chromedp.MouseEvent(kind, corner.Left+x, corner.Top+y, chromedp.ButtonLeft, chromedp.ClickCount(1),
			func(e *input.DispatchMouseEventParams) { e.Buttons = pressed })
	}
	p.do(
		chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, corner.Left+fromX, corner.Top+fromY),
		at(input.DispatchMouseEventTypeMousePressed, fromX, fromY, 1),
		at(input.DispatchMouseEventTypeMouseMoved, (fromX+toX)/2, (fromY+toY)/2, 1),
		at(input.DispatchMouseEventTypeMouseMoved, toX, toY, 1),
		at(input.DispatchMouseEventTypeMouseReleased, toX, toY, 0),
	)
}

func tryCharts(t *testing.T, s *stage, chromium context.Context) {
	boosted(s)
	p := s.enter(chromium, "/studies/boosted-or-linear")
	p.seeText("#pager", "60 trials")
	p.click("#charts")
	p.see("location.pathname", "/studies/boosted-or-linear/charts")
	most := s.columns("boosted-or-linear", protocol.ColumnsQuery{})
	p.seeText("#parallel-state", fmt.Sprintf("All %d trials", len(most.Numbers)))
	p.see(`document.getElementById("link-state").textContent`, "live")
	// Of hundreds of choices an axis names some: all of them, written over each other, name none.
	p.get(`(import(performance.getEntriesByType("resource").map(one => one.name).find(name => name.endsWith("/scales.js"))).then(({ choiceScale }) => {
		const named = (choices) => choiceScale("x", [...Array(choices).keys()].map(String)).ticks(3).length;
		window.namedChoices = [named(3), named(20), named(300)].join(" ");
	}), 0)`)
	p.see("window.namedChoices", "3 20 20")
	p.see(`document.getElementById("rung").selectedOptions[0].textContent.split(":")[0]`, fmt.Sprintf("rung %d", most.Rung))
	rung := 1
	want := s.columns("boosted-or-linear", protocol.ColumnsQuery{Rung: &rung})
	p.choose("#rung", "1")
	p.seeText("#parallel-state", fmt.Sprintf("All %d trials", len(want.Numbers)))
	p.see("location.search", "?rung=1")
	rung = 0
	want = s.columns("boosted-or-linear", protocol.ColumnsQuery{Rung: &rung})
	p.choose("#rung", "0")
	p.seeText("#parallel-state", fmt.Sprintf("All %d trials", len(want.Numbers)))
	tryBrushes(p, want)
	trySlices(p, want)
	tryTwoParameters(p)
	tryDistribution(p, s, want)
	tryTogether(p, s)
	p.click(`.trail a:last-of-type`)
	p.see("location.pathname", "/studies/boosted-or-linear")
	p.quiet()
}

// chosen counts the trials that the columns say have a parameter's choice.
func chosen(columns protocol.Columns, parameter string, place float64) (count int, numbers []int) {
	for _, column := range columns.Parameters {
		for i, value := range column.Values {
			if column.Name == parameter && float64(value) == place {
				count++
				numbers = append(numbers, columns.Numbers[i])
			}
		}
	}
	return count, numbers
}

// tryBrushes chooses ranges with the pointer and with the keyboard.
func tryBrushes(p *tab, want protocol.Columns) {
	p.t.Helper()
	all := len(want.Numbers)
	linear, numbers := chosen(want, "model", 1)
	if linear == 0 || linear == all {
		p.t.Fatalf("%d of %d trials are linear", linear, all)
	}
	// The first axis is the model's, with its second choice at the top; trials
	// that are linear have no depth.
	p.drag("#parallel-chart canvas", 46, 28, 46, 150)
	state := fmt.Sprintf("%d of %d trials have model linear.", linear, all)
	p.seeText("#parallel-state", state)
	p.see(`location.search.endsWith("range.model=p1")`, true)
	const listed = `[...document.querySelectorAll("#parallel-list tbody tr")].map(row => row.cells[1].textContent)`
	p.see(listed+".length", min(linear, 10))
	p.wait(listed, func(have string) bool {
		var links []string
		if json.Unmarshal([]byte(have), &links) != nil {
			return false
		}
		return !slices.ContainsFunc(links, func(link string) bool {
			number, err := strconv.Atoi(strings.TrimPrefix(link, "#"))
			return err != nil || !slices.Contains(numbers, number)
		})
	}, "linear trials only")
	p.see(`[...new Set([...document.querySelectorAll("#parallel-list tbody tr")].map(row => row.cells[4].textContent))]`, []string{"not set"})
	p.see(`document.querySelector("#parallel-list tbody a").getAttribute("href").startsWith("/studies/boosted-or-linear/trials/")`, true)
	p.visit("/studies/boosted-or-linear/charts" + "?rung=0&range.model=p1") // as a colleague who was sent the address
	p.seeText("#parallel-state", state)
	p.click("#parallel-clear")
	p.seeText("#parallel-state", fmt.Sprintf("All %d trials", all))
	p.see("location.search", "?rung=0")
	// A click on an axis without a drag clears it as well.
	p.drag("#parallel-chart canvas", 46, 28, 46, 150)
	p.seeText("#parallel-state", state)
	p.drag("#parallel-chart canvas", 46, 200, 46, 200)
	p.seeText("#parallel-state", fmt.Sprintf("All %d trials", all))
	// By the keyboard: the lower end of the depth one step up, which leaves those
	// without a depth in, and then without them.
	p.click("#parallel .more summary")
	p.get(`document.querySelector('input[aria-label="depth from"]').focus()`)
	p.do(chromedp.KeyEvent(strings.Repeat(kb.ArrowRight, 40)))
	low := math.Round(2 + 0.2*10)
	deep, boosting := 0, 0
	for i, value := range want.Parameters[1].Values {
		if !value.IsNaN() && (float64(value)-2)/10 >= 0.2 {
			deep++
		}
		if want.Parameters[0].Values[i] == 0 {
			boosting++
		}
	}
	p.see(`document.querySelector('input[aria-label="depth from"]').getAttribute("aria-valuetext")`, fmt.Sprint(low))
	p.seeText("#parallel-state", fmt.Sprintf("%d of %d trials have depth %v to 12 or not set.", deep+all-boosting, all, low))
	p.get(`[...document.querySelectorAll("#parallel-ranges fieldset")].find(one => one.textContent.startsWith("depth")).querySelector("[type=checkbox]").click()`)
	p.seeText("#parallel-state", fmt.Sprintf("%d of %d trials have depth %v to 12.", deep, all, low))
	p.click("#parallel-clear")
	p.see(`document.querySelector('input[aria-label="depth from"]').value`, "0")
}

func trySlices(p *tab, want protocol.Columns) {
	p.t.Helper()
	p.see(`[...document.querySelectorAll("#slices h3")].map(one => one.textContent)`, []string{"model", "depth", "shrinkage", "penalty", "scale"})
	diverged := 0
	for _, value := range want.Values[0] {
		if value.IsNaN() {
			diverged++
		}
	}
	p.see(`document.querySelector("#slices .chart").ariaLabel.startsWith("log_loss against model: `+fmt.Sprint(len(want.Numbers)-diverged)+` trials at rung 0")`, true)
}

func tryTwoParameters(p *tab) {
	p.t.Helper()
	p.choose("#contour-x", "2") // shrinkage
	p.choose("#contour-y", "1") // depth
	p.see(`["contour-x", "contour-y", "rank-x", "rank-y"].map(id => document.getElementById(id).selectedOptions[0].textContent)`, []string{"shrinkage", "depth", "shrinkage", "depth"})
	p.see(`new URLSearchParams(location.search).get("x") + " " + new URLSearchParams(location.search).get("y")`, "shrinkage depth")
	p.seeText("#contour-note", "The colours between the points are an estimate")
	p.seeText("#contour-note", "trials do not have both parameters")
	p.choose("#rank-x", "1") // what stands up already: they change places
	p.see(`["contour-x", "contour-y"].map(id => document.getElementById(id).selectedOptions[0].textContent)`, []string{"depth", "shrinkage"})
	p.see(`document.getElementById("rank-chart").ariaLabel.includes("the best is trial")`, true)
}

// tryDistribution compares with another study of the same budgets.
func tryDistribution(p *tab, s *stage, want protocol.Columns) {
	p.t.Helper()
	p.see(`document.getElementById("edf-legend").textContent`, fmt.Sprintf("boosted-or-linear (%d)", want.Distribution.Trials))
	other := s.create(strings.NewReplacer("name: boosted-or-linear", "name: the-same-again", "trials: 300", "trials: 9").Replace(boostFile))
	h := s.hand()
	for i := range 9 {
		h.train(h.lease(other.Name), 0.4+0.01*float64(i))
	}
	p.get(`document.querySelector("#edf-others summary").click()`)
	p.see(`[...document.querySelectorAll("#edf-list label")].map(one => one.textContent)`, []string{"the-same-again"})
	p.get(`document.querySelector("#edf-list input").click()`)
	rung := 0
	there := s.columns(other.Name, protocol.ColumnsQuery{Rung: &rung}).Distribution.Trials
	p.see(`document.getElementById("edf-legend").textContent`, fmt.Sprintf("boosted-or-linear (%d)the-same-again (%d)", want.Distribution.Trials, there))
	p.seeText("#edf-note", "Studies measure alike only where")
}

// tryTogether looks at what is about the whole study: curves, plan and workers.
func tryTogether(p *tab, s *stage) {
	p.t.Helper()
	p.see(`[...document.getElementById("curves-metric").options].map(one => one.value)`, []string{"auc", "log_loss"})
	p.see(`document.getElementById("curves-metric").value`, "log_loss")
	p.choose("#curves-metric", "auc")
	p.wait(`document.getElementById("curves-chart").ariaLabel`, func(have string) bool { return strings.HasPrefix(have, `"auc over the epochs of`) }, "a chart of auc")
	plan, err := s.studies.PlanProgress(p.t.Context(), "boosted-or-linear")
	if err != nil {
		p.t.Fatal(err)
	}
	var rows []string
	for i, stage := range plan.Stages {
		rows = append(rows, fmt.Sprintf("%d %d ≈ %d %d of %d", stage.Rung, stage.Measured, stage.Planned, stage.Began, plan.Plan.Stages[i].Started))
	}
	p.see(`[...document.querySelectorAll("#plan-rungs tbody tr")].map(row => [0, 3, 4, 5].map(at => row.cells[at].textContent).join(" "))`, rows)
	timeline, err := s.studies.Timeline(p.t.Context(), "boosted-or-linear", 0)
	if err != nil {
		p.t.Fatal(err)
	}
	p.see(`document.getElementById("gantt-chart").ariaLabel.split(";")[0]`, fmt.Sprintf("%d leases on 2 workers", len(timeline.Numbers)))
	p.see(`[...document.querySelectorAll("#gantt-list tbody th")].map(cell => cell.textContent).sort()`, []string{"desk", "lab-03"})
	p.see(`[...document.querySelectorAll("#gantt-list tbody tr")].reduce((sum, row) => sum + Number(row.cells[1].textContent), 0)`, len(timeline.Numbers))
	before := p.get(`document.getElementById("gantt-words").textContent`)
	p.get(`document.getElementById("gantt-from").focus()`)
	p.do(chromedp.KeyEvent(strings.Repeat(kb.ArrowRight, 20)))
	p.wait(`document.getElementById("gantt-words").textContent`, func(have string) bool { return have != before && strings.Contains(have, " to ") }, "a later start")
}

// tryChartsLive keeps a page open while trials are measured.
func tryChartsLive(_ *testing.T, s *stage, chromium context.Context) {
	s.create(smallFile)
	h := s.hand()
	p := s.enter(chromium, "/studies/small/charts")
	// Before there is anything to draw, cards say what will come, and have no axes.
	p.see(`[...document.querySelectorAll(".awaiting")].map(card => card.id)`, []string{"parallel", "slice", "contour", "rank", "edf", "curves", "gantt"})
	p.see(`[...document.querySelectorAll(".awaiting")].every(card => card.querySelector(".awaited").checkVisibility() && !card.querySelector("canvas, select")?.checkVisibility())`, true)
	story(h)
	p.see(`[...document.querySelectorAll(".awaiting, .awaited")].filter(one => one.checkVisibility()).length`, 0)
	p.seeText("#parallel-state", "All 4 trials")
	p.see(`document.getElementById("gantt-chart").ariaLabel.split(".")[0]`, "7 leases on 1 worker; 1 failed, 0 lost")
	p.see(`document.querySelectorAll("#plan-rungs tbody tr")[0].cells[3].textContent`, "4")
	p.see(`[...document.getElementById("rung").options].map(one => one.textContent.split(", ").at(-1))`, []string{"4 measured", "1 measured"})
	p.choose("#rung", "1")
	p.seeText("#parallel-state", "1 trial. Drag")
	p.choose("#rung", "0")
	p.see(`[...document.querySelectorAll("#parallel-list tbody tr")].map(row => row.cells[1].textContent + " " + row.cells[2].textContent)`, []string{"#1 0.2000", "#3 0.4000", "#0 0.5000", "#2 NaN"})
	p.seeText("#edf-note", "1 trial of this study measured no finite number and is left out")
	if _, err := s.studies.Stop(s.t.Context(), "small"); err != nil {
		s.t.Fatal(err)
	}
	p.seeText("#status", "stopped")
	p.visit("/studies/none/charts")
	p.seeText("#gone", "There is no study none")
	// The console says of its own accord that a study was not found.
	for _, said := range p.console() {
		if !strings.Contains(said, "404") {
			s.t.Errorf("on the console: %s", said)
		}
	}
}

// tryDownloads takes away every chart of every page, as a picture and as data.
func tryDownloads(t *testing.T, s *stage, chromium context.Context) {
	survivor := gallery(s)
	s.create(severalFile)
	s.hand()
	for i := range 4 {
		hand{s}.tell("several", 0.5+float64(i)/10, 0.01+float64(i)/100, 1)
	}
	edgeGallery(s)
	const learned = "a machine"
	s.learn(learnedRuns(learned, 12, time.Now().Add(-20*time.Minute))...)
	p := s.enter(chromium, "/studies")
	for _, page := range []struct {
		path, ready string
		files       []string // what each file's name is, and the head of its data
	}{
		{"/studies/boosted-or-linear", `document.querySelector("#importance .shares") !== null`, []string{
			"boosted-or-linear-best-so-far.csv: seconds,trial,rung,log_loss,violation,took_the_lead",
			"boosted-or-linear-values-by-rung.csv: trial,rung,epochs,data_fraction,log_loss,went_up",
			"boosted-or-linear-what-mattered.csv: parameter,share,chance,rung,trials",
		}},
		{"/studies/several", `document.querySelector("#front-chart canvas") !== null`, []string{
			"several-best-so-far.csv: seconds,trial,rung,accuracy,violation,took_the_lead",
			"several-values-by-rung.csv: trial,rung,epochs,data_fraction,accuracy,went_up",
			"several-pareto-front.csv: trial,on_the_front,accuracy,latency_ms",
		}},
		{fmt.Sprintf("/studies/lenet-fashion-mnist/trials/%d", survivor), `document.querySelector(".heat-map") !== null`, []string{
			fmt.Sprintf("lenet-fashion-mnist-trial-%d-learning-curves.csv: epoch,rung,seconds,accuracy,loss", survivor),
			fmt.Sprintf("lenet-fashion-mnist-trial-%d-profile.csv: event,epoch 1", survivor),
		}},
		{"/studies/lenet-fashion-mnist/compare?trials=0,1", `document.querySelector("#curves canvas") !== null`, []string{
			"lenet-fashion-mnist-compared-trials.csv: trial,rung,epoch,epochs_trained,accuracy",
		}},
		{"/compare?study=boosted-or-linear&study=digits", `document.querySelector("#path-chart canvas") !== null`, []string{
			"comparison-best-so-far.csv: study,trial,rung,seconds,metric,value",
		}},
		{"/studies/digits-at-the-edge/edge", `document.querySelector("#scatter canvas") !== null`, []string{
			"digits-at-the-edge-edge.csv: device,trial,rung,accuracy,batch_size,cores,cpu_hertz,latency_seconds,latency_seconds_low,latency_seconds_high,joules_per_sample",
		}},
		{"/ground-truth?machine=a+machine", `document.querySelector("#plane canvas") !== null`, []string{
			"ground-truth-known-workloads-Runs.csv: workload,first_component,second_component",
			"ground-truth-known-workloads-Circles.csv: workload,runs,first_component,second_component,radius",
		}},
		// The curves, the plan and the timeline come one by one.
		{"/studies/boosted-or-linear/charts", `["#gantt-list tbody tr", "#curves-legend *", "#plan-rungs tbody tr"].every(part => document.querySelector(part) !== null)`, []string{
			"boosted-or-linear-parallel-coordinates.csv: trial,rung,rank,log_loss,model,depth,shrinkage,penalty,scale,in_ranges",
			"boosted-or-linear-slices.csv: trial,rung,rank,log_loss,model,depth,shrinkage,penalty,scale",
			"boosted-or-linear-contour-Measured.csv: trial,rung,rank,log_loss,model,depth,shrinkage,penalty,scale",
			"boosted-or-linear-contour-Estimate.csv: depth,shrinkage,estimate_of_log_loss",
			"boosted-or-linear-ranks.csv: trial,rung,rank,log_loss,model,depth,shrinkage,penalty,scale",
			"boosted-or-linear-distribution.csv: study,log_loss,share_with_at_most",
			"boosted-or-linear-learning-curves.csv: trial,rung,epoch,log_loss",
			"boosted-or-linear-plan-Rungs.csv: rung,epochs,data_fraction,planned,planned_to_begin,measured,began,active,ended",
			"boosted-or-linear-plan-Brackets.csv: first_rung,planned_trials,began",
			"boosted-or-linear-timeline.csv: trial,rung,worker,worker_id,begin_seconds,end_seconds,outcome,reason",
		}},
	} {
		p.visit(page.path)
		p.see(page.ready, true)
		tryMenus(t, p, page.path, page.files)
	}
	// A picture may be asked for before its chart has anything to draw.
	p.get(`(Promise.all(["chart.js", "picture.js"].map(name => import(new URL(name, document.querySelector("script[type=module]").src)))).then(([{Chart}, {photograph}]) => {
  const card = document.body.appendChild(document.createElement("div"));
  new Chart(card.appendChild(document.createElement("div")), 100, () => { throw new Error("there is nothing to draw yet"); });
  return photograph(card, "a card");
}).then(() => { window.taken = "taken"; }, (error) => { window.taken = error.message; }), 0)`)
	p.see("window.taken", "taken")
	tryRealDownload(t, s, p)
	p.quiet()
}

// collect makes the page keep what it would save, and clicks everything in every
// menu that is there.
const collect = `(() => {
	window.kept = [];
	window.shown = [...document.querySelectorAll(".downloads")].filter(menu => menu.checkVisibility());
	window.expected = shown.reduce((sum, menu) => sum + menu.querySelectorAll("button").length, 0);
	const make = URL.createObjectURL;
	URL.createObjectURL = blob => { URL.createObjectURL = make; window.blob = blob; return make.call(URL, blob); };
	HTMLAnchorElement.prototype.click = function () {
		const blob = window.blob;
		const entry = {name: this.download, text: "", width: 0, height: 0, colours: 0};
		kept.push(entry);
		if (blob.type !== "image/png") { blob.text().then(text => (entry.text = text)); return; }
		createImageBitmap(blob).then(image => {
			const canvas = new OffscreenCanvas(480, 300);
			const context = canvas.getContext("2d");
			context.drawImage(image, 0, 0, 480, 300);
			const {data} = context.getImageData(0, 0, 480, 300);
			const seen = new Set();
			for (let at = 0; at < data.length; at += 4) seen.add(data[at] << 16 | data[at + 1] << 8 | data[at + 2]);
			Object.assign(entry, {width: image.width, height: image.height, colours: seen.size});
		});
	};
	(async () => {
		for (const menu of shown) for (const button of menu.querySelectorAll("button")) {
			const before = kept.length;
			URL.createObjectURL = blob => { window.blob = blob; return make.call(URL, blob); };
			menu.open = true;
			button.click();
			while (kept.length === before) await new Promise(resolve => setTimeout(resolve, 10));
		}
	})();
	return expected;
})()`

// tryMenus saves everything that the page's menus offer and looks into it.
func tryMenus(t *testing.T, p *tab, path string, files []string) {
	t.Helper()
	p.get(collect)
	const left = `expected - kept.filter(one => one.text !== "" || one.width > 0).length`
	for deadline := time.Now().Add(5 * time.Minute); p.get(left) != "0"; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: %s of %s files were not saved; those that were: %s; the console: %q", path, p.get(left), p.get("expected"), p.get("kept.map(one => one.name)"), p.console())
		}
	}
	var kept []struct {
		Name, Text             string
		Width, Height, Colours int
	}
	if err := json.Unmarshal([]byte(p.get("kept")), &kept); err != nil {
		t.Fatal(err)
	}
	var tables, pictures []string
	for _, one := range kept {
		if strings.HasSuffix(one.Name, ".png") {
			pictures = append(pictures, one.Name)
			// A card is at least 960 wide in its picture, at two pixels each.
			if one.Width < 1900 || one.Height < 200 || one.Colours < 12 {
				t.Errorf("%s: %s has %d × %d pixels in %d colours", path, one.Name, one.Width, one.Height, one.Colours)
			}
			continue
		}
		rows, err := csv.NewReader(strings.NewReader(one.Text)).ReadAll() // refuses rows of different lengths
		if err != nil || len(rows) < 2 {
			t.Errorf("%s: %s has %d rows: %v", path, one.Name, len(rows), err)
			continue
		}
		tables = append(tables, one.Name+": "+strings.Join(rows[0], ","))
	}
	for i, want := range files {
		if i >= len(tables) || !strings.HasPrefix(tables[i], want) {
			t.Errorf("%s: the data are %q, want %q", path, tables, files)
			break
		}
	}
	if len(tables) != len(files) || len(pictures) == 0 {
		t.Errorf("%s: %d tables, want %d; pictures %q", path, len(tables), len(files), pictures)
	}
	p.see(`document.querySelectorAll(".photographed, .downloads[open]").length`, 0)
}

// tryRealDownload lets the browser save a file, and compares it with the server.
func tryRealDownload(t *testing.T, s *stage, p *tab) {
	t.Helper()
	folder := screenshots(t)
	if folder == "" {
		folder = t.TempDir()
	}
	p.visit("/studies/boosted-or-linear/charts?rung=1")
	rung := 1
	want := s.columns("boosted-or-linear", protocol.ColumnsQuery{Rung: &rung})
	p.seeText("#parallel-state", fmt.Sprintf("All %d trials", len(want.Numbers)))
	_, err := chromedp.Call(p.ctx, browser.SetDownloadBehavior, browser.SetDownloadBehaviorParams{
		Behavior: browser.SetDownloadBehaviorBehaviorAllow, BrowserContextID: chromedp.FromContext(p.ctx).BrowserContextID, DownloadPath: folder})
	if err != nil {
		t.Fatal(err)
	}
	p.click("#contour .downloads summary")
	p.click("#contour .downloads button:first-of-type")
	picture, err := png.Decode(bytes.NewReader(saved(p, filepath.Join(folder, "boosted-or-linear-contour.png"))))
	if err != nil || picture.Bounds().Dx() < 1900 {
		t.Errorf("the picture: %v", err)
	}
	p.click("#parallel .downloads summary")
	p.click("#parallel .downloads button:last-of-type")
	content := saved(p, filepath.Join(folder, "boosted-or-linear-parallel-coordinates.csv"))
	rows, err := csv.NewReader(bytes.NewReader(content)).ReadAll()
	if err != nil || len(rows) != len(want.Numbers)+1 {
		t.Fatalf("%d rows, want %d and a head: %v", len(rows), len(want.Numbers), err)
	}
	for i, row := range rows[1:] {
		value, err := strconv.ParseFloat(row[3], 64)
		same := err == nil && (value == float64(want.Values[0][i]) || math.IsNaN(value) && want.Values[0][i].IsNaN())
		if depth := want.Parameters[1].Values[i]; !same || row[0] != fmt.Sprint(want.Numbers[i]) || row[2] != fmt.Sprint(want.Ranks[i]) || depth.IsNaN() != (row[5] == "") || row[9] != "true" {
			t.Errorf("row %d is %q; the server has trial %d with %v, rank %d, depth %v", i, row, want.Numbers[i], want.Values[0][i], want.Ranks[i], depth)
		}
	}
}

// saved waits for a file that the browser saves; it has its name once it is whole.
func saved(p *tab, file string) []byte {
	p.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(30 * time.Millisecond) {
		if content, err := os.ReadFile(file); err == nil && len(content) > 0 {
			return content
		}
		if time.Now().After(deadline) {
			entries, _ := os.ReadDir(filepath.Dir(file))
			p.t.Fatalf("%s was not saved; the folder has %v; the console: %q", file, entries, p.console())
		}
	}
}
