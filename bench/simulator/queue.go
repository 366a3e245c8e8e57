package simulator

import "time"

// event is something that happens at a moment. Events of the same moment
// happen in the order in which they were planned.
type event struct {
	at     time.Duration // since the simulation began
	order  int
	worker *worker // nil: the server's tick
}

// queue is a heap of events, the next one first.
type queue []event

func (q queue) Len() int { return len(q) }

func (q queue) Less(i, j int) bool {
	if q[i].at != q[j].at {
		return q[i].at < q[j].at
	}
	return q[i].order < q[j].order
}

func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

// Push is for container/heap.
func (q *queue) Push(one any) { *q = append(*q, one.(event)) }

// Pop is for container/heap.
func (q *queue) Pop() any {
	last := len(*q) - 1
	one := (*q)[last]
	(*q)[last] = event{}
	*q = (*q)[:last]
	return one
}
