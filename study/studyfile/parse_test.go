package studyfile_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/search"
	"github.com/tandem-tune/tandem/study/search/stopping"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/study/studyfile"
)

// sound is a valid study without its last line break.
const sound = `name: sound
objective: {metric: accuracy, direction: maximize}
space: {x: {type: float, low: 0, high: 1}}`

func parse(t *testing.T, yaml string) definition.Definition {
	t.Helper()
	def, err := studyfile.Parse([]byte(yaml), studyfile.YAML)
	if err != nil {
		t.Fatal(err)
	}
	return def
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	want := definition.Definition{
		Name:       "sound",
		Objectives: []definition.Objective{{Metric: "accuracy", Direction: definition.Maximize}},
		Space:      space.Space{Parameters: []space.Parameter{{Name: "x", Kind: space.Training, Type: space.FloatType, High: 1}}},
		Budget: budget.Settings{
			Policy: budget.Multi, Growth: budget.Geometric, Rounding: budget.Nearest, Eta: 3,
			Epochs:       budget.EpochRange{Min: 1, Max: 9},
			DataFraction: budget.FractionRange{Min: 0.1, Max: 1},
		},
		Search: definition.Search{Method: "bohb", Promotion: budget.Asynchronous, Brackets: 1, RandomFraction: 1.0 / 3, Learning: search.LowerRungs, GridPoints: 5},
		Stop:   definition.Stop{Trials: 50, Failures: 10},
		Retry:  definition.Retry{Failures: 1},
	}
	if got := parse(t, sound); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	// Where all trials start is the ladder's default; Hyperband uses all rungs.
	for promotion, brackets := range map[string]int{"asynchronous": 1, "synchronous": 0, "none": 0} {
		if got := parse(t, sound+"\nsearch: {promotion: "+promotion+"}").Search.Brackets; got != brackets {
			t.Errorf("promotion %s: %d brackets by default, want %d", promotion, got, brackets)
		}
	}
	if got := parse(t, sound+"\nsearch: {brackets: 0}").Search.Brackets; got != 0 {
		t.Errorf("brackets: 0 became %d", got)
	}
}

func TestEarlyStoppingHasDefaults(t *testing.T) {
	t.Parallel()
	for yaml, want := range map[string]*stopping.EarlyStopping{
		"{}":                               nil,
		"{early_stopping: median}":         {Rule: stopping.Median, GraceEpochs: 1, MinTrials: 5, EveryEpochs: 1},
		"{early_stopping: {rule: median}}": {Rule: stopping.Median, GraceEpochs: 1, MinTrials: 5, EveryEpochs: 1},
		"{early_stopping: percentile}":     {Rule: stopping.Percentile, Percentile: 25, GraceEpochs: 1, MinTrials: 5, EveryEpochs: 1},
		"{early_stopping: {rule: percentile, percentile: 40, grace_epochs: 0, min_trials: 2, every_epochs: 3}}": {Rule: stopping.Percentile, Percentile: 40, MinTrials: 2, EveryEpochs: 3},
		"{promotion: none, early_stopping: halving}":                                                            {Rule: stopping.Halving, MinTrials: 2},
		"{promotion: none, early_stopping: {rule: halving, grace_epochs: 3}}":                                   {Rule: stopping.Halving, GraceEpochs: 3, MinTrials: 2},
	} {
		if got := parse(t, sound+"\nbudget: {epochs: {min: 1, max: 9}}\nsearch: "+yaml).Search.EarlyStopping; !reflect.DeepEqual(got, want) {
			t.Errorf("%s means %+v, want %+v", yaml, got, want)
		}
	}
}

func TestRepeatsAreANumberOrAMapping(t *testing.T) {
	t.Parallel()
	for yaml, want := range map[string]*search.Repeats{
		"{}":                                  nil,
		"{repeats: 1}":                        nil,
		"{repeats: 5}":                        {Trials: 3, Times: 5},
		"{repeats: {}}":                       {Trials: 3, Times: 3},
		"{repeats: {trials: 2}}":              {Trials: 2, Times: 3},
		"{repeats: {trials: 2, times: 4}}":    {Trials: 2, Times: 4},
		"{repeats: {times: 1}}":               nil,
		"{method: grid, repeats: {times: 2}}": {Trials: 3, Times: 2},
	} {
		if got := parse(t, sound+"\nsearch: "+yaml).Search.Repeats; !reflect.DeepEqual(got, want) {
			t.Errorf("%s means %+v, want %+v", yaml, got, want)
		}
	}
}

func TestTrialsAreBoundedUnlessSomethingElseIs(t *testing.T) {
	t.Parallel()
	for yaml, want := range map[string]int{
		"":                                     50,
		"stop: {trials: 7}":                    7,
		"stop: {target_reached: false}":        50,
		"stop: {seconds: 60}":                  0,
		"stop: {seconds: 60, trials: 7}":       7,
		"stop: {seconds: 60, trials: 0}":       0,
		"search: {method: grid}":               0,
		"search: {method: grid}\nstop: {}":     0,
		"search: {method: random}\nstop: {}":   50,
		"stop: {trials: 1e3}":                  1000,
		"search: {method: grid}\nretry: {}":    0,
		"stop: {trials: 3}\nsearch: {seed: 1}": 3,
	} {
		if got := parse(t, sound+"\n"+yaml).Stop.Trials; got != want {
			t.Errorf("%q: %d trials, want %d", yaml, got, want)
		}
	}
}

func TestBudgetShorthands(t *testing.T) {
	t.Parallel()
	for yaml, want := range map[string]string{
		"budget: {epochs: 10}":                                       "[10 × 1]",
		"budget: {epochs: {max: 3}}":                                 "[1 × 1 3 × 1]",
		"budget: {epochs: {min: 1, max: 9}, data_fraction: 0.5}":     "[1 × 0.5 3 × 0.5 9 × 0.5]",
		"budget: {epochs: 4, data_fraction: {min: 0.25, max: 0.75}}": "[4 × 0.25 4 × 0.75]",
		"budget: {policy: multi, epochs: {max: 9}}":                  "[1 × 0.1 3 × 0.316228 9 × 1]",
		"budget: {growth: linear, epochs: {min: 2, max: 5}}":         "[2 × 1 4 × 1 5 × 1]",
	} {
		var rungs []string
		for _, r := range parse(t, sound+"\n"+yaml).Ladder() {
			rungs = append(rungs, fmt.Sprintf("%d × %v", r.Budget.Epochs, r.Budget.DataFraction))
		}
		if got := fmt.Sprint(rungs); got != want {
			t.Errorf("%s: %s, want %s", yaml, got, want)
		}
	}
}

func TestValuesKeepWhatTheyWereWrittenAs(t *testing.T) {
	t.Parallel()
	def := parse(t, `name: values
objective: {metric: a, direction: minimize}
space:
  x: {values: [1, 1.5, 2.0, 1e-4, -3, +4, .5, "1", 'two', three, true, False, 2026-01-01, 1.2.3, y, 9007199254740991, 1e300]}`)
	want := []space.Value{
		space.Int(1), space.Float(1.5), space.Float(2), space.Float(1e-4), space.Int(-3), space.Int(4), space.Float(0.5),
		space.String("1"), space.String("two"), space.String("three"), space.Bool(true), space.Bool(false),
		space.String("2026-01-01"), space.String("1.2.3"), space.String("y"), space.Int(1<<53 - 1), space.Float(1e300),
	}
	if got := def.Space.Parameters[0].Values; !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

func TestValuesThatYAMLVersionsReadDifferentlyAreRefused(t *testing.T) {
	t.Parallel()
	for _, written := range []string{"yes", "No", "ON", "off", "010", "-007", "0x1F", "0o17", "0b11", "1_000", "1_0.5", ".inf", "-.INF", ".NaN", "00.5", "9007199254740993", "1e999", "~"} {
		_, err := studyfile.Parse([]byte(strings.Replace(sound, "type: float, low: 0, high: 1", "values: ["+written+"]", 1)), studyfile.YAML)
		var told *problem.Error
		if !errors.As(err, &told) || len(told.Fields) != 1 || told.Fields[0].Path != "space.x.values[0]" {
			t.Errorf("%s: %v", written, err)
		}
	}
}

func TestBounds(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 200)
	for _, c := range []struct {
		name   string
		data   string
		format studyfile.Format
		says   string
	}{
		{"bytes", "# " + strings.Repeat("x", 1<<20), studyfile.YAML, "at most 1048576"},
		{"values in a list", "a: [" + strings.Repeat("1, ", 30_000) + "1]", studyfile.YAML, "more than 30000 values"},
		{"values in JSON", `{"a": [` + strings.Repeat("1, ", 30_000) + "1]}", studyfile.JSON, "more than 30000 values"},
		{"tokens", "a: [" + strings.Repeat("1, ", 100_000) + "1]", studyfile.YAML, "more than 30000 values"},
		{"compact lists", strings.Repeat("- ", 500_000) + "a", studyfile.YAML, "values"},
		{"compact lists, few", strings.Repeat("- ", 100) + "a", studyfile.YAML, "32 levels"},
		{"flow lists", strings.Repeat("[", 100), studyfile.YAML, "32 levels"},
		{"flow mappings", strings.Repeat("{a: ", 100), studyfile.YAML, "32 levels"},
		{"open lists in JSON", strings.Repeat("[", 100_000), studyfile.JSON, "is not JSON"},
		{"lists in lists", strings.Repeat("[", 9_000) + strings.Repeat("]", 9_000), studyfile.JSON, "32 levels"},
		{"a long name in YAML", long + ": 1", studyfile.YAML, "at most 128"},
		{"questions", strings.Repeat("? ", 1000), studyfile.YAML, "marks a key with ?"},
		{"no such format", "name: x", "toml", "yaml or json"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := studyfile.Parse([]byte(c.data), c.format)
			if !studyfile.Unreadable(err) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %.300v, want %q", err, c.says)
			}
		})
	}
}

// TestDeepFilesAreRefusedBeforeTheyCost is not parallel: it counts what is
// allocated. The YAML parser alone would take gigabytes for this file.
func TestDeepFilesAreRefusedBeforeTheyCost(t *testing.T) {
	data := []byte(strings.Repeat("- ", 20_000) + "a")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := studyfile.Parse(data, studyfile.YAML)
	runtime.ReadMemStats(&after)
	if !studyfile.Unreadable(err) {
		t.Error(err)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 100<<20 {
		t.Errorf("took %d MiB for a file of %d bytes", took>>20, len(data))
	}
}

func TestUnreadableIsNotForFaultsInFields(t *testing.T) {
	t.Parallel()
	for _, yaml := range []string{sound + "\nunknown: 1", "name: x", sound} {
		if _, err := studyfile.Parse([]byte(yaml), studyfile.YAML); studyfile.Unreadable(err) {
			t.Errorf("%q: %v", yaml, err)
		}
	}
}

func TestOfVeryManyFaultsTheRestIsCounted(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString(sound)
	for i := range 250 {
		fmt.Fprintf(&b, "\nwrong%d: 1", i)
	}
	_, err := studyfile.Parse([]byte(b.String()), studyfile.YAML)
	var told *problem.Error
	if !errors.As(err, &told) || len(told.Fields) != 101 || !strings.Contains(told.Fields[100].Message, "150 more") {
		t.Errorf("%.500v", err)
	}
	if !strings.Contains(told.Detail, "250 faults") {
		t.Errorf("detail %q", told.Detail)
	}
}

func TestSecretsOfTheEnvironmentAreNotShown(t *testing.T) {
	t.Parallel()
	_, err := studyfile.Parse([]byte(sound+"\nenvironment: {TANDEM_KEY: hunter2, LONG: "+strings.Repeat("hunter2", 10_000)+"}"), studyfile.YAML)
	var told *problem.Error
	if !errors.As(err, &told) || len(told.Fields) != 2 {
		t.Fatalf("%.300v", err)
	}
	if shown := fmt.Sprintf("%+v", told.Fields); strings.Contains(shown, "hunter2") {
		t.Errorf("shown: %.300s", shown)
	}
}

func TestWindowsFilesAndMarksAreRead(t *testing.T) {
	t.Parallel()
	windows := "\ufeff" + strings.ReplaceAll(sound, "\n", "\r\n") + "\r\n"
	if got := parse(t, windows); !reflect.DeepEqual(got, parse(t, sound)) {
		t.Errorf("got %+v", got)
	}
}

func TestJSONIsReadAsYAMLToo(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"grid.json", "one-line.json", "as-shown.json"} {
		data := read(t, filepath.Join("testdata/valid", name))
		asJSON, err := studyfile.Parse(data, studyfile.JSON)
		if err != nil {
			t.Fatal(err)
		}
		if asYAML := parse(t, string(data)); !reflect.DeepEqual(asYAML, asJSON) {
			t.Errorf("%s: as YAML %+v\nas JSON %+v", name, asYAML, asJSON)
		}
	}
}

func TestSearchSettings(t *testing.T) {
	t.Parallel()
	def := parse(t, string(read(t, "testdata/valid/lenet.yaml")))
	got := def.SearchSettings()
	if got.Method != "bohb" || got.Seed != 7 || got.MaxTrials != 200 || got.Eta != 3 || len(got.Rungs) != 4 || got.GridPoints != 5 {
		t.Errorf("%+v", got)
	}
	if !reflect.DeepEqual(got.Maximize, []bool{true}) || !reflect.DeepEqual(got.Space, def.Space) || got.RandomFraction != def.Search.RandomFraction {
		t.Errorf("%+v", got)
	}
	if top := got.Rungs[3].Budget; top != (budget.Budget{Epochs: 27, DataFraction: 1}) {
		t.Errorf("top rung %+v", top)
	}
}

func TestStoredRefusesWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	stored, err := json.Marshal(parse(t, sound))
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string]string{
		"unknown field": strings.Replace(string(stored), `"name"`, `"future":1,"name"`, 1),
		"trailing data": string(stored) + "{}",
		"cut":           string(stored[:len(stored)-5]),
		"wrong type":    strings.Replace(string(stored), `"sound"`, "5", 1),
	} {
		if _, err := definition.Stored([]byte(data)); problem.CodeOf(err) != problem.Internal || err == nil ||
			strings.Contains(err.Error(), `has the field "future", which this version of tandem does not know`) != (name == "unknown field") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTextsAreBounded(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 70_000)
	_, err := studyfile.Parse([]byte(`{"name": "`+long+`", "description": "`+long+`", "directory": "`+long+`", "command": ["a", "`+long+`"],
"environment": {"A": "`+long+`"}, "objective": {"metric": "`+long+`", "direction": "minimize"},
"space": {"`+long+`": {}, "x": {"values": ["`+long+`"]}}}`), studyfile.JSON)
	var told *problem.Error
	if !errors.As(err, &told) {
		t.Fatal(err)
	}
	var paths []string
	for _, fault := range told.Fields {
		if len(fmt.Sprint(fault.Value, fault.Message)) > 400 {
			t.Errorf("%s: the fault itself is too long", fault.Path)
		}
		paths = append(paths, fault.Path)
	}
	want := []string{"name", "description", "command[1]", "directory", "environment.A", "objective.metric", "space." + strings.Repeat("x", 80) + "...", "space.x.values[0]"}
	slices.Sort(paths)
	slices.Sort(want)
	if !slices.Equal(paths, want) {
		t.Errorf("got  %v\nwant %v", paths, want)
	}
}

func TestHooks(t *testing.T) {
	t.Parallel()
	def, err := studyfile.Parse([]byte(sound+"\nhooks: {name: team, tell: done}"), studyfile.YAML)
	if err != nil || len(def.Hooks) != 1 || def.Hooks[0].Failures != 3 || def.Hooks[0].Spent != 0.9 || len(def.Hooks[0].Tell) != 1 {
		t.Errorf("%v %+v", err, def.Hooks)
	}
	_, err = studyfile.Parse([]byte(sound+"\nhooks: [{name: team}, {name: team, tell: [dune], failures: -1, spent: 2, url: x}, team]"), studyfile.YAML)
	for _, path := range []string{"hooks[1].name", "hooks[1].tell[0]", "hooks[1].failures", "hooks[1].spent", "hooks[1].url", "hooks[2]"} {
		if err == nil || !strings.Contains(err.Error(), path+" ") {
			t.Errorf("no fault of %s: %v", path, err)
		}
	}
}

// What is known by another name elsewhere is told the field of this file.
func TestNamesOfElsewhereAreToldTheOnesOfHere(t *testing.T) {
	t.Parallel()
	const whole = "name: s\nobjective: {metric: loss, direction: minimize}\nspace: {x: {type: float, low: 0.1, high: 1}}\nstop: {trials: 9}\nbudget: {epochs: 3}\nresources: {cores: 1}\n"
	for _, one := range []struct{ right, wrong, says string }{
		{"direction: minimize", "mode: min", "is not a field of objective: write objective.direction"},
		{"direction: minimize", "type: minimize", "is not a field of objective: write direction"},
		{"name: s\n", "name: s\nmode: max\n", "is not a field of a study: write objective.direction"},
		{"name: s\n", "name: s\nmaxTrialCount: 3\n", "is not a field of a study: write stop.trials"},
		{"trials: 9", "num_samples: 9", "is not a field of stop: write stop.trials"},
		{"epochs: 3", "max_t: 3", "is not a field of budget: write budget.epochs.max"},
		{"low: 0.1", "min: 0.1", "is not a field of space.x: write low"},
		{"cores: 1", "cpu: 1", "is not a field of resources: write cores"},
		{"type: float", "type: loguniform", "must be float, int, categorical or ordinal; write float with log: true (got loguniform)"},
		{"type: float", "type: Double", "categorical or ordinal; write float (got Double)"},
		{"trials: 9", "trails: 9", "is not a field of stop: did you mean trials?"},
		{"trials: 9", "anything: 9", "is not a field of stop: it has trials,"},
		{"trials: 9", "min: 9", "is not a field of stop: it has trials,"}, // low is no field of stop
	} {
		_, err := studyfile.Parse([]byte(strings.Replace(whole, one.right, one.wrong, 1)), studyfile.YAML)
		if err == nil || !strings.Contains(err.Error(), one.says) {
			t.Errorf("%s: %v", one.wrong, err)
		}
	}
}

// A word that is none of the possible ones is told with the one that was meant.
func TestAMisspeltWordIsToldTheRightOne(t *testing.T) {
	t.Parallel()
	const whole = "name: s\nobjective: {metric: loss, direction: minimize}\nspace: {x: {type: float, low: 0, high: 1}, k: {values: [a, b], kind: model}}\nsearch: {method: bohb, promotion: none, learning: one_rung}\nbudget: {policy: multi, epochs: {min: 1, max: 9}, growth: linear}\nsystem: {objective: seconds, cpu_threads: {values: [1, 2]}}\n"
	for _, one := range []struct{ right, wrong, says string }{
		{"direction: minimize", "direction: min", "; did you mean minimize?"}, {"direction: minimize", "direction: max", "; did you mean maximize?"},
		{"method: bohb", "method: bhob", "; did you mean bohb?"}, {"method: bohb", "method: hyperband", "Hyperband is method: random"},
		{"promotion: none", "promotion: async", "; did you mean asynchronous?"}, {"learning: one_rung", "learning: one-rung", "; did you mean one_rung?"},
		{"growth: linear", "growth: liner", "; did you mean linear?"}, {"policy: multi", "policy: multy", "; did you mean multi?"},
		{"type: float", "type: flaot", "; did you mean float?"}, {"kind: model", "kind: modle", "; did you mean model?"}, {"objective: seconds", "objective: second", "; did you mean seconds?"},
	} {
		_, err := studyfile.Parse([]byte(strings.Replace(whole, one.right, one.wrong, 1)), studyfile.YAML)
		if err == nil || !strings.Contains(err.Error(), one.says) {
			t.Errorf("%s: %v", one.wrong, err)
		}
	}
	if _, err := studyfile.Parse([]byte(strings.Replace(whole, "method: bohb", "method: anything", 1)), studyfile.YAML); err == nil || strings.Contains(err.Error(), "did you mean") {
		t.Errorf("what is far from all of them: %v", err)
	}
	if _, err := studyfile.Parse([]byte(whole), studyfile.YAML); err != nil {
		t.Error(err)
	}
}

func TestATabIsNamed(t *testing.T) {
	t.Parallel()
	for text, line := range map[string]int{
		"name: s\nobjective:\n\tmetric: loss\n\tdirection: minimize\n":  3,
		"name: s\nobjective:\n  metric: loss\n \tdirection: minimize\n": 4,
		"name: s\nspace:\n  x:\n\t\ttype: float\n":                      4,
	} {
		_, err := studyfile.Parse([]byte(text), studyfile.YAML)
		if want := fmt.Sprintf("(line %d): is not YAML: the line begins with a tab; YAML indents with spaces", line); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, not %s", text, err, want)
		}
	}
}
