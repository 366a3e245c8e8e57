package forecasting_test

import (
	"context"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/store/memory"
	"github.com/tandem-tune/tandem/study/access"
	"github.com/tandem-tune/tandem/web/forecasting"
	"github.com/tandem-tune/tandem/workers/demand"
	"github.com/tandem-tune/tandem/workers/forecast"
)

// pool is a pool whose time and demand a test moves.
type pool struct {
	t       *testing.T
	service *forecasting.Service
	store   *memory.Store

	mutex sync.Mutex
	clock time.Time
	look  demand.Look
}

var start = time.Date(2026, 5, 4, 0, 0, 0, 0, time.UTC)

func newPool(t *testing.T) *pool {
	t.Helper()
	p := &pool{t: t, store: memory.New(), clock: start}
	p.restart()
	return p
}

// restart reads what was recorded again, as a server that starts does.
func (p *pool) restart() {
	p.t.Helper()
	var err error
	p.service, err = forecasting.New(p.t.Context(), forecasting.Options{
		Now: p.now, Logger: slog.New(slog.DiscardHandler), Log: forecasting.NewRecord(p.store), Look: p.seen,
		Power: forecast.Power{AwakeWatts: 50, AsleepWatts: 10, DelayMinutes: 1}, Performance: 0.98, Windows: 64, Hidden: 2,
	})
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *pool) now() time.Time {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.clock
}

func (p *pool) seen() demand.Look {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.look
}

func hosts() []demand.Host {
	return []demand.Host{
		{ID: "worker-a", Name: "a", Capacity: 4, GPUs: true, Trials: 2}, {ID: "worker-b", Name: "b", Capacity: 4, GPUs: true},
		{ID: "worker-c", Name: "c", Capacity: 2, GPUs: true}, {ID: "worker-d", Name: "d", Capacity: 2, GPUs: true, Silent: true},
	}
}

// minute lets one pass in which alice's trials hold so much and bob's wait for 1.
func (p *pool) minute(held float64) {
	p.t.Helper()
	p.mutex.Lock()
	p.look = demand.Look{Owners: map[string]demand.Want{"alice": {Running: held}, "bob": {Waiting: 1}}, Hosts: hosts()}
	p.mutex.Unlock()
	p.service.Observe(p.t.Context())
	p.skip(time.Minute)
}

func (p *pool) skip(span time.Duration) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.clock = p.clock.Add(span)
}

func everyone() access.Caller { return access.Caller{} }

// learned waits until the background has learned from what there is.
func (p *pool) learned(when func(protocol.PoolForecast) bool) protocol.PoolForecast {
	p.t.Helper()
	for began := time.Now(); time.Since(began) < 8*time.Minute; time.Sleep(50 * time.Millisecond) {
		p.service.Observe(p.t.Context())
		if told := p.service.Forecast(everyone(), 24*60); told.Learned != nil && when(told) {
			return told
		}
	}
	p.t.Fatalf("nothing was learned: %+v", p.service.Forecast(everyone(), 5))
	return protocol.PoolForecast{}
}

func always(protocol.PoolForecast) bool { return true }

func TestNothingIsForetoldOfNothing(t *testing.T) {
	p := newPool(t)
	told := p.service.Forecast(everyone(), 60)
	if told.Method != "" || !strings.Contains(told.Reason, "30 minutes") || len(told.Ahead) != 0 || told.Learned != nil || told.Calibration != nil {
		t.Errorf("%+v", told)
	}
	p.minute(2)
	advice, err := p.service.Advice(protocol.PoolAdviceQuery{})
	if err != nil || advice.Wanted != advice.Awake || advice.Awake != 10 || advice.Method != "" || !strings.Contains(advice.Reason, "leave all as it is") {
		t.Errorf("%+v, %v", advice, err)
	}
	for _, step := range advice.Workers {
		if step.Action != "keep" {
			t.Errorf("%+v", step)
		}
	}
}

// TestTotalsAreOfTheirRows: who holds and waits is told of the minute of which the sum
// is, whatever happened since.
func TestTotalsAreOfTheirRows(t *testing.T) {
	p := newPool(t)
	p.minute(3)
	p.minute(3)
	p.minute(7)
	for _, caller := range []access.Caller{everyone(), {Sight: access.Own, Owner: "alice"}} {
		told := p.service.Forecast(caller, 60)
		running, waiting := 0.0, 0.0
		for _, one := range told.Users {
			running, waiting = running+one.Running, waiting+one.Waiting
		}
		if newest := told.Minutes[len(told.Minutes)-1]; running != newest.Running || waiting != newest.Waiting || running == 0 {
			t.Errorf("%+v: %g held and %g waited for in the minute, and %g and %g by its rows", caller, newest.Running, newest.Waiting, running, waiting)
		}
	}
}

// TestAServerThatHasNotLearnedYetSaysSo is started again with more than enough minutes.
func TestAServerThatHasNotLearnedYetSaysSo(t *testing.T) {
	p := newPool(t)
	for range 100 {
		p.minute(2)
	}
	p.restart()
	told := p.service.Forecast(everyone(), 60)
	advice, err := p.service.Advice(protocol.PoolAdviceQuery{})
	if err != nil {
		t.Fatal(err)
	}
	for _, reason := range []string{told.Reason, advice.Reason} {
		if strings.Contains(reason, "needs 30 minutes") || !strings.Contains(reason, "not learned yet") && !strings.Contains(reason, "moment ago") {
			t.Errorf("it says %q", reason)
		}
	}
}

func TestDemandIsForetoldAndCompared(t *testing.T) {
	p := newPool(t)
	for i := range 300 {
		p.minute(2 + math.Round(2*math.Sin(float64(i)/20)))
		if i == 60 {
			p.learned(always)
		}
	}
	told := p.learned(func(told protocol.PoolForecast) bool { return told.Learned.JudgedOn > 0 })
	if told.Unit != protocol.DemandGPUs || told.Method != forecast.Persistence || told.Recorded != 300 || len(told.Minutes) != 300 || len(told.Gaps) != 0 {
		t.Errorf("%s by %s, %d recorded, gaps %v", told.Unit, told.Method, told.Recorded, told.Gaps)
	}
	if len(told.Ahead) != forecast.Horizon || !slices.IsSorted(told.Ahead[4].Demand) || !told.Ahead[0].At.Equal(told.Minutes[299].At.Add(time.Minute)) {
		t.Errorf("ahead: %+v", told.Ahead)
	}
	if told.Calibration == nil || told.Calibration.Minutes < 200 || len(told.Calibration.Covered) != len(told.Quantiles) || told.Calibration.Covered[8] < 0.6 || len(told.Calibration.Verdicts) != len(told.Quantiles) || told.Calibration.Trust == string(demand.Unsure) {
		t.Errorf("calibration: %+v", told.Calibration)
	}
	if want := (protocol.DemandOfUser{Owner: "bob", Waiting: 1}); len(told.Users) != 2 || !slices.Contains(told.Users, want) {
		t.Errorf("users: %+v", told.Users)
	}
	if last := told.Learned.Tried[len(told.Learned.Tried)-1]; last.Method != forecast.GRU || !strings.Contains(last.Reason, "4320") {
		t.Errorf("tried: %+v", told.Learned.Tried)
	}

	// A user is told of its own demand only.
	own := p.service.Forecast(access.Caller{Owner: "bob", Sight: access.Own}, 30)
	if own.Owner != "bob" || len(own.Minutes) != 30 || own.Minutes[3].Waiting != 1 || own.Minutes[3].Running != 0 || own.Minutes[3].Told != nil || own.Calibration != nil {
		t.Errorf("bob is told %+v", own)
	}
	if len(own.Users) != 1 || own.Users[0].Owner != "bob" || len(own.Ahead) != 0 || own.Method != "" || !strings.Contains(own.Reason, "of all users") {
		t.Errorf("bob is told %+v", own)
	}
	if other := p.service.Forecast(access.Caller{Owner: "carol", Sight: access.Own}, 30); len(other.Users) != 0 || other.Minutes[3].Waiting+other.Minutes[3].Running != 0 {
		t.Errorf("carol is told %+v", other)
	}
}

func TestTheKnobAdvises(t *testing.T) {
	p := newPool(t)
	for i := range 260 {
		p.minute(2 + float64(i/40%2)) // 3 or 4 are wanted, of 10
	}
	p.learned(func(told protocol.PoolForecast) bool { return told.Learned.JudgedOn > 0 })
	advice, err := p.service.Advice(protocol.PoolAdviceQuery{})
	if err != nil {
		t.Fatal(err)
	}
	if advice.Performance != 0.98 || advice.Total != 10 || advice.Awake != 10 || advice.Wanted < 3 || advice.Wanted > 5 || len(advice.Settings) != len(forecast.Quantiles()) || advice.Method != forecast.Persistence {
		t.Errorf("%+v", advice)
	}
	awake := advice.Awake
	for _, step := range advice.Workers {
		switch step.Action {
		case "drain":
			awake -= step.Capacity
			if step.Trials > 0 || step.Reason == "" {
				t.Errorf("%+v", step)
			}
		case "wake":
			t.Errorf("%+v", step)
		}
	}
	if awake < advice.Wanted || awake == advice.Awake {
		t.Errorf("%g stay awake of %g that are wanted: %+v", awake, advice.Wanted, advice.Workers)
	}
	if advice.Saved == nil || advice.Saved.Share != 0 || advice.Saved.Served != 1 {
		t.Errorf("saved: %+v", advice.Saved)
	}
	for i, one := range advice.Settings[1:] {
		if one.Wanted < advice.Settings[i].Wanted || one.Served < advice.Settings[i].Served {
			t.Errorf("%+v after %+v", one, advice.Settings[i])
		}
	}
	p.restart()
	p.look.Hosts = nil // they have not come back yet
	p.learned(func(told protocol.PoolForecast) bool { return told.Learned.JudgedOn > 0 })
	if early, err := p.service.Advice(protocol.PoolAdviceQuery{}); err != nil || early.Method != "" || !strings.Contains(early.Reason, "not all workers are back") {
		t.Errorf("to a server that has just started: %+v, %v", early, err)
	}
	for range 3 {
		p.minute(3)
	}
	more, err := p.service.Advice(protocol.PoolAdviceQuery{Performance: 0.5, Least: 8})
	if err != nil || more.Wanted != 8 || more.Quantile > advice.Quantile || !strings.Contains(more.Reason, "at least 8") {
		t.Errorf("%+v, %v", more, err)
	}
	for _, query := range []protocol.PoolAdviceQuery{{Performance: 1.5}, {Performance: -1}, {Performance: math.NaN()}, {Least: -1}} {
		if _, err := p.service.Advice(query); err == nil || !strings.Contains(err.Error(), "must be above 0") {
			t.Errorf("%+v: %v", query, err)
		}
	}
	p.skip(-2 * time.Hour) // the clock is set: what was forecast is not of the next minutes
	if stale, err := p.service.Advice(protocol.PoolAdviceQuery{}); err != nil || stale.Method != "" {
		t.Errorf("with a clock that was set back: %+v, %v", stale, err)
	}
}

func TestWhatWasRecordedOutlivesTheServer(t *testing.T) {
	p := newPool(t)
	for range 40 {
		p.minute(3)
	}
	before := p.learned(always)
	p.skip(5 * time.Minute)
	p.restart()
	after := p.service.Forecast(everyone(), 24*60)
	if len(after.Minutes) != len(before.Minutes) || !after.Minutes[0].At.Equal(before.Minutes[0].At) {
		t.Fatalf("%d minutes, before %d", len(after.Minutes), len(before.Minutes))
	}
	if stale := p.learned(always); len(stale.Ahead) != 0 {
		t.Errorf("from minutes that are long over it foretells %+v", stale.Ahead)
	}
	for range 2 {
		p.minute(3)
	}
	after = p.learned(always)
	if len(after.Gaps) != 1 || after.Continuous < 46 {
		t.Errorf("gaps %v, learned %+v, %d continuous", after.Gaps, after.Learned, after.Continuous)
	}
	p.skip(time.Hour) // too long to stand for
	for range 3 {
		p.minute(3)
	}
	late := p.service.Forecast(everyone(), 24*60)
	if len(late.Gaps) != 2 || late.Continuous > 3 || late.Method != forecast.Persistence || len(late.Ahead) != forecast.Horizon {
		t.Errorf("gaps %v, %d continuous, by %q", late.Gaps, late.Continuous, late.Method)
	}
}

// TestANetworkIsTried learns from three days, of which a network has a moment.
func TestANetworkIsTried(t *testing.T) {
	p := newPool(t)
	var minutes []demand.Minute
	for i := range forecast.LeastForNetwork {
		minutes = append(minutes, demand.Minute{At: start.Add(time.Duration(i) * time.Minute), Want: demand.Want{Running: 20 + math.Round(10*math.Sin(float64(i)/50))}, Capacity: 40})
	}
	service, err := forecasting.New(t.Context(), forecasting.Options{
		Now: p.now, Logger: slog.New(slog.DiscardHandler), Log: &recorded{minutes: minutes}, Look: p.seen,
		Power: forecast.Power{AwakeWatts: 50, AsleepWatts: 10, DelayMinutes: 1}, Performance: 0.98, Windows: 64, Hidden: 2,
	})
	if err != nil {
		t.Fatal(err)
	}
	p.service = service
	p.skip(forecast.LeastForNetwork * time.Minute)
	told := p.learned(always)
	if len(told.Learned.Tried) != 3 || told.Learned.JudgedOn == 0 {
		t.Fatalf("%+v", told.Learned)
	}
	for _, one := range told.Learned.Tried {
		if one.Reason != "" || one.Pinball == nil {
			t.Errorf("%+v", one)
		}
	}
	if len(told.Ahead) != forecast.Horizon {
		t.Errorf("ahead: %+v", told.Ahead)
	}
}

// recorded is a log in memory.
type recorded struct{ minutes []demand.Minute }

func (r *recorded) Read(context.Context, time.Time) ([]demand.Minute, error) { return r.minutes, nil }
func (r *recorded) Append(_ context.Context, one demand.Minute) error {
	r.minutes = append(r.minutes, one)
	return nil
}

func TestRunEndsWithItsContext(t *testing.T) {
	p := newPool(t)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	p.service.Run(ctx) // returns
}

func TestOptionsThatCannotBeMeantAreRefused(t *testing.T) {
	good := forecasting.Options{Now: time.Now, Power: forecast.Power{AwakeWatts: 50, AsleepWatts: 25, DelayMinutes: 1}, Performance: 0.9, Log: &recorded{}, Logger: slog.New(slog.DiscardHandler)}
	for name, spoil := range map[string]func(*forecasting.Options){
		"watts": func(o *forecasting.Options) { o.Power.AsleepWatts = 60 }, "delay": func(o *forecasting.Options) { o.Power.DelayMinutes = 5 },
		"performance": func(o *forecasting.Options) { o.Performance = 98 }, "GPUs": func(o *forecasting.Options) { o.Total = -1 },
	} {
		bad := good
		spoil(&bad)
		if _, err := forecasting.New(t.Context(), bad); err == nil {
			t.Errorf("wrong %s are taken", name)
		}
	}
	if _, err := forecasting.New(t.Context(), good); err != nil {
		t.Error(err)
	}
}
