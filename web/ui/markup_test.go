package ui_test

import (
	"context"
	"net/url"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/similarity"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/study/studyfile"
	"github.com/tandem-tune/tandem/study/system"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/web/auth"
)

// hostile is markup that would run, wherever it were taken for markup.
const hostile = `<script>window.ran = 1</script><img src=x onerror="window.ran = 1">"'`

// hostileStudy is a study that no client could create: it stands in the store
// already, with markup in everything that has a name or a text.
func hostileStudy(s *stage) {
	s.t.Helper()
	def, err := studyfile.Parse([]byte(smallFile), studyfile.YAML)
	if err != nil {
		s.t.Fatal(err)
	}
	def.Name, def.Description, def.Command = hostile, hostile, []string{hostile}
	def.Objectives[0].Metric = hostile
	def.Space.Parameters = []space.Parameter{{Name: hostile, Kind: hostile, Type: space.CategoricalType, Values: []space.Value{space.String(hostile)}}}
	def.System.Constants = system.Configuration{hostile: space.String(hostile)}
	now, ladder := time.Now(), def.Ladder()
	values := map[string]trial.Float{hostile: 0.5, "other" + hostile: 0.25}
	energy := trial.Energy{Joules: 3, Method: "estimate: " + hostile}
	one := trial.Trial{
		ID: "evil-0", Study: "evil", Configuration: space.Configuration{hostile: space.String(hostile)}, Origin: hostile,
		State: trial.Completed, Rung: 1, Budget: ladder[1].Budget, LeaseEpoch: 1, Worker: hostile, LastEpoch: 1, Epochs: 1, Last: values,
		Results: []trial.Result{{Rung: 1, Budget: ladder[1].Budget, Values: []trial.Float{0.5}}}, Energy: energy, Reason: hostile, Created: now,
	}
	configuration := map[string]space.Value{hostile: space.String(hostile)}
	one.Setting = &trial.Setting{Configuration: configuration, Phase: trial.Phase(hostile), Why: hostile}
	one.SystemUse = []trial.SystemUse{{Configuration: configuration, Phase: trial.Phase(hostile), Epochs: 1}}
	report := trial.Report{System: configuration, SystemPhase: trial.Phase(hostile), SystemWhy: hostile, Trial: one.ID, Rung: 1, Epoch: 1, Metrics: values, Energy: energy, LeaseEpoch: 1, Worker: hostile, At: now}
	err = s.store.Apply(s.t.Context(), journal.Change{
		Insert:  &journal.Study{ID: "evil", Definition: def, Status: protocol.StudyFailed, Reason: hostile, Created: now, Finished: &now},
		Trials:  []journal.TrialWrite{{Trial: one}},
		Reports: []trial.Report{report},
		Events:  []journal.Event{{Study: "evil", Sequence: 1, At: now, Kind: journal.TrialState, Trial: one.ID, State: hostile, Worker: hostile, Reason: hostile}},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.store.AppendLog(s.t.Context(), one.ID, 1, 0, hostile); err != nil {
		s.t.Fatal(err)
	}
}

func tryMarkup(_ *testing.T, s *stage, browser context.Context) {
	hostileStudy(s)
	s.register(protocol.WorkerRegistration{ID: "worker-evil", Name: hostile, Slots: 1,
		Machine:  protocol.Machine{Host: hostile, CPUModel: hostile, GPUs: []string{hostile}, EnergyMethod: hostile, Governor: hostile},
		Probes:   []protocol.Probe{{Workload: hostile, Setting: hostile, Seconds: 1, Joules: 1, Method: hostile}},
		Measures: []protocol.Measure{{Name: hostile, Detail: hostile, Reason: hostile, Remedy: hostile}}, Sandbox: &protocol.Sandbox{Mode: "auto", Missing: []string{hostile}}})
	s.foresee(hostile)
	s.launches(auth.User, hostile)
	p := s.enter(browser, "/studies")
	address := "/studies/" + url.PathEscape(hostile)
	for _, page := range []struct {
		path string
		at   []string
	}{
		{"/studies", []string{"#studies"}}, {"/workers", []string{"#workers"}}, {"/pool?details=1", []string{"#steps", "#ends"}},
		{"/pool", []string{"#placement-runs", "#launches", "#launches-notes"}}, {address + "/charts", []string{"#parallel", "#slices"}},
		{address, []string{"#board", "#answer", "#setup", "#system", "h1"}}, {"/studies/evil", []string{"h1"}},
		{address + "/trials/0", []string{"#params", "#system", "#history", "#log", "#curves"}},
		{"/workers?worker=worker-evil", []string{"#measures", "#probes", "#panel-title", "#machine"}},
		{"/compare?study=" + url.QueryEscape(hostile), []string{"#winners"}}, {"/compare?study=evil&study=" + url.QueryEscape(hostile+"no"), []string{"#picked"}},
		{address + "/edge", []string{"#study-link"}}, {address + "?query=" + url.QueryEscape(hostile), []string{"#board"}},
	} {
		p.visit(page.path)
		for _, at := range page.at {
			p.seeText(at, hostile)
		}
		p.see("[window.ran ?? 0, document.querySelectorAll('main script, main img').length]", []int{0, 0})
	}
	err := s.store.Apply(s.t.Context(), journal.Change{Records: []similarity.Record{{ID: hostile, Machine: hostile, Updated: time.Now(), Cells: []similarity.Cell{
		{Configuration: system.Configuration{hostile: space.String(hostile)}, Epochs: 1, Profiles: 1, Features: map[string]float64{hostile: 1}},
	}}}})
	if err != nil {
		s.t.Fatal(err)
	}
	report := s.report(hostile)
	p.do(chromedp.Navigate((&url.URL{Scheme: "file", Path: report}).String()))
	for _, at := range []string{"h1", "#board", "#answer", "#setup", "#definition"} {
		p.seeText(at, hostile)
	}
	p.see("[window.ran ?? 0, document.querySelectorAll('main script, main img').length]", []int{0, 0})
	p.visit("/ground-truth")
	p.seeText("#runs", hostile)
	p.seeText("#machine", hostile)
	p.see("[window.ran ?? 0, document.querySelectorAll('main script, main img').length]", []int{0, 0})
	p.visit("/studies/" + url.PathEscape(hostile+"no"))
	p.seeText("#gone", hostile)
	p.see("[window.ran ?? 0, document.querySelectorAll('main script, main img').length]", []int{0, 0})
	// Were a page to make markup of a text one day, the browser would refuse it.
	for _, sink := range []string{"innerHTML", "outerHTML", "srcdoc"} {
		p.see("(() => { try { const made = document.createElement('iframe'); document.body.append(made); made."+sink+" = '<b>x</b>'; return 'taken'; } catch (error) { return error.name; } })()", "TypeError")
	}
	p.see("(() => { try { trustedTypes.createPolicy('all', { createHTML: (text) => text }); return 'made'; } catch (error) { return error.name; } })()", "TypeError")
}
