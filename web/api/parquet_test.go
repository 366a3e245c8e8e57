package api_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/tandem-tune/tandem/protocol"
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
	return newStage(t, func(c *api.Config) { c.Studies = shown{UseCases: c.Studies, view: view, trials: trials} })
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

// What people analyse with reads it: pandas' own reader, or DuckDB.
func TestParquetIsReadByOthers(t *testing.T) {
	t.Parallel()
	const script = `
import json, math, sys
path = sys.argv[1]
rows = None
try:
    import pyarrow.parquet
except Exception: # it is not there, or cannot be loaded
    try:
        import duckdb
    except Exception:
        sys.exit(77)
    answer = duckdb.sql("SELECT * FROM read_parquet('" + path + "') ORDER BY number")
    rows = [dict(zip(answer.columns, row)) for row in answer.fetchall()]
if rows is None:
    rows = pyarrow.parquet.read_table(path).to_pylist()
print(json.dumps([{k: "NaN" if isinstance(v, float) and math.isnan(v) else v for k, v in row.items()} for row in rows]))
`
	data, err := table(t, tabled()).export("parquet")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "small.parquet")
	if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, python := range []string{"../../.venv-test/bin/python", "python3"} {
		if found, err := exec.LookPath(python); err == nil {
			output, err := exec.CommandContext(t.Context(), found, "-c", script, path).Output()
			var ended *exec.ExitError
			switch {
			case errors.As(err, &ended) && ended.ExitCode() == 77:
				continue
			case ended != nil:
				t.Fatalf("%s: %v\n%s", found, err, ended.Stderr)
			case err != nil:
				t.Fatalf("%s: %v", found, err)
			}
			var rows []map[string]any
			if err := json.Unmarshal(output, &rows); err != nil || len(rows) != 2 {
				t.Fatalf("%v in %s", err, output)
			}
			for cell, want := range map[string]any{
				"number": 0.0, "state": "running", "value_loss": "NaN", "tags": "best odd", "note": "a, \"note\"\n☃", "params_rate": 0.1, "params_layers": 3.0, "params_kind": "1",
				"params_batch": 64.0, "params_width": 2.0, "params_nesterov": true,
			} {
				if rows[0][cell] != want {
					t.Errorf("%s is %v, want %v", cell, rows[0][cell], want)
				}
			}
			if rows[1]["rank"] != nil || rows[1]["value_loss"] != nil || rows[1]["params_kind"] != "=1+1" {
				t.Errorf("%s", fmt.Sprint(rows[1]))
			}
			return
		}
	}
	t.Skip("no Python with pyarrow or duckdb: the file was read back by the library that wrote it only")
}
