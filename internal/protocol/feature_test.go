package protocol_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/protocol"
)

// passable are the fields of a lease that a worker may pass over, or that all workers knew
// when they began to name features.
var passable = strings.Fields(`trial_id study study_id number lease_epoch rung budget first_epoch params system gpus gpu_count
	gpu_shared cores seed checkpoint command directory environment epoch_timeout_seconds stall_seconds stall_ends sandbox recipients
	confidential objectives timing sprint`)

// TestEachFieldOfALeaseIsPassableOrAFeature: a worker of before does not know one that is added.
func TestEachFieldOfALeaseIsPassableOrAFeature(t *testing.T) {
	for field := range reflect.TypeFor[protocol.Lease]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if feature := slices.Contains(protocol.Features(), protocol.Feature(name)); feature == slices.Contains(passable, name) {
			t.Errorf("%s: make it a Feature, unless workers may pass over it", name)
		}
	}
	for _, one := range protocol.Features() {
		if one.Words() == string(one) {
			t.Errorf("%s has no words", one)
		}
	}
}
