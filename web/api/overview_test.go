package api_test

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/web/auth"
)

// TestOverviewsArriveAsTheyWereMade asks for what the pages that compare show, and
// compares what arrives with what the service says.
func TestOverviewsArriveAsTheyWereMade(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	client, worker, ctx := s.client(auth.Admin), s.worker(), t.Context()
	file := strings.Replace(smallStudy, "trials: 4", "trials: 30", 1)
	for name, text := range map[string]string{"small": file, "edge": strings.Replace(file, "name: small", "name: edge\ninference: {devices: [raspberry-pi-4]}", 1)} {
		if _, err := client.CreateStudy(ctx, []byte(text), "application/yaml"); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	for {
		reply, err := worker.Lease(ctx, protocol.LeaseRequest{Worker: workerID, Study: "small"})
		if err != nil {
			t.Fatal(err)
		}
		if reply.Lease == nil {
			break
		}
		rate, _ := reply.Lease.Params["rate"].Number()
		value := trial.Float(math.Abs(math.Log10(rate) + 1))
		if reply.Lease.Number == 3 {
			value = trial.Float(math.NaN())
		}
		s.train(worker, *reply.Lease, value)
	}
	overview := arrived[protocol.EdgeOverview](t, s.admin("GET", "/api/v1/studies/edge/edge", ""))
	shown, err := s.studies.EdgeOverview(ctx, "edge")
	if err != nil || !reflect.DeepEqual(overview, shown) || len(overview.Devices) != 1 {
		t.Errorf("%+v came, %+v was made (%v)", overview, shown, err)
	}
	if without := arrived[protocol.EdgeOverview](t, s.admin("GET", "/api/v1/studies/small/edge", "")); len(without.Trials) > 0 || len(without.Notes) != 1 {
		t.Errorf("the overview of a study without an inference section: %+v", without)
	}
	s.admin("GET", "/api/v1/studies/none/edge", "").problem(t, 404, problem.NotFound)
}

// TestWorkersTellWhatTheyMeasureAndHowBusyTheyAre sends both, and looks at the list.
func TestWorkersTellWhatTheyMeasureAndHowBusyTheyAre(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	worker, ctx := s.worker(), t.Context()
	measures := []protocol.Measure{{Name: "perf counters", Available: true, Detail: "user mode only"}, {Name: "rapl", Reason: "no powercap", Remedy: "load the module"}}
	introduced := registration()
	introduced.Measures = measures
	if _, err := worker.Register(ctx, introduced); err != nil {
		t.Fatal(err)
	}
	load := protocol.Load{CPUUtilization: 0.25, MemoryUtilization: 0.5, Watts: 12.5, Method: "rapl"}
	if _, err := worker.Heartbeat(ctx, workerID, protocol.Heartbeat{Load: &load}); err != nil {
		t.Fatal(err)
	}
	if _, err := worker.Heartbeat(ctx, workerID, protocol.Heartbeat{}); err != nil { // it does not know this time
		t.Fatal(err)
	}
	list, err := s.client(auth.Viewer).Workers(ctx)
	if err != nil || len(list) != 1 || !reflect.DeepEqual(list[0].Measures, measures) || list[0].Load == nil || *list[0].Load != load {
		t.Errorf("%+v: %v", list, err)
	}
	load.CPUUtilization = 1.5
	if _, err := worker.Heartbeat(ctx, workerID, protocol.Heartbeat{Load: &load}); !problem.Is(err, problem.Invalid) {
		t.Errorf("a machine that is busier than it can be: %v", err)
	}
}
