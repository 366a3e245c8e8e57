package study_test

import (
	"testing"
	"time"

	emu "github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/inference_emu/backend"
	"github.com/tandem-tune/tandem/inference_emu/deployment"
	"github.com/tandem-tune/tandem/study/access"
)

// again has the board measure until there is nothing left, each time a little longer than the
// last, and counts the settings.
func again(t *testing.T, w *world, ask emu.BoardAsk, sample *float64) (cells int) {
	t.Helper()
	ctx := access.WithCaller(w.ctx, access.Nobody())
	for range 40 {
		reply, err := w.service.AskBoard(ctx, ask)
		if err != nil {
			t.Fatal(err)
		}
		if reply.Order == nil {
			return cells
		}
		cells += len(reply.Order.Cells)
		*sample *= 1.0001
		sent := measured(ask, reply.Order, *sample)
		for range 2 { // the answer was lost once
			if _, err := w.service.ReportBoard(ctx, sent); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
	}
	t.Fatal("the board is asked without end")
	return 0
}

// deployedOn is the study's deployment on its first device.
func deployedOn(t *testing.T, w *world) deployment.Deployment {
	t.Helper()
	answer, err := w.service.Recommendation(w.ctx, "edge")
	if err != nil || len(answer.Deployments) != 1 {
		t.Fatalf("%+v, %v", answer.Deployments, err)
	}
	return answer.Deployments[0]
}

// A board that takes what it took is asked for one setting a day. Of one that takes twice as
// long, all that was measured before is measured again; the answer says so, and stays.
func TestADriftAsksForNewMeasurements(t *testing.T) {
	in(func(t *testing.T, w *world) {
		edgeStudy(w, "[raspberry-pi-4]")
		ask, sample := askFor("kitchen", "raspberry-pi-4"), 0.003
		trained(t, w, w.box(false), 8)
		first := again(t, w, ask, &sample)
		for day := range 3 {
			if got := again(t, w, ask, &sample); got != 0 {
				t.Errorf("day %d: %d settings of what is new", day, got)
			}
			time.Sleep(25 * time.Hour)
			if got := again(t, w, ask, &sample); got != 1 {
				t.Errorf("day %d: %d settings of a board that takes what it took, want the recommended one", day, got)
			}
		}
		before := deployedOn(t, w)
		if before.Drift != nil || time.Since(*before.MeasuredAt) > time.Minute {
			t.Errorf("%+v", before)
		}
		sample *= 2
		if got := again(t, w, ask, &sample); got != 0 {
			t.Errorf("%d settings before anybody can know", got)
		}
		time.Sleep(25 * time.Hour)
		if got := again(t, w, ask, &sample); got != first || got < 2 {
			t.Errorf("%d settings after a drift, of %d that were measured", got, first)
		}
		check := func(when string) {
			t.Helper()
			after := deployedOn(t, w)
			if ratio := after.LatencySeconds.Value / before.LatencySeconds.Value; ratio < 1.8 || ratio > 2.1 || after.Drift == nil || after.Drift.Seconds != before.LatencySeconds.Value {
				t.Errorf("%s it is %+v after %+v", when, after, before)
			}
			if got := again(t, w, ask, &sample); got != 0 {
				t.Errorf("%s: %d settings more", when, got)
			}
		}
		check("after the drift")
		w.start()
		check("after a restart")
		ask.Site.Software = "another runtime"
		if got := again(t, w, ask, &sample); got != 0 {
			t.Errorf("%d settings of a board that told its software first", got)
		}
		time.Sleep(25 * time.Hour)
		again(t, w, ask, &sample)
		ask.Site.Software = "a newer runtime"
		if got := again(t, w, ask, &sample); got != 1 {
			t.Errorf("%d settings after the software changed, want the recommended one", got)
		}
	})(t)
}

// The chosen backend is measured again, within the minutes of the study.
func TestAChosenBackendIsMeasuredAgain(t *testing.T) {
	in(func(t *testing.T, w *world) {
		boundedStudy(w, ", budget_minutes: 0.1")
		if _, err := w.service.SetBackend(w.ctx, "good", backend.BackendOffer{Device: "board/good", PricePerHour: 1}); err != nil {
			t.Fatal(err)
		}
		trained(t, w, w.box(false), 8)
		ask, sample := askFor("c", "board/good"), 0.004
		if got := again(t, w, ask, &sample); got == 0 || choose(t, w, "").Chosen != "good" {
			t.Fatalf("%d settings: %+v", got, choose(t, w, ""))
		}
		sample = 0.02 // it misses the bound of 5 ms now
		time.Sleep(25 * time.Hour)
		again(t, w, ask, &sample)
		time.Sleep(time.Minute)
		if answer := choose(t, w, ""); answer.Chosen != "" || answer.Options[0].State != backend.Misses || answer.Options[0].Deployment.Drift == nil {
			t.Errorf("%+v", answer)
		}
		days := 0
		for ; days < 60; days++ {
			time.Sleep(25 * time.Hour)
			if again(t, w, ask, &sample) == 0 {
				break
			}
		}
		if days == 0 || days == 60 {
			t.Errorf("it is asked on %d of 60 days, with six seconds to spend", days)
		}
	})(t)
}
