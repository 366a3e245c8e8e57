package api_test

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/web/auth"
)

const brokenFiles = "../../study/studyfile/testdata/"

// TestBrokenStudyFilesAreToldTheirFaults sends every broken study file there
// is. broken.json holds, by hand, all the faults each of them has.
func TestBrokenStudyFilesAreToldTheirFaults(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	before := s.create()
	var expected map[string][]struct {
		Path, Says string
		Line       int
	}
	if err := json.Unmarshal(read(t, brokenFiles+"broken.json"), &expected); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(brokenFiles + "broken/*")
	if err != nil || len(files) < 30 || len(files) != len(expected) {
		t.Fatalf("%d files, %d expectations: %v", len(files), len(expected), err)
	}
	for _, file := range files {
		kind := "application/yaml"
		if filepath.Ext(file) == ".json" {
			kind = "application/json"
		}
		got := s.admin("POST", "/api/v1/studies", string(read(t, file)), "Content-Type", kind, "Idempotency-Key", filepath.Base(file))
		name := filepath.Base(file)
		if got.status != 400 && got.status != 422 {
			t.Errorf("%s: status %d: %s", name, got.status, got.body)
			continue
		}
		told := got.problem(t, got.status, problem.Invalid)
		for _, want := range expected[filepath.Base(file)] {
			if !told.has(want.Path, want.Says) {
				t.Errorf("%s: nothing says %q about %s: %s", name, want.Says, want.Path, got.body)
			}
		}
		for _, field := range told.Errors {
			if field.Path == "" || field.Message == "" {
				t.Errorf("%s: a fault without a path or a message: %s", name, got.body)
			}
		}
		if len(told.Errors) != len(expected[filepath.Base(file)]) {
			t.Errorf("%s: %d faults, want %d: %s", name, len(told.Errors), len(expected[filepath.Base(file)]), got.body)
		}
	}
	list, err := s.client(auth.Admin).Studies(t.Context())
	if err != nil || len(list) != 1 || list[0].ID != before.ID {
		t.Fatalf("there are %d studies, want only the one from before: %v", len(list), err)
	}
	events, err := s.studies.Events(t.Context(), before.ID, 0, 100)
	if err != nil || len(events) != 1 {
		t.Fatalf("the study from before has %d events: %v", len(events), err)
	}
}
