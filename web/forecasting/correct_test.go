package forecasting_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
)

// TestTheKnobIsCorrected lets the demand jump as it did not where the knob was set.
func TestTheKnobIsCorrected(t *testing.T) {
	p := newPool(t)
	for range 260 {
		p.minute(2)
	}
	p.learned(func(told protocol.PoolForecast) bool { return told.Learned.JudgedOn > 0 })
	for range 12 {
		p.minute(2)
	}
	calm, err := p.service.Advice(protocol.PoolAdviceQuery{})
	if err != nil || calm.Correction == nil || calm.Correction.Minutes < 5 || calm.Correction.Served != 1 || calm.Correction.Debt != 0 || calm.Correction.Aim != 0.98 || strings.Contains(calm.Reason, "corrected") {
		t.Fatalf("where all was served: %+v, %+v, %v", calm, calm.Correction, err)
	}
	for i := range 40 {
		p.minute(2 + float64(4*(i/7%2))) // 3, and now and then 7
	}
	wild, err := p.service.Advice(protocol.PoolAdviceQuery{})
	if err != nil {
		t.Fatal(err)
	}
	seen := wild.Correction
	if seen == nil || seen.Minutes < calm.Correction.Minutes+38 || seen.Served >= 0.98 || seen.Debt <= 0 || seen.Debt > seen.MostDebt || seen.Aim <= 0.98 || !strings.Contains(wild.Reason, "corrected from 98% to 9") {
		t.Fatalf("when it jumps: %s, %+v", wild.Reason, seen)
	}
	if wild.Quantile < calm.Quantile {
		t.Errorf("with a debt the quantile is %g, before it was %g", wild.Quantile, calm.Quantile)
	}
	// For another performance as much of the shortfall is left; all there is for 1.
	for performance, want := range map[float64]float64{0.9: 1 - 0.1*(1-seen.Aim)/0.02, 1: 1} {
		if other, err := p.service.Advice(protocol.PoolAdviceQuery{Performance: performance}); err != nil || math.Abs(other.Correction.Aim-want) > 1e-9 {
			t.Errorf("for %g it aims at %g, want %g: %v", performance, other.Correction.Aim, want, err)
		}
	}
	// The next server goes on with it.
	p.restart()
	p.learned(func(told protocol.PoolForecast) bool { return told.Learned.JudgedOn > 0 })
	p.minute(2)
	p.minute(2)
	after, err := p.service.Advice(protocol.PoolAdviceQuery{})
	if err != nil || after.Correction == nil || after.Correction.Debt != seen.Debt || after.Correction.Minutes < seen.Minutes {
		t.Errorf("behind a restart: %+v, before %+v: %v", after.Correction, seen, err)
	}
}

// TestAGapIsNoMinuteOfTheKnob: what nobody saw corrects nothing.
func TestAGapIsNoMinuteOfTheKnob(t *testing.T) {
	p := newPool(t)
	for range 260 {
		p.minute(2)
	}
	p.learned(func(told protocol.PoolForecast) bool { return told.Learned.JudgedOn > 0 })
	for range 7 {
		p.minute(2)
	}
	before, err := p.service.Advice(protocol.PoolAdviceQuery{})
	if err != nil || before.Correction == nil {
		t.Fatalf("%+v, %v", before, err)
	}
	p.skip(10 * time.Minute)
	p.minute(9) // what was wanted for other minutes is not compared with it
	p.minute(9)
	after, err := p.service.Advice(protocol.PoolAdviceQuery{})
	if err != nil || after.Correction.Debt != 0 || after.Correction.Minutes > before.Correction.Minutes+1 {
		t.Errorf("behind a gap: %+v, before %+v: %v", after.Correction, before.Correction, err)
	}
}
