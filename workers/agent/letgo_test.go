package agent

import "testing"

// TestLettingGoTwiceForgetsNothing: a run is let go of again and again until it
// is over, and still has to tell what it had reported.
func TestLettingGoTwiceForgetsNothing(t *testing.T) {
	r := &run{cancel: func(error) {}}
	r.letGo()
	r.letGo()
	if !r.free {
		t.Error("what was to be told of the lease is dropped")
	}
	given := &run{cancel: func(error) {}}
	given.lose("another worker has it")
	given.letGo()
	if given.free {
		t.Error("a lease that is another's would be told of")
	}
}
