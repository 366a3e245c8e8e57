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
	got, err := importer.ReadResults(path, study(t, "maximize"))
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
		got, err := importer.ReadResults(file(t, "export.csv", text), study(t, "maximize"))
		if err != nil || !reflect.DeepEqual(got.Observations, want) {
			t.Errorf("%s: %+v, %v", name, got.Observations, err)
		}
	}
}

func TestResultsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ path, says string }{
		"no objective": {file(t, "a.csv", "lr,loss\n0.1,1\n"), "no column is named accuracy"},
		"no parameter": {file(t, "b.csv", "rate,accuracy\n0.1,1\n"), "lr, batch, optimizer, momentum"},
		"nothing fits": {file(t, "c.csv", "lr,accuracy\n7,1\n"), "no result that fits"},
		"no file":      {"/nowhere/e.csv", "no such file"},
		"a database":   {file(t, "f.db", "SQLite format 3\x00"), "trials_dataframe().to_csv"},
		"its address":  {"sqlite:///sweep.db", "create_study(warm_start=...)"},
	} {
		if _, err := importer.ReadResults(c.path, study(t, "maximize")); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestManyResultsAreThinnedOut(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	text.WriteString("lr,accuracy\n")
	for i := range 5000 {
		fmt.Fprintf(&text, "0.1,%d\n", i)
	}
	got, err := importer.ReadResults(file(t, "many.csv", text.String()), study(t, "maximize"))
	if err != nil || len(got.Observations) != protocol.MaxPrior || float64(got.Observations[0].Values[0]) != 4999 {
		t.Fatalf("%d results, %v", len(got.Observations), err)
	}
	if told := strings.Join(got.Notes, "\n"); !strings.Contains(told, "took 2000 of 5000") {
		t.Errorf("the notes are %s", told)
	}
}
