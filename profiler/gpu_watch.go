package profiler

import (
	"fmt"
	"github.com/tandem-tune/tandem/profiler/proc"
	"slices"
	"sync"
	"time"
)

// gpuWatch looks at the GPUs of a command beside its recorder. It has a
// goroutine of its own: the PCIe counters take 20 ms each, a driver may need
// seconds to start, and one in trouble may not answer at all. None of that may
// hold up the report of an epoch.
type gpuWatch struct {
	interval time.Duration
	stop     chan struct{}

	mutex   sync.Mutex
	at      time.Time // when the states were read; zero before
	states  map[string]float64
	fresh   []map[string]float64 // the states that were not taken yet
	missing []proc.Missing
}

// watchGPUs begins to look once an interval, until the stop channel is closed.
func watchGPUs(open func() (gpuReader, error), environment []string, interval time.Duration) *gpuWatch {
	w := &gpuWatch{interval: interval, stop: make(chan struct{}), missing: []proc.Missing{{Name: "gpu", Reason: "the driver had not answered yet"}}}
	go w.run(open, environment)
	return w
}

func (w *gpuWatch) run(open func() (gpuReader, error), environment []string) {
	gpus, err := open()
	if err != nil {
		w.miss(err.Error())
		return
	}
	defer gpus.close()
	visible, err := visibleGPUs(environment, gpus.devices())
	if err != nil {
		w.miss(err.Error())
		return
	}
	if len(visible) == 0 {
		w.miss("the command may use none: CUDA_VISIBLE_DEVICES names no GPU of this machine")
		return
	}
	ticker := time.NewTicker(w.interval)
	defer ticker.Stop()
	for {
		states, missing := observeGPUs(gpus, visible)
		w.mutex.Lock()
		w.at, w.states, w.missing = time.Now(), states, missing
		w.fresh = append(w.fresh, states)
		w.mutex.Unlock()
		select {
		case <-w.stop:
			return
		case <-ticker.C:
		}
	}
}

func (w *gpuWatch) miss(reason string) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.missing = []proc.Missing{{Name: "gpu", Reason: reason}}
}

// patience is how many intervals old what is told may be.
const patience = 5

// take returns what was read since the last time, and what was read last; nil
// when that is too old.
func (w *gpuWatch) take(now time.Time) (fresh []map[string]float64, last map[string]float64) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	fresh, w.fresh = w.fresh, nil
	if !w.stale(now) {
		last = w.states
	}
	return fresh, last
}

func (w *gpuWatch) stale(now time.Time) bool { return now.Sub(w.at) > patience*w.interval }

// absent is what the GPUs do not tell.
func (w *gpuWatch) absent(now time.Time) []proc.Missing {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if !w.at.IsZero() && w.stale(now) {
		return []proc.Missing{{Name: "gpu", Reason: fmt.Sprintf("the NVIDIA driver has not answered for %.0f s", now.Sub(w.at).Seconds())}}
	}
	return slices.Clone(w.missing)
}
