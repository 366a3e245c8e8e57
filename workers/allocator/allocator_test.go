package allocator

import (
	"fmt"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/pool"
)

// pair is an allocator with two workers of one slot each, the second of which waits.
func pair(t *testing.T, now *time.Time) *Allocator {
	t.Helper()
	a := New(Options{Now: func() time.Time { return *now }, Term: time.Minute})
	for _, id := range []string{"one", "two"} {
		if err := a.Register(caller, protocol.WorkerRegistration{ID: id, Name: id, Slots: 1, Machine: protocol.Machine{Cores: 4, GPUs: []string{"A100"}}}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := a.Arrive(Visit{Worker: "two", Enqueue: true}); err != nil {
		t.Fatal(err)
	}
	return a
}

var caller = Visit{}.Caller

// of is what a study asks for whose trials take a GPU each.
func of(study string) Ask {
	return Ask{Study: study, Name: study, Reference: study, Need: func(int) pool.Need { return pool.Need{GPUs: 1} }}
}

// TestAMigrationIsToldWhenItIsStored: as long as the change that tells it is not
// durable, nobody else hears of it, and whoever asks again gets it to be stored again.
func TestAMigrationIsToldWhenItIsStored(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	a := pair(t, &now)
	a.Regrant([]pool.Lease{{Trial: "study-0", Epoch: 1, Study: "study", Worker: "one", GPUs: []int{0}}})
	a.Start(Migration{Trial: "study-0", Lease: 1, Worker: "two", Need: pool.Need{GPUs: 1}, Record: trial.Migration{Why: "it is faster there"}})
	for attempt := range 2 { // the store refuses the first one
		told := a.Depart(of("study"), "study-0", 1, true)
		if !told.Pause || told.Entry == nil || told.After == nil {
			t.Fatalf("attempt %d: %+v", attempt, told)
		}
		if again := a.Depart(of("study"), "study-0", 1, false); again.Pause {
			t.Fatalf("attempt %d: it was told before it was stored", attempt)
		}
		if one, _ := a.Leaving(of("study"), "study-0", 1); one != nil || len(a.Stored()) != 0 {
			t.Fatalf("attempt %d: it leaves, or is known to be stored, before it is", attempt)
		}
		if attempt == 1 {
			told.After()
		}
	}
	if again := a.Depart(of("study"), "study-0", 1, false); !again.Pause || again.Entry != nil {
		t.Errorf("then a retry is answered %+v", again)
	}
	if one, awaited := a.Leaving(of("study"), "study-0", 1); one == nil || !awaited || len(a.Stored()) != 1 {
		t.Error("then it does not leave, or is not known to be stored")
	}
}

// TestWhatIsReservedIsNobodyElses, until it is cancelled; what was confirmed stays.
func TestWhatIsReservedIsNobodyElses(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	a := pair(t, &now)
	request := func(study string) Request {
		return Request{Ask: of(study), Worker: "one", Meant: Next, MostGPUs: 1, Chosen: true}
	}
	if !a.Skip("one", "slow", "study", "two") {
		t.Fatal("it is not skipped for the one that waits")
	}
	here, _ := a.Reserve(request("study"))
	if here == nil || len(here.GPUs) != 1 || here.Skipped != "slow" {
		t.Fatalf("%+v", here)
	}
	if other, denied := a.Reserve(request("other")); other != nil || !denied.Short {
		t.Fatalf("another study has it too: %+v, %+v", other, denied)
	}
	here.Cancel()
	if again, _ := a.Reserve(request("study")); again == nil || again.Skipped != "slow" {
		t.Fatalf("what was cancelled is not given back: %+v", again)
	} else {
		again.Confirm(pool.Lease{Trial: "study-0", Epoch: 1, Study: "study", Worker: "one", GPUs: again.GPUs, Granted: now})
		again.Cancel()
	}
	lease, _, out := a.Leased("study-0")
	if !out || !lease.Deadline.Equal(now.Add(time.Minute)) {
		t.Errorf("what was confirmed is not out for a term: %+v", lease)
	}
	if other, _ := a.Reserve(request("other")); other != nil {
		t.Error("another study has what is out")
	}
	a.Release("study-0", 1)
	if last, _ := a.Reserve(request("study")); last == nil || last.Skipped != "" {
		t.Errorf("who was skipped is said twice: %+v", last)
	}
}

// crowd is an allocator with 5,000 workers that have one trial each.
func crowd(b *testing.B) *Allocator {
	b.Helper()
	a := New(Options{Now: time.Now, Term: time.Hour})
	for i := range 5000 {
		id := fmt.Sprintf("worker-%d", i)
		if err := a.Register(caller, protocol.WorkerRegistration{ID: id, Name: id, Slots: 1, Machine: protocol.Machine{Cores: 8}}); err != nil {
			b.Fatal(err)
		}
		a.Regrant([]pool.Lease{{Trial: trial.ID(fmt.Sprintf("s-%d", i)), Epoch: 1, Worker: id}})
	}
	return a
}

// BenchmarkArrive is a call for a trial among 5,000 workers that have one each. Only
// studies of several owners need their shares, which are counted anew after each lease.
func BenchmarkArrive(b *testing.B) {
	a := crowd(b)
	for _, shares := range []bool{false, true} {
		b.Run(fmt.Sprintf("shares=%t", shares), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				a.Resize("s-0", 1, "worker-0", func(int) pool.Need { return pool.Need{Cores: 1} })
				if _, err := a.Arrive(Visit{Worker: "worker-0", Shares: shares}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkGPUTypes is what each registration looks at, among 5,000 workers without GPUs.
func BenchmarkGPUTypes(b *testing.B) {
	a := crowd(b)
	for b.Loop() {
		a.GPUTypes()
	}
}
