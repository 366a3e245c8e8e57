package agent_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
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
	slow      time.Duration // of an inspection
	failure   error         // of a run
}

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
	return artifact.Architecture{Key: "architecture", ActivationBytes: 7, Graph: graph.Graph{
		Name: "secret", Inputs: []graph.Tensor{{Name: "secret"}}, Operators: []graph.Operator{{Name: "secret", Kind: "Relu", Inputs: []string{"secret"}, Outputs: []string{"secret"}}},
	}}, nil
}

func (m *models) Run(_ context.Context, _ *os.File, cells []protocol.InferenceCell) ([]emu.Run, error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.runs++
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
	s.writes = append(s.writes, write{call: "architecture " + string(id), epoch: report.LeaseEpoch})
	return protocol.ArchitectureReply{Run: s.cells, Deployments: []deployment.Deployment{{Device: "toaster", Method: "estimate: test"}}}, nil
}

func (s *server) Inferences(_ context.Context, id trial.ID, report protocol.InferenceReport) (protocol.Deployments, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.inferences = append(s.inferences, report)
	s.writes = append(s.writes, write{call: "inferences " + string(id), epoch: report.LeaseEpoch})
	return protocol.Deployments{}, nil
}

// trained runs one trial of a script that saves the model.
func trained(t *testing.T, model string, m artifact.Models, cells ...protocol.InferenceCell) (*server, *task, string) {
	t.Helper()
	place, s := t.TempDir(), newServer()
	s.cells = cells
	environment := as("saves", place)
	environment["MODEL"] = model
	one := s.add(script(t), environment, 2)
	stop := work(t, s, agent.Options{Models: m})
	s.await(t, "the trial has ended", func() bool { return len(one.finishes) > 0 })
	stop()
	return s, one, place
}

func TestAModelIsKnownBeforeItsFirstReport(t *testing.T) {
	m := &models{slow: 300 * time.Millisecond}
	s, one, place := trained(t, "a model", m, protocol.InferenceCell{Batch: 4, Threads: 2})
	if one.outcomes() != "budget_reached" || strings.Join(file(t, place, "saved"), "") != "200 <nil>" || strings.Join(m.inspected, "") != "a model" {
		t.Fatalf("%s, %q, %q", one.outcomes(), file(t, place, "saved"), m.inspected)
	}
	var calls []string
	for _, w := range s.writes {
		calls = append(calls, strings.Fields(w.call)[0])
	}
	if order := strings.Join(calls, " "); !strings.HasPrefix(order, "architecture inferences report") {
		t.Errorf("the server heard %s", order)
	}
	told := s.architectures[0]
	if told.Key != "architecture" || told.ActivationBytes != 7 || told.Site == nil || told.Graph.Operators[0].Kind != "Relu" {
		t.Errorf("the server heard of %+v", told)
	}
	if named := told.Graph.Name + told.Graph.Inputs[0].Name + told.Graph.Operators[0].Name + strings.Join(told.Graph.Operators[0].Inputs, ""); named != "" {
		t.Errorf("the server heard the user's names: %s", named)
	}
	if len(s.inferences) != 1 || s.inferences[0].Runs[0].Batch != 4 || s.inferences[0].Failure != "" {
		t.Errorf("the server heard of the runs %+v", s.inferences)
	}
	if log := one.log[one.lease.LeaseEpoch]; !strings.Contains(log, "toaster") {
		t.Errorf("the log says %q", log)
	}
}

func TestABrokenModelFailsNothingElse(t *testing.T) {
	s, one, _ := trained(t, "broken", &models{})
	if one.outcomes() != "budget_reached" || len(s.architectures) != 0 {
		t.Errorf("%s, %+v", one.outcomes(), s.architectures)
	}
	if log := one.log[one.lease.LeaseEpoch]; !strings.Contains(log, "the model was not emulated: the file is no ONNX model") {
		t.Errorf("the log says %q", log)
	}
}

func TestRunsThatFailAreToldWithWhatThereIs(t *testing.T) {
	s, one, _ := trained(t, "a model", &models{failure: errors.New("out of memory")}, protocol.InferenceCell{Batch: 1, Threads: 1})
	if one.outcomes() != "budget_reached" || len(s.inferences) != 1 || s.inferences[0].Failure != "out of memory" || len(s.inferences[0].Runs) != 1 {
		t.Errorf("%s, %+v", one.outcomes(), s.inferences)
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
