package agent_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/inference_emu/deployment"
	"github.com/tandem-tune/tandem/inference_emu/graph"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/agent"
	"github.com/tandem-tune/tandem/workers/agent/artifact"
)

// saves hands its model over before it trains.
func saves() int {
	status, answer := call("PUT", "/v1/model", os.Getenv("MODEL"))
	note("saved", "%d %v", status, answer["code"])
	return train()
}

// models looks at texts instead of models.
type models struct {
	mutex     sync.Mutex
	inspected []string
	runs      int
	ran       []string
	patience  []time.Duration // of a run
	slow      time.Duration   // of an inspection
	failure   error           // of a run
	gate      chan struct{}   // a run goes on once it is closed; nil: at once
}

// huge is of a model that the server does not take.
const huge = 1 << 40

func (m *models) Inspect(ctx context.Context, file *os.File) (artifact.Architecture, error) {
	content := make([]byte, 1<<10)
	n, err := file.ReadAt(content, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return artifact.Architecture{}, err
	}
	m.mutex.Lock()
	m.inspected = append(m.inspected, string(content[:n]))
	m.mutex.Unlock()
	select {
	case <-time.After(m.slow):
	case <-ctx.Done():
		return artifact.Architecture{}, ctx.Err()
	}
	if strings.HasPrefix(string(content[:n]), "broken") {
		return artifact.Architecture{}, problem.New(problem.Invalid, "the file is no ONNX model")
	}
	found := int64(7)
	if string(content[:n]) == "huge" {
		found = huge
	}
	return artifact.Architecture{Key: "architecture", ActivationBytes: found, Graph: graph.Graph{
		Name: "secret", Inputs: []graph.Tensor{{Name: "secret"}}, Operators: []graph.Operator{{Name: "secret", Kind: "Relu", Inputs: []string{"secret"}, Outputs: []string{"secret"}}},
	}}, nil
}

func (m *models) Run(ctx context.Context, file *os.File, cells []protocol.InferenceCell, _ float64) ([]emu.Run, error) {
	if _, err := file.Stat(); err != nil {
		return nil, err
	}
	if m.gate != nil {
		select {
		case <-m.gate:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	content := make([]byte, 1<<10)
	n, err := file.ReadAt(content, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.runs++
	if end, bounded := ctx.Deadline(); bounded {
		m.patience = append(m.patience, time.Until(end))
	}
	m.ran = append(m.ran, string(content[:n]))
	if string(content[:n]) == "cannot run" {
		return nil, problem.New(problem.Invalid, "there is no kernel for it")
	}
	return []emu.Run{{Batch: cells[0].Batch, Threads: cells[0].Threads, Seconds: 0.5}}, m.failure
}

func (m *models) Site() *emu.Site { return &emu.Site{Cores: 2} }

func (s *server) Architecture(_ context.Context, id trial.ID, report protocol.ArchitectureReport) (protocol.ArchitectureReply, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if err := s.here(); err != nil {
		return protocol.ArchitectureReply{}, err
	}
	s.architectures = append(s.architectures, report)
	if report.ActivationBytes == huge {
		return protocol.ArchitectureReply{}, problem.New(problem.Exhausted, "the body is too large")
	}
	s.writes = append(s.writes, write{call: "architecture " + string(id), epoch: report.LeaseEpoch})
	return protocol.ArchitectureReply{Run: s.cells, Deployments: []deployment.Deployment{{Device: "toaster", Method: "estimate: test"}}}, nil
}

func (s *server) Inferences(_ context.Context, id trial.ID, report protocol.InferenceReport) (protocol.ArchitecturesImported, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.inferences = append(s.inferences, report)
	s.announce()
	s.writes = append(s.writes, write{call: "inferences " + string(id), epoch: report.LeaseEpoch})
	return protocol.ArchitecturesImported{}, nil
}

// trained runs one trial of a script that saves the model, and has it measured.
func trained(t *testing.T, model string, m artifact.Models, cells ...protocol.InferenceCell) (*server, *task, string) {
	t.Helper()
	place, s := t.TempDir(), newServer()
	s.cells = cells
	environment := as("saves", place)
	environment["MODEL"] = model
	one := s.add(script(t), environment, 2)
	stop := work(t, s, agent.Options{Models: m})
	s.await(t, "the trial has ended, and its model is measured", func() bool {
		return len(one.finishes) > 0 && len(s.inferences) == min(len(cells), 1)
	})
	stop()
	return s, one, place
}

func TestAModelIsKnownBeforeItsFirstReport(t *testing.T) {
	m := &models{slow: 300 * time.Millisecond}
	s, one, place := trained(t, "a model", m)
	if one.outcomes() != "budget_reached" || strings.Join(file(t, place, "saved"), "") != "200 <nil>" || strings.Join(m.inspected, "") != "a model" {
		t.Fatalf("%s, %q, %q", one.outcomes(), file(t, place, "saved"), m.inspected)
	}
	var calls []string
	for _, w := range s.writes {
		calls = append(calls, strings.Fields(w.call)[0])
	}
	if order := strings.Join(calls, " "); !strings.HasPrefix(order, "architecture report") {
		t.Errorf("the server heard %s", order)
	}
	told := s.architectures[0]
	if told.Key != "architecture" || told.ActivationBytes != 7 || told.Site == nil || told.Graph.Operators[0].Kind != "Relu" {
		t.Errorf("the server heard of %+v", told)
	}
	if named := told.Graph.Name + told.Graph.Inputs[0].Name + told.Graph.Operators[0].Name + strings.Join(told.Graph.Operators[0].Inputs, ""); named != "" {
		t.Errorf("the server heard the user's names: %s", named)
	}
	if log := one.log[one.lease.LeaseEpoch]; !strings.Contains(log, "toaster") {
		t.Errorf("the log says %q", log)
	}
}

// A model is measured while its trial, and the next one of the architecture, go on and end.
// A worker that is to leave measures no longer.
func TestNoReportWaitsForAMeasurement(t *testing.T) {
	for _, ends := range []bool{false, true} {
		m, s := &models{gate: make(chan struct{})}, newServer()
		s.cells = []protocol.InferenceCell{{Batch: 4, Threads: 2}}
		var tasks []*task
		for range 2 {
			environment := as("saves", t.TempDir())
			environment["MODEL"] = "a model"
			tasks = append(tasks, s.add(script(t), environment, 2))
		}
		stop := work(t, s, agent.Options{Models: m})
		s.await(t, "the trials have ended", func() bool { return len(tasks[0].finishes) > 0 && len(tasks[1].finishes) > 0 })
		if len(s.inferences) > 0 || tasks[0].outcomes() != "budget_reached" {
			t.Errorf("%+v before it was measured, %s", s.inferences, tasks[0].outcomes())
		}
		if ends {
			stop()
			if len(s.inferences) > 0 {
				t.Errorf("a worker that left measured %+v", s.inferences)
			}
			continue
		}
		close(m.gate)
		s.await(t, "the measurement", func() bool { return len(s.inferences) > 0 })
		told := s.inferences[0]
		registered := s.workers[told.Worker] == 1
		stop()
		if len(s.inferences) != 1 || told.Runs[0].Batch != 4 || told.Failure != "" || !registered || told.LeaseEpoch != tasks[0].lease.LeaseEpoch {
			t.Errorf("the server heard of the runs %+v", s.inferences)
		}
	}
}

func TestABrokenModelFailsNothingElse(t *testing.T) {
	s, one, _ := trained(t, "broken", &models{})
	if one.outcomes() != "budget_reached" || len(s.architectures) != 0 {
		t.Errorf("%s, %+v", one.outcomes(), s.architectures)
	}
	if log := one.log[one.lease.LeaseEpoch]; !strings.Contains(log, "the model could not be used: the file is no ONNX model") {
		t.Errorf("the log says %q", log)
	}
}

// TestATrialGoesOnWithoutItsModel: the server does not take a model that is too large, and is
// not told it for ever.
func TestATrialGoesOnWithoutItsModel(t *testing.T) {
	s, one, _ := trained(t, "huge", &models{})
	if one.outcomes() != "budget_reached" || len(s.architectures) != 1 {
		t.Errorf("%s, %+v", one.outcomes(), s.architectures)
	}
	if log := one.log[one.lease.LeaseEpoch]; !strings.Contains(log, "the model could not be used: the server does not take its 1 operators: the body is too large") {
		t.Errorf("the log says %q", log)
	}
}

func TestRunsThatFailAreToldWithWhatThereIs(t *testing.T) {
	s, one, _ := trained(t, "a model", &models{failure: errors.New("out of memory")}, protocol.InferenceCell{Batch: 1, Threads: 1})
	if one.outcomes() != "budget_reached" || len(s.inferences) != 1 || s.inferences[0].Failure != "out of memory" || len(s.inferences[0].Runs) != 1 {
		t.Errorf("%s, %+v", one.outcomes(), s.inferences)
	}
}

// A model has as long as all its settings may take. Settings by several execution providers
// are measured in turns, those by one at a time.
func TestSettingsHaveTheirTimeAndTurns(t *testing.T) {
	few := []protocol.InferenceCell{{Batch: 1, Threads: 1}, {Batch: 2, Threads: 1}}
	for _, test := range []struct {
		name    string
		cells   []protocol.InferenceCell
		failure error
		runs    int
	}{
		{"two settings", few, nil, 1},
		{"many settings", slices.Repeat(few, 50), nil, 1},
		{"two providers", append(few, protocol.InferenceCell{Batch: 1, Threads: 1, Provider: emu.OpenVINO}), nil, 5},
		{"one of which fails", append(few, protocol.InferenceCell{Batch: 1, Threads: 1, Provider: emu.OpenVINO}), errors.New("it knows an operator wrongly"), 1},
	} {
		m := &models{failure: test.failure}
		s, one, _ := trained(t, "a model", m, test.cells...)
		if one.outcomes() != "budget_reached" || m.runs != test.runs || len(s.inferences[0].Runs) != 1 || (s.inferences[0].Failure != "") != (test.failure != nil) {
			t.Errorf("%s: %s, %d runs, %+v", test.name, one.outcomes(), m.runs, s.inferences)
		}
		// A setting beside a training has 2 s, as much for its warm-up, and 10 s to load.
		least, most := time.Duration(30+14*len(test.cells))*time.Second, time.Duration(90+15*len(test.cells))*time.Second
		if len(m.patience) != test.runs || m.patience[0] < least || m.patience[0] > most {
			t.Errorf("%s have %v, of %v at least and %v at most", test.name, m.patience, least, most)
		}
	}
}

func TestAWorkerWithoutModelsSaysSo(t *testing.T) {
	_, one, place := trained(t, "a model", nil)
	if one.outcomes() != "budget_reached" || strings.Join(file(t, place, "saved"), "") != "200 <nil>" {
		t.Errorf("%s, %q", one.outcomes(), file(t, place, "saved"))
	}
	if log := one.log[one.lease.LeaseEpoch]; !strings.Contains(log, "is not looked at") {
		t.Errorf("the log says %q", log)
	}
}

// A script that ends at once does not wait for its model.
func TestALookAtAModelEndsWithItsScript(t *testing.T) {
	place, s := t.TempDir(), newServer()
	environment := as("saves-and-leaves", place)
	one := s.add(script(t), environment, 2)
	stop := work(t, s, agent.Options{Models: &models{slow: time.Hour}})
	s.await(t, "the trial has ended", func() bool { return len(one.finishes) > 0 })
	stop()
}

// savesAndLeaves fails right after it has saved its model.
func savesAndLeaves() int {
	if status, _ := call("PUT", "/v1/model", "a model"); status != http.StatusOK {
		return 2
	}
	return 1
}
