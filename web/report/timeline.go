package report

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/trial"
)

// lane is what one worker did.
type lane struct {
	worker string
	spans  []Span
	busy   time.Duration
	rows   int // as many as it ran at once
}

// timelineFigure is who trained what and when.
func timelineFigure(source Source) figure {
	f := figure{ID: "timeline", Title: "Timeline of the workers", Width: wide, Height: 60}
	history := source.History
	if len(history.Spans) == 0 {
		f.Summary = "No worker has had a trial."
		return f
	}
	lanes := lanesOf(history.Spans)
	shown := lanes[:min(len(lanes), maxLanes)]
	rows := 0
	for _, one := range shown {
		rows += one.rows
	}
	height := min(18, max(3, 1200/float64(rows)))
	f.Height = float64(rows)*height + 6*float64(len(shown)) + 60
	created := source.Study.Created
	x := scale{low: 0, high: max(history.Last.Sub(created).Seconds(), 1e-9), from: 150, to: f.Width - plotRight, seconds: true}
	least := 0.0 // how wide a bar is at least
	if spansOf(shown) > maxSpans {
		least = (x.to - x.from) * float64(rows) / maxSpans
		f.note("Times that are short here and follow each other on a worker are joined to one bar, with the pauses between them: it shows the highest rung, and a failure if there was one.")
	}
	y := 14.0
	for _, one := range shown {
		f.text("label end", x.from-8, y+13, clipped(source.workerName(one.worker), 22))
		for _, bar := range condensed(one, x, least) {
			f.span(source, bar, x, y+float64(bar.row)*height, height)
		}
		y += float64(one.rows)*height + 6
		f.line("grid", x.from, y-3, x.to, y-3)
	}
	for _, value := range x.ticks(7) {
		f.line("grid", x.at(value), 10, x.at(value), y)
		f.text("tick middle", x.at(value), y+15, format.Seconds(value))
	}
	f.text("name end", x.to, y+32, "since the study was created")
	f.Summary = fmt.Sprintf("%s had trials %s; a bar for each time.", format.Count(len(lanes), "worker"), times(len(history.Spans)))
	f.Keys = []key{{"shade3", "bar", "the rung was reached; the darker, the higher"}, {"ended", "bar", "given back, stopped or still held"}, {"bad", "bar", "failed or lost"}}
	if left := len(lanes) - len(shown); left > 0 {
		f.note(fmt.Sprintf("The %d workers that were busy the longest are drawn; %d are left out.", len(shown), left))
	}
	f.Numbers = laneTable(source, shown)
	return f
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// stretch is a bar: one time a worker had a trial, or several.
type stretch struct {
	Span
	row, count int
}

// with joins what came next to the bar, which shows the highest rung of all, and a
// failure if there was one.
func (s *stretch) with(next Span) {
	s.To, s.count, s.Rung = next.To, s.count+1, max(s.Rung, next.Rung)
	if s.End != trial.Failed && s.End != trial.Lost {
		s.End = next.End
	}
}

// condensed are the bars of a worker: those that are less than so wide are joined
// with what follows them in their row, until they are as wide.
func condensed(of lane, x scale, least float64) []stretch {
	var bars []stretch
	last := map[int]int{} // of each row
	width := func(from, to time.Time) float64 { return (x.to - x.from) * to.Sub(from).Seconds() / x.high }
	for i, row := range packed(of.spans) {
		one := of.spans[i]
		if at, begun := last[row]; begun && width(bars[at].From, bars[at].To) < least && width(bars[at].From, one.From) < least {
			bars[at].with(one)
			continue
		}
		last[row] = len(bars)
		bars = append(bars, stretch{one, row, 1})
	}
	return bars
}

// span draws one bar.
func (f *figure) span(source Source, one stretch, x scale, y, height float64) {
	created := source.Study.Created
	from, to := x.at(one.From.Sub(created).Seconds()), x.at(one.To.Sub(created).Seconds())
	class := "span ended"
	switch {
	case one.End == trial.Paused, one.End == trial.Completed:
		class = "span " + rungClass(one.Rung, len(source.Study.Rungs))
	case one.End == trial.Failed, one.End == trial.Lost:
		class = "span bad"
	}
	lasted := format.Seconds(one.To.Sub(one.From).Seconds())
	note := fmt.Sprintf("trial %d, rung %d: %s, then %s", one.Number, one.Rung, lasted, one.End)
	if one.count > 1 {
		note = fmt.Sprintf("%s one after the other in %s, up to rung %d", format.Count(one.count, "training"), lasted, one.Rung)
	}
	f.bar(class, box{from, y, to - from, height - min(2, height/3)}, note)
	if number := fmt.Sprint(one.Number); one.count == 1 && height > 12 && to-from > 8*float64(len(number))+4 {
		f.text("inside middle", (from+to)/2, y+12, number)
	}
}

// lanesOf are the workers, the busiest first.
func lanesOf(spans []Span) []lane {
	by := map[string]*lane{}
	for _, one := range spans {
		if by[one.Worker] == nil {
			by[one.Worker] = &lane{worker: one.Worker}
		}
		by[one.Worker].spans = append(by[one.Worker].spans, one)
		by[one.Worker].busy += one.To.Sub(one.From)
	}
	list := make([]lane, 0, len(by))
	for _, one := range by {
		one.rows = 1
		for _, row := range packed(one.spans) {
			one.rows = max(one.rows, row+1)
		}
		list = append(list, *one)
	}
	slices.SortFunc(list, func(a, b lane) int {
		return cmp.Or(cmp.Compare(b.busy, a.busy), cmp.Compare(a.worker, b.worker))
	})
	return list
}

// packed is the row of each span: the first in which it overlaps no other.
func packed(spans []Span) []int {
	rows := make([]int, len(spans))
	var free []time.Time // when each row is free again
	for i, one := range spans {
		row := slices.IndexFunc(free, func(at time.Time) bool { return !at.After(one.From) })
		if row < 0 {
			free = append(free, one.To)
			row = len(free) - 1
		}
		free[row] = one.To
		rows[i] = row
	}
	return rows
}

func spansOf(lanes []lane) int {
	sum := 0
	for _, one := range lanes {
		sum += len(one.spans)
	}
	return sum
}

func laneTable(source Source, lanes []lane) *table {
	t := &table{Caption: "What each worker did", Heading: []string{"Worker", "Trials held", "Time with a trial", "Failed or lost"}}
	for _, one := range lanes {
		bad := 0
		for _, span := range one.spans {
			if span.End == trial.Failed || span.End == trial.Lost {
				bad++
			}
		}
		t.Rows = append(t.Rows, []cell{words(source.workerName(one.worker)), numeral(fmt.Sprint(len(one.spans))), numeral(format.Seconds(one.busy.Seconds())), numeral(fmt.Sprint(bad))})
	}
	return t
}

// workerName is a worker's name; its id where the name is not known any more.
func (s Source) workerName(id string) string {
	if name := s.Workers[id]; name != "" {
		return name
	}
	return id
}
