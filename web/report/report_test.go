package report_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/inference_emu/deployment"
	"github.com/tandem-tune/tandem/inference_emu/tuning"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/study/studyfile"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/web/report"
)

const studyFile = `
name: lenet
description: a small network
command: [python, train.py]
environment: {DATA: /secret/place}
objective: {metric: accuracy, direction: maximize, target: 0.9}
space:
  learning_rate: {type: float, low: 1e-4, high: 1e-1, log: true}
  optimizer: {values: [sgd, adam]}
budget: {policy: epochs, epochs: {min: 1, max: 3}, eta: 3}
search: {method: bohb, seed: 7}
stop: {trials: 20}
`

var created = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func parsed(t *testing.T, file string) definition.Definition {
	t.Helper()
	def, err := studyfile.Parse([]byte(file), studyfile.YAML)
	if err != nil {
		t.Fatal(err)
	}
	return def
}

// exported is a study as the server exports it: two workers, trials of which
// every third is promoted, and an event for each thing that happens.
type exported struct {
	Study          protocol.StudyView      `json:"study"`
	Recommendation protocol.Recommendation `json:"recommendation"`
	Trials         []protocol.RankedTrial  `json:"trials"`
	Events         []protocol.Event        `json:"events"`
}

func (e *exported) happened(kind string, number int, state trial.State, worker string, data any) {
	at := created.Add(time.Duration(len(e.Events)+1) * time.Second)
	e.Events = append(e.Events, protocol.Event{Study: e.Study.ID, Sequence: int64(len(e.Events) + 1), At: at, Kind: kind, Number: &number, State: string(state), Worker: worker, Data: data})
}

func study(t *testing.T, trials int) *exported {
	t.Helper()
	def := parsed(t, studyFile)
	e := &exported{Study: protocol.StudyView{ID: "k3vqh8w2mz", Name: def.Name, Owner: "alice", Status: protocol.StudyCompleted, Created: created, Definition: def, Rungs: def.Ladder(),
		Progress: protocol.Progress{Trials: map[trial.State]int{trial.Completed: trials}, Created: trials, MaxTrials: trials, Epochs: trials, ElapsedSeconds: 90, TrialSeconds: 160,
			Energy: trial.Energy{Joules: 1234, Method: "estimate: 15 W a core"}}}}
	for number := range trials {
		value := trial.Float(0.5 + 0.4*float64(number)/float64(trials))
		one := trial.Trial{ID: trial.ID(fmt.Sprint("k3vqh8w2mz-", number)), Number: number, State: trial.Leased, Seconds: 8, Epochs: 1, Energy: e.Study.Progress.Energy,
			Configuration: space.Configuration{"learning_rate": space.Float(1e-4 * float64(1+number%900)), "optimizer": space.String([]string{"sgd", "adam"}[number%2])}}
		worker := []string{"worker-one", "worker-two"}[number%2]
		e.happened("trial_state", number, trial.Leased, worker, one)
		e.happened("report", number, trial.Running, worker, trial.Report{Rung: 0, Epoch: 1, Metrics: map[string]trial.Float{"accuracy": value}})
		one.Results = []trial.Result{{Rung: 0, Budget: def.Ladder()[0].Budget, Values: []trial.Float{value}}}
		one.State = trial.Paused
		e.happened("trial_state", number, trial.Paused, worker, one)
		if number%3 == 2 {
			one.Rung = 1
			e.happened("trial_state", number, trial.Leased, worker, one)
			for epoch := 2; epoch <= 3; epoch++ {
				e.happened("report", number, trial.Running, worker, trial.Report{Rung: 1, Epoch: epoch, Metrics: map[string]trial.Float{"accuracy": value + 0.05}})
			}
			one.Results = append(one.Results, trial.Result{Rung: 1, Budget: def.Ladder()[1].Budget, Values: []trial.Float{value + 0.05}})
			one.State, one.Epochs = trial.Completed, 3
			e.happened("trial_state", number, trial.Completed, worker, one)
		}
		e.Trials = append(e.Trials, protocol.RankedTrial{Trial: one, Rank: trials - number})
	}
	if trials > 0 {
		winner := e.Trials[trials-1]
		best := protocol.Best{Number: winner.Number, Metric: "accuracy", Value: winner.Results[0].Values[0], Params: winner.Configuration, Budget: def.Ladder()[0].Budget}
		e.Recommendation = protocol.Recommendation{Study: "lenet", Status: e.Study.Status, Best: &best, Metrics: map[string]trial.Float{"accuracy": best.Value},
			Checkpoint: &trial.Checkpoint{Epoch: 3, Artifact: strings.Repeat("ab", 32), Bytes: 3 << 20}, Energy: e.Study.Progress.Energy, Seconds: 8, Notes: []string{"it is the only trial measured with that budget"}}
		e.Study.Progress.Best = &best
	}
	return e
}

func (e *exported) source(t *testing.T) report.Source {
	t.Helper()
	text, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	source, err := report.Read(strings.NewReader(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	source.Server, source.Written, source.Program = "https://tandem.example:7171", created.Add(time.Hour), "test"
	source.Workers = map[string]string{"worker-one": "rack-7"}
	return source
}

func written(t *testing.T, source report.Source) string {
	t.Helper()
	var page strings.Builder
	if err := report.Write(&page, source); err != nil {
		t.Fatal(err)
	}
	return page.String()
}

func TestAReportHasEverythingThatIsToBeKnown(t *testing.T) {
	t.Parallel()
	e := study(t, 9)
	share := 0.004
	source := e.source(t)
	source.Importance = &protocol.Importance{Method: "PED-ANOVA", Rungs: []protocol.RungImportance{{Rung: 1, Trials: 9, Best: 2, Budget: e.Study.Rungs[1].Budget,
		Parameters: []protocol.ParameterImportance{{Name: "learning_rate", Share: 0.8, Chance: &share}, {Name: "optimizer", Share: 0.2, Chance: new(float64)}}}}}
	page := written(t, source)
	for _, wanted := range []string{
		"<h1>lenet</h1>", "Trial 8 is recommended: accuracy 0.85556", "a small network",
		`id="best"`, `id="spent"`, `id="curves"`, `id="parallel"`, `id="importance"`, `id="timeline"`, "Leaderboard", "PED-ANOVA",
		"1234 J (estimate)", "Joules: estimate: 15 W a core.", "rack-7", "worker-two", "it is the only trial measured with that budget",
		"tandem study recommend k3vqh8w2mz --json", "/api/v1/artifacts/" + strings.Repeat("ab", 32), "target 0.9",
		"&#34;learning_rate&#34;", "The values of environment variables are left out.", "https://tandem.example:7171",
	} {
		if !strings.Contains(page, wanted) {
			t.Errorf("the page lacks %q", wanted)
		}
	}
	for _, absent := range []string{"/secret/place", `id="system"`, `id="edge"`, `id="pareto-1"`, "ZgotmplZ", "left out of the drawing", "<no value>", "%!"} {
		if strings.Contains(page, absent) {
			t.Errorf("the page has %q", absent)
		}
	}
}

// TestAReportNeedsNothingElse: no address to load from, no script, and a policy
// under which its own style is the only thing allowed.
func TestAReportNeedsNothingElse(t *testing.T) {
	t.Parallel()
	page := written(t, study(t, 9).source(t))
	for _, pattern := range []string{`(?i)<script`, `(?i)\ssrc=`, `(?i)\shref=`, `(?i)\sstyle=`, `(?i)\son[a-z]+=`, `(?i)<(img|link|iframe|object|embed|form)\b`, `url\(`, `@import`} {
		if found := regexp.MustCompile(pattern).FindString(page); found != "" {
			t.Errorf("the page has %q", found)
		}
	}
	_, style, found := strings.Cut(page, "<style>")
	style, _, closed := strings.Cut(style, "</style>")
	if !found || !closed {
		t.Fatal("the page has no style")
	}
	hash := sha256.Sum256([]byte(style))
	policy := regexp.MustCompile(`http-equiv="Content-Security-Policy" content="([^"]*)"`).FindStringSubmatch(page)
	if policy == nil {
		t.Fatal("the page has no policy")
	}
	// In an attribute + may be written &#43;.
	want := "'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) + "'"
	if got := strings.NewReplacer("&#39;", "'", "&#43;", "+").Replace(policy[1]); !strings.Contains(got, "default-src 'none'") || !strings.Contains(got, want) {
		t.Errorf("the policy is %s, want the style's %s and nothing else", got, want)
	}
}

const hostile = `</title></style></svg><script>alert(1)</script><img src=x onerror="alert(1)">'"&`

// TestHostileNamesStayText: whatever a user or a script calls something.
func TestHostileNamesStayText(t *testing.T) {
	t.Parallel()
	e := study(t, 6)
	e.Study.Name, e.Study.Owner, e.Study.Reason = hostile, hostile, hostile
	e.Study.Definition.Description = hostile
	e.Study.Definition.Environment = map[string]string{hostile: hostile}
	e.Study.Definition.Objectives[0].Metric = hostile
	e.Study.Definition.Space.Parameters[1].Name = hostile
	e.Study.Definition.Space.Parameters[1].Values = []space.Value{space.String(hostile), space.String("b")}
	e.Study.Progress.Energy.Method = "estimate: " + hostile
	e.Study.Progress.SystemUse = []trial.SystemUse{{Configuration: map[string]space.Value{hostile: space.Int(1)}, Epochs: 3, Seconds: 9, Saved: &trial.Saving{Seconds: 1}}}
	for i := range e.Trials {
		e.Trials[i].Configuration[hostile] = space.String(hostile)
		e.Trials[i].State = hostile
	}
	for i := range e.Events {
		e.Events[i].Worker = hostile
		if told, is := e.Events[i].Data.(trial.Report); is {
			told.Metrics[hostile] = 1
		}
	}
	e.Recommendation.Notes = []string{hostile}
	e.Recommendation.Best.Metric = hostile
	e.Recommendation.Pareto = &protocol.Pareto{Objectives: []protocol.ParetoObjective{{Name: hostile}, {Name: hostile}}, Notes: []string{hostile},
		Trials: []protocol.ParetoTrial{{Number: 1, Values: []trial.Float{1, 2}, Params: space.Configuration{hostile: space.Float(1)}}}}
	e.Recommendation.Deployments = []deployment.Deployment{{Device: hostile, Title: hostile, Code: hostile, Method: hostile, EnergyMethod: hostile, Unmet: []string{hostile}, Doubtful: []string{hostile},
		Configuration: tuning.Configuration{BatchSize: 1}, SamplesPerSecond: 1, LatencySeconds: deployment.Band{Value: 0.01, Low: 0.005, High: 0.02}}}
	source := e.source(t)
	source.Server, source.Program = hostile, hostile
	source.Workers = map[string]string{hostile: hostile}
	source.Importance = &protocol.Importance{Method: hostile, Notes: []string{hostile}, Rungs: []protocol.RungImportance{{Parameters: []protocol.ParameterImportance{{Name: hostile, Share: 1}}}}}
	page := written(t, source)
	for _, forbidden := range []string{"<script", "<img", "onerror=\"", "ZgotmplZ"} {
		if strings.Contains(page, forbidden) {
			at := strings.Index(page, forbidden)
			t.Errorf("a hostile name became markup: %s", page[max(0, at-200):min(len(page), at+100)])
		}
	}
	if n := strings.Count(page, "&lt;script&gt;alert(1)"); n < 20 {
		t.Errorf("the hostile name stands %d times in the page, so it was not tried where it may stand", n)
	}
	for _, tag := range []string{"title", "style", "svg", "main", "body", "html", "pre", "table", "figure"} {
		if opened, closed := strings.Count(page, "<"+tag+">")+strings.Count(page, "<"+tag+" "), strings.Count(page, "</"+tag+">"); opened != closed {
			t.Errorf("%d <%s> and %d </%s>", opened, tag, closed, tag)
		}
	}
}

func TestALargeStudyIsCutAndTheReportSaysSo(t *testing.T) {
	t.Parallel()
	const trials = 4_000
	page := written(t, study(t, trials).source(t))
	if len(page) > 2<<20 {
		t.Errorf("the page has %d bytes", len(page))
	}
	for shape, most := range map[string]int{"<circle": 2*1_500 + 400, "<tr>": 200 + 200 + 100, `class="thread`: 400, `class="curve`: 60 * 3, `class="span`: 3_000 + 3} {
		if n := strings.Count(page, shape); n > most || n == 0 {
			t.Errorf("%d of %s, want 1 to %d", n, shape, most)
		}
	}
	for _, wanted := range []string{"3800 of 4000 are left out", "1500 of 5333 measurements are drawn", "The 400 best of 4000 measured trials are drawn; 3600 are left out", "3940 are left out", "are joined to one bar"} {
		if !strings.Contains(page, wanted) {
			t.Errorf("the page does not say %q", wanted)
		}
	}
}

func TestAStudyWithoutAnythingMeasured(t *testing.T) {
	t.Parallel()
	e := study(t, 0)
	e.Trials, e.Events = []protocol.RankedTrial{}, []protocol.Event{}
	e.Study.Status = protocol.StudyRunning
	page := written(t, e.source(t))
	for _, wanted := range []string{"There is no recommendation", "No trial has been measured.", "No worker has had a trial.", "The study is not over"} {
		if !strings.Contains(page, wanted) {
			t.Errorf("the page does not say %q", wanted)
		}
	}
}

// TestADivergedTrialDoesNotFlattenTheCharts: values that are no numbers, and
// one that is far from all others, are counted instead of drawn.
func TestADivergedTrialDoesNotFlattenTheCharts(t *testing.T) {
	t.Parallel()
	e := study(t, 12)
	for i, value := range []trial.Float{trial.Float(math.NaN()), trial.Float(math.Inf(-1)), -1e30} {
		number := i * 3 // measured at rung 0 only
		e.Trials[number].Results[0].Values[0] = value
		for j := range e.Events {
			told, is := e.Events[j].Data.(trial.Trial)
			if is && told.Number == number && len(told.Results) > 0 {
				told.Results = []trial.Result{{Rung: 0, Values: []trial.Float{value}}}
				e.Events[j].Data = told
			}
		}
	}
	page := written(t, e.source(t))
	if !strings.Contains(page, "3 values outside the range, or not a finite number, are not drawn.") {
		t.Error("the page does not say that three values are not drawn")
	}
	for _, wrong := range []string{`"NaN"`, "NaN NaN", "Infinity\"", "+Inf\"", "1e+30\""} {
		if strings.Contains(page, wrong) {
			t.Errorf("a place on a drawing is %s", wrong)
		}
	}
}

func TestTheFrontIsDrawnForEachFurtherObjective(t *testing.T) {
	t.Parallel()
	e := study(t, 9)
	e.Study.Definition = parsed(t, strings.Replace(studyFile, "objective: {metric: accuracy, direction: maximize, target: 0.9}",
		"objective: [{metric: accuracy, direction: maximize}, {metric: bytes, direction: minimize}]", 1))
	for i := range e.Trials {
		e.Trials[i].Results = []trial.Result{{Rung: 0, Values: []trial.Float{trial.Float(i), trial.Float(100 - i)}}}
	}
	e.Recommendation.Pareto = &protocol.Pareto{Measured: 9, Objectives: []protocol.ParetoObjective{{Name: "accuracy", Direction: definition.Maximize}, {Name: "bytes", Direction: definition.Minimize}},
		Trials: []protocol.ParetoTrial{{Number: 8, Values: []trial.Float{8, 92}}, {Number: 3, Values: []trial.Float{3, 97}}}}
	page := written(t, e.source(t))
	_, figure, found := strings.Cut(page, `<figure id="pareto-1">`)
	figure, _, _ = strings.Cut(figure, "</figure>")
	if !found || strings.Count(figure, `class="dot front"`) != 3 || !strings.Contains(figure, `class="leader" d="M`) { // two dots, and the legend's
		t.Errorf("the front is not drawn:\n%s", figure)
	}
	if !strings.Contains(figure, "2 trials on the front") {
		t.Error("the summary does not say how many are on the front")
	}
}
