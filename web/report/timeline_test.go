package report

import (
	"testing"
	"time"

	"github.com/tandem-tune/tandem/trial"
)

// TestShortTimesAreJoinedNotLeftOut: of a worker with thousands of them the
// whole time is drawn, in a bounded number of bars, and a failure stays to be seen.
func TestShortTimesAreJoinedNotLeftOut(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	busy := lane{worker: "one"}
	const spans = 5_000
	for i := range spans {
		end := trial.Paused
		if i == 1234 {
			end = trial.Failed
		}
		busy.spans = append(busy.spans, Span{Worker: "one", Number: i, Rung: i % 3, From: at(i), To: at(i + 1), End: end})
	}
	x := scale{low: 0, high: spans, from: 0, to: 700}
	bars := condensed(busy, x, 7)
	if len(bars) > 101 || len(bars) < 90 {
		t.Fatalf("%d bars, want about 100", len(bars))
	}
	trainings, failed := 0, 0
	for i, bar := range bars {
		trainings += bar.count
		if bar.End == trial.Failed {
			failed++
		}
		if bar.Rung != 2 || i > 0 && bar.From.After(bars[i-1].To) {
			t.Errorf("bar %d is of rung %d from %v, the one before ends at %v", i, bar.Rung, bar.From, bars[max(0, i-1)].To)
		}
	}
	if trainings != spans || failed != 1 || !bars[len(bars)-1].To.Equal(at(spans)) {
		t.Errorf("%d trainings with %d failures up to %v", trainings, failed, bars[len(bars)-1].To)
	}
	if all := condensed(busy, x, 0); len(all) != spans {
		t.Errorf("with room for all, %d bars", len(all))
	}
	busy.spans[7].To = at(20) // overlaps: a second trial beside it
	if rows := packed(busy.spans[:10]); rows[7] != 0 || rows[8] != 1 || rows[9] != 1 {
		t.Errorf("the rows are %v", rows)
	}
}
