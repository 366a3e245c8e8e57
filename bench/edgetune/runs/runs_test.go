package runs_test

import (
	"path/filepath"
	"reflect"
	"testing"

	"github.com/tandem-tune/tandem/bench/edgetune/runs"
	"github.com/tandem-tune/tandem/inference_emu/estimate"
)

func TestWhatIsKeptIsReadAgain(t *testing.T) {
	all := runs.Runs{Runtime: "engine 1", Device: estimate.Device{Name: "d", Cores: 2}, Workloads: map[string]estimate.Workload{"a": {Name: "a", Float: estimate.Work{Linear: 5}}, "b": {Name: "b"}}}
	for _, one := range []runs.Run{
		{Model: "b", Batch: 1, Threads: 1, Seconds: 3, CPUSeconds: 3, MemoryBytes: 9}, {Model: "a", Batch: 1, Threads: 1, Seconds: 2},
		{Model: "b", Batch: 1, Threads: 1, Seconds: 1, CPUSeconds: 1, MemoryBytes: 8}, {Model: "b", Batch: 1, Threads: 1, Seconds: 4}, {Model: "b", Batch: 2, Threads: 1, Seconds: 4},
	} {
		all.Add(one)
	}
	path := filepath.Join(t.TempDir(), "runs.json")
	if err := all.Write(path); err != nil {
		t.Fatal(err)
	}
	again, err := runs.Read(path)
	if err != nil || !reflect.DeepEqual(again, all) {
		t.Fatalf("%v\n%+v was kept\n%+v was read", err, all, again)
	}
	if len(again.Runs) != 3 || again.Runs[0] != (runs.Run{Model: "b", Batch: 1, Threads: 1, Seconds: 1, CPUSeconds: 1, MemoryBytes: 8}) {
		t.Errorf("of two passes the quicker counts: %+v", again.Runs)
	}
	of := again.Measurements(func(model string) bool { return model == "a" })
	if len(of) != 1 || of[0].Workload.Float.Linear != 5 || of[0].Configuration != (estimate.Configuration{Batch: 1, Cores: 1}) || of[0].Seconds != 2 {
		t.Errorf("%+v", of)
	}
	if got := again.Models(); !reflect.DeepEqual(got, []string{"a", "b"}) {
		t.Errorf("models %v", got)
	}
}

func TestRunsWithoutAModelAreRefused(t *testing.T) {
	for _, text := range []string{`{"runs":[{"model":"a","seconds":1}]}`, `{"workloads":{"a":{}},"runs":[{"model":"a"}]}`, `[]`} {
		if _, err := runs.Parse([]byte(text)); err == nil {
			t.Errorf("%s was taken", text)
		}
	}
}
