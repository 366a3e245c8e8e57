package study_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
)

// kind registers a worker with a GPU and a label.
func (w *world) kind(id, gpu string, gibibytes int64, zone string) error {
	machine := protocol.Machine{Host: id, Cores: 4}
	if gpu != "" {
		machine.GPUs, machine.GPUMemoryBytes = []string{gpu}, []int64{gibibytes << 30}
	}
	_, err := w.service.RegisterWorker(w.ctx, protocol.WorkerRegistration{ID: id, Name: strings.TrimPrefix(id, "worker-"), Slots: 2, Machine: machine, Labels: map[string]string{"zone": zone}})
	return err
}

func TestTrialsRunOnlyOnMachinesThatTheirStudyWants(t *testing.T) {
	in(func(t *testing.T, w *world) {
		for id, err := range map[string]error{
			"a100": w.kind("worker-a100", "NVIDIA A100-SXM4-40GB", 40, "a"),
			"v100": w.kind("worker-v100", "Tesla V100-SXM2-16GB", 16, "b"),
			"cpu":  w.kind("worker-cpu", "", 0, "b"),
		} {
			if err != nil {
				t.Fatal(id, err)
			}
		}
		for name, test := range map[string]struct{ wants, on string }{
			"v100":   {"gpus: 1, gpu_type: v100", "v100"},
			"newer":  {"gpus: 1, gpu_type: [H100, A100]", "a100"},
			"large":  {"gpus: 1, gpu_memory_gib: 32", "a100"},
			"shared": {"gpu_share: 0.5, gpu_memory_gib: 16, labels: {zone: b}", "v100"},
			"zone":   {"labels: {zone: b}", "v100 cpu"},
			"any":    {"cores: 1", "a100 v100 cpu"},
		} {
			w.create(named(name, "resources: {"+test.wants+"}")...)
			for _, worker := range []string{"a100", "v100", "cpu"} {
				reply, err := w.service.Lease(w.ctx, protocol.LeaseRequest{Worker: "worker-" + worker, Study: name})
				if err != nil || (reply.Lease != nil) != strings.Contains(test.on, worker) {
					t.Errorf("%s on %s: %+v, %v", name, worker, reply.Lease, err)
				}
				if reply.Lease != nil {
					w.train(reply.Lease)
				}
			}
		}
	})(t)
}

// A worker with a taint, and one that leaves soon, get only the trials that put up with it.
func TestTaintsAndTimeLimitsKeepTrialsAway(t *testing.T) {
	in(func(t *testing.T, w *world) {
		plain := w.create(named("plain")...)
		w.create(named("tolerant", "resources: {tolerates: [spot]}")...)
		long := w.create(named("long", "resources: {time_limit_seconds: 3600}")...)
		register := func(name string, stays float64, taints ...string) {
			_, err := w.service.RegisterWorker(w.ctx, protocol.WorkerRegistration{ID: "worker-" + name, Name: name, Slots: 1, Machine: protocol.Machine{Host: name, Cores: 4}, Taints: taints, StaysSeconds: stays})
			if err != nil {
				t.Fatal(err)
			}
		}
		offered := func(name, study string) bool {
			reply, err := w.service.Lease(w.ctx, protocol.LeaseRequest{Worker: "worker-" + name, Study: study})
			if err != nil {
				t.Fatal(err)
			}
			if reply.Lease != nil {
				w.train(reply.Lease)
			}
			return reply.Lease != nil
		}
		register("spot", 0, "spot")
		w.wantWait(plain.ID, "unfit", "resources.tolerates does not name spot, a taint that keeps trials from spot, and each other worker has such a taint too: add tolerates: [spot]")
		register("brief", 3599)
		w.wantWait(long.ID, "unfit", "resources.time_limit_seconds is 3600, and no connected worker has that (brief: leaves in 3")
		register("lasting", 7200)
		for worker, want := range map[string]string{"spot": "tolerant", "brief": "plain tolerant", "lasting": "plain tolerant long"} {
			for _, study := range []string{"plain", "tolerant", "long"} {
				if got := offered(worker, study); got != strings.Contains(want, study) {
					t.Errorf("%s on %s: %v", study, worker, got)
				}
			}
		}
		// What only a worker with a taint has is not said to be nowhere.
		if err := w.kind("worker-zoned", "", 0, "b"); err != nil {
			t.Fatal(err)
		}
		away := w.create(named("away", "resources: {labels: {zone: c}}")...)
		w.wantWait(away.ID, "unfit", "zoned: zone=b; not counting those whose taints resources.tolerates does not name: spot)")
		var refused *problem.Error
		_, err := w.service.RegisterWorker(w.ctx, protocol.WorkerRegistration{ID: "worker-bad", Name: "bad", Slots: 1, Taints: []string{"a b"}})
		if !errors.As(err, &refused) || refused.Fields[0].Path != "taints" || !strings.HasPrefix(refused.Fields[0].Message, `has "a b": a taint must be`) {
			t.Errorf("%v", err)
		}
	})(t)
}

func TestAStudyThatNoMachineSuitsIsToldWhatTheyHave(t *testing.T) {
	in(func(t *testing.T, w *world) {
		if err := errors.Join(w.kind("worker-one", "Tesla V100", 16, "a"), w.kind("worker-two", "Tesla V100", 0, "b"), w.kind("worker-cpu", "", 0, "b")); err != nil {
			t.Fatal(err)
		}
		tried := 0
		for wants, says := range map[string]string{
			"gpus: 1, gpu_type: A100":                        "resources.gpu_type is A100, and no connected worker has that (cpu: no GPU; one, two: Tesla V100): ask for what one has, or connect such a worker",
			"gpus: 1, gpu_memory_gib: 32":                    "resources.gpu_memory_gib is 32, and no connected worker has that (cpu: no GPU; one: 16 GiB; two: GPUs that do not tell)",
			"labels: {zone: c}":                              "resources.labels is zone=c, and no connected worker has that (cpu, two: zone=b; one: zone=a)",
			"labels: {disk: ssd}":                            "(cpu, one, two: no label disk)",
			"gpus: 1, gpu_memory_gib: 16, labels: {zone: b}": "resources asks for gpu_memory_gib 16, labels zone=b, and no connected worker has all of it (gpu_memory_gib 16 has one; labels zone=b has cpu, two)",
			"gpus: 2, gpu_type: V100, labels: {zone: b}":     "resources.gpus is 2, and no connected worker has more than 1 GPUs (two): ask for fewer, or connect a larger machine; only workers with gpu_type V100, labels zone=b count",
		} {
			tried++
			view := w.create(named(fmt.Sprint("unfit-", tried), "resources: {"+wants+"}")...)
			w.wantWait(view.ID, "unfit", says)
			if _, err := w.service.Stop(w.ctx, view.ID); err != nil {
				t.Fatal(err)
			}
		}
		var refused *problem.Error
		if err := w.kind("worker-bad", "", 0, "a b"); !errors.As(err, &refused) || refused.Fields[0].Path != "labels" || !strings.HasPrefix(refused.Fields[0].Message, `has zone="a b": a value must be`) {
			t.Errorf("%v", err)
		}
	})(t)
}
