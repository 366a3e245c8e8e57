package api_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/web/auth"
)

func TestStudyLivesThroughTheClient(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	ctx, client := t.Context(), s.client(auth.Admin)

	view := s.create()
	if view.Name != "small" || view.Status != protocol.StudyRunning || len(view.Rungs) == 0 {
		t.Fatalf("created %+v", view)
	}
	_, err := client.CreateStudy(ctx, []byte(smallStudy), "application/yaml")
	if !problem.Is(err, problem.Conflict) {
		t.Fatalf("the same name again: %v", err)
	}
	again, err := json.Marshal(view.Definition)
	if err != nil {
		t.Fatal(err)
	}
	renamed := strings.Replace(string(again), `"small"`, `"copy"`, 1)
	if _, err = client.CreateStudy(ctx, []byte(renamed), "application/json"); err != nil {
		t.Fatalf("what the server shows of a study is no study file: %v", err)
	}
	steps := []struct {
		do   func() (protocol.StudyView, error)
		want protocol.StudyStatus
	}{
		{func() (protocol.StudyView, error) { return client.PauseStudy(ctx, "small") }, protocol.StudyPaused},
		{func() (protocol.StudyView, error) { return client.ResumeStudy(ctx, view.ID) }, protocol.StudyRunning},
		{func() (protocol.StudyView, error) { return client.StopStudy(ctx, "small") }, protocol.StudyStopped},
		{func() (protocol.StudyView, error) {
			return client.ExtendStudy(ctx, "small", protocol.ExtendRequest{Trials: 2})
		}, protocol.StudyRunning},
		{func() (protocol.StudyView, error) { return client.StopStudy(ctx, "small") }, protocol.StudyStopped},
	}
	for _, step := range steps {
		if got, err := step.do(); err != nil || got.Status != step.want {
			t.Fatalf("got %s, want %s: %v", got.Status, step.want, err)
		}
	}
	if _, err := client.PauseStudy(ctx, "small"); !problem.Is(err, problem.Conflict) {
		t.Fatalf("paused a stopped study: %v", err)
	}
	if err := client.DeleteStudy(ctx, "small"); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Study(ctx, "small"); !problem.Is(err, problem.NotFound) {
		t.Fatalf("deleted, and yet: %v", err)
	}
}

func TestTrialLivesThroughTheClient(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	ctx, admin := t.Context(), s.client(auth.Admin)
	s.create()
	worker := s.worker()

	first := s.lease(worker)
	if _, ok := first.Params["rate"].Number(); !ok || first.Budget.Epochs < 1 || len(first.Command) != 1 {
		t.Fatalf("lease %+v", first)
	}
	report := protocol.Report{LeaseEpoch: first.LeaseEpoch, Epoch: 1, Metrics: map[string]trial.Float{
		"loss": 0.25, "nan": trial.Float(math.NaN()), "up": trial.Float(math.Inf(1)), "down": trial.Float(math.Inf(-1)), "tiny": 5e-324,
	}, Energy: &trial.Energy{Joules: 3, Method: "rapl"}}
	directive, err := worker.Report(ctx, first.Trial, report)
	if err != nil || directive.Action == "" {
		t.Fatalf("directive %+v: %v", directive, err)
	}
	if err := worker.AppendLog(ctx, first.Trial, protocol.LogChunk{LeaseEpoch: first.LeaseEpoch, Text: "epoch 1\x00 done\n"}); err != nil {
		t.Fatal(err)
	}
	if text, err := admin.TrialLog(ctx, "small", 0); err != nil || text != "epoch 1\uFFFD done\n" {
		t.Fatalf("log %q: %v", text, err)
	}
	detail, err := admin.Trial(ctx, "small", 0)
	if err != nil || len(detail.Reports) != 1 {
		t.Fatalf("%+v: %v", detail, err)
	}
	for name, want := range report.Metrics {
		if got := detail.Reports[0].Metrics[name]; got != want && !(got.IsNaN() && want.IsNaN()) {
			t.Errorf("%s came back as %v, was %v", name, got, want)
		}
	}
	stale := report
	stale.LeaseEpoch, stale.Epoch = first.LeaseEpoch+1, 2
	if _, err := worker.Report(ctx, first.Trial, stale); !problem.Is(err, problem.LeaseLost) {
		t.Fatalf("another lease's report: %v", err)
	}
	reply, err := worker.Heartbeat(ctx, workerID, protocol.Heartbeat{Leases: []protocol.HeldLease{{Trial: first.Trial, LeaseEpoch: 9}}})
	if err != nil || len(reply.Lost) != 1 || reply.Lost[0] != first.Trial {
		t.Fatalf("heartbeat %+v: %v", reply, err)
	}
	workers, err := admin.Workers(ctx)
	if err != nil || len(workers) != 1 || workers[0].ID != workerID || len(workers[0].Trials) != 1 {
		t.Fatalf("workers %+v: %v", workers, err)
	}
	rung := 0
	page, err := admin.Trials(ctx, "small", protocol.TrialQuery{
		States: []trial.State{trial.Running, trial.Paused, trial.Completed}, Rung: &rung, Sort: "number", Descending: true, Limit: 5})
	if err != nil || page.Total != 1 || page.Trials[0].ID != first.Trial {
		t.Fatalf("page %+v: %v", page, err)
	}
	if _, err := admin.Recommendation(ctx, "small"); err != nil {
		t.Fatal(err)
	}
	if err := worker.Unregister(ctx, workerID); err != nil {
		t.Fatal(err)
	}
	if _, err := worker.Heartbeat(ctx, workerID, protocol.Heartbeat{}); !problem.Is(err, problem.NotFound) {
		t.Fatalf("heartbeat of a worker that left: %v", err)
	}
}

func TestLeaseWaitsForWork(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	worker := s.worker()
	leased := make(chan error, 1)
	go func() {
		reply, err := worker.Lease(t.Context(), protocol.LeaseRequest{Worker: workerID, WaitSeconds: 50})
		if err == nil && reply.Lease == nil {
			err = problem.New(problem.NotFound, "an empty reply")
		}
		leased <- err
	}()
	eventually(t, "the worker is seen", func() bool {
		list := s.studies.Workers(t.Context())
		return len(list) == 1
	})
	s.create()
	if err := <-leased; err != nil {
		t.Fatal(err)
	}
}

func TestStudyFileNeedsAKnownContentType(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	for _, kind := range []string{"text/plain", "application/x-www-form-urlencoded", "nonsense;;", "multipart/form-data; boundary=x"} {
		s.admin("POST", "/api/v1/studies", smallStudy, "Content-Type", kind).problem(t, 415, problem.Invalid)
	}
	for _, kind := range []string{"application/yaml; charset=utf-8", "text/yaml", "Application/X-YAML"} {
		if got := s.preview(kind, smallStudy, ""); got.Plan == nil || got.Plan.Trials != 4 {
			t.Errorf("%s: %+v", kind, got)
		}
	}
}
