package study_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
)

// row is equal workers with several slots each, all of which wait in long polls.
type row struct {
	*world
	stop  context.CancelFunc
	group sync.WaitGroup
	mutex sync.Mutex
	has   map[string]int // trials by worker
	began map[string]time.Duration
}

// newRow has the workers wait; each slot takes one trial and keeps it.
func newRow(w *world, machine protocol.Machine, slots int, ids ...string) *row {
	one := &row{world: w, has: map[string]int{}, began: map[string]time.Duration{}}
	ctx, stop := context.WithCancel(w.ctx)
	one.stop = stop
	began := time.Now()
	for _, id := range ids {
		if _, err := w.service.RegisterWorker(w.ctx, protocol.WorkerRegistration{ID: id, Name: id, Slots: slots, Machine: machine}); err != nil {
			w.t.Fatal(err)
		}
		for range slots {
			one.group.Go(func() {
				reply, err := w.service.Lease(ctx, protocol.LeaseRequest{Worker: id, WaitSeconds: 50})
				if err != nil || reply.Lease == nil {
					return
				}
				one.mutex.Lock()
				defer one.mutex.Unlock()
				one.has[id]++
				one.began[id] = max(one.began[id], time.Since(began))
			})
		}
	}
	synctest.Wait()
	return one
}

// counts are the trials of the workers, the most first.
func (r *row) counts() []int {
	synctest.Wait()
	r.mutex.Lock()
	defer r.mutex.Unlock()
	var counts []int
	for _, count := range r.has {
		counts = append(counts, count)
	}
	slices.Sort(counts)
	slices.Reverse(counts)
	return counts
}

func (r *row) dismiss() {
	r.stop()
	r.group.Wait()
}

func workers(count int) []string {
	var ids []string
	for i := range count {
		ids = append(ids, fmt.Sprint("worker-", i))
	}
	return ids
}

// TestTrialsSpreadOverEqualWorkers: a worker of many slots does not have them all
// because it asks first, and nobody waits for that.
func TestTrialsSpreadOverEqualWorkers(t *testing.T) {
	gpus := protocol.Machine{Cores: 64, GPUs: slices.Repeat([]string{"NVIDIA A100"}, 8)}
	for name, c := range map[string]struct {
		machine protocol.Machine
		lines   []string
		workers int
		counts  []int
	}{
		"eight workers":       {protocol.Machine{Cores: 64}, []string{"parallel: 12"}, 8, []int{2, 2, 2, 2, 1, 1, 1, 1}},
		"of trials with GPUs": {gpus, []string{"parallel: 12", "resources: {gpus: 2}"}, 8, []int{2, 2, 2, 2, 1, 1, 1, 1}},
		"more than slots":     {protocol.Machine{Cores: 64}, nil, 3, []int{8, 8, 8}},
		"one alone":           {protocol.Machine{Cores: 64}, []string{"parallel: 5"}, 1, []int{5}},
	} {
		t.Run(name, in(func(t *testing.T, w *world) {
			r := newRow(w, c.machine, 8, workers(c.workers)...)
			defer r.dismiss()
			w.create(named("spread", c.lines...)...)
			if got := r.counts(); !slices.Equal(got, c.counts) {
				t.Errorf("the workers have %v, want %v", got, c.counts)
			}
			for id, took := range r.began {
				if took != 0 {
					t.Errorf("%s waited for %v", id, took)
				}
			}
		}))
	}
}
