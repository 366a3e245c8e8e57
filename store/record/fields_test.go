package record_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	emu "github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/similarity"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/trial"
)

var update = flag.Bool("update", false, "write testdata/fields.txt")

// TestNewFieldsRaiseTheSchemasVersion holds the fields of stored documents to those that the
// newest schemas have. An earlier program would drop or misread others, and only the version
// makes it refuse the database. (Of a definition it refuses fields that it does not know.)
func TestNewFieldsRaiseTheSchemasVersion(t *testing.T) {
	t.Parallel()
	const path = "testdata/fields.txt"
	schemas := fmt.Sprintf("schemas: sqlite %d, postgres %d\n", migrations(t, "sqlite/dbfile"), migrations(t, "postgres"))
	found := map[string]bool{}
	for name, stored := range map[string]any{
		"changes": journal.Changes{}, "annotation": trial.Annotation{}, "trial": trial.Trial{}, "report": trial.Report{},
		"record": similarity.Record{}, "architecture": emu.Architecture{},
	} {
		fields(reflect.TypeOf(stored), name, found)
	}
	now := schemas + strings.Join(slices.Sorted(maps.Keys(found)), "\n") + "\n"
	kept, err := os.ReadFile(path)
	if err != nil && !*update {
		t.Fatal(err)
	}
	had, rest, _ := strings.Cut(string(kept), "\n")
	switch _, fresh, _ := strings.Cut(now, "\n"); {
	case now == string(kept):
	case had+"\n" == schemas && rest != fresh:
		t.Errorf("stored documents have other fields than %s says: add a migration to sqlite and postgres, even an empty one, then run this test with -update\n%s", path, now)
	case !*update:
		t.Errorf("%s is of other schemas: run this test with -update", path)
	default:
		if err := os.WriteFile(path, []byte(now), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// migrations is how many migrations a store has.
func migrations(t *testing.T, store string) int {
	t.Helper()
	files, err := os.ReadDir("../" + store + "/migrations")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d migrations of %s: %v", len(files), store, err)
	}
	return len(files)
}

// fields notes the places of a type's JSON document.
func fields(of reflect.Type, at string, found map[string]bool) {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice || of.Kind() == reflect.Map {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct || reflect.PointerTo(of).Implements(reflect.TypeFor[json.Marshaler]()) || strings.Count(at, ".") > 8 {
		return
	}
	for i := range of.NumField() {
		field := of.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "-" || !field.IsExported() && !field.Anonymous:
		case name == "" && field.Anonymous:
			fields(field.Type, at, found)
		default:
			inside := at + "." + name
			found[inside] = true
			fields(field.Type, inside, found)
		}
	}
}
