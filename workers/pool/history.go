package pool

import (
	"math"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
)

// How far back the load of a worker's machine is known, and in what steps. Both
// bound what a worker takes in memory: less than 4 KB.
const (
	HistorySteps = 60
	HistoryStep  = time.Minute
)

// History is how busy a machine was: the means of what its heartbeats said, by
// step. The zero value is empty and ready.
type History struct {
	steps []historyStep // the oldest first, at most HistorySteps and the present one
}

// historyStep sums up the loads of one step.
type historyStep struct {
	number int64 // of the step, since 1970
	beats  int
	sums   [3]float64 // processor, memory, watts
	method string
}

// Note takes the load in that a heartbeat has told. A step that lies before the
// newest one, after a clock was set back, is counted to that.
func (h *History) Note(load protocol.Load, now time.Time) {
	number := stepAt(now)
	if h.steps == nil {
		h.steps = make([]historyStep, 0, HistorySteps+1)
	}
	if last := len(h.steps) - 1; last < 0 || h.steps[last].number < number {
		h.steps = append(h.steps, historyStep{number: number})
	}
	h.drop(number)
	step := &h.steps[len(h.steps)-1]
	step.beats++
	for i, value := range [3]float64{load.CPUUtilization, load.MemoryUtilization, load.Watts} {
		step.sums[i] += value
	}
	step.method = load.Method
	if before := len(h.steps) - 2; before >= 0 && h.steps[before].method == load.Method {
		step.method = h.steps[before].method // the same text is kept once
	}
}

// Steps are those of the last hour that anything was told in.
func (h *History) Steps(now time.Time) []protocol.LoadStep {
	list := []protocol.LoadStep{}
	if h == nil {
		return list
	}
	for _, step := range h.steps {
		if step.number <= stepAt(now)-HistorySteps {
			continue
		}
		mean := func(i int) float64 { return math.Round(step.sums[i]/float64(step.beats)*1e4) / 1e4 }
		list = append(list, protocol.LoadStep{
			Begin: time.Unix(step.number*int64(HistoryStep/time.Second), 0).UTC(), Heartbeats: step.beats,
			Load: protocol.Load{CPUUtilization: mean(0), MemoryUtilization: mean(1), Watts: mean(2), Method: step.method},
		})
	}
	return list
}

// drop forgets what is older than an hour.
func (h *History) drop(number int64) {
	first := 0
	for first < len(h.steps) && h.steps[first].number <= number-HistorySteps {
		first++
	}
	if first > 0 {
		h.steps = append(h.steps[:0], h.steps[first:]...)
	}
}

func stepAt(at time.Time) int64 { return at.Unix() / int64(HistoryStep/time.Second) }
