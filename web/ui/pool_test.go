package ui_test

import (
	"context"
	"log/slog"
	"math"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/access"
	"github.com/tandem-tune/tandem/web/auth"
	"github.com/tandem-tune/tandem/web/forecasting"
	"github.com/tandem-tune/tandem/workers/demand"
	"github.com/tandem-tune/tandem/workers/forecast"
)

// foreseen is what the server of a stage forecasts: nothing, before it is told to.
type foreseen struct {
	service atomic.Pointer[forecasting.Service]
}

// Forecast asks the service, if there is one.
func (f *foreseen) Forecast(caller access.Caller, minutes int) protocol.PoolForecast {
	if service := f.service.Load(); service != nil {
		return service.Forecast(caller, minutes)
	}
	return protocol.PoolForecast{Unit: protocol.DemandSlots, Reason: "needs 30 minutes"}
}

// Advice asks the service, if there is one.
func (f *foreseen) Advice(query protocol.PoolAdviceQuery) (protocol.PoolAdvice, error) {
	if service := f.service.Load(); service != nil {
		return service.Advice(query)
	}
	return protocol.PoolAdvice{Unit: protocol.DemandSlots, Performance: 0.98, Reason: "leave all as it is"}, nil
}

// minutes is a log of demand that was recorded before.
type minutes []demand.Minute

// Read returns them.
func (m minutes) Read(context.Context, time.Time) ([]demand.Minute, error) { return m, nil }

// Append keeps nothing.
func (m minutes) Append(context.Context, demand.Minute) error { return nil }

// foresee lets the server have recorded six hours, with a gap, in which a wave of
// up to 8 GPUs was wanted, of 12; and learn from them.
func (s *stage) foresee(name string) {
	s.t.Helper()
	now := time.Now().UTC().Truncate(time.Minute)
	var recorded minutes
	quantiles := forecast.Quantiles()
	for i := range 360 {
		if i >= 70 && i < 80 {
			continue
		}
		want := math.Round(4 + 4*math.Sin(float64(i)/25))
		one := demand.Minute{At: now.Add(time.Duration(i-360) * time.Minute), Want: demand.Want{Running: want, Waiting: 1}, Capacity: 12, Owners: map[string]demand.Want{"": {Running: max(0, want-1)}, "browser": {Running: min(1, want), Waiting: 1}}}
		for _, quantile := range quantiles {
			one.Told = append(one.Told, math.Round(40+40*math.Sin(float64(i-5)/25)+30*quantile-5)/10)
		}
		if i >= 300 {
			one.Knob = &demand.Knob{Served: 4.85, Missed: 0.15, Debt: 40}
		}
		recorded = append(recorded, one)
	}
	look := demand.Look{
		Owners: map[string]demand.Want{"": {Running: 2}, "browser": {Running: 1, Waiting: 1}},
		Hosts: []demand.Host{
			{ID: "worker-one", Name: name, Capacity: 4, GPUs: true, Trials: 3}, {ID: "worker-two", Name: "rack-2", Capacity: 4, GPUs: true}, {ID: "worker-three", Name: "rack-3", Capacity: 4, GPUs: true},
			{ID: "worker-four", Name: "rack-4", Capacity: 4, GPUs: true, Silent: true},
		},
	}
	service, err := forecasting.New(s.t.Context(), forecasting.Options{
		Now: time.Now, Logger: slog.New(slog.DiscardHandler), Log: recorded, Look: func() demand.Look { return look },
		Power: forecast.Power{AwakeWatts: 50, AsleepWatts: 25, DelayMinutes: 1}, Performance: 0.98, Total: 16,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		service.Observe(s.t.Context())
		if told := service.Forecast(access.Caller{}, 1); told.Learned != nil && len(told.Ahead) > 0 {
			break
		}
		if time.Since(began) > 2*time.Minute {
			s.t.Fatal("nothing was learned")
		}
	}
	s.foreseen.service.Store(service)
}

func tryPool(t *testing.T, s *stage, browser context.Context) {
	p := s.enter(browser, "/pool?details=1")
	p.see(`document.querySelector("nav [aria-current=page]").textContent`, "Pool")
	p.seeText("#nothing", "needs 30 minutes")
	p.see(`["demand", "trust", "steps-card", "users-card"].map(id => document.getElementById(id).hidden)`, []bool{true, true, true, true})

	s.foresee("rack-1")
	p.do(chromedp.Reload())
	p.seeText("#count", "minutes recorded")
	p.see(`document.getElementById("nothing").hidden`, true)
	p.see(`document.querySelectorAll("#demand-chart canvas").length`, 2)
	p.see(`/^Demand of the last minutes, now .* GPUs, of 12 connected\. In 5 minutes it is at most .* with 90 %: an estimate/.test(document.getElementById("demand-chart").ariaLabel)`, true)
	p.seeText("#demand-note", "Forecast by persistence: an estimate.")
	p.see(`document.querySelectorAll("#ahead tbody tr").length`, 5)
	p.choose("#span", "720")
	p.seeText("#demand-note", "Hatched: nobody looked, once.")
	p.seeText("#figures [data-figure=ahead]", "estimate")
	p.see(`/^The (fan|upper part)/.test(document.getElementById("trust-said").textContent)`, true)
	p.see(`document.getElementById("demand-note").textContent.includes(document.getElementById("trust-said").textContent)`, true)
	p.see(`document.getElementById("trust-tag").hidden`, false)
	p.see(`document.querySelectorAll("#coverage tbody tr").length`, len(forecast.Quantiles()))
	p.seeText("#tried", "gru\t–\tneeds 4320 minutes")
	p.seeText("#users", "admin\t7\t0")

	// Minutes by keys.
	p.get(`(document.getElementById("demand-chart").focus(), 1)`)
	p.press("ArrowLeft", "", 37)
	p.seeText("#demand-selected", "held, ")

	// The knob: the lower the performance, the fewer are awake; the server's own is one press away.
	p.see(`document.querySelectorAll("#settings tr[aria-current=true]").length`, 1)
	p.seeText("#performance-value", "98\u00a0%")
	p.get(`(window.awake = () => Number(/^([\d.]+) of 16/.exec(document.getElementById("knob-said").textContent)[1]), 1)`)
	p.get(`(window.before = awake(), 1)`)
	p.get(`(document.getElementById("performance").value = "500", document.getElementById("performance").dispatchEvent(new Event("input")), 1)`)
	p.seeText("#performance-value", "50\u00a0%")
	p.see(`awake() <= before`, true)
	p.see(`document.querySelector("#settings tr[aria-current=true]") === document.querySelector("#settings tbody tr")`, true)
	p.click("#performance-reset")
	p.seeText("#performance-value", "98\u00a0%")
	p.see(`awake() === before`, true)
	p.seeText("#knob-note", "Assumed, not measured")
	p.seeText("#knob-said", "Held against the last 60 minutes, the server’s setting would have served 97\u00a0% of the demand, so that the knob aims at 98.66\u00a0% for 98\u00a0% (estimates).")
	p.see(`[...document.querySelectorAll("#steps tbody tr")].map(row => row.cells[0].textContent)`, []string{"rack-1", "rack-2", "rack-3", "rack-4"})
	p.see(`document.querySelector("#steps a").getAttribute("href")`, "/workers?worker=worker-one")
	p.seeText("#steps-note", "Advice only")

	// What is kept for somebody, and that a name may be misspelt.
	p.see(`document.getElementById("reserved-card").hidden`, true)
	for _, request := range []protocol.ReservationRequest{{User: "adda", Worker: "rack-9"}, {User: "browser", GPUs: 2}} {
		request.To = s.clock.now().Add(time.Hour)
		if _, err := s.studies.Reserve(s.t.Context(), request); err != nil {
			t.Fatal(err)
		}
	}
	p.do(chromedp.Reload())
	p.see(`[...document.querySelectorAll("#reserved tbody tr")].map(row => [0, 1, 4].map(cell => row.cells[cell].innerText.replaceAll("\n", " ")).join("|"))`, []string{
		"worker rack-9 No worker of this name is connected: nothing is kept until one is.|user adda No token is this user’s: nobody can use what is kept.|holds", "2 GPUs The connected workers have 0 GPUs in all: while it holds, nobody else begins a trial with GPUs.|user browser|holds",
	})
	tryLaunches(s, p)
	p.quiet()

	// A user sees its own demand, and no knob.
	q := s.open(browser, 1280, 900, "light")
	q.carry(auth.User)
	q.visit("/pool")
	q.seeText("#demand-note", "The demand of browser alone.")
	q.see(`document.getElementById("reserved-card").checkVisibility()`, false) // details are behind
	q.click("#behind > summary")
	q.see(`document.getElementById("reserved-card").checkVisibility()`, true)
	q.see("location.search", "?details=1")
	q.see(`["knob", "steps-card"].map(id => document.getElementById(id).hidden)`, []bool{true, true})
	q.seeText("#users", "browser\t1\t1")
	q.quiet()
}
