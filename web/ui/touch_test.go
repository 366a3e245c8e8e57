package ui_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/web/auth"
)

// fingers lets the tab be touched, as on a phone.
func (p *tab) fingers() {
	p.t.Helper()
	p.show(390, 860, "light")
	if _, err := chromedp.Call(p.ctx, emulation.SetTouchEmulationEnabled, emulation.SetTouchEmulationEnabledParams{Enabled: true, MaxTouchPoints: 1}); err != nil {
		p.t.Fatal(err)
	}
}

// place is a place of the window in CSS pixels.
type place struct{ X, Y float64 }

// stroke moves a finger along the places; one place is a tap.
func (p *tab) stroke(along ...place) {
	p.t.Helper()
	touch := func(kind input.DispatchTouchEventType, points ...*input.TouchPoint) {
		p.do(func(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
			_, err := cdp.Call(ctx, t, input.DispatchTouchEvent, input.DispatchTouchEventParams{Type: kind, TouchPoints: append([]*input.TouchPoint{}, points...)})
			return chromedp.Void{}, err
		})
	}
	touch(input.DispatchTouchEventTypeTouchStart, &input.TouchPoint{X: along[0].X, Y: along[0].Y})
	for _, at := range along[1:] {
		touch(input.DispatchTouchEventTypeTouchMove, &input.TouchPoint{X: at.X, Y: at.Y})
	}
	touch(input.DispatchTouchEventTypeTouchEnd)
}

// corner is the upper left one of an element that is brought into the window.
func (p *tab) corner(selector string) place {
	p.t.Helper()
	var found place
	text := p.get(fmt.Sprintf(`(e => { e.scrollIntoView({block: "center", behavior: "instant"}); const {left, top} = e.getBoundingClientRect(); return {X: left, Y: top} })(document.querySelector(%q))`, selector))
	if err := json.Unmarshal([]byte(text), &found); err != nil {
		p.t.Fatalf("%s: %v", text, err)
	}
	return found
}

// tryTouch reads charts with a finger: a stroke along an axis chooses a range of
// it, one elsewhere scrolls, a tap says what is there, and a second one opens it.
func tryTouch(_ *testing.T, s *stage, chromium context.Context) {
	boosted(s)
	p := s.open(chromium, 390, 860, "light")
	p.carry(auth.Admin)
	p.fingers()
	p.visit("/studies/boosted-or-linear/charts?rung=0")
	rung := 0
	want := s.columns("boosted-or-linear", protocol.ColumnsQuery{Rung: &rung})
	linear, _ := chosen(want, "model", 1)
	p.seeText("#parallel-state", fmt.Sprintf("All %d trials", len(want.Numbers)))
	p.atRest()

	at := p.corner("#parallel-chart canvas")
	before := p.get("Math.round(scrollY)")
	p.stroke(place{at.X + 46, at.Y + 28}, place{at.X + 48, at.Y + 90}, place{at.X + 50, at.Y + 150})
	p.seeText("#parallel-state", fmt.Sprintf("%d of %d trials have model linear.", linear, len(want.Numbers)))
	p.see("Math.round(scrollY)", json.RawMessage(before))
	p.stroke(place{at.X + 46, at.Y + 200}) // a tap on the axis clears it
	p.seeText("#parallel-state", fmt.Sprintf("All %d trials", len(want.Numbers)))

	// Between two axes the page scrolls.
	p.stroke(place{at.X + 94, at.Y + 250}, place{at.X + 94, at.Y + 200}, place{at.X + 94, at.Y + 120}, place{at.X + 94, at.Y + 60})
	p.wait("Math.round(scrollY)", func(have string) bool { return have != before }, "another than "+before)
	p.seeText("#parallel-state", fmt.Sprintf("All %d trials", len(want.Numbers)))

	// A chart of our own canvas; on a page that does not scroll on by itself, where
	// a tap only stops that.
	p.visit("/studies/boosted-or-linear/charts?rung=0")
	p.seeText("#parallel-state", fmt.Sprintf("All %d trials", len(want.Numbers)))
	p.atRest()
	p.tapTwice("#slices .chart", "#edf-title", `document.querySelector("#slices .chart-tip:not([hidden])")?.textContent ?? ""`)
	// And one of the library's.
	p.visit("/studies/boosted-or-linear")
	p.see(`document.querySelector("#best-chart .u-over") !== null`, true)
	p.atRest()
	p.tapTwice("#best-chart .u-over", "#rung-title", `document.querySelector("#best-chart .chart-tip:not([hidden])")?.textContent ?? ""`)
	p.quiet()
}

// tapTwice taps here and there on the chart until it tells of a trial; elsewhere,
// where that goes away; and twice on the place again, which leads to the trial.
func (p *tab) tapTwice(chart, elsewhere, told string) {
	p.t.Helper()
	here := p.get("location.pathname")
	var size place
	if err := json.Unmarshal([]byte(p.get(fmt.Sprintf(`(({clientWidth, clientHeight}) => ({X: clientWidth, Y: clientHeight}))(document.querySelector(%q))`, chart))), &size); err != nil {
		p.t.Fatal(err)
	}
	p.get(`(window.taps = 0, addEventListener("click", () => window.taps++, true))`)
	taps := 0
	tap := func(on string, x, y float64) { // what a finger does reaches the page later
		corner := p.corner(on)
		p.stroke(place{corner.X + x, corner.Y + y})
		taps++
		p.see("window.taps ?? "+strconv.Itoa(taps), taps)
	}
	for step := range 400 {
		x, y := size.X*(0.15+0.04*float64(step%20)), size.Y*(0.05+0.045*float64(step/20))
		tap(chart, x, y)
		if !strings.Contains(p.get(told), "rial ") {
			continue
		}
		if now := p.get("location.pathname"); now != here {
			p.t.Fatalf("one tap on %s led from %s to %s", chart, here, now)
		}
		tap(elsewhere, 5, 5)
		p.see(told, "")
		tap(chart, x, y)
		p.wait(told, func(have string) bool { return strings.Contains(have, "rial ") }, "a trial")
		p.see("location.pathname", json.RawMessage(here))
		corner := p.corner(chart)
		p.stroke(place{corner.X + x, corner.Y + y})
		p.wait("location.pathname", func(have string) bool { return strings.Contains(have, "/trials/") }, "a trial's")
		return
	}
	p.t.Fatalf("no tap on %s tells of a trial", chart)
}
