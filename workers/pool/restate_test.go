package pool_test

import (
	"testing"
	"time"

	"github.com/tandem-tune/tandem/workers/pool"
)

// A study whose priority was changed has the new one in its leases, in what it claims and
// where it waits for room; others keep theirs.
func TestRestatedStudiesHaveTheNewPriorityEverywhere(t *testing.T) {
	var leases pool.Leases
	leases.Grant(pool.Lease{Trial: "a-0", Epoch: 1, Study: "a", Worker: "w", Priority: 1})
	leases.Grant(pool.Lease{Trial: "b-0", Epoch: 1, Study: "b", Worker: "w", Priority: 1})
	one, _ := leases.Lease("b-0")
	leases.Ask(one, pool.Claim{Study: "a", Priority: 2}, "makes way", time.Time{})
	for _, left := range []bool{false, true} { // the claim on what leaves, and on what has left
		priority := map[bool]int{false: 5, true: 7}[left]
		if left {
			leases.Release("b-0")
		}
		leases.Restate("a", "ada", priority)
		if got, _ := leases.Lease("a-0"); got.Priority != priority || got.Owner != "ada" {
			t.Errorf("its lease is %+v", got)
		}
		if claim, claimed := leases.Claimed("w"); !claimed || claim.Priority != priority {
			t.Errorf("left: %v, the claim is %+v", left, claim)
		}
		if got, out := leases.Lease("b-0"); out && (got.Priority != 1 || got.Owner != "") {
			t.Errorf("the other's lease is %+v", got)
		}
	}

	var gangs pool.Gangs
	for study, priority := range map[string]int{"a": 1, "b": 2} {
		gangs.Wait(pool.Gang{Study: study, Priority: priority, Need: pool.Need{GPUs: 1}}, nil)
	}
	gangs.Restate("a", 3)
	gangs.Restate("c", 9) // does not wait
	if a, _ := gangs.Waiting("a"); a.Priority != 3 {
		t.Errorf("it waits as %+v", a)
	}
	if first, _ := gangs.Keeps("w", "c", 0); first.Study != "a" {
		t.Errorf("the first that waits is %s", first.Study)
	}
}
