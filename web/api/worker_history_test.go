package api_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/web/auth"
)

func TestAWorkersHistoryIsWhatItsHeartbeatsTold(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	path := "/api/v1/workers/" + workerID + "/history"
	s.admin("GET", path, "").problem(t, 404, problem.NotFound)
	s.admin("POST", "/api/v1/workers", `{"id":"`+workerID+`","name":"w","slots":1,"machine":{"host":"h","cores":1}}`)
	history := func() (found protocol.WorkerHistory) {
		t.Helper()
		for _, scope := range []auth.Scope{auth.Admin, auth.Viewer, auth.User} {
			got := s.do(ask{method: "GET", path: path, token: s.secrets[scope]})
			if err := json.Unmarshal(got.body, &found); err != nil || got.status != 200 {
				t.Fatalf("%s: %d %s: %v", scope, got.status, got.body, err)
			}
		}
		return found
	}
	if got := history(); got.StepSeconds != 60 || got.Steps == nil || len(got.Steps) != 0 {
		t.Errorf("before any heartbeat it is %+v", got)
	}
	for range 2 {
		if got := s.admin("POST", "/api/v1/workers/"+workerID+"/heartbeat", `{"leases":[],"load":{"cpu_utilization":0.5,"memory_utilization":0.25,"watts":12,"method":"estimate: a model"}}`); got.status != 200 {
			t.Fatalf("%d %s", got.status, got.body)
		}
	}
	got := history()
	beats := 0
	for _, step := range got.Steps { // a minute may have begun in between
		beats += step.Heartbeats
		if step.CPUUtilization != 0.5 || step.MemoryUtilization != 0.25 || step.Watts != 12 || step.Method != "estimate: a model" || time.Since(step.Begin) > time.Hour {
			t.Errorf("%+v", step)
		}
	}
	if beats != 2 {
		t.Errorf("%+v", got)
	}
}
