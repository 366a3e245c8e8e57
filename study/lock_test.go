package study

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/store/memory"
	"github.com/tandem-tune/tandem/study/studyfile"
)

// counting is a mutex that counts how often it is locked.
type counting struct {
	sync.Mutex
	times atomic.Int64
}

func (c *counting) Lock() {
	c.times.Add(1)
	c.Mutex.Lock()
}

// TestALeaseTakesTheAllocatorsLockThreeTimes: when the worker comes, to reserve and to
// confirm.
func TestALeaseTakesTheAllocatorsLockThreeTimes(t *testing.T) {
	store, lock := memory.New(), &counting{}
	s := New(store, store, Options{Now: time.Now, Random: rand.Uint64, lock: lock})
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	def, err := studyfile.Parse([]byte("name: example\ncommand: [train]\nobjective: {metric: accuracy, direction: maximize}\nspace: {x: {type: float, low: 0, high: 1}}\n"), studyfile.YAML)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.CreateWarm(t.Context(), def, nil); err != nil {
		t.Fatal(err)
	}
	for worker, elastic := range map[string]bool{"worker-1": false, "worker-2": true} {
		registration := protocol.WorkerRegistration{ID: worker, Name: worker, Slots: 4, Elastic: elastic, Machine: protocol.Machine{Cores: 8}}
		if _, err := s.RegisterWorker(t.Context(), registration); err != nil {
			t.Fatal(err)
		}
		before := lock.times.Load()
		reply, err := s.Lease(t.Context(), protocol.LeaseRequest{Worker: worker})
		if err != nil || reply.Lease == nil {
			t.Fatalf("%+v, %v", reply, err)
		}
		if times := lock.times.Load() - before; times > 3 {
			t.Errorf("a lease takes the lock %d times, elastic: %t", times, elastic)
		}
	}
}
