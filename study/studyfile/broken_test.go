package studyfile_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/studyfile"
)

// formatOf is the format a file's name says.
func formatOf(name string) studyfile.Format {
	if filepath.Ext(name) == ".json" {
		return studyfile.JSON
	}
	return studyfile.YAML
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// expectations reads testdata/broken.json: for each broken file all the faults
// that must be told, with the line and a part of the message.
func expectations(t *testing.T) map[string][]expectation {
	t.Helper()
	var all map[string][]expectation
	if err := json.Unmarshal(read(t, "testdata/broken.json"), &all); err != nil {
		t.Fatal(err)
	}
	return all
}

type expectation struct {
	Path string `json:"path"`
	Line int    `json:"line"`
	Says string `json:"says"`
}

func TestBrokenFilesAreToldEveryFault(t *testing.T) {
	t.Parallel()
	expected := expectations(t)
	files, err := filepath.Glob("testdata/broken/*")
	if err != nil || len(files) < 32 || len(files) != len(expected) {
		t.Fatalf("%d broken files, %d expectations: %v", len(files), len(expected), err)
	}
	for _, path := range files {
		name := filepath.Base(path)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			def, err := studyfile.Parse(read(t, path), formatOf(name))
			var told *problem.Error
			if !errors.As(err, &told) || told.Code != problem.Invalid {
				t.Fatalf("got %v, want an invalid problem", err)
			}
			if def.Name != "" || len(def.Space.Parameters) > 0 {
				t.Errorf("a faulty file gave a definition: %+v", def)
			}
			fields := told.Fields
			for _, want := range expected[name] {
				at := find(fields, want)
				if at < 0 {
					t.Errorf("nothing says %q about %s in line %d", want.Says, want.Path, want.Line)
					continue
				}
				fields = append(fields[:at:at], fields[at+1:]...)
			}
			for _, further := range fields {
				t.Errorf("unexpected: %v", further)
			}
			if _, err := json.Marshal(told.Fields); err != nil {
				t.Errorf("the faults cannot be sent: %v", err)
			}
			if t.Failed() {
				t.Log(err)
			}
		})
	}
}

func find(fields []problem.Field, want expectation) int {
	for i, f := range fields {
		if f.Path == want.Path && f.Line == want.Line && strings.Contains(f.Message, want.Says) {
			return i
		}
	}
	return -1
}

func TestFaultsComeInTheOrderOfLines(t *testing.T) {
	t.Parallel()
	_, err := studyfile.Parse(read(t, "testdata/broken/many-faults.json"), studyfile.JSON)
	var told *problem.Error
	if !errors.As(err, &told) {
		t.Fatal(err)
	}
	for i, f := range told.Fields[1:] {
		if f.Line < told.Fields[i].Line {
			t.Errorf("line %d after line %d", f.Line, told.Fields[i].Line)
		}
	}
	if want := "the study file has 11 faults"; told.Detail != want {
		t.Errorf("detail %q, want %q", told.Detail, want)
	}
}
