package api_test

import (
	"encoding/json"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/access"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/trial/series"
	"github.com/tandem-tune/tandem/web/auth"
)

// batch is of so many samples of a second.
func batch(t *testing.T, lease protocol.Lease, seconds int) protocol.SampleBatch {
	t.Helper()
	s := series.Series{Begin: time.Unix(1700000000, 0).UTC(), Method: "estimate: =1+1"}
	for i := range seconds {
		values := map[string]trial.Float{"tree.cpu_user": trial.Float(i) / 4, "L1-dcache-loads": 7}
		if i > 0 {
			values[series.Watts] = 30
		}
		s.Add(1, 1+i/2, values)
	}
	data, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return protocol.SampleBatch{LeaseEpoch: lease.LeaseEpoch, Data: data}
}

func TestSamplesOfATrial(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	ctx := t.Context()
	s.create()
	worker := s.worker()
	lease := s.lease(worker)
	samples := func(format string) string {
		t.Helper()
		stream, err := s.client(auth.Viewer).TrialSamples(ctx, "small", lease.Number, format)
		if err != nil {
			t.Fatal(err)
		}
		defer stream.Close()
		text, err := io.ReadAll(stream)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if text := samples("json"); strings.TrimSpace(text) != `{"leases":[]}` {
		t.Errorf("before there are any: %s", text)
	}
	report := reportOf(lease, 1, 0.5)
	if _, err := worker.Report(ctx, lease.Trial, report); err != nil {
		t.Fatal(err)
	}
	for _, seconds := range []int{2, 3, 3, 1} { // the last comes late
		if err := worker.KeepSamples(ctx, lease.Trial, batch(t, lease, seconds)); err != nil {
			t.Fatal(err)
		}
	}
	var told protocol.TrialSamples
	if err := json.Unmarshal([]byte(samples("json")), &told); err != nil || len(told.Leases) != 1 {
		t.Fatalf("%+v: %v", told, err)
	}
	one := told.Leases[0]
	if len(one.Seconds) != 3 || one.LeaseEpoch != lease.LeaseEpoch || one.Epochs[2] != 2 || one.Metrics["tree.cpu_user"][2] != 0.5 || !math.IsNaN(float64(one.Metrics[series.Watts][0])) {
		t.Errorf("%+v", one)
	}
	table := strings.Split(samples("csv"), "\n")
	if head := "time,lease,rung,epoch,seconds,energy_method,"; !strings.HasPrefix(table[0], head) || !strings.HasSuffix(strings.TrimSpace(table[0]), "L1-dcache-loads,machine.watts,tree.cpu_user") ||
		!strings.HasPrefix(table[1], "2023-11-14T22:13:21Z,1,0,1,1,estimate: =1+1,") || !strings.HasSuffix(table[1], "7,,0") || !strings.HasSuffix(table[3], "7,30,0.5") || len(table) != 5 {
		t.Errorf("the table is %q", table)
	}
	gauges := samples("openmetrics")
	for _, line := range []string{
		"# TYPE tandem_trial_machine_watts gauge\n" + `tandem_trial_machine_watts{study="small",trial="0",worker="` + told.Leases[0].Worker + `",lease="1",rung="0",epoch="1",method="estimate: =1+1"} 30 1700000002.000`,
		`epoch="2"} 0.5 1700000003.000`, "tandem_trial_L1_dcache_loads{",
	} {
		if !strings.Contains(gauges, line) {
			t.Errorf("no %s in\n%s", line, gauges)
		}
	}
	if !strings.HasSuffix(gauges, "\n# EOF\n") || strings.Contains(gauges, "NaN") {
		t.Errorf("the gauges are\n%s", gauges)
	}
}

// Samples are written under a lease only, kept as long as their trial, and no artifact of
// others is told of.
func TestSamplesAreFencedAndKept(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	ctx := t.Context()
	s.create()
	worker := s.worker()
	lease := s.lease(worker)
	stale := batch(t, lease, 2)
	stale.LeaseEpoch++
	if err := worker.KeepSamples(ctx, lease.Trial, stale); !problem.Is(err, problem.LeaseLost) {
		t.Errorf("under another lease: %v", err)
	}
	if err := worker.KeepSamples(ctx, lease.Trial, protocol.SampleBatch{LeaseEpoch: lease.LeaseEpoch, Data: []byte("x")}); !problem.Is(err, problem.Invalid) {
		t.Errorf("what is no series: %v", err)
	}
	kept := batch(t, lease, 2)
	if err := worker.KeepSamples(ctx, lease.Trial, kept); err != nil {
		t.Fatal(err)
	}
	all := access.WithCaller(ctx, access.Caller{Sight: access.All})
	if used, err := s.studies.Referenced(all); err != nil || !used[hashOf(kept.Data)] {
		t.Errorf("the samples are garbage: %v, %v", used, err)
	}
	if err := s.client(auth.Admin).DeleteStudy(ctx, "small"); err != nil {
		t.Fatal(err)
	}
	if used, err := s.studies.Referenced(all); err != nil || len(used) > 0 {
		t.Errorf("the samples outlive their study: %v, %v", used, err)
	}
}
