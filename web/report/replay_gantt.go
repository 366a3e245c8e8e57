package report

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/workers/replay"
)

// The bounds of a drawing of what ran where.
const (
	drawnMachines = 40
	drawnStays    = 1_500
	drawnCells    = 200 // of a machine, where there are more stays
)

func policies(n int) string {
	if n == 1 {
		return "1 policy"
	}
	return fmt.Sprintf("%d policies", n)
}

// crew is what a machine did.
type crew struct {
	name  string
	stays []replay.Span
	busy  float64 // seconds of stays
}

// ganttFigure draws what ran where, on the machines that were busy the longest:
// a bar for each stay, or where there are too many, how full machines were.
func ganttFigure(source Replay, o replay.Outcome, place int) figure {
	f := figure{ID: "gantt" + strconv.Itoa(place), Title: "What ran where: " + o.Policy, Width: wide}
	start := 0.0
	if len(o.Steps) > 0 {
		start = o.Steps[0].At
	}
	crews := crewsOf(o.Spans, start)
	shown := crews[:min(len(crews), drawnMachines)]
	stays := 0
	for _, one := range shown {
		stays += len(one.stays)
	}
	slices.SortFunc(shown, func(a, b crew) int { return cmp.Compare(a.name, b.name) })
	x := scale{high: max(o.Makespan, 1e-9), from: 150, to: f.Width - plotRight, seconds: true}
	size := map[string]int{}
	for _, one := range source.Cluster.Types {
		size[one.Name] = max(1, one.Capacity.GPUs)
	}
	units := map[string]int{}
	for _, one := range source.Cluster.Machines {
		units[one.Name] = size[one.Type]
	}
	y := 14.0
	for _, one := range shown {
		f.text("label end", x.from-8, y+10, clipped(one.name, 22))
		if stays > drawnStays {
			f.fullness(one, x, y, units[one.name])
			y += 18
		} else {
			y = f.stays(one, x, y, units[one.name]) + 6
		}
		f.line("grid", x.from, y-3, x.to, y-3)
	}
	for _, value := range x.ticks(7) {
		f.line("grid", x.at(value), 10, x.at(value), y)
		f.text("tick middle", x.at(value), y+15, sinceStart(value))
	}
	f.text("name end", x.to, y+32, "since the first job arrived")
	f.Height = y + 46
	f.Summary = fmt.Sprintf("Jobs were on %s %s; %s by moves.", format.Count(len(crews), "machine"), times(len(o.Spans)), times(o.Migrations))
	if stays > drawnStays {
		f.Keys = []key{{"shade0", "bar", "hardly used"}, {"shade6", "bar", "full: as many GPUs taken as there are"}}
		f.note(fmt.Sprintf("%d stays are too many to draw one by one: how full each machine was is drawn, over %s each.", stays, format.Seconds(o.Makespan/drawnCells)))
	} else {
		f.Keys = []key{{"shade1", "bar", "a stay on few of the machine's GPUs"}, {"shade6", "bar", "on all of them"}}
	}
	if left := len(crews) - len(shown); left > 0 {
		f.note(fmt.Sprintf("The %d machines that were busy the longest are drawn; %d are left out.", len(shown), left))
	}
	return f
}

// crewsOf are the machines, the busiest first, with times since the start.
func crewsOf(spans []replay.Span, start float64) []crew {
	byName := map[string]*crew{}
	for _, one := range spans {
		if byName[one.Machine] == nil {
			byName[one.Machine] = &crew{name: one.Machine}
		}
		one.From, one.To = one.From-start, one.To-start
		of := byName[one.Machine]
		of.stays = append(of.stays, one)
		of.busy += one.To - one.From
	}
	list := make([]crew, 0, len(byName))
	for _, one := range byName {
		slices.SortStableFunc(one.stays, func(a, b replay.Span) int { return cmp.Compare(a.From, b.From) })
		list = append(list, *one)
	}
	slices.SortFunc(list, func(a, b crew) int { return cmp.Or(cmp.Compare(b.busy, a.busy), cmp.Compare(a.name, b.name)) })
	return list
}

// stays draws a bar for each, in rows in which none overlap, and says where it
// ends.
func (f *figure) stays(of crew, x scale, y float64, units int) float64 {
	var free []float64 // when each row is free again
	rows := make([]int, len(of.stays))
	for i, one := range of.stays {
		row := slices.IndexFunc(free, func(at float64) bool { return at <= one.From })
		if row < 0 {
			row = len(free)
			free = append(free, 0)
		}
		free[row], rows[i] = one.To, row
	}
	height := max(3, min(12, 48/float64(len(free))))
	for i, one := range of.stays {
		class := "span shade" + strconv.Itoa(shadeOf(float64(max(1, len(one.GPUs))), float64(units)))
		from, to := x.at(one.From), x.at(one.To)
		f.bar(class, box{from, y + float64(rows[i])*height, to - from, height - 1}, fmt.Sprintf("job %s, %s, %s", one.Job, format.Count(len(one.GPUs), "GPU"), format.Seconds(one.To-one.From)))
	}
	return y + max(12, float64(len(free))*height)
}

// fullness draws how many of the GPUs were taken over time: jobs, where there
// are no GPUs.
func (f *figure) fullness(of crew, x scale, y float64, units int) {
	var taken [drawnCells]float64
	width := x.high / drawnCells
	for _, one := range of.stays {
		for cell := max(0, int(one.From/width)); cell < drawnCells && float64(cell)*width < one.To; cell++ {
			overlap := min(one.To, float64(cell+1)*width) - max(one.From, float64(cell)*width)
			taken[cell] += max(0, overlap) / width * float64(max(1, len(one.GPUs)))
		}
	}
	for cell, value := range taken {
		if value < 0.005*float64(units) {
			continue
		}
		from, to := x.at(float64(cell)*width), x.at(float64(cell+1)*width)
		f.bar("span shade"+strconv.Itoa(shadeOf(value, float64(units))), box{from, y, to - from, 12}, fmt.Sprintf("%.1f of %d from %s on", value, units, format.Seconds(float64(cell)*width)))
	}
}
