package importer_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/store/importer"
	"github.com/tandem-tune/tandem/study/space"
)

func example() space.Space {
	sgd, adam := space.String("sgd"), space.String("adam")
	return space.Space{Parameters: []space.Parameter{
		{Name: "lr", Kind: space.Training, Type: space.FloatType, Low: 1e-4, High: 1, Log: true},
		{Name: "batch", Kind: space.Training, Type: space.OrdinalType, Values: []space.Value{space.Int(32), space.Int(64), space.Int(128)}},
		{Name: "optimizer", Kind: space.Training, Type: space.CategoricalType, Values: []space.Value{sgd, adam}},
		{Name: "momentum", Kind: space.Training, Type: space.FloatType, Low: 0, High: 0.99, When: []space.Condition{{Parameter: "optimizer", In: []space.Value{sgd}}}},
	}}
}

func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestConfigurationsOfFiles(t *testing.T) {
	t.Parallel()
	want := []space.Configuration{
		{"lr": space.Float(0.01), "batch": space.Int(64), "optimizer": space.String("sgd")},
		{"lr": space.Float(0.1)},
	}
	for name, path := range map[string]string{
		"json":          file(t, "a.json", `[{"lr": 0.01, "batch": 64, "optimizer": "sgd"}, {"lr": 0.1}]`),
		"csv":           file(t, "a.csv", "lr,batch,optimizer\n0.01,64,sgd\n0.1,,\n"),
		"csv, exported": file(t, "b.csv", "number,params_lr,params_batch,params_optimizer\n1,1e-2,64,sgd\n2,.1,,\n"),
	} {
		got, notes, err := importer.ReadConfigurations(path, example())
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
		if told := strings.Join(notes, " "); strings.Contains(told, "number") != (name == "csv, exported") {
			t.Errorf("%s: notes %q", name, told)
		}
	}
}

func TestFilesWithoutConfigurations(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ path, says string }{
		"missing":     {"/nowhere/a.csv", "no such file"},
		"empty":       {file(t, "a.csv", ""), "must name the columns"},
		"no columns":  {file(t, "b.csv", "number,value\n1,2\n"), "lr, batch, optimizer, momentum"},
		"twice":       {file(t, "c.csv", "lr,lr\n1,2\n"), `two columns are named "lr"`},
		"ragged":      {file(t, "d.csv", "lr,batch\n1\n"), "wrong number of fields"},
		"not a list":  {file(t, "e.json", `{"lr": 1}`), "must be a list"},
		"not a value": {file(t, "f.json", `[{"lr": [1]}]`), "must be a list"},
	} {
		if _, _, err := importer.ReadConfigurations(c.path, example()); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
