package study_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study"
	"github.com/tandem-tune/tandem/study/tariff"
)

// priced gives the world a server with prices: 3 J of an epoch cost 1 EUR by day and 10 at
// night, and 6 g of CO2; the machine's 2 s cost 4 EUR.
func (w *world) priced() {
	w.t.Helper()
	read, err := tariff.Read([]byte(`
currency: EUR
energy: [{from: "08:00", to: "20:00", price: 1200000}, {price: 12000000}]
machines: [{machine: "*", price: 7200}]
`), []byte("intensity: [{grams: 7200000}]"))
	if err != nil {
		w.t.Fatal(err)
	}
	w.service = study.New(w.store, w.logs, study.Options{Now: time.Now, Random: w.random.Uint64, LeaseSeconds: 60, HeartbeatSeconds: 10, Tariff: read})
	if err := w.service.Start(w.ctx); err != nil {
		w.t.Fatal(err)
	}
}

func TestTrialsAndStudiesHaveACost(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.priced()
		made := w.create("objective: [{", "objective: [{metric: train_cost, direction: minimize}, {metric: train_co2_g, direction: minimize}, {")
		w.register("box")
		lease := w.mustLease("box")
		w.mustReport(lease, 1) // it is midnight
		detail, err := w.service.TrialDetail(w.ctx, made.ID, lease.Number)
		if err != nil {
			t.Fatal(err)
		}
		cost := detail.Trial.Cost
		if cost == nil || math.Abs(float64(cost.Amount)-14) > 1e-6 || cost.Currency != "EUR" || math.Abs(float64(cost.Grams())-6) > 1e-6 || !cost.Estimated() || detail.Reports[0].Cost == nil {
			t.Fatalf("the trial cost %+v, its report %+v", cost, detail.Reports[0].Cost)
		}
		result := detail.Trial.Results[0]
		if math.Abs(float64(result.Values[0])-14) > 1e-6 || math.Abs(float64(result.Values[1])-6) > 1e-6 || !result.Estimated {
			t.Errorf("the result is %+v", result)
		}
		if p := w.view(made.ID).Progress; p.Cost == nil || math.Abs(float64(p.Cost.Amount)-14) > 1e-6 {
			t.Errorf("the study cost %+v", p.Cost)
		}
		w.start() // without prices: what was paid stays paid
		if p := w.view(made.ID).Progress; p.Cost == nil || math.Abs(float64(p.Cost.Amount)-14) > 1e-6 {
			t.Errorf("after the prices were taken away it cost %+v", p.Cost)
		}
	})(t)
}

func TestACostEndsAStudy(t *testing.T) {
	for bound, more := range map[string]protocol.ExtendRequest{"cost: 20": {Cost: 40}, "co2_g: 11": {CO2: 30}} {
		in(func(t *testing.T, w *world) {
			w.priced()
			made := w.create("stop: {trials: 27}", "stop: {trials: 27, "+bound+"}")
			w.register("box")
			lease := w.mustLease("box")
			w.mustReport(lease, 1)
			if view := w.view(made.ID); view.Status != protocol.StudyRunning {
				t.Fatalf("%s: it is %s: %s", bound, view.Status, view.Reason)
			}
			w.finish(lease, protocol.BudgetReached)
			lease = w.mustLease("box")
			w.mustReport(lease, 1)
			view := w.view(made.ID)
			if view.Status != protocol.StudyCompleted || !strings.HasPrefix(view.Reason, "its budget of ") || !strings.Contains(view.Reason, "estimate) is spent") {
				t.Errorf("%s: it is %s: %s", bound, view.Status, view.Reason)
			}
			extended, err := w.service.Extend(w.ctx, made.ID, more)
			if err != nil || extended.Status != protocol.StudyRunning {
				t.Errorf("%s: extended it is %s: %v", bound, extended.Status, err)
			}
		})(t)
	}
}

func TestAQuotaBoundsTheCostOfADay(t *testing.T) {
	in(func(t *testing.T, w *world) {
		if _, err := w.service.SetQuota(w.ctx, "alice", protocol.Quota{CostADay: 10}); !problem.Is(err, problem.Invalid) {
			t.Errorf("without prices: %v", err)
		}
		w.priced()
		if _, err := w.service.SetQuota(w.ctx, "alice", protocol.Quota{CostADay: 10}); err != nil {
			t.Fatal(err)
		}
		alice := w.as(user("alice"))
		made := alice.create()
		w.register("box")
		lease := w.mustLease("box")
		w.mustReport(lease, 1) // 14 EUR
		w.finish(lease, protocol.BudgetReached)
		if lease := w.lease("box"); lease != nil {
			t.Errorf("above the quota there is %+v", lease)
		}
		if waits := alice.view(made.ID).Waits; len(waits) != 1 || !strings.Contains(waits[0].Reason, "has spent 14 of their 10 of money of today (UTC)") {
			t.Errorf("it waits for %+v", waits)
		}
		if list := w.quotas(); len(list) != 1 || list[0].User != "alice" || list[0].Uses.CostToday != 14 || list[0].Quota.CostADay != 10 {
			t.Errorf("the quotas are %+v", list)
		}
	})(t)
}

// A server without prices knows no costs, and refuses what needs them.
func TestWithoutPricesNothingHasACost(t *testing.T) {
	in(func(t *testing.T, w *world) {
		made := w.create()
		w.register("box")
		lease := w.mustLease("box")
		w.mustReport(lease, 1)
		detail, err := w.service.TrialDetail(w.ctx, made.ID, lease.Number)
		if err != nil {
			t.Fatal(err)
		}
		for _, shown := range []any{detail, w.view(made.ID)} {
			text, err := json.Marshal(shown)
			if err != nil || strings.Contains(string(text), `"cost"`) || strings.Contains(string(text), "co2") || strings.Contains(string(text), `"when"`) {
				t.Errorf("there is a cost in %s: %v", text, err)
			}
		}
		for field, replaced := range map[string][2]string{
			"stop.cost": {"stop: {", "stop: {cost: 20, "}, "stop.co2_g": {"stop: {", "stop: {co2_g: 20, "}, "when.price_below": {"stop:", "when: {price_below: 0.2}\nstop:"},
			"when.co2_below": {"stop:", "when: {co2_below: 200}\nstop:"}, "objective": {"metric: accuracy, direction: maximize", "metric: train_cost, direction: minimize"},
		} {
			def, err := changed(append([]string{"name: example", "name: priced"}, replaced[:]...)...)
			if err != nil {
				t.Fatal(err)
			}
			_, err = w.service.CreateWarm(w.ctx, def, nil)
			detailed, _ := err.(*problem.Error)
			if !problem.Is(err, problem.Invalid) || len(detailed.Fields) != 1 || detailed.Fields[0].Path != field || !strings.Contains(detailed.Fields[0].Message, "FILE") {
				t.Errorf("%s: %v", field, err)
			}
		}
	})(t)
}

func TestAStudyWaitsForCheapHours(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.priced()
		made := w.create("stop:", "when: {price_below: 2000000, latest_start_hours: 30}\nstop:")
		w.register("box")
		if lease := w.lease("box"); lease != nil {
			t.Fatalf("it starts at midnight: %+v", lease)
		}
		waits := w.view(made.ID).Waits
		if len(waits) != 1 || waits[0].Cause != protocol.WaitHours || !strings.Contains(waits[0].Reason, "it waits for power below 2e+06 EUR a kWh (now 1.2e+07), which begins 1 January 08:00 UTC") {
			t.Errorf("it waits for %+v", waits)
		}
		if wanted, err := w.service.Wanted(w.ctx); err != nil || len(wanted.Studies) > 0 {
			t.Errorf("a launcher is asked for %+v, %v", wanted, err)
		}
		w.sleep(8*time.Hour + time.Second)
		w.register("box")
		lease := w.mustLease("box")
		w.mustReport(lease, 1)
		if waits := w.view(made.ID).Waits; len(waits) > 0 && waits[0].Cause == protocol.WaitHours {
			t.Errorf("by day it waits for %+v", waits)
		}
		w.finish(lease, protocol.BudgetReached)
		w.sleep(13 * time.Hour) // 21:00, and 9 hours more
		w.register("box")
		if lease := w.lease("box"); lease != nil {
			t.Errorf("it starts at night: %+v", lease)
		}
		other := w.create("name: example", "name: other", "stop:", "when: {price_below: 2000000, latest_start_hours: 1}\nstop:")
		w.sleep(time.Hour)
		w.register("box")
		if lease := w.lease("box"); lease == nil || lease.StudyID != other.ID {
			t.Errorf("after its latest start there is %+v", lease)
		}
	})(t)
}
