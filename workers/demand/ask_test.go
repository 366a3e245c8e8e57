package demand_test

import (
	"reflect"
	"testing"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/workers/demand"
	"github.com/tandem-tune/tandem/workers/pool"
)

// What trials wait for ends at their owner's quota and, beyond what is ready, at what
// the hosts have left; a study of a higher priority comes first.
func TestWhatIsWaitedFor(t *testing.T) {
	hosts := []demand.Host{{ID: "a", Name: "a", Capacity: 4}, {ID: "b", Name: "b", Capacity: 4, Silent: true}}
	gpu := pool.Need{GPUs: 1}
	for name, test := range map[string]struct {
		asks     []demand.Ask
		accounts map[string]demand.Account
		want     map[string]demand.Want
	}{
		"nothing": {nil, nil, map[string]demand.Want{}},
		"more than there is, as it is ready": {
			[]demand.Ask{{Owner: "ada", Study: "s", Running: 2, Ready: 5, Each: 1, Need: gpu}}, nil,
			map[string]demand.Want{"ada": {Running: 2, Waiting: 5}},
		},
		"the rest up to what is left": {
			[]demand.Ask{{Owner: "ada", Study: "s", Running: 1, Ready: 1, More: 9, Each: 1, Need: gpu}}, nil,
			map[string]demand.Want{"ada": {Running: 1, Waiting: 3}},
		},
		"larger ones than what is left": {
			[]demand.Ask{{Owner: "ada", Study: "s", Running: 3, More: 9, Each: 2, Need: gpu}}, nil,
			map[string]demand.Want{"ada": {Running: 3}},
		},
		"the higher priority first": {
			[]demand.Ask{{Owner: "ada", Study: "s", More: 9, Each: 1}, {Owner: "bob", Study: "t", Priority: 1, More: 3, Each: 1}}, nil,
			map[string]demand.Want{"ada": {Waiting: 1}, "bob": {Waiting: 3}},
		},
		"a quota over both studies": {
			[]demand.Ask{{Owner: "ada", Study: "s", Ready: 3, Each: 1, Need: gpu}, {Owner: "ada", Study: "t", Ready: 3, Each: 1, Need: gpu}, {Owner: "bob", Study: "u", Ready: 1, Each: 1, Need: gpu}},
			map[string]demand.Account{"ada": {Quota: pool.Quota{GPUs: 5}, Held: pool.Amount{Trials: 1, GPUs: 1}}},
			map[string]demand.Want{"ada": {Waiting: 4}, "bob": {Waiting: 1}},
		},
	} {
		got := demand.Sum(test.asks, hosts, test.accounts)
		if !reflect.DeepEqual(got.Owners, test.want) || len(got.Hosts) != 2 {
			t.Errorf("%s: %+v, want %+v", name, got.Owners, test.want)
		}
	}
}

func TestWhatAWorkerHasRoomFor(t *testing.T) {
	gpus := protocol.Machine{GPUs: []string{"A100", "A100"}}
	for name, test := range map[string]struct {
		registration protocol.WorkerRegistration
		short        bool
		trials       int
		capacity     float64
		gpus         bool
	}{
		"slots":                     {protocol.WorkerRegistration{Slots: 3}, false, 1, 3, false},
		"GPUs":                      {protocol.WorkerRegistration{Slots: 3, Machine: gpus}, false, 0, 2, true},
		"elastic: one more":         {protocol.WorkerRegistration{Slots: 8, Elastic: true}, false, 2, 3, false},
		"elastic: no more":          {protocol.WorkerRegistration{Slots: 8, Elastic: true}, true, 2, 2, false},
		"elastic: all of its slots": {protocol.WorkerRegistration{Slots: 2, Elastic: true}, false, 2, 2, false},
		"elastic: idle":             {protocol.WorkerRegistration{Slots: 2, Elastic: true}, true, 0, 1, false},
	} {
		got := demand.HostOf(pool.Member{Registration: test.registration, Short: test.short}, test.trials, true)
		if got.Capacity != test.capacity || got.GPUs != test.gpus || got.Trials != test.trials || !got.Silent {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
