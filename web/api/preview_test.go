package api_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/web/api"
	"github.com/tandem-tune/tandem/web/auth"
)

func (s *stage) preview(kind, file, query string) protocol.Preview {
	s.t.Helper()
	got := s.do(ask{method: "POST", path: "/api/v1/preview" + query, body: file, token: s.secrets[auth.Admin], header: map[string]string{"Content-Type": kind}})
	var preview protocol.Preview
	if err := json.Unmarshal(got.body, &preview); err != nil || got.status != 200 {
		s.t.Fatalf("%d %s: %v", got.status, got.body, err)
	}
	return preview
}

// unknownHooks are those of a server on which nobody made any.
type unknownHooks struct{ hooked }

type hooked interface{ api.Hooks }

func (unknownHooks) Check(_ context.Context, def definition.Definition) error {
	if len(def.Hooks) == 0 {
		return nil
	}
	return problem.WithFields("no such hooks", []problem.Field{{Path: "hooks[0].name", Message: "must be the name of one of your hooks"}})
}

func TestPreviewOfAFileThatNamesNoHook(t *testing.T) {
	t.Parallel()
	s := newStage(t, func(config *api.Config) { config.Hooks = unknownHooks{} })
	if got := s.preview("application/yaml", smallStudy+"\nhooks: [{name: team}]\n", ""); got.Plan != nil || len(got.Faults) != 1 || got.Faults[0].Path != "hooks[0].name" {
		t.Errorf("%+v", got)
	}
}

func TestPreviewOfAStudyFile(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	whole := s.preview("application/yaml", smallStudy, "")
	if whole.Plan == nil || whole.Plan.Trials != 4 || len(whole.Plan.Stages) != 2 || whole.Plan.Costs != nil || len(whole.Faults) != 0 {
		t.Errorf("%+v", whole)
	}
	if list, err := s.client(auth.Admin).Studies(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("it was created: %v, %v", list, err)
	}
	broken := s.preview("application/yaml", strings.NewReplacer("low: 0.001", "low: 0", "trials: 4", "trials: -4").Replace(smallStudy), "")
	if broken.Plan != nil || len(broken.Faults) != 2 || broken.Faults[0].Path != "space.rate.low" || broken.Faults[0].Line != 6 || broken.Faults[1].Path != "stop.trials" {
		t.Errorf("%+v", broken)
	}
	for kind, file := range map[string]string{"application/yaml": "name: [", "application/json": `{"name": `} {
		if got := s.preview(kind, file, ""); got.Plan != nil || len(got.Faults) != 1 {
			t.Errorf("%s: %+v", kind, got)
		}
	}
	view := s.create()
	worker := s.worker()
	s.train(worker, s.lease(worker), 0.25)
	costs := s.preview("application/yaml", smallStudy, "?like="+view.ID+"&workers=2").Plan.Costs
	if costs == nil || costs.Workers != 2 || costs.TrialSeconds <= 0 || !strings.HasPrefix(costs.Method, "estimate") {
		t.Errorf("%+v", costs)
	}
	none := s.do(ask{method: "POST", path: "/api/v1/preview?like=none", body: smallStudy, token: s.secrets[auth.Admin], header: map[string]string{"Content-Type": "application/yaml"}})
	none.problem(t, 404, problem.NotFound)
}
