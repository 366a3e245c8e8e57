package api_test

import (
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/similarity"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/study/system"
	"github.com/tandem-tune/tandem/web/auth"
)

// taught is a ground truth of so many runs, each with so many features.
func taught(machine string, runs, features int) protocol.GroundTruth {
	truth := protocol.GroundTruth{Version: protocol.GroundTruthVersion}
	for i := range runs {
		cell := similarity.Cell{
			Configuration: system.Configuration{system.Cores: space.Int(int64(1 + i%2)), system.MemoryGiB: space.Float(0.5), system.Precision: space.String("bf16")},
			Epochs:        2, LogSeconds: -0.25, LogJoules: 3, Variance: 0.125, Profiles: 3, Features: map[string]float64{},
		}
		for feature := range features {
			cell.Features[fmt.Sprintf("feature-%03d", feature)] = float64(i) / 3
		}
		truth.Records = append(truth.Records, similarity.Record{
			ID: fmt.Sprintf("record-%04d", i), Machine: machine, Updated: time.Date(2026, 1, 2, 3, 0, i, 6, time.UTC), Cells: []similarity.Cell{cell},
		})
	}
	return truth
}

const someMachine = "A \"CPU\" & Co (R) @ 3.00GHz, 8 cores, GPU/0"

func TestGroundTruthArrivesAsItWasSent(t *testing.T) {
	t.Parallel()
	s, ctx := newStage(t), t.Context()
	admin, viewer := s.client(auth.Admin), s.client(auth.Viewer)
	for _, path := range []string{"/api/v1/ground-truth", "/api/v1/ground-truth/machines"} {
		if got := s.admin("GET", path, ""); got.status != 200 || !strings.Contains(string(got.body), "[]") {
			t.Errorf("%s of a new server: %d %s", path, got.status, got.body)
		}
	}
	sent := taught(someMachine, 300, 200) // more than one request can hold
	for _, want := range []protocol.GroundTruthImported{{Imported: 300}, {Skipped: 300}} {
		if reply, err := admin.ImportGroundTruth(ctx, sent); err != nil || reply != want {
			t.Fatalf("%+v, want %+v: %v", reply, want, err)
		}
	}
	other := taught("arm, 4 cores", 1, 1)
	other.Records[0].ID = "record-of-another-type"
	if _, err := admin.ImportGroundTruth(ctx, other); err != nil {
		t.Fatal(err)
	}
	for machine, want := range map[string]protocol.GroundTruth{someMachine: sent, "arm, 4 cores": other, "riscv": {Version: 1, Records: []similarity.Record{}}} {
		if got, err := viewer.GroundTruth(ctx, machine); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %d records of %d, or not the same: %v", machine, len(got.Records), len(want.Records), err)
		}
	}
	if all, err := viewer.GroundTruth(ctx, ""); err != nil || len(all.Records) != 301 {
		t.Errorf("%d records of 301: %v", len(all.Records), err)
	}
	machines, err := viewer.GroundTruthMachines(ctx)
	if err != nil || len(machines) != 2 || machines[0].Machine != someMachine || machines[0].Records != 300 || machines[0].Configurations != 2 || machines[0].Epochs != 600 {
		t.Errorf("%+v, %v", machines, err)
	}
	asked := "machine=" + url.QueryEscape(someMachine)
	page := arrived[protocol.GroundTruthRuns](t, s.admin("GET", "/api/v1/ground-truth/runs?limit=2&offset=1&"+asked, ""))
	if page.Total != 300 || len(page.Runs) != 2 || page.Runs[0].ID != "record-0298" || page.Runs[0].Comparison == nil || len(page.Runs[0].Comparison.Fastest) != 3 {
		t.Errorf("%+v", page)
	}
	under := sent.Records[1].Cells[0].Configuration
	clusters := arrived[protocol.GroundTruthClusters](t, s.admin("GET", "/api/v1/ground-truth/clusters?configuration="+url.QueryEscape(under.Key())+"&"+asked, ""))
	if len(clusters.Configurations) != 2 || clusters.Runs != 150 || !clusters.Configuration.Equal(under) || len(clusters.Workloads) == 0 || len(clusters.Workloads[0].Points) == 0 {
		t.Errorf("%+v", clusters)
	}
	for _, path := range []string{"runs?machine=riscv", "clusters?machine=riscv"} {
		if got := s.admin("GET", "/api/v1/ground-truth/"+path, ""); got.status != 200 || !strings.Contains(string(got.body), `[]`) || strings.Contains(string(got.body), "null") {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
	for _, path := range []string{"runs", "clusters", "runs?machine=", "clusters?machine="} {
		s.admin("GET", "/api/v1/ground-truth/"+path, "").problem(t, 422, problem.Invalid)
	}
	if reply, err := admin.ForgetGroundTruth(ctx, someMachine); err != nil || reply.Forgotten != 300 {
		t.Errorf("%+v, %v", reply, err)
	}
	if reply, err := admin.ForgetGroundTruth(ctx, ""); err != nil || reply.Forgotten != 1 {
		t.Errorf("%+v, %v", reply, err)
	}
}

func TestFaultsOfAGroundTruthAreToldByTheirPlace(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	const record = `{"id":"record-0001","machine":"x86","updated":"2026-01-02T03:04:05Z","cells":[{"configuration":{"cores":1},"neighbours":0,"epochs":1,"log_seconds":0,"log_joules":0,"variance":0,"profiles":0}]}`
	body := func(record string) string { return `{"version":1,"records":[` + record + `]}` }
	for name, c := range map[string]struct{ body, at, says string }{
		"another version": {`{"version":7,"records":[]}`, "version", "must be 1"},
		"no records":      {`{"version":1}`, "records", "missing"},
		"unknown field":   {body(strings.Replace(record, `"machine"`, `"user":"me","machine"`, 1)), "records[0].user", "not a field"},
		"wrong case":      {body(strings.Replace(record, `"epochs"`, `"Epochs"`, 1)), "records[0].cells[0].Epochs", "write epochs"},
		"short id":        {body(strings.Replace(record, "record-0001", "r1", 1)), "records[0].id", "length"},
		"no time":         {body(strings.Replace(record, "2026-01-02T03:04:05Z", "yesterday", 1)), "records[0].updated", ""},
		"a knob":          {body(strings.Replace(record, `"cores":1`, `"cores":1,"luck":2`, 1)), "records[0].cells[0].configuration.luck", "not a knob"},
		"half a core":     {body(strings.Replace(record, `"cores":1`, `"cores":1.5`, 1)), "records[0].cells[0].configuration.cores", "whole number"},
		"a word":          {body(strings.Replace(record, `"log_seconds":0`, `"log_seconds":"NaN"`, 1)), "records[0].cells[0].log_seconds", "number"},
		"an id twice":     {body(record + "," + record), "records[1].id", "twice"},
	} {
		told := s.admin("POST", "/api/v1/ground-truth", c.body).problem(t, 422, problem.Invalid)
		if !told.has(c.at, c.says) {
			t.Errorf("%s: no fault at %s that says %q: %+v", name, c.at, c.says, told)
		}
	}
	for _, query := range []string{"", "?machine=", "?all=false", "?machine=x86&all=true"} {
		told := s.admin("DELETE", "/api/v1/ground-truth"+query, "").problem(t, 422, problem.Invalid)
		if !told.has("machine", "all=true") {
			t.Errorf("forget %q: %+v", query, told)
		}
	}
	if got := s.admin("POST", "/api/v1/ground-truth", body(record)); got.status != 200 || string(got.body) != `{"imported":1,"skipped":0}`+"\n" {
		t.Errorf("without a fault: %d %s", got.status, got.body)
	}
	// In the second request of an import the places are still those of the whole.
	sent := taught("x86", 300, 200)
	sent.Records[290].Machine = ""
	_, err := s.client(auth.Admin).ImportGroundTruth(t.Context(), sent)
	var fault *problem.Error
	if !errors.As(err, &fault) || len(fault.Fields) != 1 || fault.Fields[0].Path != "records[290].machine" {
		t.Errorf("%v", err)
	}
}

func TestAKeyOfAnImportIsForOneImport(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	const body = `{"version":1,"records":[{"id":"record-0001","machine":"x86","updated":"2026-01-02T03:04:05Z","cells":[]}]}`
	for round := range 2 {
		got := s.admin("POST", "/api/v1/ground-truth", body, "Idempotency-Key", "k")
		if got.status != 200 || string(got.body) != `{"imported":1,"skipped":0}`+"\n" || (got.header.Get("Idempotency-Replayed") == "true") != (round == 1) {
			t.Errorf("attempt %d: %d %s", round+1, got.status, got.body)
		}
	}
	for round := range 2 {
		got := s.admin("DELETE", "/api/v1/ground-truth?all=true", "", "Idempotency-Key", "forget")
		if got.status != 200 || string(got.body) != `{"forgotten":1}`+"\n" || (got.header.Get("Idempotency-Replayed") == "true") != (round == 1) {
			t.Errorf("attempt %d: %d %s", round+1, got.status, got.body)
		}
	}
}
