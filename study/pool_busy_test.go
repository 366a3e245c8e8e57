package study_test

import (
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/protocol"
)

// TestAWorkerOfOthersIsBusy: who waits for a worker that runs what he may not see hears
// that it is busy, and that is also why he waits.
func TestAWorkerOfOthersIsBusy(t *testing.T) {
	in(func(t *testing.T, w *world) {
		ada, bob := w.as(user("ada")), w.as(user("bob"))
		ada.create()
		w.register("one")
		lease := w.mustLease("one")
		bob.create("name: example", "name: other")
		for name, one := range map[string]*world{"ada": ada, "bob": bob, "admin": w} {
			seen, err := one.service.Pool(one.ctx)
			if err != nil {
				t.Fatal(err)
			}
			machine := seen.Machines[0]
			if shown := name != "bob"; machine.Busy == shown || (len(machine.Running) == 1) != shown {
				t.Errorf("%s sees %+v", name, machine)
			}
			for _, task := range seen.Waiting {
				if strings.Contains(task.Why, "no worker waits") {
					t.Errorf("%s is told %q", name, task.Why)
				}
			}
		}
		if _, err := w.finish(lease, protocol.Interrupted); err != nil {
			t.Fatal(err)
		}
		if seen, err := bob.service.Pool(bob.ctx); err != nil || seen.Machines[0].Busy {
			t.Errorf("behind the end of it he sees %+v, %v", seen.Machines, err)
		}
	})(t)
}
