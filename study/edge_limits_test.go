package study_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/protocol"
)

// Boards and workers measure for a study until its minutes are spent, also behind a restart;
// then all that shows deployments says that the rest are estimates. A study without such a
// limit is measured to its end.
func TestMeasuringEndsWithItsMinutes(t *testing.T) {
	orders := map[string]int{}
	for _, budget := range []string{"", ", budget_minutes: 0.1"} {
		in(func(t *testing.T, w *world) {
			edgeStudy(w, "[raspberry-pi-4, this-machine]"+budget)
			b, ask := w.box(false), askFor("kitchen", "raspberry-pi-4")
			trained(t, w, b, 8)
			trained(t, w, b, 16)
			shown := func(channels int64) []string {
				t.Helper()
				view, err := w.service.Study(w.ctx, "edge")
				if err != nil {
					t.Fatal(err)
				}
				page, err := w.service.EdgeOverview(w.ctx, "edge")
				if err != nil {
					t.Fatal(err)
				}
				lease := w.leaseOf(t, "edge")
				told, err := w.service.Architecture(w.ctx, lease.Trial, architecture(t, lease, channels))
				if err != nil {
					t.Fatal(err)
				}
				if (len(told.Run) == 0) != (told.Unmeasured != "") {
					t.Errorf("the worker shall run %v and is told %q", told.Run, told.Unmeasured)
				}
				if _, err := w.finish(lease, protocol.BudgetReached); err != nil {
					t.Fatal(err)
				}
				return []string{view.Unmeasured, strings.Join(page.Notes, " "), told.Unmeasured}
			}
			before := shown(24)
			orders[budget] = drain(t, w, ask, 1)
			w.start()
			if again := drain(t, w, ask, 1); again != 0 {
				t.Errorf("after a restart there are %d orders", again)
			}
			b.register()
			for _, one := range before {
				if strings.Contains(one, "budget_minutes") {
					t.Errorf("before anything was measured it says %q", one)
				}
			}
			for _, one := range shown(32) {
				if strings.Contains(one, "inference.budget_minutes is 0.1: what was not measured stays an estimate") != (budget != "") {
					t.Errorf("%q: it says %q", budget, one)
				}
			}
		})(t)
	}
	if limited, free := orders[", budget_minutes: 0.1"], orders[""]; limited != 1 || free < 2 {
		t.Errorf("%d orders with a limit, %d without", limited, free)
	}
}

// Only the clocks of the study are searched, or none is set.
func TestAStudyNamesItsClocks(t *testing.T) {
	for clocks, want := range map[string][]float64{", clocks: [600, 1000]": {6e8, 1e9}, ", clocks: {pinned: false}": {0}, "": {6e8, 7e8, 8e8, 9e8, 1e9, 1.1e9, 1.2e9, 1.3e9, 1.4e9, 1.5e9}} {
		in(func(t *testing.T, w *world) {
			edgeStudy(w, "[raspberry-pi-4], objective: energy"+clocks)
			lease := w.leaseOf(t, "edge")
			told, err := w.service.Architecture(w.ctx, lease.Trial, architecture(t, lease, 8))
			if err != nil || len(told.Deployments[0].Front) == 0 {
				t.Fatal(told, err)
			}
			one := told.Deployments[0]
			for _, front := range one.Front {
				if !slices.Contains(want, front.Configuration.CPUHertz) {
					t.Errorf("%q: %+v", clocks, front.Configuration)
				}
			}
			if perClock := len(want) * 8 * 4; one.Evaluations != perClock {
				t.Errorf("%q: %d settings were tried, want %d", clocks, one.Evaluations, perClock)
			}
		})(t)
	}
}
