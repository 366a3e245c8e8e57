package importer_test

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/store/importer"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/study/studyfile"
	"github.com/tandem-tune/tandem/trial"
)

func study(t *testing.T, direction string) definition.Definition {
	t.Helper()
	def, err := studyfile.Parse([]byte(`
name: example
objective: {metric: accuracy, direction: `+direction+`}
space:
  lr: {type: float, low: 1e-4, high: 1, log: true}
  batch: {type: ordinal, values: [32, 64, 128]}
  optimizer: {values: [sgd, adam]}
  momentum: {type: float, low: 0, high: 0.99, when: {optimizer: sgd}}
`), studyfile.YAML)
	if err != nil {
		t.Fatal(err)
	}
	return def
}

func observed(source string, value float64, params space.Configuration) protocol.Observation {
	return protocol.Observation{Params: params, Values: []trial.Float{trial.Float(value)}, Source: source}
}

func TestResultsOfCSV(t *testing.T) {
	t.Parallel()
	path := file(t, "sweep.csv", `name,lr,batch,optimizer,accuracy,epochs,data_fraction
first,0.01,64,sgd,0.9,9,0.5
second,0.1,,adam,NaN,,
outside,7,64,sgd,0.5,9,1
no value,0.1,64,sgd,,9,1
no budget,0.1,64,sgd,0.4,-1,1
`)
	got, err := importer.ReadResults(t.Context(), path, "", study(t, "maximize"))
	if err != nil || len(got.Observations) != 2 {
		t.Fatalf("%+v, %v", got, err)
	}
	first := observed("sweep.csv", 0.9, space.Configuration{"lr": space.Float(0.01), "batch": space.Int(64), "optimizer": space.String("sgd")})
	first.Epochs, first.DataFraction = 9, 0.5
	if !reflect.DeepEqual(got.Observations[0], first) {
		t.Errorf("%+v, want %+v", got.Observations[0], first)
	}
	if second := got.Observations[1]; !math.IsNaN(float64(second.Values[0])) || len(second.Params) != 2 || second.Epochs != 0 {
		t.Errorf("%+v", second)
	}
	told := strings.Join(got.Notes, "\n")
	for _, wanted := range []string{"no parameters: name", "left out 1: lr must be between", "left out 1: it has no value", "left out 1: its epochs"} {
		if !strings.Contains(told, wanted) {
			t.Errorf("the notes lack %q:\n%s", wanted, told)
		}
	}
}

// A study's own export, and a data frame of Optuna's, are read as they are.
func TestResultsOfExports(t *testing.T) {
	t.Parallel()
	want := []protocol.Observation{observed("export.csv", 0.5, space.Configuration{"lr": space.Float(0.25), "batch": space.Int(32)})}
	for name, text := range map[string]string{
		"tandem": "number,state,value_accuracy,params_lr,params_batch\n0,completed,0.5,0.25,32\n1,failed,,0.25,32\n",
		"optuna": ",number,value,params_lr,params_batch,state\n0,0,0.5,0.25,32,COMPLETE\n1,1,,0.1,32,FAIL\n",
	} {
		got, err := importer.ReadResults(t.Context(), file(t, "export.csv", text), "", study(t, "maximize"))
		if err != nil || !reflect.DeepEqual(got.Observations, want) {
			t.Errorf("%s: %+v, %v", name, got.Observations, err)
		}
	}
}

func TestResultsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ path, study, says string }{
		"no objective":       {file(t, "a.csv", "lr,loss\n0.1,1\n"), "", "no column is named accuracy"},
		"no parameter":       {file(t, "b.csv", "rate,accuracy\n0.1,1\n"), "", "lr, batch, optimizer, momentum"},
		"nothing fits":       {file(t, "c.csv", "lr,accuracy\n7,1\n"), "", "no result that fits"},
		"a study of a table": {file(t, "d.csv", "lr,accuracy\n0.1,1\n"), "sweep", "there is no study"},
		"no file":            {"/nowhere/e.csv", "", "no such file"},
		"no database":        {"sqlite:///nowhere.db", "", "no such file"},
		"not a database":     {"sqlite:///" + file(t, "f.db", "lr,accuracy\n0.1,1\n"), "", "no SQLite database"},
		"which study":        {"testdata/optuna.db", "", "choose one of sweep, losses"},
		"no such study":      {"testdata/optuna.db", "sweeps", `no study "sweeps", only sweep, losses`},
		"other direction":    {"testdata/optuna.db", "losses", "is to minimize, and this study is to maximize"},
	} {
		if _, err := importer.ReadResults(t.Context(), c.path, c.study, study(t, "maximize")); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestResultsOfOptuna reads a database that Optuna 5.0.0 wrote
// (testdata/fixture.py).
func TestResultsOfOptuna(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"testdata/optuna.db", "sqlite:///testdata/optuna.db"} {
		got, err := importer.ReadResults(t.Context(), path, "sweep", study(t, "maximize"))
		if err != nil || len(got.Observations) != 9 {
			t.Fatalf("%d results, %v", len(got.Observations), err)
		}
		want := observed("Optuna study sweep", 1.5, space.Configuration{"lr": space.Float(0.5), "batch": space.Int(64), "optimizer": space.String("adam")})
		if !reflect.DeepEqual(got.Observations[0], want) {
			t.Errorf("%+v, want %+v", got.Observations[0], want)
		}
		momentum, infinite, pruned := 0, 0, 0
		for _, o := range got.Observations {
			lr, _ := o.Params["lr"].Number()
			switch value := float64(o.Values[0]); {
			case math.IsInf(value, 1):
				infinite++
			case o.Epochs == 2 && math.Abs(value-2*lr) < 1e-12:
				pruned++
			case o.Epochs != 0 || math.Abs(value-3*lr) > 1e-12:
				t.Errorf("%+v", o)
			}
			if _, there := o.Params["momentum"]; there {
				momentum++
			}
		}
		if infinite != 1 || pruned != 1 || momentum == 0 || momentum == 9 {
			t.Errorf("%d infinite, %d pruned, %d with momentum", infinite, pruned, momentum)
		}
		if told := strings.Join(got.Notes, "\n"); !strings.Contains(told, "left out 1: it failed") || !strings.Contains(told, "the parameter seed") {
			t.Errorf("the notes are %s", told)
		}
	}
	if got, err := importer.ReadResults(t.Context(), "testdata/optuna.db", "losses", study(t, "minimize")); err == nil || !strings.Contains(err.Error(), "lr must be between") {
		t.Errorf("results outside the space: %+v, %v", got, err)
	}
}

func TestManyResultsAreThinnedOut(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	text.WriteString("lr,accuracy\n")
	for i := range 5000 {
		fmt.Fprintf(&text, "0.1,%d\n", i)
	}
	got, err := importer.ReadResults(t.Context(), file(t, "many.csv", text.String()), "", study(t, "maximize"))
	if err != nil || len(got.Observations) != protocol.MaxPrior || float64(got.Observations[0].Values[0]) != 4999 {
		t.Fatalf("%d results, %v", len(got.Observations), err)
	}
	if told := strings.Join(got.Notes, "\n"); !strings.Contains(told, "took 2000 of 5000") {
		t.Errorf("the notes are %s", told)
	}
}
