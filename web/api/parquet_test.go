package api_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/web/api"
)

// table is a stage whose study has these trials, of parameters of every type.
func table(t *testing.T, trials []protocol.RankedTrial) *stage {
	t.Helper()
	view := newStage(t).create()
	view.Definition.Space.Parameters = []space.Parameter{
		{Name: "rate", Type: space.FloatType}, {Name: "layers", Type: space.IntType},
		{Name: "kind", Type: space.CategoricalType, Values: []space.Value{space.String("sgd"), space.Int(1)}},
		{Name: "batch", Type: space.OrdinalType, Values: []space.Value{space.Int(32), space.Int(64)}},
		{Name: "width", Type: space.OrdinalType, Values: []space.Value{space.Float(0.5), space.Int(2)}},
		{Name: "nesterov", Type: space.CategoricalType, Values: []space.Value{space.Bool(true), space.Bool(false)}},
	}
	return newStage(t, func(c *api.Config) { c.Studies = useCases(shown{UseCases: c.Studies, view: view, trials: trials}) })
}

func tabled() []protocol.RankedTrial {
	full, bare := ranked(0, trial.Float(math.NaN())), protocol.RankedTrial{}
	full.Configuration = space.Configuration{
		"rate": space.Float(0.1), "layers": space.Int(3), "kind": space.Int(1), "batch": space.Int(64), "width": space.Int(2), "nesterov": space.Bool(true),
	}
	full.Tags, full.Note = []string{"best", "odd"}, "a, \"note\"\n☃"
	bare.Number, bare.State = 1, trial.Queued
	bare.Configuration = space.Configuration{"kind": space.String("=1+1")}
	return []protocol.RankedTrial{full, bare}
}

func TestParquetHasTheTableOfTheCSV(t *testing.T) {
	t.Parallel()
	s := table(t, tabled())
	text, err := s.export("csv")
	if err != nil {
		t.Fatal(err)
	}
	lines, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	data, err := s.export("parquet")
	if err != nil {
		t.Fatal(err)
	}
	file, err := parquet.OpenFile(bytes.NewReader([]byte(data)), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, path := range file.Schema().Columns() {
		names = append(names, strings.Join(path, "/"))
	}
	if !slices.Equal(names, lines[0]) {
		t.Errorf("the columns are %q, those of the CSV %q", names, lines[0])
	}
	want := []string{
		`0 running 1 1 3 0.5 NaN 1.5 20 estimate: =cmd best odd a, "note"` + "\n☃ 0.1 3 1 64 2 true",
		`1 queued <null> 0 0 0 <null> 0 <null> <null> <null> <null> <null> <null> =1+1 <null> <null> <null>`,
	}
	rows := readRows(t, file)
	if len(rows) != len(want) {
		t.Fatalf("%d rows", len(rows))
	}
	for i, row := range rows {
		cells := make([]string, len(row))
		for at, value := range row {
			cells[at] = value.String()
		}
		if got := strings.Join(cells, " "); got != want[i] {
			t.Errorf("row %d is\n%s\nwant\n%s", i, got, want[i])
		}
	}
	if study, _ := file.Lookup("study"); study != "small" {
		t.Errorf("it is of the study %q", study)
	}
	got := s.admin("GET", "/api/v1/studies/small/export?format=parquet", "")
	if got.header.Get("Content-Disposition") != `attachment; filename="small.parquet"` || got.header.Get("Content-Type") != "application/vnd.apache.parquet" {
		t.Errorf("%v", got.header)
	}
}

func readRows(t *testing.T, file *parquet.File) []parquet.Row {
	t.Helper()
	var all []parquet.Row
	for _, group := range file.RowGroups() {
		rows := group.Rows()
		for {
			page := make([]parquet.Row, 100)
			count, err := rows.ReadRows(page)
			for _, row := range page[:count] {
				all = append(all, row.Clone())
			}
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := rows.Close(); err != nil {
			t.Error(err)
		}
	}
	return all
}

func TestParquetOfManyTrialsComesInGroups(t *testing.T) {
	t.Parallel()
	trials := make([]protocol.RankedTrial, 25_000)
	for i := range trials {
		trials[i] = ranked(i, trial.Float(i))
	}
	data, err := table(t, trials).export("parquet")
	if err != nil {
		t.Fatal(err)
	}
	file, err := parquet.OpenFile(bytes.NewReader([]byte(data)), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	if file.NumRows() != 25_000 || len(file.RowGroups()) != 3 {
		t.Errorf("%d rows in %d groups", file.NumRows(), len(file.RowGroups()))
	}
	for i, row := range readRows(t, file) {
		if row[0].Int64() != int64(i) || row[6].Double() != float64(i) {
			t.Fatalf("row %d is %v", i, row)
		}
	}
}

// readElsewhere reads a Parquet file by what people analyse with: DuckDB, or
// pandas' own reader. It prints the types of the columns and the rows.
const readElsewhere = `
import json, math, sys
path = sys.argv[1]
try:
    import duckdb
    answer = duckdb.sql("SELECT * FROM read_parquet('" + path + "') ORDER BY number")
    types = dict(zip(answer.columns, map(str, answer.types)))
    rows = [dict(zip(answer.columns, row)) for row in answer.fetchall()]
except ImportError:
    try:
        import pyarrow.parquet
    except ImportError:
        sys.exit(77)
    table = pyarrow.parquet.read_table(path)
    names = {"int64": "BIGINT", "double": "DOUBLE", "string": "VARCHAR", "bool": "BOOLEAN"}
    types = {field.name: names[str(field.type)] for field in table.schema}
    rows = table.to_pylist()
rows = [{k: "NaN" if isinstance(v, float) and math.isnan(v) else v for k, v in row.items()} for row in rows]
print(json.dumps({"types": types, "rows": rows}))
`

type readTable struct {
	Types map[string]string
	Rows  []map[string]any
}

// elsewhere reads the file by the first Python that has a reader, if there is one.
func elsewhere(t *testing.T, path string) (table readTable, found bool) {
	t.Helper()
	for _, python := range []string{"../../.venv-test/bin/python", "python3"} {
		program, err := exec.LookPath(python)
		if err != nil {
			continue
		}
		output, err := exec.CommandContext(t.Context(), program, "-c", readElsewhere, path).Output()
		var ended *exec.ExitError
		switch {
		case errors.As(err, &ended) && ended.ExitCode() == 77:
			continue
		case ended != nil:
			t.Fatalf("%s: %v\n%s", program, err, ended.Stderr)
		case err != nil:
			t.Fatalf("%s: %v", program, err)
		}
		if err := json.Unmarshal(output, &table); err != nil {
			t.Fatalf("%v in %s", err, output)
		}
		return table, true
	}
	return table, false
}

func TestParquetIsReadByOthers(t *testing.T) {
	t.Parallel()
	data, err := table(t, tabled()).export("parquet")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "small.parquet")
	if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
		t.Fatal(err)
	}
	read, found := elsewhere(t, path)
	if !found {
		t.Skip("no Python with duckdb, which scripts/test installs, or pyarrow: the file was read back by the library that wrote it only")
	}
	for column, want := range map[string]string{
		"number": "BIGINT", "state": "VARCHAR", "rank": "BIGINT", "value_loss": "DOUBLE", "seconds": "DOUBLE", "joules": "DOUBLE", "tags": "VARCHAR", "note": "VARCHAR",
		"params_rate": "DOUBLE", "params_layers": "BIGINT", "params_kind": "VARCHAR", "params_batch": "BIGINT", "params_width": "DOUBLE", "params_nesterov": "BOOLEAN",
	} {
		if read.Types[column] != want {
			t.Errorf("the type of %s is %q, want %s", column, read.Types[column], want)
		}
	}
	if len(read.Rows) != 2 {
		t.Fatalf("%d rows", len(read.Rows))
	}
	for cell, want := range map[string]any{
		"number": 0.0, "state": "running", "value_loss": "NaN", "tags": "best odd", "note": "a, \"note\"\n☃", "params_rate": 0.1, "params_layers": 3.0, "params_kind": "1",
		"params_batch": 64.0, "params_width": 2.0, "params_nesterov": true,
	} {
		if read.Rows[0][cell] != want {
			t.Errorf("%s is %v, want %v", cell, read.Rows[0][cell], want)
		}
	}
	if last := read.Rows[1]; last["rank"] != nil || last["value_loss"] != nil || last["params_kind"] != "=1+1" {
		t.Errorf("%v", last)
	}
}
