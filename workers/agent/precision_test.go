package agent_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/workers/agent"
)

// quantizes trains, and hands over what it trained in three precisions.
func quantizes() int {
	if code := train(); code != 0 {
		return code
	}
	for _, said := range []string{"fp32&value=0.9&samples=7&more=true", "fp16&value=0.9&samples=7&more=true", "int8-dynamic&value=0.9&samples=7&more=true", "int8&value=0.8&samples=7"} {
		precision, _, _ := strings.Cut(said, "&")
		switch precision {
		case "fp16":
			precision = "cannot run"
		case "int8-dynamic":
			precision = "broken"
		}
		status, answer := call("PUT", "/v1/model?precision="+said, precision)
		note("saved", "%d %v", status, answer["code"])
	}
	for _, said := range []string{"int4&value=1&samples=7", "int8&value=much&samples=7", "int8&value=1&samples=few", "int8&value=NaN&samples=7"} {
		if status, _ := call("PUT", "/v1/model?precision="+said, "a model"); status != http.StatusUnprocessableEntity {
			note("saved", "%s is answered with %d", said, status)
		}
	}
	return 0
}

// The precisions of a model are told with what they are worth, and measured in turns; one
// that does not run leaves the others as they are.
func TestPrecisionsAreMeasuredInTurns(t *testing.T) {
	place, s := t.TempDir(), newServer()
	s.cells = []protocol.InferenceCell{{Batch: 1, Threads: 1}}
	m := &models{}
	one := s.add(script(t), as("quantizes", place), 2)
	stop := work(t, s, agent.Options{Models: m})
	s.await(t, "the trial has ended, and its precisions are measured", func() bool { return len(one.finishes) > 0 && len(s.inferences) == 3 })
	stop()
	if got := strings.Join(file(t, place, "saved"), " "); got != "200 <nil> 200 <nil> 200 <nil> 200 <nil>" {
		t.Errorf("the script was answered %s", got)
	}
	if got := strings.Join(m.ran, ","); got != "fp32,cannot run,int8,fp32,int8,fp32,int8,fp32,int8,fp32,int8" {
		t.Errorf("it ran %s", got)
	}
	for i, name := range []string{"fp32", "fp16", "int8"} {
		if got := s.architectures[i].Precision; got == nil || got.Name != name || got.Samples != 7 {
			t.Errorf("the server heard of %+v, want %s", got, name)
		}
		if got := s.inferences[i]; (len(got.Runs) == 1) != (name != "fp16") || (got.Failure == "") != (name != "fp16") {
			t.Errorf("%s took %+v", name, got)
		}
	}
	if slices.ContainsFunc(s.architectures, func(one protocol.ArchitectureReport) bool { return one.Precision == nil }) {
		t.Error("a precision was told as what the trial trains")
	}
}
