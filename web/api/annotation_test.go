package api_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/web/auth"
)

func TestAnnotations(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	view := s.create()
	worker := s.worker()
	lease := s.lease(worker)
	s.train(worker, lease, 0.25)
	s.train(worker, s.lease(worker), 0.5)
	ctx, viewer := t.Context(), s.client(auth.Viewer)
	note := "see <b>#12</b>\nand =1+1"
	said, err := json.Marshal(trial.Amendment{AddTags: []string{"odd", "best"}, Note: &note})
	if err != nil {
		t.Fatal(err)
	}
	path := fmt.Sprintf("/api/v1/studies/small/trials/%d/annotate", lease.Number)
	if got := arrived[trial.Annotation](t, s.admin("POST", path, string(said))); !slices.Equal(got.Tags, []string{"best", "odd"}) || got.Note != note {
		t.Errorf("%+v", got)
	}
	if got := arrived[trial.Annotation](t, s.admin("POST", "/api/v1/studies/"+view.ID+"/annotate", `{"add_tags":["paper"]}`)); !slices.Equal(got.Tags, []string{"paper"}) {
		t.Errorf("%+v", got)
	}
	if seen, err := viewer.Study(ctx, "small"); err != nil || !slices.Equal(seen.Tags, []string{"paper"}) {
		t.Errorf("%q: %v", seen.Tags, err)
	}
	if page, err := viewer.Trials(ctx, "small", protocol.TrialQuery{Query: "tags = odd"}); err != nil || page.Total != 1 || page.Trials[0].Note != note {
		t.Errorf("%+v: %v", page, err)
	}
	s.do(ask{method: "POST", path: "/api/v1/studies/small/annotate", body: `{"add_tags":["x"]}`, token: s.secrets[auth.Viewer]}).problem(t, 403, problem.Forbidden)
	told := s.admin("POST", "/api/v1/studies/small/annotate", `{"add_tags":["two words"],"note":"\u0001"}`).problem(t, 422, problem.Invalid)
	if len(told.Errors) != 2 || told.Errors[0].Path != "add_tags[0]" || told.Errors[1].Path != "note" {
		t.Errorf("%+v", told.Errors)
	}
	text, err := s.export("csv")
	if err != nil || !strings.Contains(text, ",best odd,\"see <b>#12</b>\nand =1+1\",") {
		t.Errorf("%v in\n%s", err, text)
	}
	if text, err = s.export("json"); err != nil || strings.Count(text, `"tags":["best","odd"]`) < 2 || !strings.Contains(text, `"tags":["paper"]`) {
		t.Errorf("%v in\n%s", err, text)
	}
	// A repetition with its key is answered as it was, and writes nothing.
	for _, replayed := range []string{"", "true"} {
		got := s.admin("POST", "/api/v1/studies/small/annotate", `{"remove_tags":["paper"]}`, "Idempotency-Key", "once")
		if got.status != 200 || strings.TrimSpace(string(got.body)) != "{}" || got.header.Get("Idempotency-Replayed") != replayed {
			t.Errorf("%d %s, replayed %q", got.status, got.body, got.header.Get("Idempotency-Replayed"))
		}
	}
}
