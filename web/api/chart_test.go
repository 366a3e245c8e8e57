package api_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/web/auth"
)

// arrives asks for the path and compares what comes, field by field, with what
// the service says.
func arrives[T any](t *testing.T, s *stage, path string, made T, wrong error) T {
	t.Helper()
	got := s.do(ask{method: "GET", path: path, token: s.secrets[auth.Viewer]})
	var came T
	if err := json.Unmarshal(got.body, &came); err != nil || got.status != 200 || wrong != nil {
		t.Fatalf("GET %s: %d %s (%v, %v)", path, got.status, got.body, err, wrong)
	}
	var sent, meant any
	encoded, err := json.Marshal(made)
	if err != nil {
		t.Fatal(err)
	}
	if json.Unmarshal(got.body, &sent) != nil || json.Unmarshal(encoded, &meant) != nil || !reflect.DeepEqual(sent, meant) {
		t.Errorf("GET %s: %s came, %s was made", path, got.body, encoded)
	}
	return came
}

func TestWhatChartsAreDrawnFromArrives(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.create()
	worker, ctx := s.worker(), t.Context()
	for range 3 {
		s.train(worker, s.lease(worker), 0.5)
	}
	rung := 0
	columns, err := s.studies.Columns(ctx, "small", protocol.ColumnsQuery{Rung: &rung, Limit: 2})
	came := arrives(t, s, "/api/v1/studies/small/columns?rung=0&limit=2&objective=0", columns, err)
	if came.Sample == nil || len(came.Numbers) != 2 {
		t.Errorf("two of three: %+v", came)
	}
	columns, err = s.studies.Columns(ctx, "small", protocol.ColumnsQuery{})
	arrives(t, s, "/api/v1/studies/small/columns", columns, err)
	curves, err := s.studies.Curves(ctx, "small", protocol.CurvesQuery{Metric: "loss", Limit: 2})
	if came := arrives(t, s, "/api/v1/studies/small/curves?metric=loss&limit=2", curves, err); len(came.Curves) != 2 {
		t.Errorf("%+v", came)
	}
	if _, err := s.studies.Stop(ctx, "small"); err != nil { // a timeline grows until then
		t.Fatal(err)
	}
	timeline, err := s.studies.Timeline(ctx, "small", 1000)
	if came := arrives(t, s, "/api/v1/studies/small/timeline?events=1000", timeline, err); len(came.Numbers) != 3 {
		t.Errorf("%+v", came)
	}
	deflation, err := s.studies.Deflation(ctx, "small")
	if came := arrives(t, s, "/api/v1/studies/small/deflation", deflation, err); came.Why == "" || came.Slots == 0 {
		t.Errorf("%+v", came)
	}
	plan, err := s.studies.PlanProgress(ctx, "small")
	if came := arrives(t, s, "/api/v1/studies/small/plan", plan, err); came.Trials == 0 || len(came.Stages) == 0 {
		t.Errorf("%+v", came)
	}
	for path, status := range map[string]int{
		"/api/v1/studies/small/columns?rung=9": 422, "/api/v1/studies/small/columns?objective=1": 422, "/api/v1/studies/small/columns?limit=10001": 422,
		"/api/v1/studies/small/curves?metric=speed": 422, "/api/v1/studies/small/timeline?events=0": 422,
		"/api/v1/studies/none/columns": 404, "/api/v1/studies/none/curves": 404, "/api/v1/studies/none/timeline": 404, "/api/v1/studies/none/plan": 404, "/api/v1/studies/none/deflation": 404,
	} {
		if got := s.do(ask{method: "GET", path: path, token: s.secrets[auth.Viewer]}); got.status != status {
			t.Errorf("GET %s: %d, want %d: %s", path, got.status, status, got.body)
		}
	}
}
