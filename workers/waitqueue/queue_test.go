package waitqueue

import (
	"testing"
	"time"

	"github.com/tandem-tune/tandem/study/access"
)

func woken(call <-chan struct{}) bool {
	select {
	case <-call:
		return true
	default:
		return false
	}
}

// TestNobodyIsSkippedForLong looks from within: the better one waits and never takes
// what is meant for it.
func TestNobodyIsSkippedForLong(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	q := New()
	q.Enqueue("better-1", "fast", access.Caller{})
	better, _ := q.Waiter("better-1")
	skip := func() bool {
		if !q.Skip(now, "worse-1", "study", "better-1") {
			return false
		}
		q.NoteFirst("study", "slow", now)
		return true
	}
	call := better.Wake()
	if !skip() {
		t.Fatal("it is not skipped")
	}
	if !woken(call) {
		t.Error("the better one is not woken")
	}
	call = better.Wake()
	now = now.Add(Patience / 2)
	if !skip() {
		t.Error("it is not skipped until its patience ends")
	}
	if !woken(call) {
		t.Error("the better one is not woken again")
	}
	now = now.Add(Patience / 2)
	if skip() {
		t.Error("it waits for ever")
	}
	// Long after that it is another matter.
	now = now.Add(time.Hour)
	if !skip() {
		t.Error("it is never skipped again")
	}
	if first := q.TakeFirst("study"); first == nil || first.Machine != "slow" || !first.At.Equal(now) {
		t.Errorf("the first to be skipped is %+v", first)
	}
	if first := q.TakeFirst("study"); first != nil {
		t.Errorf("it is said twice: %+v", first)
	}
	q.Dequeue("better-1")
	if skip() {
		t.Error("it is skipped for one that has gone")
	}
	now = now.Add(time.Hour)
	q.WakeSkipped(now)
	if len(q.skipped)+len(q.first)+len(q.waiting)+len(q.sorted)+len(q.types) != 0 {
		t.Errorf("what is long ago is kept: %+v", q)
	}
}
