package launcher

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol/crew"
)

const (
	// fruitless is how many workers in a row may end without a trial until no more
	// of their shape are started for a while: firstPause, then twice as long.
	fruitless                = 3
	firstPause, longestPause = time.Minute, time.Hour
	// steady is how many times in a row there must be too many jobs until some are
	// taken back, while studies still want some.
	steady = 3
)

// Planner decides what to order. It is not safe for concurrent use.
type Planner struct {
	// Shapes are those of [Sorted].
	Shapes []Shape
	// Idle is after how long without a trial a worker leaves.
	Idle time.Duration
	// Keys are public keys of the identities that its workers hold. With any they run
	// encrypted studies only.
	Keys []string

	// Memory is what is kept over the end of the process; nil: nothing yet.
	Memory *Memory
}

// Plan says what to do now. It is called every few seconds.
func (p *Planner) Plan(now time.Time, seen Seen) Plan {
	first := p.Memory == nil
	if first {
		p.Memory = NewMemory()
	}
	have, others, strays := p.look(now, seen, first)
	plan := Plan{Cancel: strays}
	wanted := p.assign(now, seen.Wants, &plan)
	for _, shape := range p.Shapes {
		have[shape.Name].contested = others > 0 && !first
		p.decide(now, shape, wanted[shape.Name], have[shape.Name], &plan)
	}
	for _, order := range plan.Orders {
		p.Memory.ordered(now, order)
	}
	p.Memory.takeBack(plan.Cancel)
	p.Memory.At = now
	return plan
}

// assign gives each study's trials to the smallest shape that fits and is not on hold.
func (p *Planner) assign(now time.Time, wants []Want, plan *Plan) map[string]int {
	wanted := map[string]int{}
	for _, shape := range p.Shapes {
		p.Memory.record(shape.Name).Withheld = 0
	}
	for _, want := range wants {
		if want.Trials <= 0 {
			continue
		}
		if why := p.unopened(want); why != "" {
			plan.note(want.StudyID, "%s waits: %s", want.Study, why)
			continue
		}
		fits, held := "", ""
		for _, shape := range p.Shapes {
			switch {
			case !shape.Fits(want):
			case now.Before(p.Memory.record(shape.Name).Until):
				held = cmp.Or(held, shape.Name)
			case fits == "":
				fits = shape.Name
			}
		}
		switch {
		case fits != "":
			wanted[fits] += want.Trials
		case held != "":
			r := p.Memory.record(held)
			r.Withheld += want.Trials
			plan.note(want.StudyID, "%s waits: no more workers of the shape %s are started until %s, as %d in a row brought no trial: %s", want.Study, held, r.Until.Local().Format(time.TimeOnly), fruitless, r.Why)
		default:
			machines := want.String()
			if machines != "" {
				machines = ", " + machines
			}
			kept := ""
			for _, shape := range p.Shapes {
				if _, taint, tolerated := want.Tolerated(shape.machine()); !tolerated && kept == "" {
					kept = fmt.Sprintf("; resources.tolerates does not name %s, a taint of the shape %s", taint, shape.Name)
				}
			}
			plan.note(want.StudyID, "%s waits: no shape has what its trials ask for (%d GPUs, %d cores, %g GiB%s)%s: add one to the file of --shapes", want.Study, want.GPUs, want.Cores, want.MemoryGiB, machines, kept)
		}
	}
	return wanted
}

// unopened says why no worker of this launcher may run the study, by the keys that they
// hold; empty: they may.
func (p *Planner) unopened(want Want) string {
	switch {
	case want.Recipient == "" && len(p.Keys) > 0:
		return "the workers of this launcher have --identity and so run encrypted studies only: start another launcher without it"
	case want.Recipient != "" && !slices.Contains(p.Keys, want.Recipient):
		return "the workers of this launcher do not hold its key " + want.Recipient[:min(len(want.Recipient), 70)] + ": start a launcher with --identity FILE, the file of that key"
	}
	return ""
}

// note says something of a study, or of a shape.
func (p *Plan) note(study, format string, arguments ...any) {
	p.Notes = append(p.Notes, crew.LaunchNote{StudyID: study, Says: fmt.Sprintf(format, arguments...)})
}

// decide orders or takes back jobs of one shape. While others have free places, only
// what was wanted before as well is ordered: they may just be about to take the rest.
func (p *Planner) decide(now time.Time, shape Shape, wanted int, have *supply, plan *Plan) {
	r := p.Memory.record(shape.Name)
	asked := wanted
	if have.contested {
		asked = min(asked, r.Wanted)
	}
	r.Wanted = wanted
	coming := len(have.pending) + len(have.undecided) + have.unlisted
	jobs := func(trials int) int { return (max(0, trials-have.free) + shape.Trials - 1) / shape.Trials }
	if surplus := coming - jobs(wanted); surplus > 0 {
		r.Surplus++
		if wanted == 0 || r.Surplus >= steady {
			plan.Cancel = append(plan.Cancel, newest(have.pending, have.undecided, surplus)...)
		}
		return
	}
	r.Surplus = 0
	more := jobs(asked) - coming
	if more <= 0 || now.Before(r.Until) {
		return
	}
	for _, bound := range []struct {
		left int
		why  string
	}{
		{shape.Most - have.alive, fmt.Sprintf("most is %d", shape.Most)},
		{shape.MostPending - len(have.pending) - have.unlisted, fmt.Sprintf("most_pending is %d", shape.MostPending)},
		{shape.MostAnHour - len(r.Started), fmt.Sprintf("most_an_hour is %d", shape.MostAnHour)},
	} {
		if bound.left < more {
			more = max(0, bound.left)
			plan.note("", "%s for more workers of the shape %s: %s", waiting(wanted), shape.Name, bound.why)
		}
	}
	if shape.GPUHoursADay > 0 && r.GPUHours >= shape.GPUHoursADay {
		plan.note("", "no more workers of the shape %s are started today: they have used %.1f GPU-hours of %g (gpu_hours_a_day)", shape.Name, r.GPUHours, shape.GPUHoursADay)
		return
	}
	if r.Barren >= fruitless-1 && r.Pause > 0 {
		more = min(more, max(0, 1-coming)) // one alone, to see whether it is better now
	}
	if more = min(more, MostOfOrder); more == 0 {
		return
	}
	for range more {
		r.Started = append(r.Started, now)
	}
	plan.Orders = append(plan.Orders, Order{ID: strings.ToLower(rand.Text()[:10]), Shape: shape, Count: more})
}

// newest are the last of those that wait, and then of those that have not registered.
func newest(pending, undecided []string, count int) (ids []string) {
	for _, list := range [][]string{pending, undecided} {
		for i := len(list) - 1; i >= 0 && len(ids) < count; i-- {
			ids = append(ids, list[i])
		}
	}
	return ids
}

// waiting says how many trials wait.
func waiting(trials int) string {
	if trials == 1 {
		return "1 trial waits"
	}
	return fmt.Sprintf("%d trials wait", trials)
}
