package trial_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/trial"
)

func TestAmendedAnnotations(t *testing.T) {
	t.Parallel()
	text := func(s string) *string { return &s }
	before := trial.Annotation{Tags: []string{"b", "c"}, Note: "old"}
	for name, c := range map[string]struct {
		change trial.Amendment
		tags   []string
		note   string
	}{
		"tags are sorted, each once":                {trial.Amendment{AddTags: []string{"d", "a", "b", "a"}}, []string{"a", "b", "c", "d"}, "old"},
		"tags are removed":                          {trial.Amendment{RemoveTags: []string{"c", "never-there"}}, []string{"b"}, "old"},
		"what is removed and added stays":           {trial.Amendment{AddTags: []string{"c"}, RemoveTags: []string{"c", "b"}}, []string{"c"}, "old"},
		"none is left":                              {trial.Amendment{RemoveTags: []string{"c", "b"}}, nil, "old"},
		"a note is replaced":                        {trial.Amendment{Note: text("  new\r\nline\t<b>☃</b> \n")}, []string{"b", "c"}, "new\nline\t<b>☃</b>"},
		"a note is removed":                         {trial.Amendment{Note: text(" ")}, []string{"b", "c"}, ""},
		"tags may be of any letters and some signs": {trial.Amendment{AddTags: []string{"ünï", "v1.2-rc_3+x/y", "日本"}}, []string{"b", "c", "v1.2-rc_3+x/y", "ünï", "日本"}, "old"},
		"as many as there may be":                   {trial.Amendment{RemoveTags: []string{"b", "c"}, AddTags: manyTags(trial.MaxTags)}, manyTags(trial.MaxTags), "old"},
		"as long as it may be":                      {trial.Amendment{Note: text(strings.Repeat("x", trial.MaxNoteBytes))}, []string{"b", "c"}, strings.Repeat("x", trial.MaxNoteBytes)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := before.Amended(c.change)
			if err != nil || !slices.Equal(got.Tags, c.tags) || got.Note != c.note {
				t.Errorf("%q %q, %v; want %q %q", got.Tags, got.Note, err, c.tags, c.note)
			}
		})
	}
	if !slices.Equal(before.Tags, []string{"b", "c"}) {
		t.Errorf("the annotation before was changed to %q", before.Tags)
	}
}

// manyTags are as many different tags, sorted.
func manyTags(count int) []string {
	list := make([]string, count)
	for i := range list {
		list[i] = "t" + string(rune('A'+i/26)) + string(rune('a'+i%26))
	}
	return list
}

func TestRefusedAmendments(t *testing.T) {
	t.Parallel()
	text := func(s string) *string { return &s }
	for name, c := range map[string]struct {
		change trial.Amendment
		paths  []string
	}{
		"nothing":            {trial.Amendment{}, []string{"body"}},
		"an empty tag":       {trial.Amendment{AddTags: []string{""}}, []string{"add_tags[0]"}},
		"two words":          {trial.Amendment{AddTags: []string{"fine", "two words", "a,b", "tag:x", "#1", "a\nb", "a=b"}}, []string{"add_tags[1]", "add_tags[2]", "add_tags[3]", "add_tags[4]", "add_tags[5]", "add_tags[6]"}},
		"a long tag":         {trial.Amendment{AddTags: []string{strings.Repeat("é", trial.MaxTagLetter+1)}}, []string{"add_tags[0]"}},
		"no UTF-8":           {trial.Amendment{AddTags: []string{"a\xff"}, Note: text("a\xff")}, []string{"add_tags[0]", "note"}},
		"too many tags":      {trial.Amendment{AddTags: manyTags(trial.MaxTags + 1)}, []string{"add_tags"}},
		"a long note":        {trial.Amendment{Note: text(strings.Repeat("x", trial.MaxNoteBytes+1))}, []string{"note"}},
		"control characters": {trial.Amendment{Note: text("a\x1b[31mb")}, []string{"note"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := trial.Annotation{Tags: []string{"kept"}}
			got, err := before.Amended(c.change)
			var told *problem.Error
			if !errors.As(err, &told) || told.Code != problem.Invalid {
				t.Fatalf("%v", err)
			}
			var paths []string
			for _, fault := range told.Fields {
				paths = append(paths, fault.Path)
			}
			if !slices.Equal(paths, c.paths) || !slices.Equal(got.Tags, before.Tags) {
				t.Errorf("faults %q, want %q; the annotation is %q", paths, c.paths, got.Tags)
			}
		})
	}
}
