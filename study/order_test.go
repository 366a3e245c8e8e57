package study_test

import (
	"encoding/json"
	"testing"

	"github.com/tandem-tune/tandem/trial"
)

// TestReportsMayOvertakeEachOther sends the reports of a lease in other orders,
// with repetitions: each that was acknowledged is stored, and counts once.
func TestReportsMayOvertakeEachOther(t *testing.T) {
	var want string
	for _, order := range [][]int{{1, 2, 3}, {1, 3, 2}, {3, 1, 2, 1, 3}, {2, 2, 3, 1, 1}} {
		in(func(t *testing.T, w *world) {
			w.create("policy: multi", "policy: epochs", "{min: 1, max: 9}", "{min: 9, max: 9}")
			w.register("worker-1")
			lease := w.mustLease("worker-1")
			for _, epoch := range order {
				w.mustReport(lease, epoch)
			}
			reports, err := w.store.Reports(w.ctx, lease.Trial)
			if err != nil {
				t.Fatal(err)
			}
			stored := map[int]trial.Report{}
			for _, report := range reports {
				stored[report.Epoch] = report
			}
			got, err := json.Marshal(w.trial(lease.Trial))
			if err != nil || len(stored) != 3 || len(reports) != 3 {
				t.Errorf("order %v: %d reports of %d epochs are stored, %v", order, len(reports), len(stored), err)
			}
			if want == "" {
				want = string(got)
			}
			if string(got) != want {
				t.Errorf("order %v made\n%s\nwant\n%s", order, got, want)
			}
		})(t)
	}
}
