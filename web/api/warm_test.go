package api_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/study/studyfile"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/web/auth"
)

// TestStudiesBeginWithResultsOfElsewhere sends them in every form.
func TestStudiesBeginWithResultsOfElsewhere(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	def, err := studyfile.Parse([]byte(smallStudy), studyfile.YAML)
	if err != nil {
		t.Fatal(err)
	}
	inJSON, err := json.Marshal(def)
	if err != nil {
		t.Fatal(err)
	}
	params := space.Configuration{}
	for _, p := range def.Space.Parameters {
		if len(p.Values) == 0 {
			params[p.Name] = space.Float(p.Low)
		}
	}
	prior := []protocol.Observation{{Params: params, Values: []trial.Float{trial.Float(0.5)}, Source: "sweep"}}
	view, err := s.client(auth.Admin).CreateWarm(t.Context(), inJSON, prior)
	if err != nil || view.Definition.Search.WarmStart == nil || view.Definition.Search.WarmStart.Sources[0].Observations != 1 {
		t.Fatalf("%+v, %v", view.Definition.Search.WarmStart, err)
	}
	results, err := json.Marshal(prior)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(strings.Replace(smallStudy, "name: small", "name: from-yaml", 1))
	if err != nil {
		t.Fatal(err)
	}
	body := fmt.Sprintf(`{"study_file": %s, "prior": %s}`, text, results)
	for range 2 { // the same key: once
		if got := s.admin("POST", "/api/v1/studies", body, "Idempotency-Key", "warm"); got.status != 201 || !strings.Contains(string(got.body), `"sources":[{"name":"sweep"`) {
			t.Errorf("%d %s", got.status, got.body)
		}
	}
	for name, c := range map[string]struct {
		body, says string
		status     int
	}{
		"neither":        {`{"study": {}, "study_file": "name: x", "prior": []}`, "one of them", 422},
		"unknown field":  {`{"study": {}, "priors": []}`, "{study, prior}", 422},
		"unknown inside": {fmt.Sprintf(`{"study": %s, "prior": [{"params": {}, "value": 1}]}`, inJSON), "{study, prior}", 422},
		"twice":          {`{"study": {}, "prior": [], "prior": []}`, "prior", 400},
		"a faulty study": {`{"study": {"name": "x"}, "prior": []}`, "space", 422},
		"a faulty prior": {strings.Replace(body, `"values":[0.5]`, `"values":[]`, 1), "prior[0].values", 422},
	} {
		got := s.admin("POST", "/api/v1/studies", c.body)
		got.problem(t, c.status, problem.Invalid)
		if !strings.Contains(string(got.body), c.says) {
			t.Errorf("%s: %s", name, got.body)
		}
	}
}
