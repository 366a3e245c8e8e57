package studyfile_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/search"
	"github.com/tandem-tune/tandem/study/search/cmaes"
	"github.com/tandem-tune/tandem/study/search/stopping"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/study/studyfile"
	"github.com/tandem-tune/tandem/study/system"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestValidFiles compares what each file means with testdata/stored.
func TestValidFiles(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/valid/*")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, path := range files {
		name := filepath.Base(path)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			def, err := studyfile.Parse(read(t, path), formatOf(name))
			if err != nil {
				t.Fatal(err)
			}
			comesBack(t, def)
			got, err := json.MarshalIndent(def, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join("testdata/stored", strings.ReplaceAll(name, ".", "-")+".json")
			if *update {
				if err := os.WriteFile(golden, append(got, '\n'), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if want := strings.TrimSpace(string(read(t, golden))); string(got) != want {
				t.Errorf("%s means\n%s\nwant\n%s", name, got, want)
			}
		})
	}
}

// comesBack checks that a definition survives the store, and that its JSON is
// a study file with the same meaning.
func comesBack(t interface{ Fatalf(string, ...any) }, def definition.Definition) {
	data, err := json.Marshal(def)
	if err != nil {
		t.Fatalf("marshal: %v", err)
	}
	stored, err := definition.Stored(data)
	if err != nil || !reflect.DeepEqual(stored, def) {
		t.Fatalf("from the store: %v\n%+v\nwant\n%+v", err, stored, def)
	}
	for _, format := range []studyfile.Format{studyfile.JSON, studyfile.YAML} {
		sent, err := studyfile.Parse(data, format)
		if err != nil || !reflect.DeepEqual(sent, def) {
			t.Fatalf("sent again as %s: %v\n%+v\nwant\n%+v", format, err, sent, def)
		}
	}
}

// A study that was stored before ladders were rounded to the nearest keeps its
// rungs: its search would not decide again what it decided.
func TestStoredStudiesKeepTheirLadders(t *testing.T) {
	t.Parallel()
	def, err := studyfile.Parse([]byte(`{name: old, command: [train], objective: {metric: loss, direction: minimize},
		space: {x: {type: float, low: 0, high: 1}}, budget: {policy: epochs, epochs: {min: 2, max: 50}}}`), studyfile.YAML)
	if err != nil {
		t.Fatal(err)
	}
	now, err := json.Marshal(def)
	if err != nil {
		t.Fatal(err)
	}
	then := strings.Replace(string(now), `"rounding":"nearest",`, "", 1)
	for text, want := range map[string][]int{string(now): {2, 6, 17, 50}, then: {2, 10, 50}} {
		stored, err := definition.Stored([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		var got []int
		for _, stage := range stored.Plan().Stages {
			got = append(got, stage.Budget.Epochs)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s\nhas rungs of %v epochs, want %v", text, got, want)
		}
	}
}

// An earlier build ended studies by a bound on what was left to gain, and widened
// rungs. What it stored still opens; a new study with either is refused.
func TestStoredFieldsThatAreGoneStillOpen(t *testing.T) {
	t.Parallel()
	now, err := json.Marshal(parse(t, sound))
	if err != nil {
		t.Fatal(err)
	}
	then := []byte(strings.Replace(string(now), `"stop":{`, `"stop":{"regret":0.01,`, 1))
	if stored, err := definition.Stored(then); err != nil || stored.Stop.Regret != 0.01 {
		t.Errorf("the stored study opens as %+v, %v", stored.Stop, err)
	}
	if _, err := studyfile.Parse(then, studyfile.JSON); err == nil {
		t.Error("a new study with stop.regret is taken")
	}
	then = []byte(strings.Replace(string(now), `"search":{`, `"search":{"widen":true,`, 1))
	if stored, err := definition.Stored(then); err != nil || !stored.Search.Widen {
		t.Errorf("the stored study opens as %+v, %v", stored.Search, err)
	}
	if _, err := studyfile.Parse(then, studyfile.JSON); err == nil || !strings.Contains(err.Error(), "search.widen") {
		t.Errorf("a new study with search.widen: %v", err)
	}
}

func TestDefinitionsComeBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) { comesBack(t, definitions().Draw(t, "definition")) })
}

// definitions draws complete definitions, as Parse returns them.
func definitions() *rapid.Generator[definition.Definition] {
	return rapid.Custom(func(t *rapid.T) definition.Definition {
		words := rapid.StringMatching(`[A-Za-z0-9 ,:#&*!%@{}\[\]'"\\<>|~=-]{0,12}|yes|null|1e5|0x10|~|ü😀`)
		number := rapid.Float64Range(-1e6, 1e6).Filter(func(f float64) bool { return f != 0 }) // -0 becomes 0
		def := definition.Definition{
			Name:                rapid.StringMatching(`[A-Za-z][A-Za-z0-9._-]{0,9}`).Draw(t, "name"),
			Description:         words.Draw(t, "description"),
			Command:             append([]string{"python"}, rapid.SliceOfN(words, 0, 3).Draw(t, "arguments")...),
			Directory:           words.Draw(t, "directory"),
			Environment:         map[string]string{"KEY": words.Draw(t, "variable")},
			EpochTimeoutSeconds: rapid.Float64Range(1, 1e6).Draw(t, "timeout"),
			StallSeconds:        rapid.Float64Range(1, 1e6).Draw(t, "stall"),
			StallEnds:           rapid.Bool().Draw(t, "stall ends"),
			Objectives:          []definition.Objective{{Metric: "loss", Direction: rapid.SampledFrom([]definition.Direction{definition.Maximize, definition.Minimize}).Draw(t, "direction")}},
			Space:               spaces(words, number).Draw(t, "space"),
			Budget:              budget.Settings{Epochs: budget.EpochRange{Max: rapid.IntRange(1, 100).Draw(t, "epochs")}, Eta: rapid.IntRange(2, 9).Draw(t, "eta")}.WithDefaults(),
			Search: definition.Search{
				Method:    rapid.SampledFrom([]string{"bohb", "random", "sobol", "tpe", "cma-es", "gp"}).Draw(t, "method"),
				Promotion: rapid.SampledFrom(budget.Promotions()).Draw(t, "promotion"),
				Seed:      rapid.Uint64Range(0, 1<<53-1).Draw(t, "seed"), RandomFraction: rapid.Float64Range(0, 1).Draw(t, "random"),
				Brackets: rapid.IntRange(0, 9).Draw(t, "brackets"), GridPoints: 3,
				Learning: rapid.SampledFrom([]search.Learning{search.OneRung, search.LowerRungs}).Draw(t, "learning"),
			},
			Stop:      definition.Stop{Trials: rapid.IntRange(1, 1000).Draw(t, "trials"), Seconds: rapid.Float64Range(0, 1e6).Draw(t, "seconds"), Failures: rapid.IntRange(0, 9).Draw(t, "failures")},
			Retry:     definition.Retry{Failures: rapid.IntRange(0, 9).Draw(t, "retries")},
			Priority:  rapid.IntRange(-1000, 1000).Draw(t, "priority"),
			Placement: definition.Placement{Energy: rapid.Float64Range(0, 1).Draw(t, "energy")},
		}
		if def.Search.Promotion == budget.NoPromotion {
			def.Search.Brackets = 0
		}
		if len(def.Command) > 0 && rapid.Bool().Draw(t, "with encryption") {
			def.Encryption = &definition.Encryption{Recipients: []string{"age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p"}}
			if rapid.Bool().Draw(t, "with a data set") {
				def.Encryption.Datasets = map[string]string{"scans": strings.Repeat("0e", 32)}
			}
		}
		if rapid.Bool().Draw(t, "with priorities") {
			def.ResponseSeconds = &definition.ResponseSeconds{Mean: rapid.Float64Range(0, 1e6).Draw(t, "mean response"), Tail: rapid.Float64Range(1, 1e6).Draw(t, "tail response")}
			def.Sprint = &definition.Sprint{AfterSeconds: rapid.Float64Range(0, 1e6).Draw(t, "timeout of sprints")}
		}
		def.Search.EarlyStopping = stoppingRule(def).Draw(t, "early stopping")
		if def.Search.Method == "cma-es" || rapid.Bool().Draw(t, "with restarts") {
			def.Search.Restarts = rapid.SampledFrom([]cmaes.Restarts{cmaes.IPOP, cmaes.BIPOP, cmaes.NoRestarts}).Draw(t, "restarts")
		}
		if rule := def.Search.EarlyStopping; rapid.Bool().Draw(t, "measured") && (rule == nil || rule.Rule != stopping.Halving) {
			def.Budget = anyAmounts().Draw(t, "amounts")
		}
		if rapid.Bool().Draw(t, "with repeats") {
			def.Search.Repeats = &search.Repeats{Trials: rapid.IntRange(1, 9).Draw(t, "repeated"), Times: rapid.IntRange(2, 9).Draw(t, "times"), Present: len(def.Search.Initial) > 0 && rapid.Bool().Draw(t, "present")}
		}
		if rapid.Bool().Draw(t, "with target") {
			target := number.Draw(t, "target")
			def.Objectives[0].Target, def.Stop.TargetReached = &target, true
		}
		single := def.Search.Method == "gp" || def.Search.Method == "cma-es"
		if !single && rapid.Bool().Draw(t, "with several") {
			reference := number.Draw(t, "reference")
			def.Objectives = append(def.Objectives, definition.Objective{Metric: "cost.a_b", Direction: definition.Minimize, Reference: &reference})
			def.Search.EarlyStopping = nil
		}
		if rapid.Bool().Draw(t, "with constraints") {
			low, high := number.Draw(t, "least"), 2e6
			def.Constraints = []definition.Constraint{{Metric: "cost", Max: &high}, {Expression: "cost * 2", Name: "twice", Min: &low, Max: &high}, {Expression: "a/b", Min: &low}}
		}
		if def.Service == nil && len(def.Command) > 0 {
			def.Processes = rapid.IntRange(0, 64).Draw(t, "processes")
		}
		def.Budget.Rounding = rapid.SampledFrom([]budget.Rounding{budget.Nearest, budget.Down}).Draw(t, "rounding")
		if rapid.Bool().Draw(t, "with a formula") {
			o := &def.Objectives[0]
			o.Metric, o.Expression, o.Name = "", rapid.SampledFrom([]string{"a.b / c", " a", "a > 0 ?\n 1: 2", "max(a,\t-1e3)**2"}).Draw(t, "formula"), "of.it"
		}
		if def.Encryption != nil && def.Service == nil && def.Inference == nil && rapid.Bool().Draw(t, "confidential") {
			def.Processes = 0 // they need a network
			def.Confidential, def.Sandbox = &definition.Confidential{Policy: strings.Repeat("0e", 32), Log: definition.LogTail, Metrics: map[string]definition.Told{}}, "strict"
			for _, name := range append(def.NeedsReported(def.Names()), "loss") {
				def.Confidential.Metrics[name] = definition.Told{Low: -1, High: 2.5, Round: 0.01}
			}
			def.System.Word = definition.Off
			return def
		}
		if def.System.Word = rapid.SampledFrom([]string{definition.Automatic, definition.Off, ""}).Draw(t, "system"); def.System.Word != "" {
			return def
		}
		def.System.Fix("memory_gib", space.Int(8)) // said nothing, it would be one of the words
		if rapid.Bool().Draw(t, "with threads") {
			def.System.Fix("cpu_threads", space.Int(2))
		}
		if rapid.Bool().Draw(t, "with tuned knobs") {
			def.System.Tuning = &system.Settings{Objective: system.Joules, Tuned: []system.Tuned{
				{Name: "cores"}, {Name: "loader_workers", Values: []space.Value{space.Int(0), space.Int(4)}}, {Name: "precision", Values: []space.Value{space.String("bf16")}},
			}}
		}
		return def
	})
}

// stoppingRule draws an early-stopping rule, complete, or none.
func stoppingRule(def definition.Definition) *rapid.Generator[*stopping.EarlyStopping] {
	return rapid.Custom(func(t *rapid.T) *stopping.EarlyStopping {
		rules := []stopping.Rule{"", stopping.Median, stopping.Percentile}
		if def.Search.Promotion == budget.NoPromotion && len(def.Ladder()) > 1 {
			rules = append(rules, stopping.Halving)
		}
		rule := stopping.EarlyStopping{
			Rule: rapid.SampledFrom(rules).Draw(t, "rule"), GraceEpochs: rapid.IntRange(0, 3).Draw(t, "grace"), MinTrials: rapid.IntRange(1, 9).Draw(t, "least"),
		}
		switch rule.Rule {
		case "":
			return nil
		case stopping.Percentile:
			rule.Percentile = rapid.Float64Range(1, 99).Draw(t, "percentile")
			fallthrough
		case stopping.Median:
			rule.EveryEpochs = rapid.IntRange(1, 5).Draw(t, "every")
		}
		return &rule
	})
}

func spaces(words *rapid.Generator[string], number *rapid.Generator[float64]) *rapid.Generator[space.Space] {
	return rapid.Custom(func(t *rapid.T) space.Space {
		value := rapid.OneOf(
			rapid.Map(words, space.String),
			rapid.Map(number, space.Float),
			rapid.Map(rapid.Int64Range(-1<<53+1, 1<<53-1), space.Int),
			rapid.Map(rapid.Bool(), space.Bool),
		)
		meaning := func(v space.Value) string {
			if n, ok := v.Number(); ok {
				return fmt.Sprint(n)
			}
			return fmt.Sprintf("%q", v.String())
		}
		choice := space.Parameter{Name: "choice", Kind: space.Model, Type: space.CategoricalType, Values: rapid.SliceOfNDistinct(value, 1, 6, meaning).Draw(t, "values")}
		low := number.Draw(t, "low")
		rate := space.Parameter{Name: "rate", Kind: space.Training, Type: space.FloatType, Low: low, High: low + rapid.Float64Range(1, 1e6).Draw(t, "width")}
		if rapid.Bool().Draw(t, "conditional") {
			rate.When = []space.Condition{{Parameter: "choice", In: choice.Values[:1]}}
		}
		size := space.Parameter{Name: "size.of-it", Kind: space.System, Type: space.IntType, Low: 1, High: float64(rapid.IntRange(9, 99).Draw(t, "high")), Log: rapid.Bool().Draw(t, "log"), Step: float64(rapid.IntRange(0, 4).Draw(t, "step"))}
		s := space.Space{Parameters: []space.Parameter{choice, rate, size}}
		if rapid.Bool().Draw(t, "forbidden") {
			s.Forbidden = []space.Forbidden{{{Parameter: "size.of-it", In: []space.Value{space.Int(1)}}, {Parameter: "choice", In: choice.Values[:1]}}}
		}
		return s
	})
}

// FuzzParseYAML and FuzzParseJSON: nothing makes Parse panic, and whatever it
// accepts is valid and comes back.
func FuzzParseYAML(f *testing.F) { fuzz(f, studyfile.YAML) }
func FuzzParseJSON(f *testing.F) { fuzz(f, studyfile.JSON) }

func fuzz(f *testing.F, format studyfile.Format) {
	for _, pattern := range []string{"testdata/valid/*", "testdata/broken/*"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			f.Fatal(pattern, err)
		}
		for _, path := range files {
			data, err := os.ReadFile(path)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		def, err := studyfile.Parse(data, format)
		if err != nil {
			if err.Error() == "" {
				t.Fatal("an error without a text")
			}
			return
		}
		if faults := append(def.Space.Validate("space"), def.Budget.Validate("budget")...); len(faults) > 0 {
			t.Fatalf("accepted with faults: %v", faults)
		}
		comesBack(t, def)
	})
}

// anyAmounts draws budgets in seconds or joules.
func anyAmounts() *rapid.Generator[budget.Settings] {
	return rapid.Custom(func(t *rapid.T) budget.Settings {
		most := rapid.Float64Range(1, 1e6).Draw(t, "most")
		amount := budget.AmountRange{Min: rapid.Float64Range(0.01, most).Draw(t, "least"), Max: most}
		s := budget.Settings{Eta: rapid.IntRange(2, 9).Draw(t, "eta"), Epochs: budget.EpochRange{Max: rapid.IntRange(0, 50).Draw(t, "epochs")}}
		if rapid.Bool().Draw(t, "joules") {
			s.Joules = amount
		} else {
			s.Seconds = amount
		}
		return s.WithDefaults()
	})
}
