package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/internal/protocol"
)

// watching runs before anything of a page: it notes when the leaderboard has its
// rows, asks for another order at once, and notes when that is there.
const watching = `(() => {
	if (!/^\/studies\/[^/]+$/.test(location.pathname)) return;
	const check = () => {
		const rows = document.querySelectorAll("#board tbody tr").length;
		if (rows === 0 || document.getElementById("content").hidden) {
			requestAnimationFrame(check);
			return;
		}
		window.shownAt = performance.now();
		if (location.search !== "") return;
		window.answer(() => window.head("Epochs").click()).then(() => (window.answeredAt = performance.now()));
	};
	window.head = (title) => [...document.querySelectorAll("#board thead button")].find((one) => one.textContent === title);
	window.answer = (ask) => new Promise((resolve) => {
		const frame = document.getElementById("board-frame");
		const began = performance.now();
		const observer = new MutationObserver(() => {
			if (frame.hasAttribute("aria-busy")) return;
			observer.disconnect();
			requestAnimationFrame(() => resolve(performance.now() - began));
		});
		observer.observe(frame, { attributes: true });
		ask();
	});
	window.write = (id, value, kind) => {
		const field = document.getElementById(id);
		field.value = value;
		field.dispatchEvent(new Event(kind));
	};
	window.follow = (number) => {
		window.changedAt = 0;
		const body = document.querySelector("#board tbody");
		const column = [...document.querySelectorAll("#board thead th")].findIndex((one) => one.textContent === "Epochs");
		const observer = new MutationObserver(() => {
			const row = body.querySelector('tr[data-number="' + number + '"]');
			if (row?.cells[column].textContent !== "1") return;
			observer.disconnect();
			requestAnimationFrame(() => (window.changedAt = performance.timeOrigin + performance.now()));
		});
		observer.observe(body, { childList: true, subtree: true, characterData: true });
		return 1;
	};
	requestAnimationFrame(check);
})()`

// transferred adds up the bytes of the page and of all it fetched, as they were
// sent; answers of the API apart.
const transferred = `[...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")]
	.filter((one) => one.name.includes("/api/") === %t).reduce((sum, one) => sum + one.encodedBodySize, 0)`

type measuring struct {
	options options
	browser *browser
	client  *rest.Client
	study   string
}

// loads measures how long it takes until the leaderboard is there, and until it
// has answered a first click, with an empty cache and with a warm one.
func (m *measuring) loads() error {
	for _, warm := range []bool{false, true} {
		var shown, answered, bytes, told []float64
		for range m.options.runs {
			if !warm {
				if err := m.browser.forget(); err != nil {
					return err
				}
			}
			if err := errors.Join(m.browser.visit(m.browser.path), m.browser.until("window.answeredAt > 0")); err != nil {
				return err
			}
			for expression, into := range map[string]*[]float64{
				"window.shownAt": &shown, "window.answeredAt": &answered, fmt.Sprintf(transferred, false): &bytes, fmt.Sprintf(transferred, true): &told,
			} {
				value, err := m.browser.number(expression)
				if err != nil {
					return err
				}
				*into = append(*into, value)
			}
		}
		visit := map[bool]string{false: "first visit", true: "next visit"}[warm]
		spread(visit+": the leaderboard is there", shown, "ms")
		spread(visit+": a click on a heading, made at once, is answered", answered, "ms")
		if !warm {
			spread(visit+": page, styles and modules, as sent", bytes, "bytes")
			spread(visit+": answers of the API until then", told, "bytes")
		}
	}
	time.Sleep(3 * time.Second) // the charts come later
	return m.browser.picture("study")
}

// questions measures how long the leaderboard takes to answer its reader.
func (m *measuring) questions() error {
	if err := errors.Join(m.browser.visit(m.browser.path+"?measured=1"), m.browser.until("window.shownAt > 0")); err != nil {
		return err
	}
	time.Sleep(3 * time.Second) // the charts are drawn
	for _, one := range []struct{ what, first, second string }{
		{"sort by a parameter", `window.head("dropout").click()`, `window.head("dropout").click()`},
		{"sort by the objective", `window.head("accuracy").click()`, `window.head("accuracy").click()`},
		{"turn the page", `document.querySelector("#pager button:last-child").click()`, `document.querySelector("#pager button:last-child").click()`},
		{"find a parameter's value", `window.write("filter-query", "optimizer = sgd", "change")`, `window.write("filter-query", "optimizer = adam", "change")`},
		{"choose a state", `window.write("filter-state", "paused", "change")`, `window.write("filter-state", "", "change")`},
	} {
		var times []float64
		for i := range m.options.runs {
			ask := one.first
			if i%2 == 1 {
				ask = one.second
			}
			took, err := m.browser.number("window.answer(() => " + ask + ")")
			if err != nil {
				return err
			}
			times = append(times, took)
			time.Sleep(400 * time.Millisecond)
		}
		spread(one.what, times, "ms")
	}
	return m.browser.picture("answered")
}

// updates measures how long it takes from a report's answer until the page shows
// what was reported.
func (m *measuring) updates(ctx context.Context) error {
	if err := errors.Join(m.browser.visit(m.browser.path+"?state=active&sort=number"), m.browser.until(`document.getElementById("link-state").textContent === "live"`)); err != nil {
		return err
	}
	times, err := m.follow(ctx, 400*time.Millisecond)
	if err != nil {
		return err
	}
	spread("a report is in the page, after its answer", times, "ms")
	return m.browser.picture("active")
}

// underLoad measures the same while clients report as fast as they can.
func (m *measuring) underLoad(ctx context.Context) error {
	loading, stop := context.WithCancel(ctx)
	var trials atomic.Int64
	var group sync.WaitGroup
	for i := range m.options.load {
		group.Go(func() {
			// It ends with an error: it is cut off in the middle of its work.
			_ = work(loading, m.client, fmt.Sprintf("bench-load-%02d", i), m.study, func(*protocol.Lease) bool {
				trials.Add(1)
				return true
			})
		})
	}
	began := time.Now()
	times, err := m.follow(ctx, 400*time.Millisecond)
	rate := float64(trials.Load()) / time.Since(began).Seconds()
	stop()
	group.Wait()
	if err != nil {
		return err
	}
	spread(fmt.Sprintf("the same while %d clients train %.0f trials a second", m.options.load, rate), times, "ms")
	return nil
}

// follow trains an epoch of one trial after the other, and waits until each is
// seen: milliseconds from the answer of the report.
func (m *measuring) follow(ctx context.Context, pause time.Duration) ([]float64, error) {
	const worker = "bench-updates"
	if _, err := m.client.Register(ctx, protocol.WorkerRegistration{ID: worker, Name: worker, Slots: 1}); err != nil {
		return nil, err
	}
	var times []float64
	for len(times) < 3*m.options.runs {
		reply, err := m.client.Lease(ctx, protocol.LeaseRequest{Worker: worker, Study: m.study, WaitSeconds: 10})
		if err != nil || reply.Lease == nil {
			return nil, errors.Join(err, errors.New("there was nothing to lease"))
		}
		lease := reply.Lease
		if lease.Rung > 0 { // a promoted one: its number of epochs is another
			for epoch := lease.FirstEpoch; epoch <= lease.Budget.Epochs; epoch++ {
				if err := report(ctx, m.client, lease, epoch); err != nil {
					return nil, err
				}
			}
			if err := finish(ctx, m.client, lease); err != nil {
				return nil, err
			}
			continue
		}
		took, err := m.see(ctx, lease)
		if err != nil {
			return nil, err
		}
		times = append(times, took)
		if err := finish(ctx, m.client, lease); err != nil {
			return nil, err
		}
		time.Sleep(pause)
	}
	return times, nil
}

// see reports the first epoch of a trial whose row is in the page.
func (m *measuring) see(ctx context.Context, lease *protocol.Lease) (float64, error) {
	if err := m.browser.until(fmt.Sprintf(`document.querySelector('#board tr[data-number="%d"]') !== null`, lease.Number)); err != nil {
		return 0, err
	}
	if _, err := m.browser.number(fmt.Sprintf("window.follow(%d)", lease.Number)); err != nil {
		return 0, err
	}
	if err := report(ctx, m.client, lease, 1); err != nil {
		return 0, err
	}
	answered := float64(time.Now().UnixMicro()) / 1000
	if err := m.browser.until("window.changedAt > 0"); err != nil {
		return 0, err
	}
	changed, err := m.browser.number("window.changedAt")
	return math.Max(0, changed-answered), err
}
