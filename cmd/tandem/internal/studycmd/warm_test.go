package studycmd

import (
	"io"
	"reflect"
	"testing"

	"github.com/tandem-tune/tandem/study/definition"
)

// --warm-start-from adds to what the study file says, and takes nothing away.
func TestWarmStartFromKeepsWhatTheFileSays(t *testing.T) {
	given := &definition.WarmStart{Studies: []string{"first"}, Similar: 3}
	def := definition.Definition{Search: definition.Search{WarmStart: given}}
	flags := warmFlags{from: []string{"second", "first"}}
	if _, err := flags.apply(&def, io.Discard); err != nil {
		t.Fatal(err)
	}
	if want := (&definition.WarmStart{Studies: []string{"first", "second"}, Similar: 3}); !reflect.DeepEqual(def.Search.WarmStart, want) {
		t.Errorf("begins with %+v, want %+v", def.Search.WarmStart, want)
	}
	if len(given.Studies) != 1 {
		t.Errorf("the file's own list was changed: %v", given.Studies)
	}
}
