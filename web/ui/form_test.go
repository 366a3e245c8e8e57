package ui_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/web/auth"
)

// labelled is the field with the label, in the element.
func labelled(within, label string) string {
	return fmt.Sprintf(`[...document.querySelectorAll(%q)].flatMap(box => [...box.querySelectorAll("label")]).find(one => one.textContent === %q)?.control`, within, label)
}

// enter types into the field with the label, as a reader does.
func (p *tab) enter(within, label, text string) {
	p.t.Helper()
	p.see(labelled(within, label)+" !== undefined", true)
	p.get(fmt.Sprintf(`(field => { field.focus(); field.value = %q; field.dispatchEvent(new Event(field.tagName === "SELECT" ? "change" : "input", {bubbles: true})) })(%s)`, text, labelled(within, label)))
}

// write puts a text into the study file.
func (p *tab) write(text string) {
	p.t.Helper()
	p.get(fmt.Sprintf(`(field => { field.focus(); field.value = %q; field.dispatchEvent(new Event("input", {bubbles: true})) })(document.getElementById("file"))`, text))
}

func (p *tab) fileHas(words string) {
	p.t.Helper()
	p.wait(`document.getElementById("file").value`, func(have string) bool {
		var text string
		return json.Unmarshal([]byte(have), &text) == nil && strings.Contains(text, words)
	}, words)
}

// faultOf is what stands under the field with the label.
func faultOf(within, label string) string {
	return fmt.Sprintf(`(field => [field.getAttribute("aria-invalid"), document.getElementById(field.getAttribute("aria-describedby").split(" ").at(-1)).innerText])(%s)`, labelled(within, label))
}

func tryNewStudy(t *testing.T, s *stage, browser context.Context) {
	p := s.enter(browser, "/studies")
	p.click("#new-study")
	p.seeText("#plan", "50 trials")
	p.seeText("#plan", "cpu_threads is tuned while trials train")
	p.see(`document.getElementById("create").disabled`, false)

	p.enter("#form-run", "Name", "from-a-form")
	p.fileHas("name: from-a-form")
	p.enter("#form-run", "Command", "python3 train.py --fast")
	p.fileHas("command: [python3, train.py, --fast]")
	p.enter(`[aria-label="Parameter learning_rate"]`, "Low", "0")
	p.fileHas("low: 0,")
	p.see(`document.getElementById("create").disabled`, true)
	p.seeText("#faults", "space.learning_rate.low")
	p.see(faultOf(`[aria-label="Parameter learning_rate"]`, "Low")+`.map(text => text?.includes?.("greater than 0") ? "told" : text)`, []string{"true", "told"})
	p.enter(`[aria-label="Parameter learning_rate"]`, "Low", "1e-5")
	p.fileHas("low: 1e-5,")
	p.see(`document.getElementById("faults").hidden`, true)

	p.click("#add-parameter")
	p.enter(`[aria-label="Parameter parameter_3"]`, "Name", "optimizer")
	p.enter(`[aria-label="Parameter optimizer"]`, "Type", "categorical")
	p.enter(`[aria-label="Parameter optimizer"]`, "Values", "sgd, adam")
	p.fileHas("optimizer: {type: categorical, values: [sgd, adam]}")
	p.enter("#form-stop", "Trials", "27")
	p.enter("#form-system", "System parameters", "auto")
	p.seeText("#plan", "27 trials")
	p.see(`document.getElementById("create").disabled`, false)
	p.click("#create")
	p.see("location.pathname", "/studies/from-a-form")
	p.seeText("#status", "running")
	p.quiet()

	view, err := s.studies.Study(t.Context(), "from-a-form")
	if err != nil {
		t.Fatal(err)
	}
	def := view.Definition
	if !slices.Equal(def.Command, []string{"python3", "train.py", "--fast"}) || def.Stop.Trials != 27 || len(def.Space.Parameters) != 3 ||
		def.Space.Parameters[0].Low != 1e-5 || def.Space.Parameters[2].Name != "optimizer" || len(def.Space.Parameters[2].Values) != 2 || def.Tuning() == nil {
		t.Errorf("%+v", def)
	}
}

func tryStudyFile(_ *testing.T, s *stage, browser context.Context) {
	p := s.enter(browser, "/studies/new")
	p.seeText("#plan", "50 trials")
	p.seeText("#plan", "cpu_threads is tuned while trials train")
	p.write("# why: the paper\nname: pasted # short\nobjective:\n  - {metric: loss, direction: minimize}\n  - {metric: size, direction: minimize}\nspace:\n  x: {type: float, low: 0, high: 1} # a share\nstop: {trials: 9}\n")
	p.see(labelled("#form-run", "Name")+".value", "pasted")
	p.see(`document.querySelectorAll("#form-objectives [role=group]").length`, 2)
	p.seeText("#plan", "9 trials")
	p.enter("#form-stop", "Trials", "12")
	p.fileHas("# why: the paper") // what the form changes leaves the rest alone
	p.fileHas("# a share")
	p.fileHas("stop: {trials: 12}")

	p.write("name: [\n")
	p.seeText("#unreadable", "The file cannot be read")
	p.see(`document.getElementById("form").disabled`, true)
	p.write(`{"name": "as-json", "objective": {"metric": "loss", "direction": "minimise"}, "space": {"x": {"type": "int", "low": 1, "high": 9}}}`)
	p.see(`document.getElementById("form").disabled`, false)
	p.see(faultOf("#form-objectives", "Direction")+`[0]`, "true")
	p.enter("#form-objectives", "Direction", "minimize")
	p.see(`JSON.parse(document.getElementById("file").value).objective.direction`, "minimize")
	p.see(`document.getElementById("create").disabled`, false)

	p.write("name: lines\nobjective: {metric: loss, direction: minimize}\nspace:\n  x: {type: float, low: 3, high: 1}\nserach: {}\n")
	p.seeText("#faults", "did you mean search?")
	p.pick(`//ul[@id="faults-list"]//button[.="line 5"]`)
	p.see(`(file => file.value.slice(file.selectionStart, file.selectionEnd))(document.getElementById("file"))`, "serach: {}")
	p.quiet()
}

func tryCopy(t *testing.T, s *stage, browser context.Context) {
	view := s.create(everyFile)
	h := s.hand()
	h.train(h.lease("every"), 0.5)
	p := s.enter(browser, "/studies/every")
	p.more("#copy")
	p.see(labelled("#form-run", "Name")+".value", "every-2")
	p.seeText("#plan", "It takes about") // by what that study's training took
	p.see(`document.getElementById("create").disabled`, false)
	p.click("#create")
	p.see("location.pathname", "/studies/every-2")
	p.quiet()
	made, err := s.studies.Study(t.Context(), "every-2")
	if err != nil {
		t.Fatal(err)
	}
	// All of it is the same, but for the name and what is drawn.
	made.Definition.Name, made.Definition.Search.Seed = view.Definition.Name, view.Definition.Search.Seed
	want, have := encoded(t, view.Definition), encoded(t, made.Definition)
	if want != have {
		t.Errorf("the copy is\n%s\nwant\n%s", have, want)
	}
}

func encoded(t *testing.T, def definition.Definition) string {
	t.Helper()
	text, err := json.Marshal(def)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// everyFile has something of every section.
const everyFile = `
name: every
description: "quotes ' and \" and: a colon"
command: [python3, train.py, "--note=a b"]
environment: {DATA: data, DEBUG: "true"}
objective: {metric: loss, direction: minimize, target: 0.1}
constraints:
  - {metric: loss, max: 20}
space:
  optimizer: {values: [sgd, adam, "1", 1, true]}
  momentum:  {type: float, low: 0, high: 0.99, step: 0.01, when: {optimizer: sgd}}
  rate:      {type: float, low: 1e-4, high: 1e-1, log: true}
  layers:    {kind: model, type: int, low: 1, high: 9}
  width:     {kind: model, type: ordinal, values: [16, 32]}
forbidden:
  - {layers: [8, 9], width: 32}
system: {cpu_threads: {values: [1, 2]}, memory_gib: 8}
inference: {devices: [raspberry-pi-4], batch_size: {low: 1, high: 8}, objective: {metric: latency, constraint: "latency_ms <= 50"}}
budget: {policy: multi, epochs: {min: 1, max: 9}, data_fraction: {min: 0.1, max: 1}}
search: {method: bohb, seed: 7, promotion: synchronous, random_fraction: 0}
stop: {trials: 20, seconds: 3600, target_reached: true, failures: 0}
retry: {failures: 0}
priority: 3
`

func tryNewStudyAsViewer(_ *testing.T, s *stage, browser context.Context) {
	p := s.open(browser, 1280, 900, "light")
	p.carry(auth.Viewer)
	p.visit("/studies/new")
	p.seeText("#refused", "This session cannot create studies: its token has the scope viewer")
	p.see(`[document.getElementById("create").disabled, document.getElementById("form").disabled, document.getElementById("file").disabled]`, []bool{true, true, true})
	p.quiet()
}

func tryEnqueue(t *testing.T, s *stage, browser context.Context) {
	s.create(smallFile)
	story(s.hand())
	p := s.enter(browser, "/studies/small")
	p.see(`document.getElementById("enqueue").checkVisibility()`, true)
	p.click("#enqueue")
	p.enter("dialog", "rate", "7")
	p.pick(`//dialog[@open]//button[.="Enqueue"]`)
	p.see(faultOf("dialog", "rate")+`[0]`, "true")
	p.see(`document.activeElement === `+labelled("dialog", "rate"), true)
	p.enter("dialog", "rate", "0.05")
	p.pick(`//dialog[@open]//button[.="Enqueue"]`)
	p.seeText("#told", "Enqueued. 1 configuration waits to be started.")

	p.visit("/studies/small/trials/1")
	p.see(`document.getElementById("again").checkVisibility()`, true)
	p.get(`(document.getElementById("again").click(), 1)`) // what appears beside it may move it from under a pointer
	p.see(`document.querySelector("dialog h2")?.textContent`, "Try trial 1 again, with changes")
	detail, err := s.studies.TrialDetail(t.Context(), "small", 1)
	if err != nil {
		t.Fatal(err)
	}
	width, _ := detail.Trial.Configuration["width"].Integer()
	p.see(labelled("dialog", "width")+".value", fmt.Sprint(width))
	p.enter("dialog", "width", "5")
	p.pick(`//dialog[@open]//button[.="Enqueue"]`)
	p.seeText("#told", "2 configurations wait to be started.")
	if view, err := s.studies.Study(t.Context(), "small"); err != nil || view.Progress.Enqueued != 2 {
		t.Errorf("%d wait: %v", view.Progress.Enqueued, err)
	}
}

func tryAnnotate(t *testing.T, s *stage, browser context.Context) {
	s.create(smallFile)
	story(s.hand())
	p := s.enter(browser, "/studies/small/trials/1")
	p.seeText("#annotate", "Add tags or a note")
	p.click("#annotate")
	p.enter("dialog", "Tags", "odd best,er")
	p.pick(`//dialog[@open]//button[.="Save"]`)
	p.see(faultOf("dialog", "Tags")+`[0]`, "true")
	p.enter("dialog", "Tags", "odd best")
	p.enter("dialog", "Note", "see <b>#0</b>\nand so on")
	p.pick(`//dialog[@open]//button[.="Save"]`)
	p.seeText("#annotation", "see <b>#0</b>\nand so on")
	detail, err := s.studies.TrialDetail(t.Context(), "small", 1)
	if err != nil || !slices.Equal(detail.Trial.Tags, []string{"best", "odd"}) {
		t.Errorf("%q: %v", detail.Trial.Tags, err)
	}

	p.visit("/studies/small?query=tags+%3D+odd")
	p.see(`[...document.querySelectorAll("#board tbody tr")].map(row => row.dataset.number)`, []string{"1"})
	p.see(`[...document.querySelectorAll('tr[data-number="1"] .tag')].map(tag => tag.textContent)`, []string{"best", "odd"})
	// What somebody else writes is shown without a reload.
	if _, err := s.studies.AnnotateTrial(t.Context(), "small", 1, trial.Amendment{RemoveTags: []string{"best"}}); err != nil {
		t.Fatal(err)
	}
	p.see(`[...document.querySelectorAll('tr[data-number="1"] .tag')].map(tag => tag.textContent)`, []string{"odd"})
	p.click("#annotate")
	p.enter("dialog", "Tags", "paper")
	p.pick(`//dialog[@open]//button[.="Save"]`)
	p.seeText("#annotation", "paper")

	s.create(strings.Replace(smallFile, "name: small", "name: other", 1))
	p.visit("/studies")
	p.see(`document.querySelectorAll("#studies tbody tr").length`, 2)
	p.choose("#tag", "paper")
	p.see(`[...document.querySelectorAll("#studies tbody tr a")].map(link => link.textContent)`, []string{"small"})
	p.see("location.search", "?tag=paper")
}

func tryShare(_ *testing.T, s *stage, browser context.Context) {
	s.create(smallFile)
	story(s.hand())
	p := s.enter(browser, "/studies/small")
	p.more("#share")
	p.seeText("dialog", "There is no link yet.")
	p.see(`document.getElementById("share-groups")`, nil) // there is no group
	p.enter("dialog", "For whom", "reviewers")
	p.click("#make-link")
	p.see(`document.getElementById("link-address")?.value.includes("#token=tandem_link_")`, true)
	p.seeText(".links", "reviewers")
	var link string
	if err := json.Unmarshal([]byte(p.get(`document.getElementById("link-address").value`)), &link); err != nil {
		s.t.Fatal(err)
	}
	p.quiet()

	guest := s.open(browser, 1280, 900, "light")
	guest.visit(strings.TrimPrefix(link, s.url))
	guest.seeText("h1", "small")
	guest.seeText("#board", "completed")
	guest.see(`document.getElementById("link-state").textContent`, "live")
	guest.see(`[...document.querySelectorAll("#actions > *")].filter(one => one.checkVisibility()).map(one => (one.querySelector("summary") ?? one).textContent)`, []string{"Charts", "More"})
	guest.see(`[...document.querySelectorAll("a")].filter(one => one.checkVisibility() && !one.href.includes("/studies/") && !one.href.endsWith("#main")).map(one => one.href)`, []string{})
	guest.see("location.href.includes('token')", false)
	guest.pick(`//table[@id="board"]//a[.="#1"]`)
	guest.seeText("h1", "Trial 1")
	guest.seeText("#params", "rate")
	guest.see(`document.querySelectorAll('a[href*="/artifacts/"]').length`, 0)
	guest.visit("/studies")
	guest.seeText("h1", "small") // there is nothing else for who has the link
	guest.quiet()

	p.pick(`//dialog[@open]//button[.="Revoke"]`)
	p.seeText("dialog", "There is no link yet.")
	guest.visit("/studies/small")
	guest.see("location.pathname", "/login")
	tryShareWithGroups(s, p)
}

// tryShareWithGroups ticks a group's box, and the next dialog finds it ticked; a group that
// is gone meanwhile is refused in words, and its box is as before.
func tryShareWithGroups(s *stage, p *tab) {
	for _, name := range []string{"ml", "ops"} {
		if _, err := s.studies.SetGroup(s.t.Context(), name, protocol.UserGroupRequest{Members: map[string]string{"alice": "editor"}}); err != nil {
			s.t.Fatal(err)
		}
	}
	ticked := `[...document.querySelectorAll("#share-groups input")].map(one => one.value + " " + one.checked)`
	p.visit("/studies/small")
	p.more("#share")
	p.see(ticked, []string{"ml false", "ops false"})
	p.accessible("whom a study is shared with", wholeRules)
	if folder := screenshots(p.t); folder != "" {
		p.picture(filepath.Join(folder, "share-light-1280.png"), chromedp.CaptureScreenshot())
	}
	p.click(`#share-groups [value="ml"]`)
	p.seeText("#share-groups", "Shared with ml.")
	p.visit("/studies/small")
	p.more("#share")
	p.see(ticked, []string{"ml true", "ops false"})
	if err := s.studies.RemoveGroup(s.t.Context(), "ops"); err != nil {
		s.t.Fatal(err)
	}
	p.click(`#share-groups [value="ops"]`)
	p.seeText("dialog [role=alert]:not([hidden])", "ops")
	p.see(ticked, []string{"ml true", "ops false"})
}

func tryPhone(_ *testing.T, s *stage, browser context.Context) {
	s.create(smallFile)
	p := s.open(browser, 390, 860, "light")
	p.carry(auth.Admin)
	p.visit("/studies/small")
	p.see(`document.getElementById("actions").hidden`, false)
	p.see(`["enqueue", "pause", "stop", "more"].filter(id => { const at = document.getElementById(id).getBoundingClientRect(); return at.width < 24 || at.height < 24 || at.left < 0 || at.right > innerWidth })`, []string{})
	p.see("document.documentElement.scrollWidth - innerWidth", 0)
	p.click("#more > summary")
	p.see(`["export-csv", "export-json", "compare-link", "copy", "share", "transfer", "delete"].filter(id => { const at = document.getElementById(id).getBoundingClientRect(); return at.width < 24 || at.height < 24 || at.left < 0 || at.right > innerWidth })`, []string{})
	p.accessible("the menu of a study", wholeRules)
	if folder := screenshots(p.t); folder != "" {
		p.picture(filepath.Join(folder, "study-menu-light-390.png"), chromedp.CaptureScreenshot())
	}
	p.do(chromedp.KeyEvent(kb.Escape))
	p.see(`document.getElementById("more").open`, false)
	p.see(`document.activeElement.textContent`, "More")
	p.get(`document.getElementById("pause").focus()`)
	for _, action := range []struct {
		question, answer string
		want             protocol.StudyStatus
	}{{"pause", "Pause", protocol.StudyPaused}, {"resume", "Resume", protocol.StudyRunning}, {"stop", "Stop the study", protocol.StudyStopped}} {
		// By keys alone: the button, then the answer behind Cancel, which has the focus.
		p.see(fmt.Sprintf("(one => one.checkVisibility() && !one.disabled)(document.getElementById(%q))", action.question), true)
		p.get(fmt.Sprintf("document.getElementById(%q).focus()", action.question))
		p.press("Enter", "\r", 13)
		p.see(`document.activeElement.textContent`, "Cancel")
		p.press("Tab", "", 9)
		p.see(`document.activeElement.textContent`, action.answer)
		p.press("Enter", "\r", 13)
		p.seeText("#status", string(action.want))
	}
	p.visit("/studies/new")
	p.seeText("#plan", "50 trials")
	p.seeText("#plan", "cpu_threads is tuned while trials train")
	p.see("document.documentElement.scrollWidth - innerWidth", 0)
	p.quiet()
}
