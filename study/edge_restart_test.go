package study_test

import (
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
)

// A server that was started anew answers about a device as before, from what was measured
// there: no board is asked to measure it again.
func TestARestartedServerKnowsWhatWasMeasured(t *testing.T) {
	in(func(t *testing.T, w *world) {
		edgeStudy(w, "[raspberry-pi-4, jetson-nano]")
		b := w.box(false)
		trained(t, w, b, 8)
		trained(t, w, b, 16)
		ask := askFor("kitchen", "raspberry-pi-4")
		if orders := drain(t, w, ask, 0.003); orders < 2 {
			t.Fatalf("%d orders", orders)
		}
		before, err := w.service.Deployments(w.ctx, "edge", 0)
		if err != nil || before.Devices[0].Method != "measured" || !strings.HasPrefix(before.Devices[1].Method, "estimate") {
			t.Fatalf("%+v, %v", before, err)
		}
		for range 2 {
			w.start()
			synctest.Wait()
			after, err := w.service.Deployments(w.ctx, "edge", 0)
			if err != nil || !reflect.DeepEqual(after, before) {
				t.Errorf("after a restart %+v, before %+v: %v", after, before, err)
			}
			if orders := drain(t, w, ask, 0.003); orders != 0 {
				t.Errorf("after a restart the board has %d orders", orders)
			}
		}
	})(t)
}
